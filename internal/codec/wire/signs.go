package wire

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Signs distinguish the documents of a dialect from those of others.
type Signs struct {
	// Response, Stream and Tool are tried in the order of their ranks: the first sign
	// that holds decides. The object for Stream is the first event.
	Response, Stream, Tool []Sign
	// Request and Messages are evidence in groups of falling weight. Dialects share a sign
	// by giving it the same reason and rank.
	Request  [4][]Sign
	Messages [3][]Sign
	// Binary means that a stream of binary frames belongs to the dialect.
	Binary bool
	// Model reports whether a model name belongs to the vendor. It decides if several
	// dialects fit.
	Model func(name string) bool
	// Rank orders the dialects if several fit; the lowest is the most likely.
	Rank int
}

// Sign is a property that only some dialects have.
type Sign struct {
	// Rank is the rank of the sign among those of all dialects.
	Rank int
	// Because describes what was found.
	Because string
	Holds   func(Object) bool
}

// Object is a JSON object with raw values.
type Object map[string]json.RawMessage

// Open reads an object. An object that is truncated has the fields before the end; any
// other value has no fields.
func Open(doc []byte) Object {
	m := Object{}
	r := jsonwire.NewReader(doc)
	if r.Kind() != '{' {
		return m
	}
	for key := range r.Object() {
		name := string(key)
		if raw := r.Raw(); r.Err() == nil {
			m[name] = raw
		}
	}
	return m
}

// Has reports whether the object has one of the fields.
func (m Object) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return m[n] != nil })
}

// Is reports whether a field is the string text.
func (m Object) Is(name, text string) bool { return string(m[name]) == `"`+text+`"` }

// In returns the object in a field.
func (m Object) In(name string) Object { return Open(m[name]) }

// IsText reports whether a field is a string of any value.
func (m Object) IsText(name string) bool { return len(m[name]) > 0 && m[name][0] == '"' }

// Text returns the string in a field; empty for another type.
func (m Object) Text(name string) string {
	var s string
	if !m.IsText(name) || json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// List returns the objects of a list in a field.
func (m Object) List(name string) []Object { return Elements(m[name]) }

// IsScalars reports whether a field is a list that begins with a string, a number or a
// list.
func (m Object) IsScalars(name string) bool {
	raw := m[name]
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return false
	}
	return list[0][0] != '{' && string(list[0]) != "null"
}

// Any reports whether like is true for one of the objects.
func Any(list []Object, like func(Object) bool) bool { return slices.ContainsFunc(list, like) }

// Elements returns the objects of a list, up to the first one that cannot be read.
func Elements(raw []byte) []Object {
	var out []Object
	r := jsonwire.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Array() {
		el := r.Raw()
		if r.Err() != nil {
			break
		}
		if len(el) > 0 && el[0] == '{' {
			out = append(out, Open(el))
		}
	}
	return out
}
