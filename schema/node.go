package schema

import (
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// lower makes one schema, and everything below it, satisfy the profile. The root's own rules
// were applied before.
func (l *lowerer) lower(n *node) {
	if l.err != nil {
		return
	}
	p := l.p
	if n.kind == isBool && !l.lowerBool(n) {
		return
	}
	for range 100 {
		if p.mergeAllOf {
			if opened := l.mergeAllOf(n); opened != nil {
				defer l.expanded(opened)
			}
		}
		if n.ref == nil || !p.bareRefs || l.err != nil {
			break
		}
		target := n.ref
		if l.bareRef(n) {
			break
		}
		l.expanding[target] = true
		defer delete(l.expanding, target)
	}
	if n.ref != nil {
		l.keepAllowed(n)
		l.lowerChildren(n)
		return
	}
	l.hoistConditions(n)
	if p.anyOfOnly && l.lowerUnion(n) {
		l.finishUnion(n)
		return
	}
	if l.err != nil {
		return // what could not be copied is no longer a schema
	}
	l.widenTuple(n)
	if p.typed || p.inferred && !l.combined(n) {
		l.addType(n)
		if p.oneType && l.splitTypes(n) {
			l.finishUnion(n)
			return
		}
		if n.has(kwType) {
			l.dropForeign(n)
		}
	}
	if n.hasType("object") {
		l.lowerObject(n)
	}
	if n.hasType("array") && p.arrayItems && l.err == nil {
		l.lowerItems(n)
	}
	l.keepAllowed(n)
	l.lowerChildren(n)
	l.typeItems(n) // a union may have become empty
}

// combined reports whether a schema is defined by other schemas.
func (l *lowerer) combined(n *node) bool {
	for _, m := range n.fields {
		switch m.kw {
		case kwAnyOf, kwOneOf, kwAllOf, kwDynamicRef, kwRecursiveRef:
			if l.p.accepts(m.kw) {
				return true
			}
		}
	}
	return false
}

// lowerBool writes true and false as the target requires (quirk A13). It reports whether n
// became an object of keywords.
func (l *lowerer) lowerBool(n *node) bool {
	switch {
	case l.p.typed:
		l.refuse(n, "true and false are schemas without a type, which this target does not support")
		return false
	case !l.p.noBooleans:
		return false
	case n.isTrue():
		l.addLoss(dragoman.Lowered, dragoman.Info, n, "true becomes an empty schema")
	default:
		l.addLoss(dragoman.Lowered, dragoman.Warn, n, "false becomes an empty schema")
	}
	n.kind, n.raw = isSchema, nil
	return true
}

// lowerItems adds items to an array, and a type to the items if the target requires one (quirk
// A14).
func (l *lowerer) lowerItems(n *node) {
	items := n.get(kwItems)
	switch {
	case items == nil && l.p.typed:
		l.refuse(n, "an array without items accepts anything, which this target cannot express")
		return
	case items == nil:
		l.addLoss(dragoman.Synthesized, dragoman.Info, n, "items added, because the target requires it in an array")
		n.set(kwItems, &node{kind: isSchema})
	}
	l.typeItems(n)
}

// typeItems adds a type to empty items if the target requires one.
func (l *lowerer) typeItems(n *node) {
	items := n.get(kwItems)
	if l.p.itemTypes == nil || l.err != nil || items == nil || items.kind == isList {
		return
	}
	if items.kind == isBool {
		l.lowerBool(items)
	}
	if items.ref == nil && !items.has(kwType) && !l.combined(items) && inferTypes(items) == nil {
		l.addLossf(dragoman.Lowered, dragoman.Warn, items, "items without a type get type %s", strings.Join(l.p.itemTypes, ", "))
		items.setTypes(l.p.itemTypes)
	}
}

// expanded unmarks references that were being expanded.
func (l *lowerer) expanded(targets []*node) {
	for _, t := range targets {
		delete(l.expanding, t)
	}
}

func (l *lowerer) lowerChildren(n *node) {
	for _, m := range n.fields {
		switch {
		case m.kw == kwAdditionalProperties && (m.val.isFalse() || l.p.noBooleans && m.val.isTrue()):
		case m.val.kind == isMap, m.val.kind == isList:
			m.val.entries(l.lower)
		case schemaShaped(m.kw):
			l.lower(m.val)
		}
	}
}

// bareRef makes a reference the only keyword: the others move into the description, or outside
// of a union around it (quirk A4). It returns false if the reference had to be replaced with
// its target.
func (l *lowerer) bareRef(n *node) bool {
	if len(n.fields) == 1 {
		return true
	}
	expand := false
	same := n.has(kwType) && sameTypes(n, n.ref)
	l.removeEach(n, func(m field) string {
		switch {
		case m.kw == kwRef:
		case m.kw == kwType && same:
			return "the reference says the same type"
		case annotation(m.kw), !l.p.accepts(m.kw):
			if !l.p.accepts(m.kw) {
				return "not supported by this target"
			}
		case l.expanding[n.ref]:
			return "cannot be combined with a recursive reference"
		default:
			expand = true
		}
		return ""
	}, func(m field, why string) {
		if m.kw == kwType && same {
			l.addLoss(dragoman.Dropped, dragoman.Info, m.val, why)
			return
		}
		l.describe(n, m, why)
	})
	if expand {
		l.addLoss(dragoman.Lowered, dragoman.Info, n.get(kwRef), "the reference is replaced by its target, because it has constraints next to it")
		l.inline(n)
		return false
	}
	if len(n.fields) > 1 {
		l.addLoss(dragoman.Lowered, dragoman.Info, n.get(kwRef), "a reference must be the only keyword: wrapped in anyOf")
		l.wrapAnyOf(n)
	}
	return true
}

func sameTypes(n, target *node) bool {
	have := target.types()
	return have != nil && slices.Equal(have, n.types())
}

// removeEach removes the fields for which why returns a reason, and then calls removed for
// each of them.
func (l *lowerer) removeEach(n *node, why func(field) string, removed func(field, string)) {
	var gone, kept []field
	var reasons []string
	for i, m := range n.fields {
		switch reason := why(m); {
		case reason != "":
			if gone == nil {
				kept = append(make([]field, 0, len(n.fields)), n.fields[:i]...)
			}
			gone, reasons = append(gone, m), append(reasons, reason)
		case gone != nil:
			kept = append(kept, m)
		}
	}
	if gone == nil {
		return
	}
	n.fields = kept
	for i, m := range gone {
		removed(m, reasons[i])
	}
}

// hoistConditions declares properties that only a condition declares as optional properties of
// the object; the condition itself moves into the description (quirk A41).
func (l *lowerer) hoistConditions(n *node) {
	var parts []*node
	for _, k := range [...]keyword{kwThen, kwElse, kwDependentSchemas, kwDependencies} {
		v := n.get(k)
		switch {
		case v == nil || l.p.accepts(k):
		case v.kind == isMap:
			v.entries(func(s *node) { parts = append(parts, s) })
		case v.kind == isSchema:
			parts = append(parts, v)
		}
	}
	for _, part := range parts {
		if part.kind != isSchema {
			continue
		}
		part = l.copy(part)
		if part.ref != nil {
			l.inline(part)
		}
		add := part.get(kwProperties)
		if add == nil || add.kind != isMap {
			continue
		}
		props := n.get(kwProperties)
		if props == nil {
			props = &node{kind: isMap}
			n.set(kwProperties, props)
		}
		for _, m := range add.fields {
			if props.name(m.key) == nil && m.val.kind == isSchema {
				l.addLossf(dragoman.Moved, dragoman.Warn, m.val, "property %.60q is only in a condition; declared as optional", m.key)
				props.fields = append(props.fields, m)
			}
		}
	}
}

// lowerUnion writes oneOf as anyOf and allows only annotations next to it (quirk A7). It
// reports whether n is a union.
func (l *lowerer) lowerUnion(n *node) bool {
	if one := n.get(kwOneOf); one != nil && !l.dropRequiredUnion(n, kwOneOf) {
		n.del(kwOneOf)
		if anyOf := n.get(kwAnyOf); anyOf != nil {
			l.addLoss(dragoman.Lowered, dragoman.Warn, one, "oneOf and anyOf combined into one anyOf")
			anyOf.list = append(anyOf.list, one.list...)
		} else {
			l.addLoss(dragoman.Lowered, dragoman.Info, one, "oneOf becomes anyOf")
			n.set(kwAnyOf, one)
		}
	}
	u := n.get(kwAnyOf)
	if u == nil || l.err != nil || l.dropRequiredUnion(n, kwAnyOf) {
		return false
	}
	u.list = slices.DeleteFunc(u.list, func(b *node) bool {
		if b.isFalse() {
			l.addLoss(dragoman.Dropped, dragoman.Info, b, "a branch that no value satisfies")
		}
		return b.isFalse()
	})
	if len(u.list) == 0 {
		l.impossible(u, "no branch can be satisfied")
		return true
	}
	beside := &node{kind: isSchema, parent: n.parent, token: n.token}
	for _, m := range n.fields {
		if m.kw != kwAnyOf && !annotation(m.kw) {
			beside.fields = append(beside.fields, m)
		}
	}
	if len(beside.fields) == 0 {
		return true
	}
	n.fields = slices.DeleteFunc(n.fields, func(m field) bool { return m.kw != kwAnyOf && !annotation(m.kw) })
	if len(beside.fields) == 1 && beside.has(kwType) && !slices.ContainsFunc(u.list, func(b *node) bool { return !typesWithin(b, beside.types()) }) {
		l.addLoss(dragoman.Dropped, dragoman.Info, beside.get(kwType), "every branch names its type")
		return true
	}
	l.addLoss(dragoman.Lowered, dragoman.Info, u, "keywords next to anyOf are copied into each branch")
	for _, b := range u.list {
		own := l.copy(beside)
		if b.kind == isSchema {
			l.merge(own, b, true)
		}
		b.kind, b.raw, b.fields, b.ref = isSchema, nil, own.fields, own.ref
	}
	return !l.dropRequiredUnion(n, kwAnyOf)
}

// typesWithin reports whether b has types, all among the given ones.
func typesWithin(b *node, types []string) bool {
	have := b.types()
	if have == nil && b.ref != nil {
		have = b.ref.types()
	}
	return have != nil && !slices.ContainsFunc(have, func(t string) bool { return !slices.Contains(types, t) })
}

// widenTuple writes a tuple as an array whose items may be any of its
// positions, of the tuple's length (quirk A15).
func (l *lowerer) widenTuple(n *node) {
	pre := n.get(kwPrefixItems)
	if pre == nil || len(pre.list) == 0 {
		return
	}
	if l.p.accepts(kwPrefixItems) {
		l.endTuple(n, len(pre.list))
		return
	}
	n.del(kwPrefixItems)
	kinds := slices.Clone(pre.list)
	rest := n.get(kwItems)
	open := rest != nil && !rest.isFalse()
	if open {
		kinds = append(kinds, rest)
	}
	var forms []*node
	known := map[string]bool{}
	for _, k := range kinds {
		if text := string(k.text()); !known[text] {
			known[text] = true
			forms = append(forms, k)
		}
	}
	items := forms[0]
	if len(forms) > 1 {
		items = (&node{kind: isSchema}).at(pre)
		items.set(kwAnyOf, (&node{kind: isList, list: forms}).at(pre))
	}
	n.set(kwItems, items)
	size := itoa(len(pre.list))
	if !n.has(kwMinItems) {
		n.set(kwMinItems, data(size).at(pre))
	}
	if !open && !n.has(kwMaxItems) {
		n.set(kwMaxItems, data(size).at(pre))
	}
	l.addLossf(dragoman.Lowered, dragoman.Warn, pre, "a tuple of %s becomes an array whose items may match any of its schemas", size)
}

// endTuple writes the end of a tuple as its length if the target does not accept false for the
// rest: otherwise it would accept an array of any length (quirk A15).
func (l *lowerer) endTuple(n *node, size int) {
	rest := n.get(kwItems)
	if rest == nil || !rest.isFalse() || !l.p.noBooleans || !l.p.accepts(kwMaxItems) {
		return
	}
	l.addLossf(dragoman.Lowered, dragoman.Info, rest, "items: false is written as the length of the tuple, %d", size)
	if !n.has(kwMinItems) && l.p.accepts(kwMinItems) {
		n.set(kwMinItems, data(itoa(size)).at(rest))
	}
	if most := n.get(kwMaxItems); most == nil {
		n.set(kwMaxItems, data(itoa(size)).at(rest))
	} else if m, err := strconv.Atoi(string(most.raw)); err == nil && m > size {
		most.raw = []byte(itoa(size))
	}
	rest.kind, rest.raw = isSchema, nil
}

// addType adds the type of an untyped schema if its keywords imply one (quirks A28, A48).
func (l *lowerer) addType(n *node) {
	if n.has(kwType) {
		return
	}
	types := inferTypes(n)
	if types == nil {
		if l.p.typed {
			l.refuse(n, "a schema without a type accepts anything, which this target cannot express")
			return
		}
		if types = l.p.anyTypes; types == nil {
			return // a schema that accepts any JSON stays unchanged (quirk A40)
		}
	}
	l.addLossf(dragoman.Synthesized, dragoman.Info, n, "type %s added", strings.Join(types, ", "))
	n.setTypes(types)
}
