package schema

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// legalType reports whether t is one of JSON Schema's seven types.
func legalType(t string) bool {
	switch t {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return true
	default:
		return false
	}
}

// typeWord translates a type name of another language. An empty result with ok means any type.
func typeWord(t string) (legal string, ok bool) {
	t = strings.ToLower(strings.TrimSpace(t))
	if legalType(t) {
		return t, true
	}
	switch t {
	case "dict", "dictionary", "map", "hashmap", "record", "struct", "mapping":
		return "object", true
	case "list", "tuple", "set", "sequence", "arraylist", "slice", "vector":
		return "array", true
	case "str", "text", "char", "varchar", "uuid", "date", "datetime", "bytes":
		return "string", true
	case "float", "double", "decimal", "real", "float32", "float64":
		return "number", true
	case "int", "int32", "int64", "long", "short", "uint", "bigint":
		return "integer", true
	case "bool":
		return "boolean", true
	case "none", "nil", "nonetype", "void", "undefined":
		return "null", true
	case "any", "mixed", "unknown", "":
		return "", true
	default:
		return "", false
	}
}

// types returns the types that a schema declares; nil if it declares none.
func (n *node) types() []string {
	v := n.get(kwType)
	if v == nil {
		return nil
	}
	if s := typeName(v.raw); s != "" {
		return []string{s}
	}
	if s, ok := v.str(); ok {
		return []string{s}
	}
	var out []string
	r := jsonwire.NewReader(v.raw)
	for range r.Array() {
		out = append(out, r.String())
	}
	if r.Err() != nil {
		return nil
	}
	return out
}

func (n *node) setTypes(types []string) {
	if len(types) == 1 {
		n.setFirst(kwType, dataString(types[0]))
		return
	}
	var w jsonwire.Writer
	w.BeginArray()
	for _, t := range types {
		w.String(t)
	}
	w.EndArray()
	n.setFirst(kwType, &node{raw: w.Buf})
}

func (n *node) hasType(t string) bool {
	v := n.get(kwType)
	if v == nil {
		return false
	}
	if s := typeName(v.raw); s != "" {
		return s == t
	}
	return slices.Contains(n.types(), t)
}

// typeName reads a quoted type without allocating; empty if it is unknown.
func typeName(quoted []byte) string {
	switch string(quoted) {
	case `"object"`:
		return "object"
	case `"array"`:
		return "array"
	case `"string"`:
		return "string"
	case `"number"`:
		return "number"
	case `"integer"`:
		return "integer"
	case `"boolean"`:
		return "boolean"
	case `"null"`:
		return "null"
	default:
		return ""
	}
}

// elements splits a JSON array into the text of its elements.
func elements(v *node) [][]byte {
	r := cursor{b: v.raw}
	if r.kind() != '[' {
		return nil
	}
	var out [][]byte
	for r.open(); r.next(); {
		out = append(out, r.raw())
	}
	return out
}

func arrayOf(elems [][]byte) *node {
	var w jsonwire.Writer
	w.BeginArray()
	for _, e := range elems {
		w.Raw(e)
	}
	w.EndArray()
	return &node{raw: w.Buf}
}

func stringsOf(names []string) *node {
	var w jsonwire.Writer
	w.BeginArray()
	for _, s := range names {
		w.String(s)
	}
	w.EndArray()
	return &node{raw: w.Buf}
}

// typeOfText names the type of a JSON value.
func typeOfText(raw []byte) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		if strings.ContainsAny(string(raw), ".eE") {
			return "number"
		}
		return "integer"
	}
}

