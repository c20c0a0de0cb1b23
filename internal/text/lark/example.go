package lark

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Example returns a short text that matches the grammar. It returns the same text each
// time. It returns an error if it finds no text: the language is empty, or the
// terminals have assertions that it cannot satisfy.
func (g *Grammar) Example() (string, error) {
	leaves := make([]string, len(g.terminals))
	known := make([]bool, len(g.terminals))
	for i, t := range g.terminals {
		leaves[i], known[i] = shortest(t.prog)
	}
	texts := map[string]string{} // of rules, the shortest found so far
	write := func(body []symbol) (string, bool) {
		var b strings.Builder
		for _, s := range body {
			text, ok := texts[s.rule]
			if s.rule == "" {
				text, ok = leaves[s.terminal], known[s.terminal]
			}
			if !ok {
				return "", false
			}
			b.WriteString(text)
		}
		return b.String(), b.Len() <= MaxTextBytes
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g.rules {
			text, ok := write(r.body)
			if best, had := texts[r.name]; ok && (!had || len(text) < len(best)) {
				texts[r.name], changed = text, true
			}
		}
	}
	text, ok := texts[g.start]
	if !ok {
		return "", fmt.Errorf("%w: the grammar matches no text", ErrNoMatch)
	}
	return text, g.Match(text)
}

// ExampleOf returns a short text that matches a regular expression. It returns the same
// text each time.
func ExampleOf(expression string) (string, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrGrammar, err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrGrammar, err)
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrGrammar, err)
	}
	text, ok := shortest(prog)
	if !ok || !re.MatchString(text) {
		return "", fmt.Errorf("%w: no example found for %q", ErrNoMatch, expression)
	}
	return text, nil
}

// shortest returns a text that a program matches, the shortest first. It visits each
// instruction once. It assumes that assertions about the surrounding text hold; a
// caller that needs certainty must match the text.
func shortest(prog *syntax.Prog) (string, bool) {
	type state struct {
		pc   uint32
		text string
	}
	seen := make([]bool, len(prog.Inst))
	now, later := []state{{pc: uint32(prog.Start)}}, []state(nil)
	for len(now) > 0 {
		for len(now) > 0 { // first, in order, what needs no character
			s := now[0]
			now = now[1:]
			if seen[s.pc] {
				continue
			}
			seen[s.pc] = true
			switch in := &prog.Inst[s.pc]; in.Op {
			case syntax.InstMatch:
				return s.text, true
			case syntax.InstAlt, syntax.InstAltMatch:
				now = slices.Insert(now, 0, state{in.Out, s.text}, state{in.Arg, s.text})
			case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
				now = slices.Insert(now, 0, state{in.Out, s.text})
			case syntax.InstFail:
			default:
				if r, ok := exampleChar(in); ok {
					later = append(later, state{in.Out, s.text + string(r)})
				}
			}
		}
		now, later = later, nil
	}
	return "", false
}

// exampleChar returns a character that an instruction matches: a letter or a digit if
// possible.
func exampleChar(in *syntax.Inst) (rune, bool) {
	for _, r := range "aA0x- _./\n" {
		if in.MatchRune(r) {
			return r, true
		}
	}
	for r := rune('!'); r < 0x3000; r++ {
		if in.MatchRune(r) {
			return r, true
		}
	}
	if len(in.Rune) > 0 && in.MatchRune(in.Rune[0]) {
		return in.Rune[0], true
	}
	return 0, false
}
