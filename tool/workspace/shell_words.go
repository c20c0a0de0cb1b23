package workspace

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	errNUL         = errors.New("the command has a NUL byte")
	errLongCommand = fmt.Errorf("the command is longer than %d bytes", maxCommand)
)

const maxCommand = 64 << 10

// simpleCommand takes a command apart into the words of one program's call. What
// a shell would do more than that is refused, by name: it would not happen, and
// what runs must be what was allowed.
func simpleCommand(text string) ([]string, error) {
	switch {
	case strings.ContainsRune(text, 0):
		return nil, errNUL
	case len(text) > maxCommand:
		return nil, errLongCommand
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("the command cannot be read: %w", err)
	}
	switch len(f.Stmts) {
	case 0:
		return nil, errors.New("the command is empty")
	case 1:
	default:
		return nil, errors.New("only one command at a time: ; and line breaks between commands are not allowed")
	}
	s := f.Stmts[0]
	switch {
	case len(s.Redirs) > 0:
		return nil, notAllowed(s.Redirs[0].Op.String(), "redirections")
	case s.Background:
		return nil, notAllowed("&", "commands in the background")
	case s.Coprocess:
		return nil, notAllowed("|&", "commands in the background")
	case s.Negated:
		return nil, notAllowed("!", "operators")
	case s.Semicolon.IsValid():
		return nil, notAllowed(";", "operators")
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
	argv := make([]string, len(call.Args))
	for i, w := range call.Args {
		if argv[i], err = literal(w); err != nil {
			return nil, err
		}
	}
	if argv[0] == "" {
		return nil, errors.New("the program's name is empty")
	}
	return argv, nil
}

func notAllowed(what, kind string) error {
	return fmt.Errorf("%s is not allowed: no shell runs the command, so there are no %s; quote it if it belongs to an argument", what, kind)
}

func refuseCommand(c syntax.Command) error {
	if b, ok := c.(*syntax.BinaryCmd); ok {
		return notAllowed(b.Op.String(), "operators")
	}
	return errors.New("only a program and its arguments: what only a shell can do is not allowed")
}

// literal is what a word says, if it says that without a shell.
func literal(w *syntax.Word) (string, error) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if err := unquoted(&b, p.Value, i == 0); err != nil {
				return "", err
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", notAllowed("$'…'", "escapes of a shell")
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if err := doubleQuoted(&b, p); err != nil {
				return "", err
			}
		case *syntax.ParamExp, *syntax.ArithmExp:
			return "", notAllowed("$", "variables")
		case *syntax.CmdSubst:
			return "", notAllowed("$( or a backquote", "commands within commands")
		default:
			return "", errors.New("only plain and quoted words are allowed")
		}
	}
	return b.String(), nil
}

// unquoted writes what stands outside quotes. A shell would replace wildcards, so
// they are refused unless they are quoted.
func unquoted(b *strings.Builder, s string, first bool) error {
	if first && strings.HasPrefix(s, "~") {
		return notAllowed("~", "home folders")
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case strings.IndexByte("*?[", c) >= 0:
			return notAllowed(string(c), "wildcards")
		case c == '{' && strings.Contains(s[i:], "}") && (strings.Contains(s[i:], ",") || strings.Contains(s[i:], "..")):
			return notAllowed("{", "lists in braces")
		default:
			b.WriteByte(c)
		}
	}
	return nil
}

func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) error {
	if q.Dollar {
		return notAllowed(`$"…"`, "translations of a shell")
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return notAllowed("$ or a backquote within double quotes", "variables and commands within commands")
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
