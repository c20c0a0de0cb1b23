package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

const (
	// maxChanges limits the number of reported changes.
	maxChanges = 32
	// maxComparisons limits how often a schema is compared with a value, and maxCertain the number of
	// schemas per value. Arguments that exceed the limits stay unchanged.
	maxComparisons = 1 << 20
	maxCertain     = 64
)

// Complete makes these changes to the arguments:
//
//   - It adds the schema's defaults of absent properties.
//   - It writes whole numbers such as 5.0 and 1e2 as integers if the schema requires an integer
//     (quirk B31).
//   - With coerce, it converts values of another JSON type than the schema requires: a number,
//     a boolean, null, an object or an array in a string, and a number or a boolean to a
//     string.
//
// Only schemas that apply in any case count: the schema itself, its references and allOf, never
// a branch of a union.
//
// It returns args itself if nothing changes, or if args are not JSON or too large; Validate
// reports that. The second result describes each change and its position.
func (v *Validator) Complete(args json.RawMessage, coerce bool) (json.RawMessage, []string) {
	if v == nil || !v.defaults && !coerce && !mayHaveFraction(args) || len(args) > v.maxBytes {
		return args, nil
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if jsonwire.Check(args) != nil {
		return args, nil
	}
	c := completer{r: jsonwire.NewReader(args), coerce: coerce, left: maxComparisons}
	c.value([]*node{v.root}, 0)
	if c.changes == 0 || c.left < 0 || c.r.End() != nil || c.w.Err() != nil {
		return args, nil
	}
	return c.w.Buf, c.notes
}

// hasDefaults reports whether any schema below root gives a property a default.
func hasDefaults(root *node) bool {
	found := false
	reach(root, func(n *node) {
		if p := n.get(kwProperties); n.kind == isSchema && p != nil && p.kind == isMap {
			for _, m := range p.fields {
				found = found || m.val.kind == isSchema && m.val.has(kwDefault)
			}
		}
	})
	return found
}

type completer struct {
	r       *jsonwire.Reader
	w       jsonwire.Writer
	coerce  bool
	left    int
	changes int
	notes   []string
	// at is the pointer of the completed value in the arguments.
	at string
	// filling holds the properties whose defaults are being completed: a default that contains
	// itself is filled in once.
	filling []*node
}

func (c *completer) record(pointer, what string) {
	c.changes++
	pointer = c.at + pointer
	if len(c.notes) < maxChanges {
		if pointer == "" {
			pointer = "/"
		}
		c.notes = append(c.notes, cut(pointer, maxLineText)+": "+what)
	}
}

// value copies one value to which all of the schemas apply.
func (c *completer) value(schemas []*node, depth int) {
	schemas = certain(schemas)
	c.left -= len(schemas)
	if len(schemas) == 0 || depth > maxArgumentDepth || c.left < 0 {
		c.w.Raw(c.r.Raw())
		return
	}
	switch c.r.Kind() {
	case '{':
		c.object(schemas, depth)
	case '[':
		c.w.BeginArray()
		for i := range c.r.Array() {
			var below []*node
			for _, s := range schemas {
				if item := s.item(i); item != nil {
					below = append(below, item)
				}
			}
			c.value(below, depth+1)
		}
		c.w.EndArray()
	default:
		raw := c.r.Raw()
		if c.coerce {
			if other, what := coerced(raw, wanted(schemas)); other != nil {
				c.record(c.r.Pointer(), what)
				raw = c.completeNested(other, schemas, c.r.Pointer(), depth+1)
			}
		}
		if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
			types := wanted(schemas)
			if whole := wholeNumber(raw); whole != nil && slices.Contains(types, "integer") && !slices.Contains(types, "number") {
				c.record(c.r.Pointer(), cut(string(raw), 60)+" written as an integer")
				raw = whole
			}
		}
		c.w.Raw(raw)
	}
}

// mayHaveFraction reports whether a number in args may have a fraction or an exponent.
func mayHaveFraction(args []byte) bool {
	for i, b := range args {
		if (b == '.' || b == 'e' || b == 'E') && i > 0 && args[i-1] >= '0' && args[i-1] <= '9' {
			return true
		}
	}
	return false
}

// maxWhole limits the digits of an integer that is rewritten.
const maxWhole = 64

// wholeNumber returns a JSON number with a fraction or an exponent as an integer; nil if it is
// not whole, too long, or an integer already.
func wholeNumber(raw []byte) []byte {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(string(raw)), "e")
	shift := 0
	if hasExponent {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return nil
		}
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	digits, fraction, hasFraction := strings.Cut(digits, ".")
	if !hasExponent && !hasFraction || len(raw) > maxWhole || shift > maxWhole || shift < -maxWhole {
		return nil
	}
	point := len(digits) + shift
	digits += fraction
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	point = max(point, 0)
	if strings.Trim(digits[point:], "0") != "" {
		return nil
	}
	digits = strings.TrimLeft(digits[:point], "0")
	switch {
	case digits == "":
		return []byte("0")
	case negative:
		return []byte("-" + digits)
	default:
		return []byte(digits)
	}
}

