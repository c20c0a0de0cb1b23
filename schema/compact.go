package schema

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// compact makes a schema smaller in stages until it fits the budget. It keeps the names of the
// arguments (quirk A39).
func (l *lowerer) compact() []byte {
	stages := []struct {
		what string
		do   func()
	}{
		{"descriptions below the " + l.p.fieldNoun() + " are left out", l.dropInnerTexts},
		{"references are removed", l.cutRefs},
		{"parts deeper than four levels are removed", func() { l.collapse(4) }},
		{"parts deeper than two levels are removed", func() { l.collapse(2) }},
		{"of the " + l.p.fieldNoun() + " only type and description are left", func() { l.collapse(1) }},
		{"descriptions of the " + l.p.fieldNoun() + " are shortened", func() { l.cutTexts(maxNote) }},
		{"descriptions are left out", func() { l.cutTexts(0) }},
	}
	for _, s := range stages {
		l.addLossf(dragoman.Lowered, dragoman.Serious, l.root, "the schema is longer than %d bytes: %s", l.p.maxBytes, s.what)
		s.do()
		l.lower(l.root) // an array that lost its items gets new ones
		l.finish()
		l.pruneDefs()
		l.finishRefs()
		if l.err != nil {
			return nil
		}
		var w jsonwire.Writer
		if l.root.write(&w); len(w.Buf) <= l.p.maxBytes {
			return w.Buf
		}
	}
	l.fail(l.root, dragoman.ErrTooLarge, "it names more "+l.p.fieldNoun()+" than this target accepts")
	return nil
}

// arguments calls f for each argument of the tool.
func (l *lowerer) arguments(f func(*node)) {
	if props := l.root.get(kwProperties); props != nil {
		props.entries(f)
	}
}

func (l *lowerer) dropInnerTexts() {
	bare := func(n *node) {
		n.fields = slices.DeleteFunc(slices.Clone(n.fields), func(m field) bool {
			switch m.kw {
			case kwDescription, kwTitle, kwComment, kwExample, kwExamples, kwDefault:
				return n.kind == isSchema
			default:
				return false
			}
		})
	}
	l.root.children(func(c *node) {
		c.walk(func(n *node) {
			if n != c {
				bare(n)
			}
		})
	})
	if defs := l.root.get(kwDefs); defs != nil {
		defs.entries(func(d *node) { bare(d) })
	}
}

func (l *lowerer) cutRefs() {
	reach(l.root, func(n *node) {
		if n.ref != nil {
			l.cutRef(n)
		}
	})
}

// collapse reduces schemas deeper than the given number of levels to their types.
func (l *lowerer) collapse(levels int) {
	var visit func(n *node, level int)
	visit = func(n *node, level int) {
		if level < levels {
			n.children(func(c *node) { visit(c, level+1) })
			return
		}
		types := n.types()
		if types == nil {
			types = unionTypes(n)
		}
		n.fields = slices.DeleteFunc(slices.Clone(n.fields), func(m field) bool {
			return m.kw != kwType && m.kw != kwDescription && m.kw != kwNullable
		})
		n.ref = nil
		if n.kind == isSchema && len(types) > 0 && (len(types) == 1 || !l.p.oneType) {
			n.setTypes(types)
		}
	}
	visit(l.root, 0)
}

// unionTypes lists the types of a union's branches; nil when one is open.
func unionTypes(n *node) []string {
	var types []string
	for _, k := range [...]keyword{kwAnyOf, kwOneOf} {
		u := n.get(k)
		if u == nil || u.kind != isList {
			continue
		}
		for _, b := range u.list {
			have := b.types()
			if have == nil {
				return nil
			}
			for _, t := range have {
				if !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
		}
	}
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types
}

func (l *lowerer) cutTexts(max int) {
	l.arguments(func(n *node) {
		d, ok := n.get(kwDescription).str()
		switch {
		case !ok:
		case max == 0:
			n.del(kwDescription)
		default:
			n.set(kwDescription, dataString(cut(d, max)))
		}
	})
}
