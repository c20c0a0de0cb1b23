package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// For returns the schema of T, which must be a struct or a map with string keys. See
// [FromType].
func For[T any]() (json.RawMessage, error) { return FromType(reflect.TypeFor[T]()) }

// FromType returns the schema of the JSON that encoding/json decodes into a Go type.
//
// Names come from json tags, in the order of the fields. A field is required unless its tag has
// omitempty or omitzero. Other tags add to the schema:
//
//	doc:"free text, with commas"                         the description
//	jsonschema:"enum=a,enum=b" or "minimum=1,maximum=9"  constraints
//
// The keys of a jsonschema tag are title, description, required, nullable, default, example
// and, by type, enum, format, pattern, minLength, maxLength, minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, multipleOf, minItems, maxItems and uniqueItems. Write a
// comma in a value as \\,. The tag "-" omits the field. On a list, keys of its items apply to
// the items. A tag that is malformed, unknown, or does not fit the field's type is an error.
//
// A tag of another library with the same purpose (description:"…", enum:"a,b", minimum:"1",
// required:"false", default:"…") is also an error, unless the schema has the same content
// without it: otherwise it would have no effect. The error says how to write it here; next to
// that, the tag may stay. All other tags are ignored, including those for validation (validate,
// binding) and example.
//
// Structs accept no other properties. time.Time is a date-time, []byte is base64 text,
// json.RawMessage and any are any JSON, struct{} is no arguments, and a type that contains
// itself becomes a reference. Types that JSON cannot fill are errors. The result passes
// [Compile].
func FromType(t reflect.Type) (out json.RawMessage, err error) {
	if t == nil {
		return nil, fmt.Errorf("%w: the type is nil", ErrInvalid)
	}
	defer func() {
		// A type may have its own schema method, which may panic.
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%w: %v: %v", ErrInvalid, t, r)
		}
	}()
	for t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct && leafOf(t) == nil:
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && leafOf(t) == nil:
	default:
		return nil, fmt.Errorf("%w: %v: want a struct or a map with string keys", ErrInvalid, t)
	}
	ins := inspector{seen: map[reflect.Type]bool{}}
	if err := ins.inspect(t, t.String(), nil); err != nil {
		return nil, err
	}
	names := namer{}
	r := jsonschema.Reflector{
		Anonymous:     true,
		Mapper:        leafOf,
		Namer:         names.name,
		LookupComment: docTag,
	}
	raw, err := json.Marshal(r.ReflectFromType(t))
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %v", ErrInvalid, t, err)
	}
	out, err = tidy(plainText(raw), ins.keys)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	if _, err := Compile(out); err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	return out, nil
}

// plainText undoes the HTML escapes of encoding/json, which the reflector cannot turn off.
func plainText(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		if i+6 <= len(raw) {
			if c, ok := htmlEscapes[string(raw[i:i+6])]; ok {
				out = append(out, c)
				i += 5
				continue
			}
		}
		out = append(out, raw[i], raw[i+1])
		i++
	}
	return out
}

var htmlEscapes = map[string]byte{`\u0026`: '&', `\u003c`: '<', `\u003e`: '>'}

// docTag returns a field's description for the reflector.
func docTag(t reflect.Type, field string) string {
	if field == "" || t.Kind() != reflect.Struct {
		return ""
	}
	f, ok := t.FieldByName(field)
	if !ok {
		return ""
	}
	return f.Tag.Get("doc")
}

// namer gives every type a unique name for $defs, even if two packages use the same one.
type namer struct {
	names map[reflect.Type]string
	taken map[string]bool
}

func (n *namer) name(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	if name, ok := n.names[t]; ok {
		return name
	}
	if n.names == nil {
		n.names, n.taken = map[reflect.Type]string{}, map[string]bool{}
	}
	base := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '_'
		}
	}, t.Name()), "_")
	name := base
	for i := 2; n.taken[name]; i++ {
		name = base + "_" + itoa(i)
	}
	n.names[t], n.taken[name] = name, true
	return name
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	bigIntType   = reflect.TypeFor[big.Int]()
	urlType      = reflect.TypeFor[url.URL]()
	jsonReader   = reflect.TypeFor[json.Unmarshaler]()
	textReader   = reflect.TypeFor[encoding.TextUnmarshaler]()
	selfDescribe = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
)

