package schema

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// placeDefs moves the definitions to where the target expects them: under $defs, and for some
// targets only at the root (quirk A3). An unused definition is dropped if the target has an
// allowlist, or if the root was rebuilt and absorbed it.
func (l *lowerer) placeDefs() {
	if l.p.modernDefs {
		l.renameDefinitions(l.root)
	}
	l.reattach()
	if l.p.modernDefs {
		l.renameDefinitions(l.root) // in the reattached schemas
	}
	switch {
	case l.p.rootDefs:
		l.gatherDefs()
	case l.hoisted:
		l.pruneDefs()
	}
}

func (l *lowerer) renameDefinitions(from *node) {
	from.walk(func(n *node) {
		old := n.get(kwDefinitions)
		if old == nil || old.kind != isMap {
			return
		}
		l.addLoss(dragoman.Renamed, dragoman.Info, old, "definitions is $defs since draft 2019-09")
		defs := n.get(kwDefs)
		if defs == nil {
			for i := range n.fields {
				if n.fields[i].kw == kwDefinitions {
					n.fields[i].kw, n.fields[i].key = kwDefs, "$defs"
				}
			}
			return
		}
		n.del(kwDefinitions)
		for _, m := range old.fields {
			m.key = freeName(defs, m.key)
			defs.fields = append(defs.fields, m)
		}
	})
}

func freeName(defs *node, name string) string {
	if name == "" {
		name = "def"
	}
	for try, i := name, 2; ; i++ {
		if defs.name(try) == nil {
			return try
		}
		try = name + "_" + itoa(i)
	}
}

// locations maps every schema of the document to its pointer.
func (l *lowerer) locations() map[*node]string {
	where := map[*node]string{}
	var visit func(n *node, ptr string)
	visit = func(n *node, ptr string) {
		if n.kind == isData {
			return
		}
		if _, ok := where[n]; !ok {
			where[n] = ptr
		}
		for _, m := range n.fields {
			visit(m.val, ptr+"/"+escapeToken(m.key))
		}
		for i, e := range n.list {
			visit(e, ptr+"/"+itoa(i))
		}
	}
	visit(l.root, "")
	return where
}

// targets lists the targets of references from the document's known positions, or from
// everywhere, each once, in order.
func (l *lowerer) targets(everywhere bool) []*node {
	var out []*node
	var seen map[*node]bool
	visit := func(n *node) {
		if n.ref != nil && !seen[n.ref] {
			if seen == nil {
				seen = map[*node]bool{}
			}
			seen[n.ref] = true
			out = append(out, n.ref)
		}
	}
	if everywhere {
		reach(l.root, visit)
	} else {
		l.root.walk(visit)
	}
	return out
}

func (l *lowerer) rootDefs() *node {
	if d := l.root.get(kwDefs); d != nil && d.kind == isMap {
		return d
	}
	d := &node{kind: isMap}
	l.root.set(kwDefs, d)
	return d
}

// reattach moves schemas under $defs that are still referenced, but whose parent was merged
// into another schema.
func (l *lowerer) reattach() {
	for l.err == nil {
		targets := l.targets(true)
		if len(targets) == 0 {
			return
		}
		where := l.locations()
		added := false
		for _, t := range targets {
			if _, ok := where[t]; ok {
				continue
			}
			defs := l.rootDefs()
			defs.fields = append(defs.fields, field{freeName(defs, defName(t)), kwOther, t})
			l.addLoss(dragoman.Moved, dragoman.Info, t, "kept under $defs, because a reference uses it")
			added = true
		}
		if !added {
			return
		}
	}
}

func defName(n *node) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, n.token)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "def_" + name
	}
	return cut(name, 60)
}