func (c *completer) object(schemas []*node, depth int) {
	c.w.BeginObject()
	var have []string
	for key := range c.r.Object() {
		name := string(key)
		have = append(have, name)
		c.w.QuotedKey(name)
		below, _ := declared(schemas, name)
		c.value(below, depth+1)
	}
	pointer := c.r.Pointer()
	for _, s := range schemas {
		p := s.get(kwProperties)
		if p == nil || p.kind != isMap {
			continue
		}
		for _, m := range p.fields {
			if m.val.kind != isSchema || slices.Contains(have, m.key) || slices.Contains(c.filling, m.val) {
				continue
			}
			if d := defaultOf(m.val); d != nil {
				have = append(have, m.key)
				c.w.QuotedKey(m.key)
				at := pointer + "/" + escapeToken(m.key)
				c.record(at, "absent, so the schema's default "+cut(string(d), 60)+" counts")
				c.filling = append(c.filling, m.val)
				below, _ := declared(schemas, m.key)
				c.w.Raw(c.completeNested(d, below, at, depth+1))
				c.filling = c.filling[:len(c.filling)-1]
			}
		}
	}
	c.w.EndObject()
}

// completeNested completes a value that the arguments do not contain as such: the content of a string,
// or a default.
func (c *completer) completeNested(raw []byte, schemas []*node, pointer string, depth int) []byte {
	if jsonwire.Check(raw) != nil {
		return raw
	}
	sub := completer{r: jsonwire.NewReader(raw), coerce: c.coerce, left: c.left, at: c.at + pointer, filling: c.filling}
	sub.value(schemas, depth)
	if c.left = sub.left; sub.changes == 0 || sub.left < 0 || sub.r.End() != nil || sub.w.Err() != nil {
		return raw
	}
	c.changes += sub.changes
	c.notes = append(c.notes, sub.notes[:min(len(sub.notes), maxChanges-len(c.notes))]...)
	return sub.w.Buf
}

// defaultOf returns the default of a property: its own, or that of its reference.
func defaultOf(n *node) []byte {
	for _, s := range certain([]*node{n}) {
		if d := s.get(kwDefault); d != nil {
			return d.text()
		}
	}
	return nil
}

// certain adds the schemas that apply to the same value in any case.
func certain(schemas []*node) []*node {
	var out []*node
	add := func(n *node) {
		if n.kind == isSchema && !slices.Contains(out, n) && len(out) < maxCertain {
			out = append(out, n)
		}
	}
	for _, s := range schemas {
		add(s)
	}
	for i := 0; i < len(out); i++ {
		if out[i].ref != nil {
			add(out[i].ref)
		}
		if all := out[i].get(kwAllOf); all != nil && all.kind == isList {
			all.entries(add)
		}
	}
	return out
}

// item returns the schema of the i-th item of an array, or nil.
func (n *node) item(i int) *node {
	prefix, rest := n.get(kwPrefixItems), n.get(kwItems)
	if rest != nil && rest.kind == isList { // before 2020-12
		prefix, rest = rest, n.get(kwAdditionalItems)
	}
	if prefix != nil && prefix.kind == isList && i < len(prefix.list) {
		return prefix.list[i]
	}
	return rest
}

// wanted returns the types that a value may have; nil means any type.
func wanted(schemas []*node) []string {
	var out []string
	for _, s := range schemas {
		if t := s.types(); t != nil && out == nil {
			out = t
		} else if t != nil {
			out = slices.DeleteFunc(slices.Clone(out), func(name string) bool { return !slices.Contains(t, name) })
		}
	}
	return out
}

// coerced returns a scalar converted to another type, and a description of the conversion; nil
// if the value already has an accepted type, or cannot be converted.
func coerced(raw []byte, types []string) (other []byte, what string) {
	wants := func(t string) bool { return slices.Contains(types, t) }
	if len(types) == 0 || raw[0] != '"' {
		if raw[0] != '"' && raw[0] != 'n' && len(types) > 0 && wants("string") && !wants(typeOfText(raw)) && !(typeOfText(raw) == "integer" && wants("number")) {
			return quoted(string(raw)), typeOfText(raw) + " read as a string"
		}
		return nil, ""
	}
	if wants("string") {
		return nil, ""
	}
	r := jsonwire.NewReader(raw)
	text := []byte(strings.TrimSpace(r.String()))
	if r.Err() != nil || jsonwire.Check(text) != nil {
		return nil, ""
	}
	t := typeOfText(text)
	if wants(t) || t == "integer" && wants("number") {
		return text, "string read as " + t
	}
	return nil, ""
}
