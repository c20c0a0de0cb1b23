package sim

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/text/lark"
	"github.com/dragoman-go/dragoman/schema"
)

// fill makes a value for a schema, from what was said where that fits and from
// the schema alone otherwise. It validates what it makes: ok is false for a
// schema to which no value was found. said may be nil.
func fill(src json.RawMessage, said *values) (out json.RawMessage, ok bool) {
	if len(src) == 0 {
		return json.RawMessage("{}"), true
	}
	root, err := parseTree(src)
	if err != nil {
		return nil, false
	}
	strict, err := schema.Compile(src, schema.AssertFormats())
	if err != nil {
		return nil, false
	}
	if readTold(root, 0) {
		if told, err := schema.Compile(appendTree(nil, root), schema.AssertFormats()); err == nil {
			strict = told
		} else if root, err = parseTree(src); err != nil { // what is told is no schema
			return nil, false
		}
	}
	var second json.RawMessage
	lenient := sync.OnceValue(func() *schema.Validator {
		v, _ := schema.Compile(src) // nil takes nothing
		return v
	})
	leaves := map[string]*schema.Validator{}
	for _, f := range attempts(root, said) {
		f.leaves = leaves
		f.said.free()
		made, ok := f.value(root, "", 0)
		if !ok {
			continue
		}
		raw := json.RawMessage(appendTree(nil, made))
		if strict.Validate(raw) == nil {
			if f.said == nil {
				said.free() // nothing of it is in there
			}
			return raw, true
		}
		if second == nil && lenient().Validate(raw) == nil {
			second = raw
		}
	}
	return second, second != nil
}

// fillObject is fill for arguments, which are an object whatever else a schema
// takes.
func fillObject(src json.RawMessage, said *values) (out json.RawMessage, ok bool) {
	out, ok = fill(src, said)
	if ok && out[0] == '{' {
		return out, true
	}
	none := json.RawMessage("{}")
	v, err := schema.Compile(src)
	return none, err == nil && v.Validate(none) == nil
}

// free makes all values unused again.
func (v *values) free() {
	if v != nil {
		for _, val := range v.all {
			val.used = false
		}
	}
}

// attempts are the ways to fill a schema, the best first: with what was said and
// without it, with each of the first alternatives of its unions, and with
// members that need not be there.
func attempts(root any, said *values) []*filler {
	const alternatives = 6
	var out []*filler
	add := func(said *values, all bool) {
		for pick := range alternatives {
			out = append(out, &filler{flattener: flattener{root, pick}, said: said, all: all})
		}
	}
	if said != nil {
		add(said, false)
	}
	add(nil, false)
	add(nil, true)
	return out
}

// filler makes one value.
type filler struct {
	flattener
	said *values
	// all fills members that need not be there, too.
	all bool
	// nodes and bytes are what was made so far.
	nodes, bytes int
	// leaves are the validators of strings, which all attempts share.
	leaves map[string]*schema.Validator
}

// The bounds of what is made.
const (
	maxFillDepth = 100
	maxFillNodes = 2_000
	maxFillBytes = 4 << 20
	// optionalDepth is how deep members are filled that need not be there.
	optionalDepth = 3
)

// value makes a value for a schema that is called name.
func (f *filler) value(s any, name string, depth int) (any, bool) {
	f.nodes++
	if s == false || depth > maxFillDepth || f.nodes > maxFillNodes {
		return nil, false
	}
	flat := f.flat(s)
	if flat.has("const") {
		return f.spend(flat.get("const"), true)
	}
	if list, ok := flat.get("enum").([]any); ok {
		return f.spend(f.oneOf(list, flat))
	}
	switch typeOf(flat) {
	case "object":
		return f.object(flat, depth)
	case "array":
		return f.array(flat, name, depth)
	case "integer":
		return f.number(flat, name, true)
	case "number":
		return f.number(flat, name, false)
	case "boolean":
		return f.boolean(flat, name), true
	case "null":
		return nil, true
	default:
		return f.spend(f.text(flat, name))
	}
}

// spend takes a value that was made, unless it is one too many.
func (f *filler) spend(v any, ok bool) (any, bool) {
	f.bytes += weigh(v)
	return v, ok && f.bytes <= maxFillBytes
}

