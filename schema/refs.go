package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// resolver resolves references within one document.
type resolver struct {
	root *node
	// ids maps absolute $id URLs, anchors maps URL#anchor, to their schemas.
	ids     map[string]*node
	anchors map[string]*node
	// bases lists the schemas that have an $id, with their absolute URL.
	bases map[*node]string
	// reparses counts positions that were read as schemas because a reference leads there.
	reparses int
}

// maxReparses bounds resolver.read: each reads a part of the document again.
const maxReparses = 64

// A base that no author uses, so that a relative $id can be resolved.
const rootBase = "dragoman://schema/root"

func newResolver(root *node) *resolver {
	r := &resolver{root: root, ids: map[string]*node{}, anchors: map[string]*node{}, bases: map[*node]string{}}
	r.index(root, rootBase)
	if _, ok := r.bases[root]; !ok {
		r.bases[root] = rootBase
	}
	r.ids[rootBase] = root
	return r
}

func (r *resolver) index(n *node, base string) {
	if id, ok := n.get(kwID).str(); ok && n.kind == isSchema && !strings.HasPrefix(id, "#") {
		if abs, _, ok := join(base, id); ok {
			base = abs
			r.bases[n] = abs
			if _, taken := r.ids[abs]; !taken {
				r.ids[abs] = n
			}
		}
	}
	if n.kind == isSchema {
		for _, k := range [...]keyword{kwAnchor, kwDynamicAnchor} {
			if a, ok := n.get(k).str(); ok {
				if _, taken := r.anchors[base+"#"+a]; !taken {
					r.anchors[base+"#"+a] = n
				}
			}
		}
		if id, ok := n.get(kwID).str(); ok && strings.HasPrefix(id, "#") && len(id) > 1 {
			r.anchors[base+id] = n // the spelling of an anchor in draft-07
		}
	}
	n.children(func(c *node) { r.index(c, base) })
}

// join resolves ref against base and splits off the fragment.
func join(base, ref string) (abs, fragment string, ok bool) {
	if strings.HasPrefix(ref, "#") {
		f, err := url.PathUnescape(ref[1:])
		return base, f, err == nil
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", "", false
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", "", false
	}
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	return u.String(), fragment, true
}

// base returns the URL that references in n are relative to.
func (r *resolver) base(n *node) string {
	for at := n; at != nil; at = at.parent {
		if b, ok := r.bases[at]; ok {
			return b
		}
	}
	return rootBase
}

// resolve returns the schema that ref in n refers to; nil if it is outside the document or does
// not exist.
func (r *resolver) resolve(n *node, ref string) *node {
	abs, frag, ok := join(r.base(n), ref)
	if !ok {
		return nil
	}
	doc := r.ids[abs]
	if doc == nil {
		return nil
	}
	switch {
	case frag == "":
		return doc
	case frag[0] != '/':
		return r.anchors[abs+"#"+frag]
	}
	for token := range strings.SplitSeq(frag[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if doc = r.step(doc, token); doc == nil {
			return nil
		}
	}
	if doc.kind != isSchema && doc.kind != isBool {
		return nil
	}
	return doc
}

// step descends by one token. A position that is not a schema position (such as "components")
// is read as one if a reference leads there.
func (r *resolver) step(n *node, token string) *node {
	switch n.kind {
	case isSchema, isMap:
		for i := range n.fields {
			m := &n.fields[i]
			if m.key != token {
				continue
			}
			if m.val.kind == isData && len(m.val.raw) > 0 && m.val.raw[0] == '{' {
				if n.kind == isSchema && m.kw != kwOther {
					return nil // the author's data, never a schema (quirk A24)
				}
				if r.reparses++; r.reparses > maxReparses {
					return nil
				}
				sub, _, err := parse(m.val.raw, maxSchemaNodes)
				if err != nil {
					return nil
				}
				sub.parent, sub.token = m.val.parent, m.val.token
				m.val = sub
			}
			return m.val
		}
	case isList:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.list) {
			return n.list[i]
		}
	}
	return nil
}

// inPlace calls f for each schema that applies to the same value as n.
func (n *node) inPlace(f func(*node)) {
	if n.ref != nil {
		f(n.ref)
	}
	for _, m := range n.fields {
		switch m.kw {
		case kwAllOf, kwAnyOf, kwOneOf, kwDependentSchemas, kwDependencies:
			if m.val.kind == isList || m.val.kind == isMap {
				m.val.entries(f)
			}
		case kwNot, kwIf, kwThen, kwElse:
			if m.val.kind == isSchema {
				f(m.val)
			}
		}
	}
}

// referenceLoop returns a schema whose $ref leads back to itself without descending into the value, or
// nil. Such a reference has no meaning, and some validators never return from it.
func referenceLoop(root *node) *node {
	if !hasReferences(root) {
		return nil
	}
	state := map[*node]int{}
	var stack []*node
	var found *node
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = 1
		stack = append(stack, n)
		n.inPlace(func(c *node) {
			switch {
			case found != nil:
			case state[c] == 0:
				visit(c)
			case state[c] == 1:
				// One of the steps of the cycle is a reference: all others descend.
				next := c
				for i := len(stack) - 1; i >= 0; i-- {
					if stack[i].ref == next {
						found = stack[i]
						return
					}
					next = stack[i]
				}
			}
		})
		stack = stack[:len(stack)-1]
		state[n] = 2
	}
	reach(root, func(n *node) {
		if state[n] == 0 && found == nil {
			visit(n)
		}
	})
	return found
}

// reach calls f once for every schema below root and every target of a reference, even outside
// of the known keywords. f may bind n.ref, but must not call reach.
func reach(root *node, f func(*node)) {
	p := new(pass)
	var visit func(n *node)
	visit = func(n *node) {
		if !p.first(n) {
			return
		}
		f(n)
		n.children(visit)
		if n.ref != nil {
			visit(n.ref)
		}
	}
	visit(root)
}

// hasReferences reports whether any schema refers to another.
func hasReferences(root *node) bool {
	found := false
	reach(root, func(n *node) { found = found || n.ref != nil })
	return found
}

// recursiveSchema returns a schema that contains itself through references, or nil.
func recursiveSchema(root *node) *node {
	if !hasReferences(root) {
		return nil
	}
	state := map[*node]int{}
	var found *node
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = 1
		next := func(c *node) {
			if found != nil {
				return
			}
			switch state[c] {
			case 0:
				visit(c)
			case 1:
				found = n
			}
		}
		if n.ref != nil {
			next(n.ref)
		}
		n.children(next)
		state[n] = 2
	}
	visit(root)
	return found
}
