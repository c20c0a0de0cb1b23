package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Commands makes a [Shell.Allow] of patterns. A command may run if one of them
// matches it, word by word:
//
//	go build ./cmd/dragoman    exactly this
//	go vet *                   * is any one word that is not a flag
//	make test-*                * within a word is any characters
//	go test ...                ... at the end is any further words, flags too
//	git log ... !--output !-o  as before, but without these flags
//
// A word that begins with * matches no word that begins with -, so flags have to
// be allowed by name or by "...". What follows ! is refused anywhere after the
// pattern's own words: a flag of one letter also within others (-xo, -ofile), one
// with two dashes also with a value and shortened (--outp=x), anything else as
// written, with * as above. Programs have more ways to take flags than that: allow
// what is needed rather than refuse what is known.
func Commands(patterns ...string) (func(argv []string) error, error) {
	rules := make([]commandRule, len(patterns))
	for i, p := range patterns {
		r, err := parseRule(p)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrOptions, p, err)
		}
		rules[i] = r
	}
	return func(argv []string) error {
		if slices.ContainsFunc(rules, func(r commandRule) bool { return r.allows(argv) }) {
			return nil
		}
		return refusal(rules, argv)
	}, nil
}

// AnyCommand is a [Shell.Allow] that allows every command.
func AnyCommand([]string) error { return nil }

// refusal says what would be allowed.
func refusal(rules []commandRule, argv []string) error {
	if len(rules) == 0 {
		return errors.New("no command is")
	}
	var same, all []string
	for _, r := range rules {
		all = append(all, r.text)
		if len(argv) > 0 && matchWord(r.words[0], argv[0]) {
			same = append(same, r.text)
		}
	}
	if len(same) > 0 {
		return fmt.Errorf("%s may run only as: %s", quoteShort(argv[0]), strings.Join(same, "; "))
	}
	const most = 20
	more := ""
	if len(all) > most {
		all, more = all[:most], "; and others"
	}
	return fmt.Errorf("what is allowed: %s%s", strings.Join(all, "; "), more)
}

// commandRule is one pattern.
type commandRule struct {
	text   string
	words  []string
	rest   bool
	refuse []string
}

func parseRule(text string) (commandRule, error) {
	r := commandRule{text: text}
	for _, word := range strings.Fields(text) {
		refused, isRefused := strings.CutPrefix(word, "!")
		switch {
		case isRefused && !r.rest:
			return r, errors.New("! must come after the three dots")
		case isRefused && refused == "":
			return r, errors.New("! needs a flag")
		case isRefused:
			r.refuse = append(r.refuse, refused)
		case r.rest:
			return r, errors.New("after the three dots only ! may come")
		case word == "...":
			r.rest = true
		default:
			r.words = append(r.words, word)
		}
	}
	switch {
	case len(r.words) == 0:
		return r, errors.New("it names no program")
	case strings.HasPrefix(r.words[0], "*"):
		return r, errors.New("the program must be named; AnyCommand allows all")
	}
	return r, nil
}

func (r *commandRule) allows(argv []string) bool {
	if len(argv) < len(r.words) || len(argv) > len(r.words) && !r.rest {
		return false
	}
	for i, w := range r.words {
		if !matchWord(w, argv[i]) {
			return false
		}
	}
	for _, arg := range argv[len(r.words):] {
		if slices.ContainsFunc(r.refuse, func(flag string) bool { return refusesArg(flag, arg) }) {
			return false
		}
	}
	return true
}

// refusesArg reports whether an argument is, or may be taken for, a refused one.
func refusesArg(flag, arg string) bool {
	switch {
	case matchWord(flag, arg):
		return true
	case len(flag) == 2 && flag[0] == '-' && flag != "--":
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.IndexByte(arg, flag[1]) > 0
	case strings.HasPrefix(flag, "--") && len(flag) > 2:
		name, _, _ := strings.Cut(arg, "=")
		return len(name) > 2 && strings.HasPrefix(strings.TrimRight(flag, "*"), name) || matchWord(flag, name)
	}
	return false
}

// matchWord matches a word against one of a pattern.
func matchWord(pattern, word string) bool {
	if strings.HasPrefix(pattern, "*") && strings.HasPrefix(word, "-") {
		return false
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == word
	}
	rest, ok := strings.CutPrefix(word, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, last)
}
