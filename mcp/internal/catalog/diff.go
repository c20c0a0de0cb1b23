package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Change is one difference between two definitions of a tool.
type Change struct {
	// Field is the pinned field: "name", "title", "description", "inputSchema",
	// "outputSchema", "annotations", "execution", "ui" or "label".
	Field string `json:"field"`
	// Text describes the change in one line, such as "parameter path: type string -> array".
	// Texts of the server in it are escaped.
	Text string `json:"text"`
	// Lines are the lines of a longer text that were removed ("- …") and added ("+ …"),
	// escaped.
	Lines []string `json:"lines,omitempty"`
}

const (
	// maxChanges bounds the changes that a diff lists.
	maxChanges = 200
	// maxLines bounds the lines of one text that are compared, and maxShown a value in a line.
	maxLines = 400
	maxShown = 120
)

// Diff describes the differences between two definitions, in a fixed order. Nil means that they
// are the same.
func Diff(before, after json.RawMessage) []Change {
	if bytes.Equal(before, after) {
		return nil
	}
	a, okA := decodeObject(before)
	b, okB := decodeObject(after)
	if !okA || !okB {
		return []Change{{Field: "", Text: "the definition cannot be compared"}}
	}
	d := &differ{}
	for _, name := range [...]string{labelField, "name", "title"} {
		d.value(name, name, a, b, name)
	}
	d.description("description", "description", a, b)
	d.hints(a["annotations"], b["annotations"])
	d.schema("inputSchema", "parameter", "", a["inputSchema"], b["inputSchema"], 0)
	d.schema("outputSchema", "result", "", a["outputSchema"], b["outputSchema"], 0)
	d.object("execution", "execution ", a, b)
	d.object(uiField, "app ", a, b)
	d.value(uiField, "app resource", a, b, oldUIField)
	if len(d.out) == 0 { // only what the rules above do not know
		d.addf("", "the definition changed: %s -> %s", show(a), show(b))
	}
	return d.out
}

func decodeObject(raw json.RawMessage) (map[string]any, bool) {
	v, err := decodeTree(raw)
	m, ok := v.(map[string]any)
	return m, ok && err == nil
}

type differ struct {
	out []Change
}

// addf adds a change, and returns it so that its lines can be set.
func (d *differ) addf(field, format string, args ...any) *Change {
	c := Change{Field: field, Text: fmt.Sprintf(format, args...)}
	switch {
	case len(d.out) > maxChanges:
		return &c
	case len(d.out) == maxChanges:
		d.out = append(d.out, Change{Field: field, Text: "more changes are not listed"})
		return &c
	}
	d.out = append(d.out, c)
	return &d.out[len(d.out)-1]
}

// show returns a value in one escaped line.
func show(v any) string {
	text := string(appendCanonical(nil, v))
	if len(text) > maxShown {
		text = cutAt(text, maxShown) + "…"
	}
	return textkit.Visible(text)
}

func same(a, b any) bool { return bytes.Equal(appendCanonical(nil, a), appendCanonical(nil, b)) }

// value compares a field as a whole.
func (d *differ) value(field, what string, a, b map[string]any, key string) {
	before, hadIt := a[key]
	after, hasIt := b[key]
	d.pair(field, what, before, hadIt, after, hasIt)
}

func (d *differ) pair(field, what string, before any, hadIt bool, after any, hasIt bool) {
	switch {
	case !hadIt && !hasIt:
	case !hadIt:
		d.addf(field, "%s: added %s", what, show(after))
	case !hasIt:
		d.addf(field, "%s: removed, was %s", what, show(before))
	case !same(before, after):
		d.addf(field, "%s: %s -> %s", what, show(before), show(after))
	}
}

// description compares a text by lines.
func (d *differ) description(field, what string, a, b map[string]any) {
	before, okA := a["description"].(string)
	after, okB := b["description"].(string)
	if !okA || !okB {
		d.value(field, what, a, b, "description")
		return
	}
	if before == after {
		return
	}
	d.addf(field, "%s: changed", what).Lines = lineDiff(before, after)
}

// lineDiff returns the removed and added lines of a text.
func lineDiff(before, after string) []string {
	a, b := splitLines(before), splitLines(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	// The longest common sequence of what is left.
	lengths := make([][]int, len(a)+1)
	for i := range lengths {
		lengths[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				lengths[i][j] = lengths[i+1][j+1] + 1
			} else {
				lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || lengths[i+1][j] >= lengths[i][j+1]):
			out = append(out, "- "+textkit.Visible(a[i]))
			i++
		default:
			out = append(out, "+ "+textkit.Visible(b[j]))
			j++
		}
	}
	return out
}

