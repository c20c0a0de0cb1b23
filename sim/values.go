package sim

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// valueKind is the kind of a value in a prompt.
type valueKind int

const (
	quoted valueKind = iota
	number
	email
	link
	path
	date
	capital // one or more capitalized words
	opening // a capitalized word that begins a sentence
)

// value is a part of a prompt that could be an argument.
type value struct {
	kind       valueKind
	text       string
	start, end int // position in the prompt
	// before and after are the stems of the words next to it, or "".
	before, after string
	used          bool
}

// values holds the values of one piece of a prompt, in order.
type values struct {
	text string
	all  []*value
}

// shapes lists the patterns of values. An earlier one wins if two match the same text.
var shapes = []struct {
	kind  valueKind
	re    *regexp.Regexp
	group int
}{
	{quoted, regexp.MustCompile("\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?:^|[\\s(\\[])'([^'\n]+)'"), 1},
	{email, regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`), 0},
	{link, regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s"'<>)\]]*[^\s"'<>)\].,;:!?]`), 0},
	{date, regexp.MustCompile(`\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?`), 0},
	{path, regexp.MustCompile(`(?:~|\.{1,2})?(?:/[\w.@-]+)+/?|[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,4}\b|[\w-]+(?:/[\w.-]+)+`), 0},
	{number, regexp.MustCompile(`[-+]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?`), 0},
	{capital, regexp.MustCompile(`\p{Lu}[\p{L}\p{N}'’-]*(?:[ ]\p{Lu}[\p{L}\p{N}'’-]*)*`), 0},
}

// valuesIn finds the values of a text. known reports the words of tool names, which are not
// values at the beginning of a sentence.
func valuesIn(text string, known func(word string) bool) *values {
	v := &values{text: text}
	taken := func(start, end int) bool {
		return slices.ContainsFunc(v.all, func(o *value) bool { return start < o.end && o.start < end })
	}
	for _, s := range shapes {
		for _, m := range s.re.FindAllStringSubmatchIndex(text, -1) {
			start, end := m[0], m[1]
			inner := text[start:end]
			for g := s.group; s.group > 0 && 2*g+1 < len(m); g++ {
				if m[2*g] >= 0 {
					inner = text[m[2*g]:m[2*g+1]]
					break
				}
			}
			if taken(start, end) {
				continue
			}
			val := &value{kind: s.kind, text: inner, start: start, end: end}
			if s.kind == capital && !trimCapital(val, text, known) {
				continue
			}
			if s.kind == number {
				val.text = strings.TrimPrefix(strings.ReplaceAll(val.text, ",", ""), "+")
				if insideWord(text, start, end) {
					continue
				}
			}
			v.all = append(v.all, val)
		}
	}
	slices.SortFunc(v.all, func(a, b *value) int { return a.start - b.start })
	for _, val := range v.all {
		val.neighbors(text)
	}
	return v
}

// nearby is the number of bytes around a value in which its name is searched.
const nearby = 64

// neighbors finds the words next to a value. It skips words between a name and its value
// ("the city of Oslo").
func (v *value) neighbors(text string) {
	before := wordsOf(cutQuotes(text[max(0, v.start-nearby):v.start]))
	for len(before) > 0 && containsWord(" is to of as the a an named called be ", before[len(before)-1]) {
		before = before[:len(before)-1]
	}
	if n := len(before); n > 0 {
		v.before = stem(before[n-1])
	}
	if after := wordsOf(text[v.end:min(len(text), v.end+nearby)]); len(after) > 0 {
		v.after = stem(after[0])
	}
}

// insideWord reports whether a span is only part of a word, like the 5 in H5.
func insideWord(text string, start, end int) bool {
	isWord := func(b byte) bool { return b == '_' || unicode.IsLetter(rune(b)) || b >= 0x80 }
	return start > 0 && isWord(text[start-1]) || end < len(text) && isWord(text[end])
}

// trimCapital removes words from the front of a capitalized run that begin a sentence and
// carry no information. It reports whether something is left.
func trimCapital(v *value, text string, known func(string) bool) bool {
	first := true // first word of a sentence
	for atStart(text, v.start) || !first {
		word, rest, more := strings.Cut(v.text, " ")
		lower := strings.ToLower(word)
		bare, _, _ := strings.Cut(strings.ReplaceAll(lower, "’", "'"), "'") // What's
		if !isStopWord(bare) && (!first || !isCommonVerb(bare) && !known(lower)) {
			if first {
				v.kind = opening
			}
			return true
		}
		if !more {
			return false
		}
		v.start += len(word) + 1
		v.text, first = rest, false
	}
	return !isStopWord(strings.ToLower(v.text)) // I
}

// atStart reports whether a sentence begins at a position.
func atStart(text string, at int) bool {
	before := strings.TrimRightFunc(text[:at], unicode.IsSpace)
	return before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:;\n") || strings.HasSuffix(text[:at], "\n")
}

// take returns the next unused value of the first of the kinds that has one, and marks it as
// used.
func (v *values) take(kinds ...valueKind) *value {
	if v == nil {
		return nil
	}
	for _, k := range kinds {
		for _, val := range v.all {
			if val.kind == k && !val.used {
				val.used = true
				return val
			}
		}
	}
	return nil
}

// namedBy returns a value that the text names: one after one of the words ("limit 5", "city:
// Oslo", "path=/tmp") or, for a number, before it ("5 results").
func (v *values) namedBy(words []string, kinds ...valueKind) *value {
	if v == nil {
		return nil
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = stem(w)
	}
	after := func(val *value) bool { return val.before != "" && slices.Contains(names, val.before) }
	before := func(val *value) bool {
		return val.kind == number && val.after != "" && slices.Contains(names, val.after)
	}
	for _, named := range []func(*value) bool{after, before} {
		for _, val := range v.all {
			if !val.used && slices.Contains(kinds, val.kind) && named(val) {
				val.used = true
				return val
			}
		}
	}
	return nil
}

// cutQuotes returns the text after the last quoted value, because quoted words name nothing.
func cutQuotes(s string) string { return s[strings.LastIndexAny(s, "\"`”")+1:] }

func sameStem(words []string, w string) bool {
	return slices.ContainsFunc(words, func(have string) bool { return stem(have) == stem(w) })
}

// mentions reports whether a text has a word, or several adjacent words.
func mentions(text, phrase string) bool { return inOrder(wordsOf(text), wordsOf(phrase)) }

// inOrder reports whether have contains want as adjacent words in order.
func inOrder(have, want []string) bool {
	if len(want) == 0 {
		return false
	}
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.Equal(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// between matches the text between elements of a list.
var between = regexp.MustCompile(`^\s*(?:,|&|/|\+|and|or|,\s*and|as well as)\s*(?:(?:also|in|for|of|at|to|from|about|on|with)\s+)?(?:the\s+)?$`)

// listedAfter returns the values that the text lists directly after one: "Oslo, Bergen and
// Paris". They are of the same kind, with nothing else between them.
func (v *values) listedAfter(first *value) []*value {
	var out []*value
	last := first
	for _, val := range v.all {
		if val.start < last.end {
			continue
		}
		if val.kind != first.kind && !(first.kind == opening && val.kind == capital) || !between.MatchString(v.text[last.end:val.start]) {
			break
		}
		out = append(out, val)
		last = val
	}
	return out
}
