package shell

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// List is a list of commands that may run. See [Allow].
type List struct {
	rules    []rule
	indirect bool
}

// Options configure a [List]. The zero value is the safest.
type Options struct {
	// Indirect permits commands that run other programs through their arguments,
	// such as git -c core.pager=…, tar --to-command=…, sed with the command e, and
	// patterns with * or ... for programs that run whatever they are given, such as
	// python, docker and vim. Without it they are refused, unless a pattern has all
	// words of the command.
	Indirect bool
}

// ErrNotAllowed is wrapped by every refusal of a [List]. The rest of the text explains it to a
// model.
var ErrNotAllowed = errors.New("this command is not allowed")

// ErrPattern is wrapped by the errors of [Allow].
var ErrPattern = errors.New("shell: not a pattern for commands")

// Allow returns a list of command patterns, which workspace.Shell documents. A command may run if
// one of them matches it, word by word. The error wraps [ErrPattern].
func Allow(patterns ...string) (*List, error) { return Options{}.Allow(patterns...) }

// Allow is like the function [Allow], with options.
func (o Options) Allow(patterns ...string) (*List, error) {
	l := &List{rules: make([]rule, len(patterns)), indirect: o.Indirect}
	for i, p := range patterns {
		r, err := parseRule(p)
		if err == nil && !o.Indirect {
			if why := r.patternRuns(); why != "" {
				err = fmt.Errorf("%s may run other programs: %s; list the full command without wildcards, or set Indirect", r.words[0], why)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrPattern, p, err)
		}
		l.rules[i] = r
	}
	return l, nil
}

// Any allows every command, including those that cannot be parsed.
func Any(*Command) error { return nil }

// Check returns the words of an allowed command: the program and its arguments, to run without a
// shell. The error wraps [ErrNotAllowed].
func (l *List) Check(text string) ([]string, error) {
	c, _ := Parse(text) // the error is in it
	words, err := c.Words()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	if err := l.Allows(&c); err != nil {
		return nil, err
	}
	return words, nil
}

// Allows returns nil if everything that a command runs is allowed, and otherwise an error that
// wraps [ErrNotAllowed]. A command that needs a shell is allowed only if each of its programs is;
// it is refused if one of them is unknown. Words that are known only at run time are matched only
// by a final "...". Operators may open no file except /dev/null.
func (l *List) Allows(c *Command) error {
	if err := l.judge(c); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return nil
}

func (l *List) judge(c *Command) error {
	switch {
	case l == nil || len(l.rules) == 0:
		return errors.New("the list of allowed commands is empty")
	case c.ParseError != "":
		return errors.New(c.ParseError)
	case !c.read:
		return errors.New("it was not parsed")
	}
	for i := range c.calls {
		if err := l.judgeCall(&c.calls[i]); err != nil {
			return err
		}
	}
	if c.hidden != "" {
		return errors.New(c.hidden)
	}
	for _, file := range c.Redirects {
		if file != "/dev/null" {
			return fmt.Errorf("redirections may only lead to /dev/null, not to %.100q", file)
		}
	}
	return nil
}

