package sim

import (
	"regexp"
	"slices"
	"strings"
)

// bind assigns values of the prompt to the properties of an object. The most certain ones
// come first: values named in the text, words of an enum, values with the format that a
// property requires. Remaining values go to the required properties in order or, if none is
// required, to the optional ones.
func (f *filler) bind(properties *object, required []string, depth int) map[string]any {
	bound := map[string]any{}
	if f.given == nil || properties == nil {
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
	each(properties.keys, f.enumWord)
	each(required, f.shaped)
	each(optional, f.shaped)
	each(slices.DeleteFunc(slices.Clone(properties.keys), func(name string) bool { return !must[name] }),
		func(name string, s *object) (any, bool) {
			if typeOf(s) == "object" && !s.has("enum") { // the values it uses are not available for later properties
				return f.value(properties.get(name), name, depth+1)
			}
			return f.plain(name, s)
		})
	if len(required) == 0 && depth == 0 && len(bound) == 0 {
		each(optional, f.plain)
	}
	return bound
}

// named returns a value that the text assigns to a property by its name.
func (f *filler) named(name string, s *object) (any, bool) {
	if s.has("enum") {
		return nil, false
	}
	switch typeOf(s) {
	case "string":
		val := f.given.namedBy(wordsOf(name), quoted, email, link, path, date, capital, number)
		return f.useText(val, s)
	case "integer", "number":
		low, high := numberBounds(s, typeOf(s) == "integer")
		val := f.given.namedBy(wordsOf(name), number)
		if val == nil {
			return nil, false
		}
		val.used = false
		if n := f.promptNumber(s, name, typeOf(s) == "integer"); n != nil {
			if v, ok := toFloat(*n); ok && v >= low && v <= high {
				return *n, true
			}
		}
		return nil, false
	case "boolean":
		if mentions(f.given.text, name) {
			return f.boolean(s, name), true
		}
	}
	return nil, false
}

// useText returns a value as a string that a schema accepts. Otherwise the value stays
// available.
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

// enumWord returns a value of an enum that the prompt mentions.
func (f *filler) enumWord(_ string, s *object) (any, bool) {
	list, ok := s.get("enum").([]any)
	if !ok {
		return nil, false
	}
	return f.enumFromPrompt(list)
}

// shaped returns a value of the shape that the format or the name of a property requires.
func (f *filler) shaped(name string, s *object) (any, bool) {
	if s.has("enum") || typeOf(s) != "string" {
		return nil, false
	}
	kind, ok := shapeOf(s, name)
	if !ok {
		return nil, false
	}
	return f.useText(f.given.take(kind), s)
}

// shapeNames lists words in property names that suggest a shape.
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

// plain returns the next value that fits a property of a plain type.
func (f *filler) plain(name string, s *object) (any, bool) {
	if s.has("enum") {
		return nil, false
	}
	switch typeOf(s) {
	case "string":
		return f.promptText(s, name)
	case "integer", "number":
		if n := f.promptNumber(s, name, typeOf(s) == "integer"); n != nil {
			return *n, true
		}
	}
	return nil, false
}

// textKinds returns the kinds of values that fit a string, the likeliest first.
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

// wholeNames are words in the names of properties that take whole sentences.
const wholeNames = " query q question text message content prompt body input expression task description note command search "

// promptText returns the text for a string property: a quoted value, the rest of the sentence
// if the property takes one, a value of another shape, or a word after a preposition
// ("weather in oslo").
func (f *filler) promptText(s *object, name string) (any, bool) {
	if f.given == nil {
		return nil, false
	}
	_, shaped := shapeOf(s, name)
	whole := !shaped && slices.ContainsFunc(wordsOf(name), func(w string) bool { return containsWord(wholeNames, w) })
	if v, ok := f.useText(f.given.take(quoted), s); ok {
		return v, true
	}
	if whole {
		if text := topicOf(f.given.text); text != "" && f.fits(s, text) {
			return text, true
		}
	}
	if v, ok := f.useText(f.given.take(textKinds(s, name)...), s); ok {
		return v, true
	}
	if m := afterPreposition.FindStringSubmatch(f.given.text); m != nil && !shaped && !isStopWord(strings.ToLower(m[1])) && f.fits(s, m[1]) {
		return m[1], true
	}
	return nil, false
}

var (
	afterPreposition = regexp.MustCompile(`(?i)\b(?:in|for|of|at|from|about|named|called)\s+(?:the\s+|a\s+|an\s+)?([\p{L}\p{N}_-]+)\s*[.!?]?\s*$`)
	afterFor         = regexp.MustCompile(`(?is)\b(?:for|about|that says|saying)\s+(.+)$`)
)

// topicOf returns the topic of a text: the part after "for" or "about", or all of it,
// without the final punctuation.
func topicOf(text string) string {
	if m := afterFor.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), ".!?"))
}