// gatherDefs makes every reference point to the root or to the root's $defs, and drops unused
// definitions.
func (l *lowerer) gatherDefs() {
	moved := map[*node]*node{}
	for l.err == nil {
		inside := map[*node]bool{l.root: true}
		if defs := l.root.get(kwDefs); defs != nil {
			defs.entries(func(d *node) { inside[d] = true })
		}
		outside := slices.DeleteFunc(l.targets(false), func(t *node) bool { return inside[t] })
		if len(outside) == 0 {
			break
		}
		for _, t := range outside {
			if moved[t] == nil {
				c := l.copy(t)
				d := l.rootDefs()
				d.fields = append(d.fields, field{freeName(d, defName(t)), kwOther, c})
				l.addLoss(dragoman.Moved, dragoman.Info, t, "copied to $defs, the only place that references may point to")
				moved[t] = c
			}
		}
		l.root.walk(func(n *node) {
			if c := moved[n.ref]; n.ref != nil && c != nil {
				n.ref = c
			}
		})
	}
	l.root.walk(func(n *node) {
		if n == l.root || n.kind != isSchema {
			return
		}
		for _, k := range [...]keyword{kwDefs, kwDefinitions} {
			if d := n.get(k); d != nil {
				l.addLoss(dragoman.Dropped, dragoman.Info, d, "definitions are allowed only at the root; those in use were copied there")
				n.del(k)
			}
		}
	})
	l.pruneDefs()
}

// pruneDefs drops definitions that are not reachable from the root.
func (l *lowerer) pruneDefs() {
	defs := l.root.get(kwDefs)
	if defs == nil || defs.kind != isMap || l.err != nil {
		return
	}
	used := map[*node]bool{}
	// The root without its definitions: a reference to the root uses none of them.
	rest := *l.root
	rest.fields = slices.DeleteFunc(slices.Clone(rest.fields), func(m field) bool { return m.kw == kwDefs })
	var visit func(n *node)
	visit = func(n *node) {
		if n == l.root {
			n = &rest
		}
		n.walk(func(c *node) {
			if c.ref != nil && !used[c.ref] {
				used[c.ref] = true
				visit(c.ref)
			}
		})
	}
	visit(&rest)
	inUse := map[*node]bool{}
	for again := true; again; {
		again = false
		for _, m := range defs.fields {
			if !inUse[m.val] {
				m.val.walk(func(c *node) { inUse[m.val] = inUse[m.val] || used[c] })
				if inUse[m.val] {
					again = true
					visit(m.val)
				}
			}
		}
	}
	keep := defs.fields[:0:0]
	for _, m := range defs.fields {
		if inUse[m.val] {
			keep = append(keep, m)
		} else {
			l.addLoss(dragoman.Dropped, dragoman.Info, m.val, "no reference uses this definition")
		}
	}
	if defs.fields = keep; len(keep) == 0 {
		l.root.del(kwDefs)
		l.addLoss(dragoman.Dropped, dragoman.Info, defs, "$defs is empty")
	}
}

// finishRefs rewrites references whose targets moved.
func (l *lowerer) finishRefs() {
	if l.err != nil || len(l.targets(true)) == 0 {
		return
	}
	where := l.locations()
	reach(l.root, func(n *node) {
		if n.ref == nil {
			return
		}
		ptr, ok := where[n.ref]
		if !ok {
			l.fail(n, ErrInvalid, "a reference has no target")
			return
		}
		have := n.get(kwRef)
		text, _ := have.str()
		if !l.p.rootDefs && !l.rebased && l.res.resolve(n, text) == n.ref {
			return // by anchor or $id, and still correct
		}
		spelled := l.p.rootDefs && strings.Contains(text, "%") // such targets compare it literally
		if _, frag, ok := join("", text); ok && strings.HasPrefix(text, "#") && frag == ptr && !spelled {
			return
		}
		if spelled {
			l.addLoss(dragoman.Renamed, dragoman.Info, have, "the reference is written in the form of the target")
		}
		n.set(kwRef, dataString("#"+escapeFragment(ptr)).at(have))
	})
}

// escapeFragment writes a JSON pointer as a URI fragment.
func escapeFragment(ptr string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(ptr) {
		c := ptr[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
