package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Command allows a program, with some arguments. The zero value of a field allows
// nothing of its kind.
type Command struct {
	// Program is the name or path exactly as it must be written.
	Program string `json:"program"`
	// Args are patterns for the first operands, each of which must be there: *
	// stands for any characters, ? for one. An operand is an argument that does
	// not begin with a dash.
	Args []string `json:"args,omitempty"`
	// Rest allows more operands after Args.
	Rest bool `json:"rest,omitempty"`
	// Options are patterns for the arguments that begin with a dash, - and --
	// included. They may stand anywhere.
	Options []string `json:"options,omitempty"`
}

// CommandList is a list of commands that may run. It allows simple commands only:
// no operators, redirects, expansions or patterns, and no program that runs
// others.
type CommandList struct {
	byProgram map[string][]Command
}

// ErrNotAllowed is wrapped by every refusal of a [CommandList].
var ErrNotAllowed = errors.New("policy: the command is not allowed")

// AllowCommands makes a list. Programs that run others, such as env or sh, cannot
// be on it: that would allow everything.
func AllowCommands(commands ...Command) (*CommandList, error) {
	l := &CommandList{byProgram: make(map[string][]Command, len(commands))}
	var errs []error
	for i, c := range commands {
		if err := c.check(); err != nil {
			errs = append(errs, fmt.Errorf("%w: command %d: %w", ErrRule, i+1, err))
			continue
		}
		l.byProgram[c.Program] = append(l.byProgram[c.Program], c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l, nil
}

func (c *Command) check() error {
	if c.Program == "" {
		return errors.New("it names no program")
	}
	if !isExact(c.Program) {
		return fmt.Errorf("%q: a program is no pattern", c.Program)
	}
	base := strings.ToLower(path.Base(c.Program))
	if r := runners[base]; r != 0 && r != runsVariable {
		return fmt.Errorf("%s runs other programs, so it would allow them all", c.Program)
	}
	for _, p := range append(append([]string{}, c.Args...), c.Options...) {
		if p == "" {
			return fmt.Errorf("%s: a pattern is empty", c.Program)
		}
	}
	for _, p := range c.Args {
		if strings.HasPrefix(p, "-") {
			return fmt.Errorf("%s: %q is an option; list it in options", c.Program, p)
		}
	}
	for _, p := range c.Options {
		if !strings.HasPrefix(p, "-") {
			return fmt.Errorf("%s: %q does not begin with a dash; it is no option", c.Program, p)
		}
	}
	return nil
}

// Check returns the words of a command that may run: the program and its
// arguments, to be run without a shell. The error says why another may not, fit
// for a model to read.
func (l *CommandList) Check(command string) ([]string, error) {
	s, err := ParseShell(command)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotAllowed, err)
	case !s.Simple:
		return nil, fmt.Errorf("%w: it must be one program with plain arguments, without operators, redirects, variables, patterns or substitutions, and no program that runs others", ErrNotAllowed)
	}
	program := s.Programs[0]
	var allowed []Command
	if l != nil {
		allowed = l.byProgram[program]
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("%w: %s is not on the list", ErrNotAllowed, program)
	}
	for i := range allowed {
		if allowed[i].allows(s.Args) {
			return append([]string{program}, s.Args...), nil
		}
	}
	return nil, fmt.Errorf("%w: %s may run, but not with these arguments", ErrNotAllowed, program)
}

func (c *Command) allows(args []string) bool {
	operands := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			if !matchAny(c.Options, a) {
				return false
			}
			continue
		}
		if operands < len(c.Args) {
			if !matchGlob(c.Args[operands], a) {
				return false
			}
		} else if !c.Rest {
			return false
		}
		operands++
	}
	return operands >= len(c.Args)
}
