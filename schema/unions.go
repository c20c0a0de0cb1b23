package schema

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// finishUnion applies the target's requirements to a union, and lowers its branches.
func (l *lowerer) finishUnion(n *node) {
	if l.err != nil {
		return
	}
	if l.p.nullableFlag && l.foldNull(n) {
		l.lower(n)
		return
	}
	l.keepAllowed(n)
	if l.p.loneAnyOf {
		l.moveAnnotations(n)
	}
	l.lowerChildren(n)
	if l.err == nil && l.dropRequiredUnion(n, kwAnyOf) {
		l.lower(n)
	}
}

// onlyNull reports whether only null satisfies a schema.
func onlyNull(n *node) bool {
	if n.kind != isSchema || n.ref != nil {
		return false
	}
	if slices.Equal(n.types(), []string{"null"}) {
		return true
	}
	if c := n.get(kwConst); c != nil {
		return string(c.raw) == "null"
	}
	e := n.get(kwEnum)
	return e != nil && string(e.text()) == "[null]"
}

// foldNull removes null from a union and marks the rest as nullable; a union of one becomes
// that one (quirk A9). It reports whether n is no longer a union.
func (l *lowerer) foldNull(n *node) bool {
	u := n.get(kwAnyOf)
	rest := slices.DeleteFunc(slices.Clone(u.list), onlyNull)
	null := len(rest) < len(u.list)
	if null {
		l.addLoss(dragoman.Lowered, dragoman.Info, u, "a branch for null becomes nullable")
	}
	switch len(rest) {
	case 0:
		n.del(kwAnyOf)
		n.setTypes([]string{"null"})
		return true
	case 1:
		l.addLoss(dragoman.Lowered, dragoman.Info, u, "a union of one schema becomes that schema")
		n.del(kwAnyOf)
		l.absorb(n, rest[0])
		if null {
			l.flagNull(n)
		}
		return true
	}
	u.list = rest
	if !null {
		return false
	}
	if !l.p.loneAnyOf {
		l.flagNull(n)
		return false
	}
	for i, b := range rest {
		if b.isTrue() {
			rest[i] = (&node{kind: isSchema}).at(b)
		}
		l.flagNull(rest[i])
	}
	return false
}

// absorb merges a branch into n; n's own annotations win, and both descriptions are kept.
func (l *lowerer) absorb(n, branch *node) {
	if branch.kind != isSchema {
		return
	}
	outer, _ := n.get(kwDescription).str()
	inner, _ := branch.get(kwDescription).str()
	l.merge(n, branch, false)
	if outer != "" && inner != "" && outer != inner {
		n.set(kwDescription, dataString(outer+" "+inner))
	}
}

func (l *lowerer) flagNull(n *node) {
	if n.kind == isSchema {
		n.set(kwNullable, data("true"))
	}
}

// moveAnnotations moves the annotations of a union into its branches, because the target allows no
// keywords next to anyOf.
func (l *lowerer) moveAnnotations(n *node) {
	if len(n.fields) == 1 {
		return
	}
	u := n.get(kwAnyOf)
	l.removeEach(n, func(m field) string {
		if m.kw == kwAnyOf || m.kw == kwDescription {
			return ""
		}
		return "anyOf must be the only keyword"
	}, func(m field, why string) { l.describe(n, m, why) })
	d := n.get(kwDescription)
	if d == nil {
		return
	}
	text, _ := d.str()
	n.del(kwDescription)
	l.addLoss(dragoman.Moved, dragoman.Info, d, "the description of a union is copied into each of its branches")
	for i, b := range u.list {
		if b.isTrue() {
			b = (&node{kind: isSchema}).at(b)
			u.list[i] = b
		}
		if b.kind != isSchema {
			continue
		}
		if own, _ := b.get(kwDescription).str(); own != "" && own != text {
			b.set(kwDescription, dataString(text+" "+own))
		} else {
			b.set(kwDescription, d)
		}
	}
}

