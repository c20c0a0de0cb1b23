package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainWords returns the words of a command that is one call of a program. Anything that needs a
// shell is refused by name: without a shell it would not happen, and the command that runs must be
// the one that was allowed.
func plainWords(f *syntax.File) ([]string, error) {
	if len(f.Stmts) != 1 {
		return nil, errors.New("only one command at a time: ; and line breaks between commands are not allowed")
	}
	s := f.Stmts[0]
	switch {
	case len(s.Redirs) > 0:
		return nil, takesShell(s.Redirs[0].Op.String(), "redirections")
	case s.Background || s.Disown:
		return nil, takesShell("&", "commands in the background")
	case s.Coprocess:
		return nil, takesShell("|&", "commands in the background")
	case s.Negated:
		return nil, takesShell("!", "operators")
	case s.Semicolon.IsValid():
		return nil, takesShell(";", "operators")
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	switch {
	case !ok:
		return nil, refuseCommand(s.Cmd)
	case len(call.Assigns) > 0:
		return nil, errors.New("variables cannot be set before a command")
	case len(call.Args) == 0:
		return nil, errors.New("the command is empty")
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		var err error
		if words[i], err = literal(w); err != nil {
			return nil, err
		}
	}
	if words[0] == "" {
		return nil, errors.New("the program's name is empty")
	}
	return words, nil
}

func takesShell(what, kind string) error {
	return fmt.Errorf("%s is not allowed: no shell runs the command, so there are no %s; quote it if it belongs to an argument", what, kind)
}

func refuseCommand(c syntax.Command) error {
	if b, ok := c.(*syntax.BinaryCmd); ok {
		return takesShell(b.Op.String(), "operators")
	}
	return errors.New("only a program and its arguments are allowed, no shell syntax")
}

// literal returns the value of a word if it is constant and needs no shell.
func literal(w *syntax.Word) (string, error) {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && (lit.Value == "[" || lit.Value == "[[") { // a command name, not a character set
			return lit.Value, nil
		}
	}
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if err := unquoted(&b, p.Value, i == 0); err != nil {
				return "", err
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", takesShell("$'…'", "escapes of a shell")
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if err := doubleQuoted(&b, p); err != nil {
				return "", err
			}
		case *syntax.ParamExp, *syntax.ArithmExp:
			return "", takesShell("$", "variables")
		case *syntax.CmdSubst:
			return "", takesShell("$( or a backquote", "commands within commands")
		default:
			return "", errors.New("only plain and quoted words are allowed")
		}
	}
	if braced(w) {
		return "", takesShell("{", "lists in braces")
	}
	return b.String(), nil
}

// unquoted writes text outside quotes, without its escapes. A shell would expand wildcards and
// home directories, so they are refused unless they are quoted.
func unquoted(b *strings.Builder, s string, first bool) error {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '~' && (i == 0 && first || i > 0 && strings.IndexByte("=:", s[i-1]) >= 0):
			return takesShell("~", "home folders")
		case c == '\\' && i+1 == len(s):
			return takesShell(`\`, "escapes of nothing")
		case c == '\\':
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case strings.IndexByte("*?[", c) >= 0:
			return takesShell(string(c), "wildcards")
		default:
			b.WriteByte(c)
		}
	}
	return nil
}

func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) error {
	if q.Dollar {
		return takesShell(`$"…"`, "translations of a shell")
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return takesShell("$ or a backquote within double quotes", "variables and commands within commands")
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
				i++
				if s[i] == '\n' {
					continue
				}
			}
			b.WriteByte(s[i])
		}
	}
	return nil
}

// braced reports whether a shell may expand the braces of a word, as in a{b,c} and {1..3}.
func braced(w *syntax.Word) bool {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
			lit, ok := p.(*syntax.Lit)
			return ok && slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(lit.Value, t) })
		})
	}
	return has("{") && has(",", "..")
}