// splitLines splits a text into at most maxLines lines; the last one has the rest.
func splitLines(s string) []string {
	return strings.SplitN(s, "\n", maxLines)
}

// hints compares annotations.
func (d *differ) hints(before, after any) {
	a, okA := before.(map[string]any)
	b, okB := after.(map[string]any)
	if before != nil && !okA || after != nil && !okB {
		d.pair("annotations", "annotations", before, before != nil, after, after != nil)
		return
	}
	for _, key := range mergedKeys(a, b) {
		x, hadIt := a[key]
		y, hasIt := b[key]
		if hadIt == hasIt && same(x, y) {
			continue
		}
		what := "annotation " + textkit.Visible(key)
		for _, h := range hints {
			if h.wire == key {
				what = "hint " + h.word
			}
		}
		d.addf("annotations", "%s: %s -> %s", what, showOrUnset(x, hadIt), showOrUnset(y, hasIt))
	}
	if okA != okB && len(a) == 0 && len(b) == 0 {
		d.addf("annotations", "annotations: %s -> %s", showOrUnset(before, before != nil), showOrUnset(after, after != nil))
	}
}

func showOrUnset(v any, set bool) string {
	if !set {
		return "unset"
	}
	return show(v)
}

// object compares the fields of an object one by one.
func (d *differ) object(key, prefix string, a, b map[string]any) {
	x, okA := a[key].(map[string]any)
	y, okB := b[key].(map[string]any)
	_, hadIt := a[key]
	_, hasIt := b[key]
	if !okA || !okB {
		d.pair(key, strings.TrimSpace(prefix), a[key], hadIt, b[key], hasIt)
		return
	}
	for _, name := range mergedKeys(x, y) {
		d.value(key, prefix+textkit.Visible(name), x, y, name)
	}
}

