package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is what a shell command would do, as far as that can be known without
// running it.
type Command struct {
	// Text is the command as it was written.
	Text string `json:"text"`
	// Programs are the names of all programs that the command runs, in order, each
	// once: those in pipelines, lists, subshells, substitutions, functions, and
	// those that env, xargs, sudo, sh -c and the like run.
	//
	// The list is made so that mistakes are safe on both sides. A program called
	// by a path stands there as written and by its base name, one in capitals
	// also in lower case: a rule that allows ls does not allow ./ls, and one that
	// denies rm denies /bin/rm. "?" stands for what cannot be known: a name
	// that is made by an expansion, a wrapper with options, eval, a command that
	// changes the environment, and a command that cannot be parsed.
	Programs []string `json:"programs"`
	// Simple is one program with fixed arguments and nothing else: no operator,
	// redirect, expansion, substitution, pattern or assignment, and no program
	// that runs others. Such a command needs no shell to run.
	Simple bool `json:"simple"`
	// Args are the arguments of a simple command, unquoted, without the program.
	Args []string `json:"args"`
	// Redirects are the files that the command reads or writes by operators, and
	// Writes those that it may write; "?" where only the run would tell.
	Redirects []string `json:"redirects"`
	Writes    []string `json:"writes"`
	// ParseError says why the command could not be parsed; empty: it could.
	ParseError string `json:"parse_error"`

	// read says that the text was parsed. A command that was made in another way is
	// not believed.
	read bool
	// words are those of a command that needs no shell, and needs says why another
	// does.
	words []string
	needs error
	// calls are the programs that it runs, with their words; hidden says what else
	// it does that may run something, empty for nothing.
	calls  []call
	hidden string
	// indirect says that a program runs others.
	indirect bool
}

// call is one program with its words.
type call struct {
	words []word
	// more says that it gets words that its input has.
	more bool
	// runs are the calls that it makes of its words, and hidden says why it may
	// make others.
	runs   []call
	hidden string
}

// word is a word of a call; one that is not static is known only when it runs.
type word struct {
	text   string
	static bool
}

// unknown is listed where it cannot be known which program runs, or which file is
// opened.
const unknown = "?"

// MaxCommand is how long a command may be to be looked at, in bytes.
const MaxCommand = 64 << 10

// maxDepth bounds commands inside of commands, as in sh -c, and programs that run
// programs that run programs.
const maxDepth = 8

// ErrUnreadable is wrapped by every error about a command that cannot be parsed.
var ErrUnreadable = errors.New("the command cannot be parsed")

// Parse reads a command as Bash does. With an error comes what is safe to believe:
// an unknown program.
func Parse(text string) (Command, error) { return parse(text, syntax.LangBash, 0) }

// ParseScript reads a command that sh will run. There are several shells of that
// name, to which one text can mean different commands; what any of them would do
// is in the answer.
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

// join adds what the same text does in another shell.
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
		// The parser gets text of models; what surprises it must not get further.
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: the parser gave up", ErrUnreadable)
		}
		if err != nil {
			c = Command{Text: text, Programs: []string{unknown}, ParseError: err.Error(), needs: err}
		}
	}()
	switch {
	case len(text) > MaxCommand:
		return c, fmt.Errorf("%w: it is longer than %d bytes", ErrUnreadable, MaxCommand)
	case depth > maxDepth:
		return c, fmt.Errorf("%w: there are commands in commands, more than %d deep", ErrUnreadable, maxDepth)
	case strings.ContainsRune(text, 0):
		return c, fmt.Errorf("%w: it has a NUL byte", ErrUnreadable)
	case strings.Contains(text, "\r"), strings.Contains(text, "\\\n"):
		// Shells and the parser join such lines at different places: behind a
		// comment, inside of $( and of the end of a here-document.
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
	l := &looker{command: &c, depth: depth, seen: map[string]bool{}}
	syntax.Walk(file, l.visit)
	c.words, c.needs = plainWords(file)
	if c.needs == nil && !c.indirect && !l.seen[unknown] {
		c.Simple, c.Args = true, slices.Clone(c.words[1:])
	}
	return c, nil
}

// Words are those of a command that is one program with fixed arguments, the
// program first, unquoted: it can run without a shell. The program may run others.
// The error says what takes a shell, for a model to read.
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

// nesting is at least as deep as the command's brackets are.
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

// first is the first text that is not empty.
func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