// weigh is about how many bytes a value has.
func weigh(v any) int {
	n := 8
	switch v := v.(type) {
	case string:
		n += len(v)
	case *object:
		for _, k := range v.keys {
			n += len(k) + weigh(v.values[k])
		}
	case []any:
		for _, e := range v {
			n += weigh(e)
		}
	}
	return n
}

// oneOf picks the value of a list that was said, or the default, or the first.
func (f *filler) oneOf(list []any, s *object) (any, bool) {
	if v, ok := f.saidOf(list); ok {
		return v, true
	}
	if s.has("default") {
		return s.get("default"), true
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[0], true
}

// saidOf is the value of an enum that was said.
func (f *filler) saidOf(list []any) (any, bool) {
	if f.said == nil {
		return nil, false
	}
	for _, e := range list {
		switch e := e.(type) {
		case string:
			if mentions(f.said.text, e) {
				return e, true
			}
		case json.Number:
			for _, val := range f.said.all {
				if val.kind == number && val.text == e.String() {
					return e, true
				}
			}
		}
	}
	return nil, false
}

// object makes an object with the members that it must have, and those that were
// said.
func (f *filler) object(s *object, depth int) (any, bool) {
	out := newObject()
	properties := objectAt(s, "properties")
	required := f.requiredOf(s)
	if len(required) > maxFillNodes { // more than would be made
		return nil, false
	}
	must := setOf(required)
	bound := f.bind(properties, required, depth)
	var names []string
	if properties != nil {
		names = properties.keys
	}
	for _, name := range names {
		v, said := bound[name]
		switch {
		case said:
			out.set(name, v)
		case must[name] || f.all && depth < optionalDepth:
			made, ok := f.value(properties.get(name), name, depth+1)
			if ok {
				out.set(name, made)
			} else if must[name] {
				return nil, false
			}
		}
	}
	for _, name := range required {
		if !out.has(name) {
			made, ok := f.extra(s, name, depth)
			if !ok {
				return nil, false
			}
			out.set(name, made)
		}
	}
	return out, f.enough(out, s, properties, depth)
}

// requiredOf are the members that an object must have.
func (f *filler) requiredOf(s *object) []string {
	var out []string
	list, _ := s.get("required").([]any)
	for _, e := range list {
		if name, ok := e.(string); ok {
			out = append(out, name)
		}
	}
	seen := setOf(out)
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		dependent := objectAt(s, keyword)
		for i := 0; dependent != nil && i < len(out); i++ {
			more, _ := dependent.get(out[i]).([]any)
			for _, e := range more {
				if name, ok := e.(string); ok && !seen[name] {
					seen[name] = true
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// extra makes a member that an object has no property for.
func (f *filler) extra(s *object, name string, depth int) (any, bool) {
	if s.get("additionalProperties") == false {
		return nil, false
	}
	of := any(newObject())
	if sub := objectAt(s, "additionalProperties"); sub != nil {
		of = sub
	}
	return f.value(of, name, depth+1)
}

// enough adds members until an object has as many as it must have.
func (f *filler) enough(out, s, properties *object, depth int) bool {
	least := intOr(s, "minProperties", 0)
	if properties != nil {
		for _, name := range properties.keys {
			if len(out.keys) >= least {
				break
			}
			if made, ok := f.value(properties.get(name), name, depth+1); ok && !out.has(name) {
				out.set(name, made)
			}
		}
	}
	for n := 1; len(out.keys) < least && n < 64; n++ {
		name := "key" + strconv.Itoa(n)
		if rule, err := parseTree(appendTree(nil, s.get("propertyNames"))); err == nil && rule != nil {
			if made, ok := f.value(rule, name, depth+1); ok {
				if text, ok := made.(string); ok {
					name = text
				}
			}
		}
		made, ok := f.extra(s, name, depth)
		if !ok {
			return false
		}
		out.set(name, made)
	}
	return len(out.keys) >= least
}

// array makes a list, of all the values said that fit where they are plain.
func (f *filler) array(s *object, name string, depth int) (any, bool) {
	least, most := intOr(s, "minItems", 0), intOr(s, "maxItems", 16)
	out := []any{}
	var tuple []any
	items := s.get("items")
	if prefix, ok := s.get("prefixItems").([]any); ok {
		tuple = prefix
	} else if list, ok := items.([]any); ok { // as older drafts have it
		tuple, items = list, s.get("additionalItems")
	}
	for i, sub := range tuple {
		if i < least || f.all || least == 0 {
			v, ok := f.value(sub, name, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
	}
	if items == nil {
		items = newObject()
	}
	if sub := s.get("contains"); sub != nil && len(tuple) == 0 {
		least, items = max(least, intOr(s, "minContains", 1)), newObject("allOf", []any{items, sub})
	}
	if len(tuple) == 0 {
		out = f.listed(items, name, most)
	}
	for n := 0; len(out) < least || len(tuple) == 0 && len(out) == 0 && most > 0 && depth < optionalDepth; n++ {
		v, ok := f.value(items, name, depth+1)
		if !ok && len(out) >= least {
			break
		}
		if !ok || n > 64 {
			return nil, false
		}
		if s.get("uniqueItems") == true {
			v = distinct(v, out)
		}
		out = append(out, v)
	}
	return out, true
}

// listed are the values said that a list of plain values takes.
func (f *filler) listed(items any, name string, most int) []any {
	out := []any{}
	if f.said == nil {
		return out
	}
	flat := f.flat(items)
	if list, ok := flat.get("enum").([]any); ok {
		for _, e := range list {
			if word, ok := e.(string); ok && mentions(f.said.text, word) && len(out) < most {
				out = append(out, e)
			}
		}
		return out
	}
	typ := typeOf(flat)
	if typ == "object" || typ == "array" || typ == "boolean" || typ == "null" {
		return out
	}
	for len(out) < most {
		var v any
		if typ == "string" {
			val := f.said.take(textKinds(flat, name)...)
			if val == nil || !f.fits(flat, val.text) {
				break
			}
			v = val.text
		} else {
			n := f.saidNumber(flat, name, typ == "integer")
			if n == nil {
				break
			}
			v = *n
		}
		out = append(out, v)
	}
	return out
}

// distinct is a value that a list does not have yet.
func distinct(v any, have []any) any {
	taken := func(v any) bool {
		text := string(appendTree(nil, v))
		return slices.ContainsFunc(have, func(o any) bool { return string(appendTree(nil, o)) == text })
	}
	for n := 2; taken(v) && n < 100; n++ {
		switch old := v.(type) {
		case string:
			v = strings.TrimRight(old, "0123456789") + strconv.Itoa(n)
		case json.Number:
			f, _ := old.Float64()
			v = json.Number(strconv.FormatFloat(f+1, 'f', -1, 64))
		case bool:
			v = !old
		default:
			return v
		}
	}
	return v
}

// boolean says no where the text says no, yes where it speaks of the thing.
func (f *filler) boolean(s *object, name string) any {
	if f.said != nil {
		words := wordsOf(f.said.text)
		for i, w := range words {
			if !sameStem(wordsOf(name), w) {
				continue
			}
			for _, before := range words[max(0, i-3):i] {
				if containsWord(" no not without dont never off disable ", before) {
					return false
				}
			}
			return i+1 >= len(words) || !containsWord(" false off no ", words[i+1])
		}
	}
	if b, ok := s.get("default").(bool); ok {
		return b
	}
	return false
}

// number makes a number within its bounds.
func (f *filler) number(s *object, name string, whole bool) (any, bool) {
	if n := f.saidNumber(s, name, whole); n != nil {
		return *n, true
	}
	if n, ok := s.get("default").(json.Number); ok {
		return n, true
	}
	if list, ok := s.get("examples").([]any); ok && len(list) > 0 {
		if n, ok := list[0].(json.Number); ok {
			return n, true
		}
	}
	low, high := numberBounds(s, whole)
	n := math.Max(low, math.Min(1, high))
	if step, ok := toFloat(s.get("multipleOf")); ok && step > 0 {
		n = math.Ceil(n/step-1e-9) * step
	}
	if whole {
		n = math.Ceil(n)
	} else if f.pick > 0 && n+0.5 <= high && !s.has("multipleOf") {
		n += 0.5 // an alternative to whole numbers
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), n <= high
}

// numberBounds are the least and the greatest number that a schema takes.
func numberBounds(s *object, whole bool) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	least := 0.5
	if whole {
		least = 1
	}
	if n, ok := toFloat(s.get("minimum")); ok {
		if low = n; s.get("exclusiveMinimum") == true {
			low += least
		}
	}
	if n, ok := toFloat(s.get("exclusiveMinimum")); ok {
		low = math.Max(low, n+least)
	}
	if n, ok := toFloat(s.get("maximum")); ok {
		if high = n; s.get("exclusiveMaximum") == true {
			high -= least
		}
	}
	if n, ok := toFloat(s.get("exclusiveMaximum")); ok {
		high = math.Min(high, n-least)
	}
	if low > high { // an open interval narrower than a step
		low = (low - least + high + least) / 2
		high = low
	}
	return low, high
}

// saidNumber is a number that was said and is within its bounds.
func (f *filler) saidNumber(s *object, name string, whole bool) *json.Number {
	if f.said == nil {
		return nil
	}
	low, high := numberBounds(s, whole)
	val := f.said.beside(wordsOf(name), number)
	if val == nil {
		val = f.said.take(number)
	}
	if val == nil {
		return nil
	}
	n, err := strconv.ParseFloat(val.text, 64)
	if err != nil || n < low || n > high || whole && n != math.Trunc(n) || !json.Valid([]byte(val.text)) {
		return nil
	}
	out := json.Number(val.text)
	return &out
}

// formats are values of the formats and encodings that JSON Schema names.
var formats = map[string]string{
	"date": "2026-01-15", "date-time": "2026-01-15T09:30:00Z", "time": "09:30:00Z", "duration": "PT1H",
	"email": "user@example.com", "idn-email": "user@example.com", "hostname": "example.com", "idn-hostname": "example.com",
	"uri": "https://example.com/", "iri": "https://example.com/", "url": "https://example.com/",
	"uri-reference": "/", "iri-reference": "/", "uri-template": "/{id}",
	"uuid": "00000000-0000-4000-8000-000000000001", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": ".*", "byte": "aGVsbG8=", "base64": "aGVsbG8=",
}

// text makes a string.
func (f *filler) text(s *object, name string) (any, bool) {
	if text, ok := f.saidText(s, name); ok {
		return text, true
	}
	for _, given := range []any{s.get("default"), at(s, "examples", 0), s.get("example")} {
		if text, ok := given.(string); ok && f.fits(s, text) {
			return text, true
		}
	}
	for _, shape := range []string{"format", "contentEncoding"} {
		name, _ := s.get(shape).(string)
		if text, ok := formats[name]; ok && f.fits(s, text) {
			return text, true
		}
	}
	if pattern, ok := s.get("pattern").(string); ok {
		text, err := lark.ExampleOf(pattern)
		if err != nil {
			return nil, false
		}
		return stretched(text, s), true
	}
	fallback := name
	if fallback == "" {
		fallback = "text"
	}
	return stretched(fallback, s), true
}

// stretched is a text of a length that a schema takes.
func stretched(text string, s *object) string {
	least, most := intOr(s, "minLength", 0), intOr(s, "maxLength", math.MaxInt32)
	if n := utf8.RuneCountInString(text); n < least {
		text += strings.Repeat("x", least-n)
	}
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most])
	}
	return text
}

// fits reports whether a string schema takes a text.
func (f *filler) fits(s *object, text string) bool {
	n := utf8.RuneCountInString(text)
	if n < intOr(s, "minLength", 0) || n > intOr(s, "maxLength", math.MaxInt32) {
		return false
	}
	if s.get("contentEncoding") == "base64" || s.get("format") == "byte" { // which validators pass over
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return false
		}
	}
	if !s.has("pattern") && !s.has("format") {
		return true
	}
	leaf := newObject("type", "string")
	for _, k := range []string{"pattern", "format"} {
		if s.has(k) {
			leaf.set(k, s.get(k))
		}
	}
	src := appendTree(nil, leaf)
	v, known := f.leaves[string(src)]
	if !known {
		v, _ = schema.Compile(src, schema.AssertFormats()) // nil takes nothing
		f.leaves[string(src)] = v
	}
	return v.Validate(appendTree(nil, text)) == nil
}