// inferTypes infers the types of an untyped schema from all values of its enum or const, or
// else from its keywords (quirk A48). It returns nil if nothing implies one.
func inferTypes(n *node) []string {
	values := [][]byte(nil)
	if e := n.get(kwEnum); e != nil {
		values = elements(e)
	} else if c := n.get(kwConst); c != nil {
		values = [][]byte{c.raw}
	}
	if len(values) > 0 {
		var types []string
		for _, v := range values {
			if t := typeOfText(v); !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
		if slices.Contains(types, "number") {
			types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
		}
		return types
	}
	for _, m := range n.fields {
		switch m.kw {
		case kwProperties, kwRequired, kwAdditionalProperties, kwPatternProperties, kwMinProperties, kwMaxProperties, kwPropertyNames:
			return []string{"object"}
		case kwItems, kwPrefixItems, kwMinItems, kwMaxItems, kwUniqueItems, kwContains:
			return []string{"array"}
		case kwMinLength, kwMaxLength, kwPattern, kwFormat, kwContentEncoding, kwContentMediaType:
			return []string{"string"}
		case kwMinimum, kwMaximum, kwExclusiveMinimum, kwExclusiveMaximum, kwMultipleOf:
			return []string{"number"}
		}
	}
	return nil
}

// nullable reports whether null satisfies the schema, judging by its own keywords and
// references.
func nullable(n *node, depth int) bool {
	if n.kind == isBool {
		return n.isTrue()
	}
	if depth > 32 {
		return false
	}
	if n.ref != nil && !nullable(n.ref, depth+1) {
		return false
	}
	if t := n.types(); t != nil && !slices.Contains(t, "null") {
		return false
	}
	if c := n.get(kwConst); c != nil && string(c.raw) != "null" {
		return false
	}
	if e := n.get(kwEnum); e != nil && !slices.ContainsFunc(elements(e), func(v []byte) bool { return string(v) == "null" }) {
		return false
	}
	for _, k := range [...]keyword{kwAnyOf, kwOneOf} {
		if u := n.get(k); u != nil && u.kind == isList && !slices.ContainsFunc(u.list, func(b *node) bool { return nullable(b, depth+1) }) {
			return false
		}
	}
	if a := n.get(kwAllOf); a != nil && a.kind == isList && slices.ContainsFunc(a.list, func(b *node) bool { return !nullable(b, depth+1) }) {
		return false
	}
	return true
}

func nullSchema(at *node) *node {
	n := (&node{kind: isSchema}).at(at)
	n.set(kwType, dataString("null"))
	return n
}

// admitNull makes null satisfy the schema.
func (l *lowerer) admitNull(n *node) {
	if nullable(n, 0) {
		return
	}
	switch {
	case n.ref != nil, n.has(kwConst), n.has(kwAllOf), n.has(kwOneOf), n.has(kwAnyOf) && n.has(kwType):
		l.wrapAnyOf(n)
		u := n.get(kwAnyOf)
		u.list = append(u.list, nullSchema(n))
	case n.has(kwAnyOf):
		u := n.get(kwAnyOf)
		u.list = append(u.list, nullSchema(n))
	default:
		if t := n.types(); t != nil && !slices.Contains(t, "null") {
			n.setTypes(append(t, "null"))
		}
		if e := n.get(kwEnum); e != nil {
			if values := elements(e); !slices.ContainsFunc(values, func(v []byte) bool { return string(v) == "null" }) {
				n.set(kwEnum, arrayOf(append(values, []byte("null"))).at(e))
			}
		}
	}
}

// wrapAnyOf turns n into a union of one that holds n's keywords, with n's annotations outside.
func (l *lowerer) wrapAnyOf(n *node) {
	inner := (&node{kind: isSchema, ref: n.ref}).at(n)
	n.ref = nil
	var keep []field
	for _, m := range n.fields {
		if annotation(m.kw) {
			keep = append(keep, m)
		} else {
			inner.fields = append(inner.fields, m)
		}
	}
	n.fields = keep
	n.set(kwAnyOf, (&node{kind: isList, list: []*node{inner}}).at(n))
}

// repairType makes a type valid: it recognizes names that other languages use for the seven
// types, in any case.
func (l *lowerer) repairType(n *node, v *node) {
	if typeName(v.raw) != "" {
		return
	}
	var words []string
	bad := false
	if s, ok := v.str(); ok {
		words = []string{s}
	} else {
		r := jsonwire.NewReader(v.raw)
		if r.Kind() == '[' {
			for range r.Array() {
				if r.Kind() == '"' {
					words = append(words, r.String())
				} else {
					r.Skip()
					bad = true
				}
			}
		} else {
			bad = true
		}
	}
	var types []string
	any, changed, said := false, bad, false
	for _, w := range words {
		t, known := typeWord(w)
		switch {
		case !known:
			changed, said = true, true
			l.addLossf(dragoman.Dropped, dragoman.Serious, v, "%.60q is not a JSON type", w)
		case t == "":
			any, changed = true, true
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "type %.60q means any type, which is written by omitting the type", w)
		case slices.Contains(types, t):
			changed = true
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "duplicate type %.60q", w)
		default:
			if changed = changed || t != w; t != w && !(l.p.anyCase && strings.EqualFold(t, w)) {
				l.addLossf(dragoman.Lowered, dragoman.Info, v, "type %.60q is written %q in JSON Schema", w, t)
			}
			types = append(types, t)
		}
	}
	switch {
	case !changed && len(types) > 0:
	case any || len(types) == 0:
		if !any && !said {
			l.addLoss(dragoman.Dropped, dragoman.Warn, v, "type contains no JSON type")
		}
		n.del(kwType)
	default:
		if bad {
			l.addLoss(dragoman.Lowered, dragoman.Warn, v, "values of type that are not JSON types are removed")
		}
		n.setTypes(types)
	}
}
