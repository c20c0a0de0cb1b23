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

// fill makes a value for a schema, from values of the prompt that fit and otherwise from the
// schema alone. It validates the result: ok is false if it finds no valid value. given may be
// nil.
func fill(src json.RawMessage, given *values) (out json.RawMessage, ok bool) {
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
	if readNotes(root, 0) {
		if strictWithNotes, err := schema.Compile(appendTree(nil, root), schema.AssertFormats()); err == nil {
			strict = strictWithNotes
		} else if root, err = parseTree(src); err != nil { // the notes make the schema invalid: use it without them
			return nil, false
		}
	}
	var second json.RawMessage
	lenient := sync.OnceValue(func() *schema.Validator {
		v, _ := schema.Compile(src) // a nil validator accepts nothing
		return v
	})
	leaves := map[string]*schema.Validator{}
	for _, f := range attempts(root, given) {
		f.leaves = leaves
		f.given.free()
		made, ok := f.value(root, "", 0)
		if !ok {
			continue
		}
		raw := json.RawMessage(appendTree(nil, made))
		if strict.Validate(raw) == nil {
			if f.given == nil {
				given.free() // the result does not use them
			}
			return raw, true
		}
		if second == nil && lenient().Validate(raw) == nil {
			second = raw
		}
	}
	return second, second != nil
}

// fillObject is fill for arguments, which must be an object, whatever else the schema accepts.
func fillObject(src json.RawMessage, given *values) (out json.RawMessage, ok bool) {
	out, ok = fill(src, given)
	if ok && out[0] == '{' {
		return out, true
	}
	none := json.RawMessage("{}")
	v, err := schema.Compile(src)
	return none, err == nil && v.Validate(none) == nil
}

// free marks all values as unused.
func (v *values) free() {
	if v != nil {
		for _, val := range v.all {
			val.used = false
		}
	}
}

// attempts returns the ways to fill a schema, the best first: with and without values of the
// prompt, with each of the first alternatives of its unions, and with optional properties.
func attempts(root any, given *values) []*filler {
	const alternatives = 6
	var out []*filler
	add := func(given *values, all bool) {
		for pick := range alternatives {
			out = append(out, &filler{flattener: flattener{root, pick}, given: given, all: all})
		}
	}
	if given != nil {
		add(given, false)
	}
	add(nil, false)
	add(nil, true)
	return out
}

// filler makes one value.
type filler struct {
	flattener
	given *values
	// all also fills optional properties.
	all bool
	// nodes and bytes count what was made so far.
	nodes, bytes int
	// leaves caches the validators of strings for all attempts.
	leaves map[string]*schema.Validator
}

// The limits of generated values.
const (
	maxFillDepth = 100
	maxFillNodes = 2_000
	maxFillBytes = 4 << 20
	// optionalDepth is the depth up to which optional properties are filled.
	optionalDepth = 3
)

// value makes a value for the schema of a property called name.
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

// spend counts a value and returns it, unless a limit is exceeded.
func (f *filler) spend(v any, ok bool) (any, bool) {
	f.bytes += approximateSize(v)
	return v, ok && f.bytes <= maxFillBytes
}

// approximateSize returns the approximate size of a value in bytes.
func approximateSize(v any) int {
	n := 8
	switch v := v.(type) {
	case string:
		n += len(v)
	case *object:
		for _, k := range v.keys {
			n += len(k) + approximateSize(v.values[k])
		}
	case []any:
		for _, e := range v {
			n += approximateSize(e)
		}
	}
	return n
}

