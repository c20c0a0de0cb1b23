package sim

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// toldKeywords are those that a description may tell where a wire has no place for
// them, as package schema does when it lowers: "(format: date-time)". A model reads
// them, so that the simulator does.
var toldKeywords = []string{
	"format", "pattern", "contentEncoding", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "default", "examples",
}

// readTold gives every schema of a tree the keywords that its description tells, and
// reports whether there were any.
func readTold(v any, depth int) (found bool) {
	if depth > maxFillDepth {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			found = readTold(e, depth+1) || found
		}
	case *object:
		for _, k := range slices.Clone(v.keys) {
			if !slices.Contains([]string{"default", "const", "enum", "examples"}, k) { // data, and no schemas
				found = readTold(v.values[k], depth+1) || found
			}
		}
		if text, ok := v.get("description").(string); ok {
			found = tellOne(v, text) || found
		}
	}
	return found
}

// note is how one begins that stands at the end of a description.
var note = regexp.MustCompile(`(?:^|\s)\((\w+): `)

// tellOne reads the notes at the end of a description, the last one first.
func tellOne(s *object, text string) (found bool) {
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
		if !slices.Contains(toldKeywords, keyword) || s.has(keyword) || strings.HasSuffix(value, "…") { // cut short
			continue
		}
		if v, ok := toldValue(keyword, value); ok {
			s.set(keyword, v)
			found = true
		}
	}
}

// toldValue is the value of a note: the text of a string, the JSON of all else.
func toldValue(keyword, value string) (any, bool) {
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
