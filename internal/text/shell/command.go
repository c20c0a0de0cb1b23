package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command describes the effects of a shell command, as precisely as is possible without running
// it.
type Command struct {
	// Text is the command itself.
	Text string `json:"text"`
	// Programs lists the names of all programs that the command runs, in order, each once: those
	// in pipelines, lists, subshells, substitutions and functions, and those that env, xargs,
	// sudo, sh -c and similar programs run.
	//
	// The list is safe for rules that allow and for rules that deny. A program called by a path is
	// listed as written and by its base name; a name in capitals also in lower case. So a rule
	// that allows ls does not allow ./ls, and a rule that denies rm denies /bin/rm. "?" means an
	// unknown program: a name that an expansion makes, a wrapper with options, eval, a command
	// that changes the environment, or a command that cannot be parsed.
	Programs []string `json:"programs"`
	// Simple reports that the command is one program with fixed arguments and nothing else: no
	// operator, redirect, expansion, substitution, pattern or assignment, and no program that runs
	// others. Such a command needs no shell.
	Simple bool `json:"simple"`
	// Args are the arguments of a simple command, unquoted, without the program.
	Args []string `json:"args"`
	// Redirects lists the files that the command reads or writes by operators, and Writes those
	// that it may write; "?" means a file that is known only when the command runs.
	Redirects []string `json:"redirects"`
	Writes    []string `json:"writes"`
	// ParseError is the reason why the command cannot be parsed; empty if it can.
	ParseError string `json:"parse_error"`

	// read reports that Parse or ParseScript made the command. Other commands are refused.
	read bool
	// words are the words of a command that needs no shell; needs is the reason why another one
	// needs it.
	words []string
	needs error
	// calls are the calls of programs, with their words. hidden is the reason why the command may
	// run something else; empty if not.
	calls  []call
	hidden string
	// indirect reports that a program runs others.
	indirect bool
}

// call is one program with its words.
type call struct {
	words []word
	// more reports that the call gets more words from its input.
	more bool
	// runs are the calls in its arguments; hidden is the reason why it may make others.
	runs   []call
	hidden string
}

// word is a word of a call; one that is not static is known only when it runs.
type word struct {
	text   string
	static bool
}

// unknown stands for a program or a file that is known only when the command runs.
const unknown = "?"

// MaxCommand is the maximum length of a command that is analyzed, in bytes.
const MaxCommand = 64 << 10

// maxDepth bounds nested commands, such as sh -c "sh -c …".
const maxDepth = 8

// ErrUnreadable is wrapped by every error about a command that cannot be parsed.
var ErrUnreadable = errors.New("the command cannot be parsed")

// Parse parses a command as Bash does. If it returns an error, the Command is safe to use: it runs
// an unknown program.
func Parse(text string) (Command, error) { return parse(text, syntax.LangBash, 0) }

// ParseScript parses a command for sh. Several shells have that name, and the same text can mean
// different commands to them; the result includes what any of them would run.
func ParseScript(text string) (Command, error) { return parseScript(text, 0) }

func parseScript(text string, depth int) (Command, error) {
	c, err := parse(text, syntax.LangBash, depth)
	if err != nil {
		return c, err
	}
	other, err := parse(text, syntax.LangPOSIX, depth)
	if err != nil {
		return other, err
	}
	c.join(&other)
	return c, nil
}

// join adds the effects of the same text in another shell.
func (c *Command) join(o *Command) {
	add := func(to []string, from []string) []string {
		for _, s := range from {
			if !slices.Contains(to, s) {
				to = append(to, s)
			}
		}
		return to
	}
	c.Programs = add(c.Programs, o.Programs)
	c.Redirects, c.Writes = add(c.Redirects, o.Redirects), add(c.Writes, o.Writes)
	c.calls = append(c.calls, o.calls...)
	c.hidden = first(c.hidden, o.hidden)
	c.indirect = c.indirect || o.indirect
	if c.needs == nil && !slices.Equal(c.words, o.words) {
		c.words, c.needs = nil, o.needs
	}
	if !o.Simple {
		c.Simple, c.Args = false, nil
	}
}

func parse(text string, lang syntax.LangVariant, depth int) (c Command, err error) {
	defer func() {
		// The parser gets untrusted text: a panic must not propagate.
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: the parser failed", ErrUnreadable)
		}
		if err != nil {
			c = Command{Text: text, Programs: []string{unknown}, ParseError: err.Error(), needs: err}
		}
	}()
	switch {
	case len(text) > MaxCommand:
		return c, fmt.Errorf("%w: it is longer than %d bytes", ErrUnreadable, MaxCommand)
	case depth > maxDepth:
		return c, fmt.Errorf("%w: commands are nested more than %d deep", ErrUnreadable, maxDepth)
	case strings.ContainsRune(text, 0):
		return c, fmt.Errorf("%w: it has a NUL byte", ErrUnreadable)
	case strings.Contains(text, "\r"), strings.Contains(text, "\\\n"):
		// Shells and the parser join such lines in different places: after a comment, inside $(
		// and at the end of a here-document.
		return c, fmt.Errorf("%w: it has a carriage return, or a line that ends in a backslash; write it in one line", ErrUnreadable)
	case nesting(text) > maxNesting:
		return c, fmt.Errorf("%w: it is nested too deeply", ErrUnreadable)
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return c, fmt.Errorf("%w: %v", ErrUnreadable, err)
	}
	if len(file.Stmts) == 0 {
		return c, fmt.Errorf("%w: it is empty", ErrUnreadable)
	}
	c.Text, c.read = text, true
	l := &collector{command: &c, depth: depth, seen: map[string]bool{}}
	syntax.Walk(file, l.visit)
	c.words, c.needs = plainWords(file)
	if c.needs == nil && !c.indirect && !l.seen[unknown] {
		c.Simple, c.Args = true, slices.Clone(c.words[1:])
	}
	return c, nil
}

// Words returns the words of a command that is one program with fixed arguments, the program
// first, unquoted: it can run without a shell. The program may run others. The error explains to a
// model why the command needs a shell.
func (c *Command) Words() ([]string, error) {
	switch {
	case c.needs != nil:
		return nil, c.needs
	case !c.read:
		return nil, fmt.Errorf("%w: it was not parsed", ErrUnreadable)
	}
	return slices.Clone(c.words), nil
}

// maxNesting bounds the brackets of a command, whose parser recurses.
const maxNesting = 2000

// nesting returns an upper bound of the nesting of brackets.
func nesting(text string) int {
	deepest, depth := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// first returns the first text that is not empty.
func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