// oneOf picks a value of an enum: one that the prompt mentions, the default, or the first.
func (f *filler) oneOf(list []any, s *object) (any, bool) {
	if v, ok := f.enumFromPrompt(list); ok {
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

// enumFromPrompt returns the value of an enum that the prompt mentions.
func (f *filler) enumFromPrompt(list []any) (any, bool) {
	if f.given == nil {
		return nil, false
	}
	for _, e := range list {
		switch e := e.(type) {
		case string:
			if mentions(f.given.text, e) {
				return e, true
			}
		case json.Number:
			for _, val := range f.given.all {
				if val.kind == number && val.text == e.String() {
					return e, true
				}
			}
		}
	}
	return nil, false
}

// object makes an object with its required properties and those that the prompt has values
// for.
func (f *filler) object(s *object, depth int) (any, bool) {
	out := newObject()
	properties := objectAt(s, "properties")
	required := f.requiredOf(s)
	if len(required) > maxFillNodes { // more than the limit
		return nil, false
	}
	must := setOf(required)
	bound := f.bind(properties, required, depth)
	var names []string
	if properties != nil {
		names = properties.keys
	}
	for _, name := range names {
		v, found := bound[name]
		switch {
		case found:
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
	return out, f.addMinProperties(out, s, properties, depth)
}

// requiredOf returns the required properties of an object.
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

// extra makes a value for a name that the schema has no property for.
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

// addMinProperties adds properties until an object has its minimum number of them.
func (f *filler) addMinProperties(out, s, properties *object, depth int) bool {
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

// array makes a list, of all fitting values of the prompt if its elements are plain.
func (f *filler) array(s *object, name string, depth int) (any, bool) {
	least, most := intOr(s, "minItems", 0), intOr(s, "maxItems", 16)
	out := []any{}
	var tuple []any
	items := s.get("items")
	if prefix, ok := s.get("prefixItems").([]any); ok {
		tuple = prefix
	} else if list, ok := items.([]any); ok { // older drafts
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

// listed returns the values of the prompt that fit a list of plain values.
func (f *filler) listed(items any, name string, most int) []any {
	out := []any{}
	if f.given == nil {
		return out
	}
	flat := f.flat(items)
	if list, ok := flat.get("enum").([]any); ok {
		for _, e := range list {
			if word, ok := e.(string); ok && mentions(f.given.text, word) && len(out) < most {
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
			val := f.given.take(textKinds(flat, name)...)
			if val == nil || !f.fits(flat, val.text) {
				break
			}
			v = val.text
		} else {
			n := f.promptNumber(flat, name, typ == "integer")
			if n == nil {
				break
			}
			v = *n
		}
		out = append(out, v)
	}
	return out
}

// distinct changes a value so that it differs from those in a list.
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

// boolean returns false if the prompt negates the name, true if it mentions the name.
func (f *filler) boolean(s *object, name string) any {
	if f.given != nil {
		words := wordsOf(f.given.text)
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
	if n := f.promptNumber(s, name, whole); n != nil {
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
		n += 0.5 // a non-integer, as the alternative to an integer
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), n <= high
}

// numberBounds returns the smallest and the largest number that a schema accepts.
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

// promptNumber returns a number of the prompt that is within the bounds.
func (f *filler) promptNumber(s *object, name string, whole bool) *json.Number {
	if f.given == nil {
		return nil
	}
	low, high := numberBounds(s, whole)
	val := f.given.namedBy(wordsOf(name), number)
	if val == nil {
		val = f.given.take(number)
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

// formats holds example values for the formats and encodings of JSON Schema.
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
	if text, ok := f.promptText(s, name); ok {
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
		return fitLength(text, s), true
	}
	fallback := name
	if fallback == "" {
		fallback = "text"
	}
	return fitLength(fallback, s), true
}

// fitLength returns a text whose length a schema accepts.
func fitLength(text string, s *object) string {
	least, most := intOr(s, "minLength", 0), intOr(s, "maxLength", math.MaxInt32)
	if n := utf8.RuneCountInString(text); n < least {
		text += strings.Repeat("x", least-n)
	}
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most])
	}
	return text
}

// fits reports whether a string schema accepts a text.
func (f *filler) fits(s *object, text string) bool {
	n := utf8.RuneCountInString(text)
	if n < intOr(s, "minLength", 0) || n > intOr(s, "maxLength", math.MaxInt32) {
		return false
	}
	if s.get("contentEncoding") == "base64" || s.get("format") == "byte" { // validators ignore these
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
		v, _ = schema.Compile(src, schema.AssertFormats()) // a nil validator accepts nothing
		f.leaves[string(src)] = v
	}
	return v.Validate(appendTree(nil, text)) == nil
}
