package schema

import (
	"bytes"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// inline replaces n's $ref with its target: n's own keywords stay and override the target's
// (quirk A4). The target is copied, never moved.
func (l *lowerer) inline(n *node) {
	for seen := 0; n.ref != nil && l.err == nil; seen++ {
		if seen > 100 {
			l.fail(n, dragoman.ErrTooLarge, "a chain of references is too long")
			return
		}
		l.inlineStep(n)
	}
}

// inlineStep replaces n's $ref with its target, which may be a $ref again.
func (l *lowerer) inlineStep(n *node) {
	target := n.ref
	n.del(kwRef)
	n.ref = nil
	if target.kind == isBool {
		if target.isFalse() {
			l.impossible(n, "the reference points to a schema that no value satisfies")
		}
		return
	}
	// The keywords next to the reference override those of its target.
	own := n.fields
	c := l.part(target)
	n.fields, n.ref = c.fields, c.ref
	l.merge(n, &node{kind: isSchema, fields: own, parent: n.parent, token: n.token}, true)
}

// merge adds the keywords of src to dst, as if both were in one allOf: properties and required
// names are united, types intersected, and if two scalars differ src wins (quirk A6). With
// prefer, src's annotations win too; otherwise dst keeps its own.
func (l *lowerer) merge(dst, src *node, prefer bool) {
	if l.err != nil {
		return
	}
	if src.ref != nil && dst.ref != nil && src.ref != dst.ref {
		l.inline(src)
	}
	if src.ref != nil && dst.ref == nil {
		dst.ref = src.ref
	}
	for _, m := range src.fields {
		var have *node
		if m.kw == kwOther {
			have = l.find(dst, m.key)
		} else {
			have = dst.get(m.kw)
		}
		if have == nil {
			dst.fields = append(dst.fields, m)
			continue
		}
		switch m.kw {
		case kwProperties, kwPatternProperties, kwDependentSchemas:
			l.mergeMaps(have, m.val, prefer)
		case kwRequired:
			var u requiredUnion
			u.add(dst)
			u.add(src)
			u.write(dst)
		case kwType:
			l.mergeTypes(dst, src)
		case kwEnum:
			l.mergeEnums(dst, have, m.val)
		case kwAdditionalProperties:
			if have.anything() || m.val.isFalse() {
				dst.set(m.kw, m.val)
			} else if have.kind == isSchema && m.val.kind == isSchema {
				l.merge(have, m.val, prefer)
			}
		case kwItems:
			if have.kind == isSchema && m.val.kind == isSchema {
				l.merge(have, m.val, prefer)
			} else if have.anything() {
				dst.set(m.kw, m.val)
			}
		case kwAllOf:
			have.list = append(have.list, m.val.list...)
		case kwAnyOf, kwOneOf:
			if !sameText(have, m.val) {
				l.bothUnions(dst, m)
			}
		default:
			switch {
			case bytes.Equal(have.text(), m.val.text()):
			case annotation(m.kw):
				if prefer && m.kw != kwOther {
					dst.set(m.kw, m.val)
				}
			default:
				l.addLossf(dragoman.Lowered, dragoman.Warn, m.val, "the merged schemas have different values of %s; the later one is kept", m.key)
				dst.set(m.kw, m.val)
			}
		}
	}
}

func (l *lowerer) mergeMaps(dst, src *node, prefer bool) {
	for _, m := range src.fields {
		have := l.find(dst, m.key)
		switch {
		case l.err != nil:
			return
		case have == nil:
			dst.fields = append(dst.fields, m)
		case have.kind == isSchema && m.val.kind == isSchema:
			if !sameText(have, m.val) {
				l.both(have, m.val, prefer)
			}
		case have.anything() || m.val.isFalse():
			i := slices.IndexFunc(dst.fields, func(o field) bool { return o.key == m.key })
			dst.fields[i].val = m.val
		}
	}
}

// find finds an entry by name. It scans all entries, so the work of merging many schemas into
// one is limited here.
func (l *lowerer) find(n *node, key string) *node {
	if l.work += len(n.fields); l.work > maxMergeWork {
		l.fail(n, dragoman.ErrTooLarge, "merging its allOf takes too many steps")
		return nil
	}
	return n.name(key)
}

// requiredUnion collects the required names of schemas that are merged.
type requiredUnion struct {
	names []string
	seen  map[string]bool
}

func (u *requiredUnion) add(n *node) {
	if u.seen == nil {
		u.seen = map[string]bool{}
	}
	for _, name := range n.required() {
		if !u.seen[name] {
			u.seen[name] = true
			u.names = append(u.names, name)
		}
	}
}

// write sets the required names of n.
func (u *requiredUnion) write(n *node) {
	if have := n.get(kwRequired); have != nil && u.seen != nil {
		n.set(kwRequired, stringsOf(u.names).at(have))
	}
}

// mergeBranch is merge for one of many branches. The required names are collected and written
// when all branches are merged: writing them for each branch would take quadratic time.
func (l *lowerer) mergeBranch(n, branch *node, u *requiredUnion) {
	if n.has(kwRequired) && branch.has(kwRequired) {
		if u.seen == nil {
			u.add(n)
		}
		u.add(branch)
		branch.del(kwRequired)
	}
	l.merge(n, branch, false)
}

// bothUnions adds a second union to dst. Only allOf expresses that exactly.
func (l *lowerer) bothUnions(dst *node, m field) {
	name := keywords[m.kw].name
	switch {
	case !l.p.mergeAllOf || l.flattening:
		s := (&node{kind: isSchema}).at(m.val)
		s.set(m.kw, m.val)
		if a := dst.get(kwAllOf); a != nil {
			a.list = append(a.list, s)
		} else {
			dst.set(kwAllOf, (&node{kind: isList, list: []*node{s}}).at(m.val))
		}
	case l.p.closed:
		l.refuse(m.val, "two "+name+" constraints apply at once, which this target cannot express")
	default:
		l.note(dst, "and "+name+": "+noteValue(m.val))
		l.addLossf(dragoman.Moved, dragoman.Warn, m.val, "two %s constraints apply at once; one is moved to the description", name)
	}
}

// both makes one property satisfy two schemas: merged if the target has no allOf, otherwise
// both are kept, which is exact.
func (l *lowerer) both(have, add *node, prefer bool) {
	if l.p.mergeAllOf || annotationsOnly(have) || annotationsOnly(add) {
		l.merge(have, add, prefer)
		return
	}
	if all := have.get(kwAllOf); all != nil && all.kind == isList && len(have.fields) == 1 {
		all.list = append(all.list, add)
		return
	}
	first := *have
	*have = node{kind: isSchema, parent: first.parent, token: first.token}
	have.set(kwAllOf, (&node{kind: isList, list: []*node{&first, add}}).at(have))
}

func annotationsOnly(n *node) bool {
	return !slices.ContainsFunc(n.fields, func(m field) bool { return !annotation(m.kw) })
}

func (l *lowerer) mergeTypes(dst, src *node) {
	a, b := dst.types(), src.types()
	var both []string
	for _, t := range a {
		switch {
		case slices.Contains(b, t), t == "integer" && slices.Contains(b, "number"):
			both = append(both, t)
		case t == "number" && slices.Contains(b, "integer"):
			both = append(both, "integer")
		}
	}
	if len(both) == 0 {
		l.addLossf(dragoman.Lowered, dragoman.Serious, src.get(kwType), "no value has both the types %v and %v; the later ones are kept", a, b)
		both = b
	}
	if !slices.Equal(both, a) {
		dst.setTypes(both)
	}
}

func (l *lowerer) mergeEnums(dst, have, add *node) {
	a, b := elements(have), elements(add)
	inB := make(map[string]bool, len(b))
	for _, v := range b {
		inB[string(v)] = true
	}
	both := slices.DeleteFunc(slices.Clone(a), func(v []byte) bool { return !inB[string(v)] })
	switch {
	case len(both) == len(a):
	case len(both) == 0:
		l.addLoss(dragoman.Lowered, dragoman.Serious, add, "two enums have no value in common; the later one is kept")
		dst.set(kwEnum, add)
	default:
		dst.set(kwEnum, arrayOf(both).at(have))
	}
}

// mergeAllOf writes n's allOf into n itself. It returns the references that
// it marked as being expanded.
func (l *lowerer) mergeAllOf(n *node) (expanding []*node) {
	for range 100 {
		all := n.get(kwAllOf)
		if all == nil || l.err != nil {
			return expanding
		}
		n.del(kwAllOf)
		if len(all.list) == 1 && all.list[0].ref != nil && len(all.list[0].fields) == 1 && n.ref == nil && annotationsOnly(n) {
			n.ref = all.list[0].ref
			n.set(kwRef, all.list[0].get(kwRef))
			l.addLoss(dragoman.Lowered, dragoman.Info, all, "allOf of one reference becomes the reference")
			continue
		}
		if n.ref != nil {
			l.inline(n)
		}
		var required requiredUnion
		for _, m := range all.list {
			switch {
			case m.isFalse():
				l.impossible(m, "the schema false matches no value")
			case m.kind == isSchema:
				m = l.part(m)
				switch t := m.ref; {
				case t == nil:
				case l.expanding[t]:
					l.addLoss(dragoman.Dropped, dragoman.Serious, m, "a recursive reference in allOf cannot be merged")
					m.ref = nil
					m.del(kwRef)
				default:
					l.expanding[t] = true
					expanding = append(expanding, t)
					l.inline(m)
				}
				l.mergeBranch(n, m, &required)
			}
		}
		required.write(n)
		l.addLossf(dragoman.Lowered, dragoman.Info, all, "allOf of %d schemas merged into one", len(all.list))
	}
	l.fail(n, dragoman.ErrTooLarge, "allOf is nested too deeply")
	return expanding
}

// requiredOnly reports a branch that adds nothing but required names.
func requiredOnly(n *node) bool {
	if n.kind != isSchema || n.ref != nil || len(n.required()) == 0 {
		return false
	}
	for _, m := range n.fields {
		if m.kw != kwRequired && !annotation(m.kw) && !(m.kw == kwType && slices.Equal(n.types(), []string{"object"})) {
			return false
		}
	}
	return true
}

// alternatives describes the branches of a union by the names they require.
func alternatives(branches []*node) string {
	var sets []string
	for _, b := range branches {
		if names := b.required(); len(names) > 0 {
			sets = append(sets, strings.Join(names, " + "))
		}
	}
	return cut("one of: "+strings.Join(sets, " | "), 2*maxNote)
}

// dropRequiredUnion drops a union whose branches only add required names, and describes the
// choice instead (quirk A5).
func (l *lowerer) dropRequiredUnion(n *node, k keyword) bool {
	u := n.get(k)
	if u == nil || u.kind != isList || slices.ContainsFunc(u.list, func(b *node) bool { return !requiredOnly(b) }) {
		return false
	}
	n.del(k)
	if !n.has(kwType) && slices.ContainsFunc(u.list, func(b *node) bool { return b.has(kwType) }) {
		n.setTypes([]string{"object"})
	}
	l.note(n, alternatives(u.list))
	l.addLossf(dragoman.Lowered, dragoman.Warn, u, "%s of required names moved to the description", keywords[k].name)
	return true
}
