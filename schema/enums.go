package schema

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// lowerEnums reduces enums to values that the target accepts (quirks A10, A11).
func (l *lowerer) lowerEnums() {
	if l.p.enums == anyEnum {
		return
	}
	reach(l.root, func(n *node) {
		e := n.get(kwEnum)
		if e == nil || n.kind != isSchema {
			return
		}
		if l.p.enums == scalarEnums {
			l.scalarEnum(n, e)
		} else {
			l.stringEnum(n, e)
		}
	})
}

// scalarEnum keeps strings and numbers. Null becomes a separate branch; an enum of other values
// moves into the description.
func (l *lowerer) scalarEnum(n, e *node) {
	values := elements(e)
	rest := slices.DeleteFunc(slices.Clone(values), func(v []byte) bool { return string(v) == "null" })
	if !slices.ContainsFunc(values, func(v []byte) bool { return !isText(v) && !isNumber(string(v)) }) {
		return
	}
	if slices.ContainsFunc(rest, func(v []byte) bool { return !isText(v) && !isNumber(string(v)) }) {
		l.describeEnum(n, e)
		return
	}
	n.del(kwEnum)
	if len(rest) == 0 {
		l.addLoss(dragoman.Lowered, dragoman.Info, e, "an enum of null becomes the type null")
		n.setTypes([]string{"null"})
		return
	}
	l.addLoss(dragoman.Lowered, dragoman.Info, e, "null in the enum becomes a separate branch")
	types := slices.DeleteFunc(n.types(), func(t string) bool { return t == "null" })
	n.set(kwEnum, arrayOf(rest).at(e))
	if len(types) > 0 {
		n.setTypes(types)
	}
	l.wrapAnyOf(n)
	u := n.get(kwAnyOf)
	u.list = append(u.list, nullSchema(n))
}

func isText(v []byte) bool { return v[0] == '"' }

// describeEnum moves an enum into the description and keeps its types.
func (l *lowerer) describeEnum(n, e *node) {
	if !n.has(kwType) {
		if types := inferTypes(n); len(types) == 1 || !l.p.oneType {
			n.setTypes(types)
		}
	}
	n.del(kwEnum)
	l.describe(n, field{"enum", kwEnum, e}, "values that this target cannot list")
	l.lower(n) // its type may require more changes
}

// stringEnum writes the values of an enum as strings, of type string, and records which value
// each of them represents. The empty string cannot be listed and moves into the description.
func (l *lowerer) stringEnum(n, e *node) {
	values := elements(e)
	typed := slices.Equal(n.types(), []string{"string"})
	foreign := func(v []byte) bool { return !isText(v) }
	switch {
	case slices.ContainsFunc(values, func(v []byte) bool { return v[0] == '{' || v[0] == '[' }),
		l.p.enums == describedEnums && slices.ContainsFunc(values, foreign):
		l.describeEnum(n, e)
		return
	case slices.ContainsFunc(values, foreign):
		values = l.asStrings(n, e, values, typed)
	case !typed:
		l.addLoss(dragoman.Lowered, dragoman.Warn, e, "type string written, because all values of the enum are strings")
		n.setTypes([]string{"string"})
		l.dropForeign(n)
	}
	kept := slices.DeleteFunc(slices.Clone(values), func(v []byte) bool { return string(v) == `""` })
	if len(kept) == len(values) {
		return
	}
	l.addLoss(dragoman.Lowered, dragoman.Warn, e, "the enum cannot contain an empty string; moved to the description")
	l.note(n, "may be empty")
	n.del(kwEnum)
	if len(kept) > 0 {
		n.set(kwEnum, arrayOf(kept).at(e))
	}
}

// asStrings writes values that are not strings as strings (quirk A10).
func (l *lowerer) asStrings(n, e *node, values [][]byte, typed bool) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		if out[i] = v; !isText(v) {
			out[i] = quoted(string(v))
		}
	}
	out = unique(out)
	l.addLoss(dragoman.Lowered, dragoman.Warn, e, "the values are written as strings; arguments are translated back")
	n.set(kwEnum, arrayOf(out).at(e))
	if !typed {
		n.setTypes([]string{"string"})
		l.dropForeign(n)
		n.del(kwFormat)
		l.undo.values(n, values)
	}
	return out
}
