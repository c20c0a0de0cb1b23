package sim

import (
	"regexp"
	"slices"
	"strings"
)

// bind gives the values that were said to the members of an object, those first
// that are sure: named in the text, words of an enum, of a shape that a member
// asks for. What is left goes to the members that must be there, in order; and
// where nothing must, to those that may.
func (f *filler) bind(properties *object, required []string, depth int) map[string]any {
	bound := map[string]any{}
	if f.said == nil || properties == nil {
		return bound
	}
	flat := make(map[string]*object, len(properties.keys))
	for _, name := range properties.keys {
		flat[name] = f.flat(properties.get(name))
	}
	each := func(names []string, find func(name string, s *object) (any, bool)) {
		for _, name := range names {
			s := flat[name]
			if _, done := bound[name]; done || s == nil || s.has("const") {
				continue
			}
			if v, ok := find(name, s); ok {
				bound[name] = v
			}
		}
	}
	must := setOf(required)
	optional := slices.DeleteFunc(slices.Clone(properties.keys), func(name string) bool { return must[name] })
	each(properties.keys, f.named)
	each(properties.keys, f.worded)
	each(required, f.shaped)
	each(optional, f.shaped)
	each(slices.DeleteFunc(slices.Clone(properties.keys), func(name string) bool { return !must[name] }),
		func(name string, s *object) (any, bool) {
			if typeOf(s) == "object" && !s.has("enum") { // what it takes is not there for those behind it
				return f.value(properties.get(name), name, depth+1)
			}
			return f.plain(name, s)
		})
	if len(required) == 0 && depth == 0 && len(bound) == 0 {
		each(optional, f.plain)
	}
	return bound
}

// named is a value that the text gives a member by its name.
func (f *filler) named(name string, s *object) (any, bool) {
	if s.has("enum") {
		return nil, false
	}
	switch typeOf(s) {
	case "string":
		val := f.said.beside(wordsOf(name), quoted, email, link, path, date, capital, number)
		return f.useText(val, s)
	case "integer", "number":
		low, high := numberBounds(s, typeOf(s) == "integer")
		val := f.said.beside(wordsOf(name), number)
		if val == nil {
			return nil, false
		}
		val.used = false
		if n := f.saidNumber(s, name, typeOf(s) == "integer"); n != nil {
			if v, ok := toFloat(*n); ok && v >= low && v <= high {
				return *n, true
			}
		}
		return nil, false
	case "boolean":
		if mentions(f.said.text, name) {
			return f.boolean(s, name), true
		}
	}
	return nil, false
}

// useText is a value as a text that a schema takes; one that it does not take is
// left to others.
func (f *filler) useText(val *value, s *object) (any, bool) {
	if val == nil {
		return nil, false
	}
	if f.fits(s, val.text) {
		return val.text, true
	}
	if day := val.text + "T00:00:00Z"; val.kind == date && s.get("format") == "date-time" && f.fits(s, day) {
		return day, true
	}
	val.used = false
	return nil, false
}

// worded is a value of an enum that was said.
func (f *filler) worded(_ string, s *object) (any, bool) {
	list, ok := s.get("enum").([]any)
	if !ok {
		return nil, false
	}
	return f.saidOf(list)
}

// shaped is a value of the shape that a member asks for, by its format or its
// name.
func (f *filler) shaped(name string, s *object) (any, bool) {
	if s.has("enum") || typeOf(s) != "string" {
		return nil, false
	}
	kind, ok := shapeOf(s, name)
	if !ok {
		return nil, false
	}
	return f.useText(f.said.take(kind), s)
}

// shapeNames are words in the names of members that want values of a shape.
var shapeNames = []struct {
	kind  valueKind
	words string
}{
	{email, " email mail recipient "},
	{link, " url uri link href website "},
	{path, " path file filename filepath dir directory folder "},
	{date, " date day since until "},
}

func shapeOf(s *object, name string) (valueKind, bool) {
	switch format, _ := s.get("format").(string); format {
	case "email", "idn-email":
		return email, true
	case "uri", "url", "iri":
		return link, true
	case "date", "date-time":
		return date, true
	}
	for _, shape := range shapeNames {
		for _, w := range wordsOf(name) {
			if containsWord(shape.words, w) {
				return shape.kind, true
			}
		}
	}
	return 0, false
}

// plain is the next value that a member of a plain type takes.
func (f *filler) plain(name string, s *object) (any, bool) {
	if s.has("enum") {
		return nil, false
	}
	switch typeOf(s) {
	case "string":
		return f.saidText(s, name)
	case "integer", "number":
		if n := f.saidNumber(s, name, typeOf(s) == "integer"); n != nil {
			return *n, true
		}
	}
	return nil, false
}

// textKinds are the shapes of values that a string takes, the likeliest first.
func textKinds(s *object, name string) []valueKind {
	kinds := []valueKind{quoted, capital, opening, path, link, email, date}
	if kind, ok := shapeOf(s, name); ok {
		kinds = append([]valueKind{kind}, quoted)
	}
	for _, w := range wordsOf(name) {
		if containsWord(" id number code zip phone version ", w) {
			kinds = append(kinds, number)
		}
	}
	return kinds
}

// wholeNames are words in the names of members that take whole sentences.
const wholeNames = " query q question text message content prompt body input expression task description note command search "

// saidText is the text that was said for a member: a value in quotes, the rest
// of the sentence where the member takes one, a value of another shape, or a word
// behind a preposition ("weather in oslo").
func (f *filler) saidText(s *object, name string) (any, bool) {
	if f.said == nil {
		return nil, false
	}
	_, shaped := shapeOf(s, name)
	whole := !shaped && slices.ContainsFunc(wordsOf(name), func(w string) bool { return containsWord(wholeNames, w) })
	if v, ok := f.useText(f.said.take(quoted), s); ok {
		return v, true
	}
	if whole {
		if text := sentence(f.said.text); text != "" && f.fits(s, text) {
			return text, true
		}
	}
	if v, ok := f.useText(f.said.take(textKinds(s, name)...), s); ok {
		return v, true
	}
	if m := behindPreposition.FindStringSubmatch(f.said.text); m != nil && !shaped && !isStopWord(strings.ToLower(m[1])) && f.fits(s, m[1]) {
		return m[1], true
	}
	return nil, false
}

var (
	behindPreposition = regexp.MustCompile(`(?i)\b(?:in|for|of|at|from|about|named|called)\s+(?:the\s+|a\s+|an\s+)?([\p{L}\p{N}_-]+)\s*[.!?]?\s*$`)
	behindFor         = regexp.MustCompile(`(?is)\b(?:for|about|that says|saying)\s+(.+)$`)
)

// sentence is what a text is about: what stands behind "for" or "about", or all
// of it, without the mark at its end.
func sentence(text string) string {
	if m := behindFor.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), ".!?"))
}