// splitTypes writes a list of types as a union of schemas with one type each,
// or as a type that may be null (quirk A8). It reports whether n became a
// union.
func (l *lowerer) splitTypes(n *node) bool {
	types := l.possibleTypes(n)
	if len(types) == 0 {
		return false
	}
	if l.p.nullableFlag {
		types = l.splitNull(n, types)
	}
	if len(types) == 1 {
		n.setTypes(types)
		return false
	}
	l.addLoss(dragoman.Lowered, dragoman.Info, n.get(kwType), "a list of types becomes a union")
	u := (&node{kind: isList}).at(n.get(kwType))
	for _, t := range types {
		u.list = append(u.list, typeBranch(n, t))
	}
	n.fields = slices.DeleteFunc(slices.Clone(n.fields), func(m field) bool { return !annotation(m.kw) && m.kw != kwNullable })
	n.set(kwAnyOf, u)
	if v := n.get(kwNullable); v != nil && l.p.loneAnyOf {
		n.del(kwNullable)
		for _, b := range u.list {
			b.set(kwNullable, v)
		}
	}
	return true
}

// possibleTypes lists the types that a value can have, each once and without
// those that an enum excludes or a wider type covers.
func (l *lowerer) possibleTypes(n *node) []string {
	declared := n.types()
	types := slices.Clone(declared)
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	if e := n.get(kwEnum); e != nil && len(types) > 1 {
		values := elements(e)
		some := slices.DeleteFunc(slices.Clone(types), func(t string) bool {
			return !slices.ContainsFunc(values, func(v []byte) bool { return valueHasType(v, t) })
		})
		if len(some) > 0 {
			types = some
		}
	}
	if len(types) < len(declared) {
		l.addLossf(dragoman.Lowered, dragoman.Info, n.get(kwType), "the types %v are reduced to %v; the others have no effect", declared, types)
	} else if v := n.get(kwType); len(types) == 1 && v.raw[0] == '[' {
		l.addLoss(dragoman.Lowered, dragoman.Info, v, "a list of one type becomes the type")
	}
	return types
}

// valueHasType reports whether a value is of a type.
func valueHasType(v []byte, t string) bool {
	is := typeOfText(v)
	return is == t || t == "number" && is == "integer" || t == "integer" && is == "number" && isCount([]byte(trimSign(v)))
}

func trimSign(v []byte) string {
	if v[0] == '-' {
		return string(v[1:])
	}
	return string(v)
}

// splitNull removes null from the types and sets the flag instead. A schema for null alone
// becomes a nullable string.
func (l *lowerer) splitNull(n *node, types []string) []string {
	if e := n.get(kwEnum); e != nil {
		values := elements(e)
		rest := slices.DeleteFunc(slices.Clone(values), func(v []byte) bool { return string(v) == "null" })
		if len(rest) < len(values) {
			l.addLoss(dragoman.Lowered, dragoman.Info, e, "null in the enum becomes nullable")
			n.del(kwEnum)
			if len(rest) > 0 {
				n.set(kwEnum, arrayOf(rest).at(e))
			}
			l.flagNull(n)
		}
	}
	if !slices.Contains(types, "null") {
		return types
	}
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	if len(types) == 0 {
		l.addLoss(dragoman.Lowered, dragoman.Warn, n.get(kwType), "a schema that accepts only null becomes a nullable string")
		l.note(n, "always null")
		types = []string{"string"}
	} else {
		l.addLoss(dragoman.Lowered, dragoman.Info, n.get(kwType), "the type null becomes nullable")
	}
	l.flagNull(n)
	return types
}

// typeBranch returns what n requires of values of type t.
func typeBranch(n *node, t string) *node {
	b := (&node{kind: isSchema}).at(n)
	b.set(kwType, dataString(t))
	about := t
	if t == "integer" {
		about = "number"
	}
	for _, m := range n.fields {
		switch {
		case m.kw == kwType, m.kw == kwNullable, annotation(m.kw):
		case m.kw == kwEnum:
			if some := slices.DeleteFunc(elements(m.val), func(v []byte) bool { return !valueHasType(v, t) }); len(some) > 0 {
				b.fields = append(b.fields, field{m.key, m.kw, arrayOf(some).at(m.val)})
			}
		case m.kw == kwConst:
			if valueHasType(m.val.raw, t) {
				b.fields = append(b.fields, m)
			}
		case m.kw == kwFormat:
			if t == "string" || t == "number" || t == "integer" {
				b.fields = append(b.fields, m)
			}
		case keywordType(m.kw) == "" || keywordType(m.kw) == about:
			b.fields = append(b.fields, m)
		}
	}
	return b
}
