// Package lark checks texts against grammars in the Lark language, which OpenAI's
// freeform tools use.
//
//	g, err := lark.Compile(`start: "add " INT ("," INT)*
//	%import common.INT`)
//	err = g.Match("add 1,2")
//
// It is a recognizer and builds no trees. Every context-free grammar works, including
// ambiguous and left-recursive ones. A terminal may match any prefix that its
// expression matches, so a text is accepted if any way of splitting it into terminals
// matches, even where a lexer would split it in one way only. Compile returns an error
// for features that it does not support: templates, imports from other libraries,
// look-around in expressions. Grammars and texts are limited in size.
package lark

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// The limits of a grammar and of a text.
const (
	MaxGrammarBytes = 64 << 10
	MaxTextBytes    = 256 << 10
	maxSymbols      = 10_000
	maxDepth        = 100
	maxSteps        = 5_000_000
)

// Errors, for errors.Is.
var (
	ErrGrammar  = errors.New("lark: invalid or unsupported grammar")
	ErrTooLarge = errors.New("lark: grammar or text too large")
	// ErrNoMatch reports that a text does not match the grammar.
	ErrNoMatch = errors.New("the text does not match the grammar")
)

// Grammar is a compiled grammar. It is safe for concurrent use.
type Grammar struct {
	rules     []rule
	byName    map[string][]int // indexes in rules
	terminals []terminal
	// ignored is the terminal for any amount of text that may occur between others; -1
	// means none.
	ignored  int
	nullable map[string]bool
	start    string
}

// rule is one alternative of a name.
type rule struct {
	name string
	body []symbol
}

// symbol is the name of a rule, or a terminal.
type symbol struct {
	rule     string
	terminal int // index in terminals, if rule is empty
}

// terminal is an expression that consumes text.
type terminal struct {
	name string // name in errors
	prog *syntax.Prog
	// empty means that it can match the empty text.
	empty bool
}

// item is a position in an alternative, and the position in the text where it began.
type item struct {
	rule, dot, origin int
}

// Match returns nil if text matches the grammar. Otherwise the error describes the
// position of the mismatch and what was expected there.
func (g *Grammar) Match(text string) error {
	if len(text) > MaxTextBytes {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(text), MaxTextBytes)
	}
	m := matcher{g: g, text: text, sets: make([]*set, len(text)+1), ends: map[[2]int][]int{}}
	for _, r := range g.byName[g.start] {
		m.add(0, item{rule: r})
	}
	for at := range m.sets {
		if m.sets[at] == nil {
			continue
		}
		if m.run(at); m.steps > maxSteps {
			return fmt.Errorf("%w: the text is too ambiguous in this grammar", ErrTooLarge)
		}
		if at < len(text) {
			m.sets[at].release()
		}
	}
	if m.matched {
		return nil
	}
	return m.failure()
}

// matcher recognizes one text with Earley's algorithm.
type matcher struct {
	g     *Grammar
	text  string
	sets  []*set
	ends  map[[2]int][]int // ends of a terminal from a position
	steps int
	// matched means that the start rule ended where only ignored text follows.
	matched bool
	// furthest is the last position where a terminal was expected.
	furthest int
	expected []string
}

// set holds the items of one position.
type set struct {
	items []item
	// seen indexes the items if there are many.
	seen map[item]bool
	// waiting are the items that expect a rule, by its name.
	waiting map[string][]item
}

// fewItems is the number of items up to which a linear search is faster than a map.
const fewItems = 12

// release frees what only add needs.
func (s *set) release() { s.seen, s.items = nil, nil }

func (s *set) has(it item) bool {
	if s.seen != nil {
		return s.seen[it]
	}
	return slices.Contains(s.items, it)
}

func (s *set) add(it item) {
	s.items = append(s.items, it)
	switch {
	case s.seen != nil:
		s.seen[it] = true
	case len(s.items) > fewItems:
		s.seen = make(map[item]bool, 2*fewItems)
		for _, have := range s.items {
			s.seen[have] = true
		}
	}
}

func (m *matcher) add(at int, it item) {
	m.steps++
	s := m.sets[at]
	if s == nil {
		s = &set{}
		m.sets[at] = s
	}
	if !s.has(it) {
		s.add(it)
	}
}

// run processes the items of a position while there are steps left.
func (m *matcher) run(at int) {
	s := m.sets[at]
	for i := 0; i < len(s.items) && m.steps <= maxSteps; i++ {
		it := s.items[i]
		r := &m.g.rules[it.rule]
		switch {
		case it.dot == len(r.body):
			m.complete(at, it, r.name)
		case r.body[it.dot].rule != "":
			m.predict(at, it, r.body[it.dot].rule)
		default:
			m.scan(at, it, r.body[it.dot].terminal)
		}
	}
}

func (m *matcher) complete(at int, it item, name string) {
	if name == m.g.start && it.origin == 0 && slices.Contains(m.skip(at), len(m.text)) {
		m.matched = true
	}
	for _, w := range m.sets[it.origin].waiting[name] {
		w.dot++
		m.add(at, w)
	}
}

func (m *matcher) predict(at int, it item, name string) {
	s := m.sets[at]
	if s.waiting == nil {
		s.waiting = map[string][]item{}
	}
	s.waiting[name] = append(s.waiting[name], it)
	for _, r := range m.g.byName[name] {
		m.add(at, item{rule: r, origin: at})
	}
	if m.g.nullable[name] { // the rule may have ended here before this item waited for it
		it.dot++
		m.add(at, it)
	}
}

func (m *matcher) scan(at int, it item, t int) {
	if at > m.furthest {
		m.furthest, m.expected = at, nil
	}
	if at == m.furthest {
		m.expected = append(m.expected, m.g.terminals[t].name)
	}
	it.dot++
	for _, from := range m.skip(at) {
		if m.steps++; m.steps > maxSteps {
			return
		}
		for _, end := range m.endsOf(t, from) {
			m.add(end, it)
		}
	}
}

// skip returns the positions that can be reached from at through ignored text,
// including at.
func (m *matcher) skip(at int) []int {
	if m.g.ignored < 0 {
		return []int{at}
	}
	return m.endsOf(m.g.ignored, at)
}

// endsOf returns the positions where a terminal that begins at from may end.
func (m *matcher) endsOf(t, from int) []int {
	key := [2]int{t, from}
	ends, known := m.ends[key]
	if !known {
		var steps int
		ends, steps = prefixes(m.g.terminals[t].prog, m.text, from, maxSteps)
		m.steps += steps
		m.ends[key] = ends
	}
	return ends
}

// failure returns the error for a mismatch.
func (m *matcher) failure() error {
	before := m.text[:m.furthest]
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	slices.Sort(m.expected)
	expected := slices.Compact(m.expected)
	const most = 5
	list := strings.Join(expected[:min(most, len(expected))], " or ")
	if len(expected) > most {
		list += " or another"
	}
	if list == "" {
		list = "the end"
	}
	return fmt.Errorf("%w: at line %d, column %d, expected %s", ErrNoMatch, line, column, list)
}