func mergedKeys(a, b map[string]any) []string {
	keys := append(sortedKeys(a), sortedKeys(b)...)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// schema compares two schemas. noun is "parameter" or "result", and path the names of the
// properties that lead to them.
func (d *differ) schema(field, noun, path string, before, after any, depth int) {
	if same(before, after) {
		return
	}
	subject := noun + " " + path
	if path == "" {
		subject = noun + "s"
	}
	a, okA := before.(map[string]any)
	b, okB := after.(map[string]any)
	const deepest = 32
	if !okA || !okB || depth > deepest {
		d.pair(field, subject+": schema", before, before != nil, after, after != nil)
		return
	}
	for _, key := range mergedKeys(a, b) {
		x, hadIt := a[key]
		y, hasIt := b[key]
		if hadIt == hasIt && same(x, y) {
			continue
		}
		switch key {
		case "properties":
			d.properties(field, noun, path, a, b, depth)
		case "required":
			d.required(field, noun, path, a, b)
		case "description":
			d.description(field, subject+": description", a, b)
		case "enum":
			d.set(field, subject+": allowed values", x, y, hadIt, hasIt)
		case "type":
			d.addf(field, "%s: type %s -> %s", subject, showType(x, hadIt), showType(y, hasIt))
		case "items":
			d.schemaOrValue(field, noun, path+"[]", subject+": items", x, y, depth)
		case "additionalProperties":
			d.schemaOrValue(field, noun, joinPath(path, "*"), subject+": other properties", x, y, depth)
		default:
			d.pair(field, subject+": "+textkit.Visible(key), x, hadIt, y, hasIt)
		}
	}
}

func (d *differ) schemaOrValue(field, noun, path, what string, x, y any, depth int) {
	_, okX := x.(map[string]any)
	_, okY := y.(map[string]any)
	if okX && okY {
		d.schema(field, noun, path, x, y, depth+1)
		return
	}
	d.pair(field, what, x, x != nil, y, y != nil)
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func showType(v any, set bool) string {
	switch t := v.(type) {
	case string:
		return textkit.Visible(clip(t))
	case []any:
		names := make([]string, len(t))
		for i, e := range t {
			names[i] = showType(e, true)
		}
		return strings.Join(names, "|")
	}
	return showOrUnset(v, set)
}

// properties compares the properties of an object.
func (d *differ) properties(field, noun, path string, a, b map[string]any, depth int) {
	x, okA := a["properties"].(map[string]any)
	y, okB := b["properties"].(map[string]any)
	if a["properties"] != nil && !okA || b["properties"] != nil && !okB {
		d.value(field, noun+" "+path+": properties", a, b, "properties")
		return
	}
	before := len(d.out)
	for _, name := range mergedKeys(x, y) {
		p, hadIt := x[name]
		q, hasIt := y[name]
		at := joinPath(path, textkit.Visible(clip(name)))
		switch {
		case !hadIt:
			detail := []string{}
			if m, ok := q.(map[string]any); ok {
				if t, ok := m["type"]; ok {
					detail = append(detail, showType(t, true))
				}
			}
			if isRequired(b, name) {
				detail = append(detail, "required")
			}
			c := d.addf(field, "%s %s: added%s", noun, at, inBrackets(detail))
			if m, ok := q.(map[string]any); ok {
				if text, _ := m["description"].(string); text != "" {
					c.Lines = lineDiff("", text)[1:]
				}
			}
		case !hasIt:
			d.addf(field, "%s %s: removed", noun, at)
		default:
			d.schema(field, noun, at, p, q, depth+1)
		}
	}
	if len(d.out) == before { // {} and absent
		d.value(field, strings.TrimSpace(noun+"s "+path)+": properties", a, b, "properties")
	}
}

func inBrackets(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func isRequired(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	return slices.Contains(list, any(name))
}

// required compares the lists of required properties.
func (d *differ) required(field, noun, path string, a, b map[string]any) {
	x, okA := a["required"].([]any)
	y, okB := b["required"].([]any)
	subject := strings.TrimSpace(noun + "s " + path)
	if a["required"] != nil && !okA || b["required"] != nil && !okB {
		d.value(field, subject+": required", a, b, "required")
		return
	}
	before := len(d.out)
	props, _ := a["properties"].(map[string]any)
	kept, _ := b["properties"].(map[string]any)
	listed := false // an added or removed property says so itself
	for _, v := range y {
		if !slices.ContainsFunc(x, func(o any) bool { return same(o, v) }) {
			name, ok := v.(string)
			if _, existed := props[name]; ok && !existed && kept[name] != nil {
				listed = true
				continue
			}
			d.addf(field, "%s %s: now required", noun, joinPath(path, nameOf(v)))
		}
	}
	for _, v := range x {
		if !slices.ContainsFunc(y, func(o any) bool { return same(o, v) }) {
			name, ok := v.(string)
			if _, exists := kept[name]; ok && !exists && props[name] != nil {
				listed = true
				continue
			}
			d.addf(field, "%s %s: no longer required", noun, joinPath(path, nameOf(v)))
		}
	}
	if len(d.out) == before && !listed {
		d.value(field, subject+": required", a, b, "required")
	}
}

func nameOf(v any) string {
	if s, ok := v.(string); ok {
		return textkit.Visible(clip(s))
	}
	return show(v)
}

// set compares lists of which the order does not matter to people.
func (d *differ) set(field, what string, x, y any, hadIt, hasIt bool) {
	a, okA := x.([]any)
	b, okB := y.([]any)
	if !okA || !okB {
		d.pair(field, what, x, hadIt, y, hasIt)
		return
	}
	var words []string
	missing := func(from, in []any, word string) {
		const most = 8
		n := 0
		for _, v := range from {
			if !slices.ContainsFunc(in, func(o any) bool { return same(o, v) }) {
				if n++; n <= most {
					words = append(words, word+" "+show(v))
				}
			}
		}
		if n > most {
			words = append(words, word+" "+strconv.Itoa(n-most)+" more")
		}
	}
	if len(a)*len(b) > maxSubschemas*100 {
		d.pair(field, what, x, hadIt, y, hasIt)
		return
	}
	missing(b, a, "added")
	missing(a, b, "removed")
	if len(words) == 0 {
		words = append(words, "in another order")
	}
	d.addf(field, "%s: %s", what, strings.Join(words, ", "))
}

// NameOf returns the name of the tool in a definition.
func NameOf(definition json.RawMessage) string { return jsonwire.Unquote(field(definition, "name")) }

// LabelOf returns the label of the server in a definition.
func LabelOf(definition json.RawMessage) string {
	return jsonwire.Unquote(field(definition, labelField))
}
