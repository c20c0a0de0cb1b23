package sim

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// noteKeywords lists the keywords that package schema writes into a description if the API
// does not accept them: "(format: date-time)". A model reads such notes, so the simulator
// does too.
var noteKeywords = []string{
	"format", "pattern", "contentEncoding", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "default", "examples",
}

// readNotes adds the keywords in the notes of each description to its schema, for all
// schemas of a tree. It reports whether there were any.
func readNotes(v any, depth int) (found bool) {
	if depth > maxFillDepth {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			found = readNotes(e, depth+1) || found
		}
	case *object:
		for _, k := range slices.Clone(v.keys) {
			if !slices.Contains([]string{"default", "const", "enum", "examples"}, k) { // data, not schemas
				found = readNotes(v.values[k], depth+1) || found
			}
		}
		if text, ok := v.get("description").(string); ok {
			found = readSchemaNotes(v, text) || found
		}
	}
	return found
}

// note matches the beginning of a note in a description.
var note = regexp.MustCompile(`(?:^|\s)\((\w+): `)

// readSchemaNotes reads the notes at the end of a description, the last one first.
func readSchemaNotes(s *object, text string) (found bool) {
	for {
		text = strings.TrimRight(text, " ")
		inner, closed := strings.CutSuffix(text, ")")
		all := note.FindAllStringSubmatchIndex(inner, -1)
		if !closed || len(all) == 0 {
			return found
		}
		last := all[len(all)-1]
		keyword, value := inner[last[2]:last[3]], inner[last[1]:]
		text = inner[:last[0]]
		if !slices.Contains(noteKeywords, keyword) || s.has(keyword) || strings.HasSuffix(value, "…") { // the value was shortened
			continue
		}
		if v, ok := noteValue(keyword, value); ok {
			s.set(keyword, v)
			found = true
		}
	}
}

// noteValue returns the value of a note: the text for string keywords, the JSON value for
// others.
func noteValue(keyword, value string) (any, bool) {
	v, err := parseTree(json.RawMessage(value))
	switch keyword {
	case "format", "pattern", "contentEncoding":
		return value, true
	case "default":
		if err != nil {
			return value, true
		}
		return v, true
	case "examples":
		_, ok := v.([]any)
		return v, err == nil && ok
	case "uniqueItems":
		return true, value == "true"
	default:
		_, ok := v.(json.Number)
		return v, err == nil && ok
	}
}