func (l *List) judgeCall(c *call) error {
	allowed, runs := false, ""
	for i := range l.rules {
		if r := &l.rules[i]; r.allows(c) {
			if r.exact() {
				return nil // the pattern has every word
			}
			if !l.indirect {
				if why := r.callRuns(c); why != "" {
					runs = first(runs, why)
					continue
				}
			}
			allowed = true
		}
	}
	switch {
	case !c.words[0].static:
		return errors.New(c.hidden)
	case !allowed && runs != "":
		return fmt.Errorf("%.100q may run other programs through its arguments: %.100q; list the full command without wildcards, or set Indirect", c.words[0].text, runs)
	case !allowed:
		return l.refusal(c)
	case c.hidden != "":
		return errors.New(c.hidden)
	}
	for i := range c.runs {
		if err := l.judgeCall(&c.runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns the error for a call, with the allowed commands.
func (l *List) refusal(c *call) error {
	var same, all []string
	for _, r := range l.rules {
		all = append(all, r.text)
		if r.words[0] == c.words[0].text {
			same = append(same, r.text)
		}
	}
	if len(same) > 0 {
		return fmt.Errorf("%.100q may run only as: %s%s", c.words[0].text, joinFew(same), c.unknownWords())
	}
	return fmt.Errorf("%.100q is not on the list of allowed commands: %s", c.words[0].text, joinFew(all))
}

// joinFew joins patterns, unless they are too many.
func joinFew(patterns []string) string {
	const most = 20
	if len(patterns) > most {
		return strings.Join(patterns[:most], "; ") + "; and others"
	}
	return strings.Join(patterns, "; ")
}

// unknownWords returns the reason why some words of a call are unknown; empty if all are known.
func (c *call) unknownWords() string {
	if c.more || slices.ContainsFunc(c.words, func(w word) bool { return !w.static }) {
		return " (variables, wildcards, substitutions and what xargs adds are only allowed where a pattern ends with ...)"
	}
	return ""
}

// rule is one pattern.
type rule struct {
	text  string
	words []string
	// rest allows more words; refuse lists words that are refused among them, and flags, if not
	// empty, the only flags that are allowed.
	rest          bool
	refuse, flags []string
}

func parseRule(text string) (rule, error) {
	r := rule{text: text}
	for _, word := range strings.Fields(text) {
		refused, isRefused := strings.CutPrefix(word, "!")
		switch {
		case isRefused && !r.rest:
			return r, errors.New("! is only allowed after \"...\"")
		case isRefused && refused == "":
			return r, errors.New("! needs a flag, as in !--output")
		case isRefused:
			r.refuse = append(r.refuse, refused)
		case r.rest && strings.HasPrefix(word, "-"):
			r.flags = append(r.flags, word)
		case r.rest:
			return r, errors.New("only flags may follow \"...\", and !--flag to refuse a flag")
		case word == "...":
			r.rest = true
		default:
			r.words = append(r.words, word)
		}
	}
	return r, r.check()
}

// check refuses patterns that allow nothing, or everything.
func (r *rule) check() error {
	if len(r.words) == 0 {
		return errors.New("it names no program")
	}
	program := r.words[0]
	if strings.Contains(program, "*") {
		return errors.New("the program must be named")
	}
	switch kind := runners[strings.ToLower(path.Base(program))]; {
	case kind == runsText && !r.exact():
		return fmt.Errorf("%s runs other programs: list the full command, without * and \"...\"", program)
	case kind == runsScript && r.exact() && (len(r.words) < 2 || strings.HasPrefix(r.words[1], "-") && r.words[1] != "-c"):
		return fmt.Errorf("%s would run its standard input as a script: name a script file", program)
	}
	return nil
}

// exact reports whether a pattern matches one command only.
func (r *rule) exact() bool {
	return !r.rest && !slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(w, "*") })
}

func (r *rule) allows(c *call) bool {
	if len(c.words) < len(r.words) || !r.rest && (c.more || len(c.words) > len(r.words)) {
		return false
	}
	for i, w := range r.words {
		if !c.words[i].static || !matchWord(w, c.words[i].text) {
			return false
		}
	}
	if len(r.refuse)+len(r.flags) == 0 {
		return true
	}
	return !c.more && !slices.ContainsFunc(c.words[len(r.words):], func(w word) bool { return !w.static || r.refuses(w.text) })
}

// refuses reports whether a word must not be among the further ones.
func (r *rule) refuses(arg string) bool {
	if len(r.flags) > 0 && strings.HasPrefix(arg, "-") && !slices.ContainsFunc(r.flags, func(f string) bool { return matchWord(f, arg) }) {
		return true
	}
	return slices.ContainsFunc(r.refuse, func(flag string) bool { return refusesArg(flag, arg) })
}

// refusesArg reports whether an argument is, or may be interpreted as, a refused one; see [Allow].
func refusesArg(refused, arg string) bool {
	if matchWord(refused, arg) {
		return true
	}
	dashes, flag := flagName(refused)
	given, text := flagName(arg)
	name, want, valued := strings.Cut(flag, "=")
	switch {
	case dashes == 0 || given == 0, strings.HasPrefix(name, "*"):
		return false
	case dashes == 1 && given == 1 && len(name) == 1:
		return strings.Contains(text, name)
	}
	before, value, joined := cutValue(text)
	shortened := given == 2 && before != "" && strings.HasPrefix(strings.TrimRight(name, "*"), before)
	switch {
	case valued: // the value may be the next word
		return (shortened || textkit.MatchStars(name, before)) && (!joined || textkit.MatchStars(want, value))
	default:
		return shortened || textkit.MatchStars(name, before) || textkit.MatchStars(name, text)
	}
}

// flagName splits a flag into its dashes and its name; dashes is 0 if the word is not a flag.
func flagName(word string) (dashes int, name string) {
	for dashes < 2 && dashes < len(word) && word[dashes] == '-' {
		dashes++
	}
	if dashes == len(word) {
		return 0, "" // - and -- are words of their own
	}
	return dashes, word[dashes:]
}

// cutValue cuts a flag from a value that is joined to it by =, or by another
// character that no name has (-javaagent:x, -Wl,x).
func cutValue(flag string) (name, value string, joined bool) {
	i := strings.IndexFunc(flag, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if i < 0 {
		return flag, "", false
	}
	return flag[:i], flag[i+1:], true
}

// matchWord matches a word against a word of a pattern. Unlike policy globs, ? is literal, because
// addresses and questions contain it, and * does not match a word that may be a flag.
func matchWord(pattern, word string) bool {
	if strings.HasPrefix(pattern, "*") && strings.HasPrefix(word, "-") {
		return false
	}
	return textkit.MatchStars(pattern, word)
}
