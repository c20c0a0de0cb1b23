// Package lark checks texts against grammars in the language of Lark, in which
// OpenAI's freeform tools state theirs.
//
//	g, err := lark.Compile(`start: "add " INT ("," INT)*
//	%import common.INT`)
//	err = g.Match("add 1,2")
//
// It recognises; it builds no trees. Every context-free grammar works, ambiguous
// and left-recursive ones too. A terminal may match any prefix that its expression
// matches, so a text that a lexer would read in one way only is accepted if any
// way leads to its end. What it does not know of the language (templates, imports
// from elsewhere, look-around in expressions) is an error of Compile. Grammars and
// texts are bounded.
package lark

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// The bounds of a grammar and of a text.
const (
	MaxGrammarBytes = 64 << 10
	MaxTextBytes    = 256 << 10
	maxSymbols      = 10_000
	maxDepth        = 100
	maxSteps        = 5_000_000
)

// Errors, for errors.Is.
var (
	ErrGrammar  = errors.New("lark: not a grammar that can be checked")
	ErrTooLarge = errors.New("lark: too much to check")
	// ErrNoMatch says that a text is not of the grammar's language.
	ErrNoMatch = errors.New("the text does not match the grammar")
)

// Grammar is a compiled grammar. It is safe for concurrent use.
type Grammar struct {
	rules     []rule
	byName    map[string][]int // places in rules
	terminals []terminal
	// ignored is the terminal of any number of what may stand between others; -1:
	// nothing may.
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
	terminal int // place in terminals, where rule is empty
}

// terminal is an expression that consumes text.
type terminal struct {
	name string // as an error calls it
	prog *syntax.Prog
	// empty says that it may match nothing.
	empty bool
}

// item is how far one alternative is, and where it began.
type item struct {
	rule, dot, origin int
}

// Match reports whether text is of the grammar's language; if not, the error says
// where it went wrong and what was expected there.
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

// matcher recognises one text, by Earley's algorithm.
type matcher struct {
	g     *Grammar
	text  string
	sets  []*set
	ends  map[[2]int][]int // of a terminal from a place
	steps int
	// matched says that the start rule ended where nothing but ignored text
	// follows.
	matched bool
	// furthest is the last place where a terminal was expected.
	furthest int
	expected []string
}

// set holds the items of one place.
type set struct {
	items []item
	// seen has the items where they are many.
	seen map[item]bool
	// waiting are the items that expect a rule, by its name.
	waiting map[string][]item
}

// fewItems is up to how many items a look at each costs less than a map.
const fewItems = 12

// release forgets what only adding needs.
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

// run works off the items of a place, as long as there are steps left.
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
	if m.g.nullable[name] { // it may have ended here before this waited for it
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

// skip are the places from at on that only ignored text leads to, at included.
func (m *matcher) skip(at int) []int {
	if m.g.ignored < 0 {
		return []int{at}
	}
	return m.endsOf(m.g.ignored, at)
}

// endsOf are the places where a terminal that begins at from may end.
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

// failure says where the text went wrong.
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