// leafOf returns the schema of a type whose JSON does not follow from its fields; nil for all
// others.
func leafOf(t reflect.Type) *jsonschema.Schema {
	p := reflect.PointerTo(t)
	switch {
	case t.Implements(selfDescribe):
		return nil
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == numberType:
		return &jsonschema.Schema{Type: "number"}
	case t == bigIntType:
		return &jsonschema.Schema{Type: "integer"}
	case t == rawType:
		return &jsonschema.Schema{}
	case t.Kind() == reflect.Interface:
		return nil
	case p.Implements(jsonReader):
		return &jsonschema.Schema{} // only its own methods know
	case p.Implements(textReader):
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	default:
		return nil
	}
}

// inspector walks a type before the reflector does, to find what the reflector would silently
// get wrong or fail on.
type inspector struct {
	seen map[reflect.Type]bool
	// signedKeys and textKeys report maps whose keys are of a signed integer kind: those
	// read as numbers, and those read by UnmarshalText.
	signedKeys, textKeys bool
}

func typeError(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, path, fmt.Sprintf(format, args...))
}

func (ins *inspector) inspect(t reflect.Type, path string, pointers []reflect.Type) error {
	if t == urlType {
		return typeError(path, "url.URL is not read from a string by encoding/json; use string")
	}
	if leafOf(t) != nil || t.Implements(selfDescribe) {
		return nil
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return typeError(path, "%v cannot be read from JSON", t)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return typeError(path, "%v: JSON does not determine the type to fill; use any or a struct", t)
		}
		return nil
	case reflect.Pointer:
		if slices.Contains(pointers, t) {
			return typeError(path, "%v points to itself", t)
		}
		return ins.inspect(t.Elem(), path, append(pointers, t))
	case reflect.Slice, reflect.Array:
		if ins.alreadySeen(t) {
			return nil
		}
		return ins.inspect(t.Elem(), path+"[]", nil)
	case reflect.Map:
		if ins.alreadySeen(t) {
			return nil
		}
		k := t.Key()
		text := k.Implements(textReader) || reflect.PointerTo(k).Implements(textReader)
		switch k.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			ins.signedKeys, ins.textKeys = ins.signedKeys || !text, ins.textKeys || text
		case reflect.String, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		default:
			if !text {
				return typeError(path, "%v cannot be a key of a JSON object", k)
			}
		}
		return ins.inspect(t.Elem(), path+"[]", nil)
	case reflect.Struct:
		if ins.alreadySeen(t) {
			return nil
		}
		return ins.fields(t, path, map[string]string{}, []reflect.Type{t})
	default:
		return nil
	}
}

func (ins *inspector) alreadySeen(t reflect.Type) bool {
	if t.Name() == "" {
		return false // an unnamed type always ends in a named one
	}
	if ins.seen[t] {
		return true
	}
	ins.seen[t] = true
	return false
}

