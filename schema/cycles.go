package schema

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// makeCyclesOptional makes properties optional in which a schema contains itself, if the target
// requires that: it unrolls such a schema, and must be able to stop.
func (l *lowerer) makeCyclesOptional() {
	if !l.p.optionalCycles || recursiveSchema(l.root) == nil {
		return
	}
	group := components(l.root)
	circular := func(n *node) bool { return n.ref != nil && group[n] == group[n.ref] }
	reach(l.root, func(n *node) {
		props := n.get(kwProperties)
		if n.kind != isSchema || props == nil || props.kind != isMap {
			return
		}
		have := n.required()
		names := slices.DeleteFunc(slices.Clone(have), func(name string) bool {
			s := props.name(name)
			if s == nil || !holds(s, circular) {
				return false
			}
			l.addLossf(dragoman.Lowered, dragoman.Warn, s, "property %.60q contains the schema around it, so it becomes optional", name)
			return true
		})
		switch {
		case len(names) == len(have):
		case len(names) == 0:
			n.del(kwRequired)
		default:
			n.set(kwRequired, stringsOf(names).at(n.get(kwRequired)))
		}
	})
	// Outside of any property there is nothing to make optional.
	open(l.root, func(n *node) {
		if circular(n) {
			l.cutRef(n)
			l.lower(n)
		}
	})
}

// holds reports whether n, or a schema that open visits from n, satisfies f.
func holds(n *node, f func(*node) bool) bool {
	found := false
	open(n, func(c *node) { found = found || f(c) })
	return found
}

// open calls f for n and the schemas below it, following references but not descending into
// properties.
func open(n *node, f func(*node)) {
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] || n.kind != isSchema {
			return
		}
		seen[n] = true
		f(n)
		if n.ref != nil {
			visit(n.ref)
		}
		for _, m := range n.fields {
			switch {
			case m.kw == kwProperties, m.kw == kwDefs, m.kw == kwDefinitions:
			case m.val.kind == isMap, m.val.kind == isList:
				m.val.entries(visit)
			case schemaShaped(m.kw):
				visit(m.val)
			}
		}
	}
	visit(n)
}

// components numbers the schemas of a document. Two schemas have the same number if and only if
// each contains the other (Tarjan's algorithm).
func components(root *node) map[*node]int {
	index, low, group := map[*node]int{}, map[*node]int{}, map[*node]int{}
	var stack []*node
	var visit func(n *node)
	visit = func(n *node) {
		index[n] = len(index) + 1
		low[n] = index[n]
		stack = append(stack, n)
		next := func(c *node) {
			if index[c] == 0 {
				visit(c)
				low[n] = min(low[n], low[c])
			} else if group[c] == 0 {
				low[n] = min(low[n], index[c])
			}
		}
		if n.ref != nil {
			next(n.ref)
		}
		n.children(next)
		if low[n] != index[n] {
			return
		}
		for {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			group[top] = index[n]
			if top == n {
				return
			}
		}
	}
	visit(root)
	return group
}
