package schema

import (
	dragoman "github.com/dragoman-go/dragoman"
)

const (
	// maxInline limits the subschemas of a schema whose references are expanded.
	maxInline = 4_000
	// maxUnroll limits how often a schema may contain itself before the reference to it is cut.
	maxUnroll = 2
)

// inlineAll replaces every reference with its target, for targets without $ref (quirks A3,
// A29). Recursive and deeply nested references are cut, at the greatest depth at which the
// result stays small.
func (l *lowerer) inlineAll() {
	if l.err != nil {
		return
	}
	refs := false
	l.root.walk(func(n *node) {
		refs = refs || n.ref != nil
		for _, m := range n.fields {
			if n.kind == isSchema && (m.kw == kwDefs || m.kw == kwDefinitions || isName(m.kw)) {
				l.addLossf(dragoman.Dropped, dragoman.Info, m.val, "%s: this target does not support references", m.key)
			}
		}
	})
	if !refs {
		l.root.walk(dropDefinitionKeywords)
		return
	}
	x := expansion{l: l, open: map[*node]int{l.root: 1}}
	for _, x.depth = range [...]int{32, 16, 8, 6, 5, 4, 3, 2, 1, 0} {
		left := maxInline
		if x.fits(l.root, 0, &left) {
			break
		}
	}
	// References lead to the original schema, never to a changed one.
	l.maxCopies = l.copies + 2*maxInline + 2*l.maxCopies
	l.root = l.copy(l.root)
	x.expand(l.root, 0)
}

// expansion expands references.
type expansion struct {
	l *lowerer
	// depth is the maximum nesting of references.
	depth int
	// open counts how often each schema is currently being written.
	open map[*node]int
}

// cuts reports whether a reference to t is cut.
func (x *expansion) cuts(t *node, depth int) bool {
	return depth >= x.depth || x.open[t] >= maxUnroll
}

// fits reports whether the expansion of n fits into left, and subtracts its size.
func (x *expansion) fits(n *node, depth int, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	ok := true
	below := func(c *node) { ok = ok && x.fits(c, depth, left) }
	for _, m := range n.fields {
		switch {
		case m.kw == kwDefs, m.kw == kwDefinitions:
		case m.val.kind == isMap, m.val.kind == isList:
			m.val.entries(below)
		case schemaShaped(m.kw):
			below(m.val)
		}
	}
	if t := n.ref; ok && t != nil && !x.cuts(t, depth) {
		x.open[t]++
		ok = x.fits(t, depth+1, left)
		x.open[t]--
	}
	return ok
}

// expand expands the references in n, which is a copy.
func (x *expansion) expand(n *node, depth int) {
	l := x.l
	if n.kind != isSchema || l.err != nil {
		return
	}
	dropDefinitionKeywords(n)
	var opened []*node
	for n.ref != nil && l.err == nil {
		t := n.ref
		if x.cuts(t, depth) {
			l.cutRef(n)
			break
		}
		l.addLoss(dragoman.Lowered, dragoman.Info, n.get(kwRef), "the reference is replaced by its target")
		x.open[t]++
		opened = append(opened, t)
		l.inlineStep(n)
		dropDefinitionKeywords(n)
		depth++
	}
	n.children(func(c *node) { x.expand(c, depth) })
	for _, t := range opened {
		x.open[t]--
	}
}

// dropDefinitionKeywords removes the keywords of a schema that only references use.
func dropDefinitionKeywords(n *node) {
	if n.kind != isSchema {
		return
	}
	for _, k := range [...]keyword{kwDefs, kwDefinitions, kwID, kwAnchor, kwDynamicAnchor, kwRecursiveAnchor} {
		n.del(k)
	}
}

// cutRef replaces a reference with the type of its target.
func (l *lowerer) cutRef(n *node) {
	t := n.ref
	l.addLoss(dragoman.Lowered, dragoman.Warn, n.get(kwRef), "the reference is removed: the schema contains itself or is too deep")
	n.del(kwRef)
	n.ref = nil
	if n.has(kwType) || t.kind != isSchema {
		return
	}
	types := t.types()
	if types == nil {
		types = inferTypes(t)
	}
	if types != nil {
		n.setTypes(types)
	}
	l.note(n, "nested further in the same way")
}