// fields inspects a struct and the structs it embeds, whose names are promoted.
func (ins *inspector) fields(t reflect.Type, path string, names map[string]string, embedding []reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := path + "." + f.Name
		if rest := unreadTag(f.Tag); strings.Contains(rest, "json") || strings.Contains(rest, "doc") {
			return typeError(at, "the struct tag is malformed at %.80q; write key:\"value\" pairs with one space between them", rest)
		}
		tag, tagged := f.Tag.Lookup("json")
		name, opts, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			if e.Kind() == reflect.Struct && leafOf(e) == nil {
				if slices.Contains(embedding, e) {
					return typeError(at, "%v embeds itself", e)
				}
				if err := ins.fields(e, at, names, append(slices.Clip(embedding), e)); err != nil {
					return err
				}
				continue
			}
		}
		if !f.IsExported() {
			if tagged && !f.Anonymous {
				return typeError(at, "a json tag on a field that is not exported")
			}
			continue
		}
		if name == "-" || strings.ContainsAny(name, `"\`) {
			return typeError(at, "the name %q cannot be used", name)
		}
		if slices.Contains(strings.Split(opts, ","), "inline") {
			return typeError(at, "json option inline is not supported; embed the struct")
		}
		if _, ok := f.Tag.Lookup("jsonschema_extras"); ok {
			return typeError(at, "jsonschema_extras is not supported")
		}
		if name == "" {
			name = f.Name
		}
		if f.Tag.Get("jsonschema") == "-" {
			continue
		}
		if other, ok := names[name]; ok {
			return typeError(at, "the name %q is taken by %s", name, other)
		}
		names[name] = at
		if err := ins.inspect(f.Type, at, nil); err != nil {
			return err
		}
		if err := checkTag(f, opts); err != nil {
			return typeError(at, "%v", err)
		}
		if err := checkForeign(f, opts); err != nil {
			return typeError(at, "%v", err)
		}
	}
	return nil
}

// digits is the pattern that the reflector gives to keys of every signed integer kind.
const digits = "^[0-9]+$"

// keys corrects the pattern of a map's keys: numbers may be negative, and keys that a type
// unmarshals itself may be any text.
func (ins *inspector) keys(n *node) {
	patterns, others := n.get(kwPatternProperties), n.get(kwAdditionalProperties)
	if patterns == nil || patterns.kind != isMap || len(patterns.fields) != 1 || patterns.fields[0].key != digits || others == nil || !others.isFalse() {
		return
	}
	switch {
	case ins.textKeys:
		n.set(kwAdditionalProperties, patterns.fields[0].val)
		n.del(kwPatternProperties)
	case ins.signedKeys:
		patterns.fields[0].key = "^-?[0-9]+$"
	}
}

// tidy turns the reflector's document into a plain schema: the root replaces a reference to it,
// definitions that are used once are inlined, and keywords are in a readable order. It first
// calls each for each schema.
func tidy(raw []byte, each func(*node)) ([]byte, error) {
	root, _, err := parse(raw, maxSchemaNodes)
	if err != nil {
		return nil, err
	}
	l := newLowerer(&Profile{})
	l.root = root
	root.del(kwSchema)
	l.bind()
	if root.ref != nil {
		l.hoistRoot()
	}
	l.pruneDefs()
	l.inlineOnce()
	l.pruneDefs()
	root.walk(func(n *node) {
		each(n)
		for i, m := range n.fields {
			if m.val.kind == isMap && m.kw == kwProperties {
				for j, p := range m.val.fields {
					m.val.fields[j].val = plainAny(p.val)
				}
			}
			if m.kw == kwItems {
				n.fields[i].val = plainAny(m.val)
			}
		}
		slices.SortStableFunc(n.fields, func(a, b field) int { return rank(a.kw) - rank(b.kw) })
	})
	l.finishRefs()
	if l.err != nil {
		return nil, l.err
	}
	var w jsonwire.Writer
	root.write(&w)
	return w.Buf, nil
}

// plainAny writes the schema true as {}, which more readers accept.
func plainAny(n *node) *node {
	if n.isTrue() {
		return (&node{kind: isSchema}).at(n)
	}
	return n
}

func rank(k keyword) int {
	switch k {
	case kwRef:
		return 0
	case kwType:
		return 1
	case kwTitle:
		return 2
	case kwDescription:
		return 3
	case kwProperties:
		return 5
	case kwRequired:
		return 6
	case kwAdditionalProperties:
		return 7
	case kwDefs:
		return 8
	default:
		return 4
	}
}

// inlineOnce inlines a definition that is used only once and does not contain itself.
func (l *lowerer) inlineOnce() {
	for l.err == nil {
		uses := map[*node]int{}
		l.root.walk(func(n *node) {
			if n.ref != nil {
				uses[n.ref]++
			}
		})
		var at *node
		l.root.walk(func(n *node) {
			if at == nil && n.ref != nil && n.ref != l.root && uses[n.ref] == 1 && !contains(n.ref, n) {
				at = n
			}
		})
		if at == nil {
			return
		}
		l.inline(at)
		l.pruneDefs()
	}
}

func contains(outer, inner *node) bool {
	found := false
	outer.walk(func(n *node) { found = found || n == inner })
	return found
}
