package schema

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// flattenRoot makes the root a plain object: type "object", properties, and no keyword that
// makes it a choice (quirks A5, A20, A29, H1).
func (l *lowerer) flattenRoot() {
	root := l.root
	if root.ref != nil {
		l.hoisted = true
		l.addLoss(dragoman.Lowered, dragoman.Info, root.get(kwRef), "the root's reference is replaced by its target")
		l.hoistRoot()
	}
	l.flatten(root, 0)
	for _, k := range [...]keyword{kwEnum, kwConst, kwNot} {
		if v := root.get(k); v != nil {
			root.del(k)
			l.note(root, keywords[k].name+": "+noteValue(v))
			l.addLossf(dragoman.Moved, dragoman.Warn, v, "%s is not allowed at the root; moved to the description", keywords[k].name)
		}
	}
	if l.err != nil {
		return
	}
	switch types := root.types(); {
	case types == nil:
		if t := inferTypes(root); t != nil && t[0] != "object" {
			l.fail(root, ErrInvalid, "the root describes "+t[0]+", and "+l.p.objectRequirement())
			return
		}
		l.addLoss(dragoman.Synthesized, dragoman.Info, root, `type "object" added`)
		root.setFirst(kwType, dataString("object"))
	case len(types) == 1 && types[0] == "object":
		if v := root.get(kwType); v.raw[0] == '[' {
			l.addLoss(dragoman.Lowered, dragoman.Info, v, "a list of one type becomes the type")
			root.setTypes(types)
		}
	case slices.Contains(types, "object"):
		l.addLossf(dragoman.Lowered, dragoman.Warn, root.get(kwType), "the root must be an object; other types of %v are removed", types)
		root.setTypes([]string{"object"})
	default:
		l.fail(root, ErrInvalid, "the root is of type "+types[0]+", and "+l.p.objectRequirement())
		return
	}
	if !root.has(kwProperties) && !l.p.noEmptyProps {
		l.addLoss(dragoman.Synthesized, dragoman.Info, root, "empty properties added")
		root.set(kwProperties, &node{kind: isMap})
	}
}

// hoistRoot copies the target of the root's reference into the root. If the root has nothing
// else, references to the target lead to the root.
func (l *lowerer) hoistRoot() {
	root, target := l.root, l.root.ref
	same := target.kind == isSchema && target.ref == nil
	for _, m := range root.fields {
		switch m.kw {
		case kwRef, kwDefs, kwDefinitions, kwSchema, kwID, kwComment:
		default:
			same = false
		}
	}
	for _, k := range [...]keyword{kwAllOf, kwAnyOf, kwOneOf, kwEnum, kwConst, kwNot, kwDefs, kwDefinitions} {
		same = same && !target.has(k)
	}
	l.inline(root)
	if same && slices.Equal(root.types(), []string{"object"}) {
		root.walk(func(n *node) {
			if n.ref == target {
				n.ref = root
			}
		})
	}
}

// flatten removes $ref, allOf, anyOf and oneOf from an object by merging their content into it.
// A union becomes an object that has the properties of every branch and requires what all of
// them require.
func (l *lowerer) flatten(n *node, depth int) {
	if depth > 64 {
		l.fail(n, dragoman.ErrTooLarge, "unions and references are nested too deeply")
	}
	for range 100 {
		if l.err != nil {
			return
		}
		switch {
		case n.ref != nil:
			l.inline(n)
		case n.has(kwAllOf):
			l.flattenAllOf(n, depth)
		case n.has(kwAnyOf):
			l.flattenUnion(n, kwAnyOf, depth)
		case n.has(kwOneOf):
			l.flattenUnion(n, kwOneOf, depth)
		default:
			return
		}
	}
	l.fail(n, dragoman.ErrTooLarge, "unions and references are nested too deeply")
}

func (l *lowerer) flattenAllOf(n *node, depth int) {
	all := n.get(kwAllOf)
	n.del(kwAllOf)
	var required requiredUnion
	for _, m := range all.list {
		if m.isFalse() {
			l.fail(m, ErrInvalid, "the schema false matches no value")
			return
		}
		if m.kind != isSchema {
			continue
		}
		m = l.part(m)
		l.flatten(m, depth+1)
		l.mergeBranch(n, m, &required)
	}
	required.write(n)
	l.addLossf(dragoman.Lowered, dragoman.Info, all, "allOf of %d schemas merged into the object", len(all.list))
}

func (l *lowerer) flattenUnion(n *node, k keyword, depth int) {
	if l.dropRequiredUnion(n, k) {
		return
	}
	u := n.get(k)
	n.del(k)
	var objects []*node
	for _, b := range u.list {
		if b.isTrue() {
			b = (&node{kind: isSchema}).at(b)
		}
		if b.kind != isSchema {
			l.addLoss(dragoman.Dropped, dragoman.Warn, b, "a branch that no value satisfies")
			continue
		}
		c := l.part(b)
		l.flatten(c, depth+1)
		if l.err != nil {
			return
		}
		if t := c.types(); t != nil && !slices.Contains(t, "object") {
			l.addLossf(dragoman.Dropped, dragoman.Warn, b, "a branch of type %s: %s", t[0], l.p.objectRequirement())
			continue
		}
		if t := inferTypes(c); t != nil && !slices.Contains(t, "object") && !c.has(kwType) {
			l.addLossf(dragoman.Dropped, dragoman.Warn, b, "a branch of type %s: %s", t[0], l.p.objectRequirement())
			continue
		}
		objects = append(objects, c)
	}
	if len(objects) == 0 {
		l.fail(u, ErrInvalid, "no branch describes an object, and "+l.p.objectRequirement())
		return
	}
	l.addUnion(n, objects)
	if len(objects) > 1 {
		if note := alternatives(objects); note != "one of: " {
			l.note(n, note)
		}
	}
	l.addLossf(dragoman.Lowered, dragoman.Warn, u, "%s of %d object shapes merged into one object", keywords[k].name, len(objects))
}

// addUnion adds the union of some objects to n.
func (l *lowerer) addUnion(n *node, objects []*node) {
	var required []string
	for i, o := range objects {
		names := o.required()
		if i == 0 {
			required = names
		} else {
			in := nameSet(names)
			required = slices.DeleteFunc(slices.Clone(required), func(r string) bool { return !in[r] })
		}
	}
	props := &node{kind: isMap}
	variants := map[string][]*node{}
	type form struct{ key, text string }
	known := map[form]bool{}
	for _, o := range objects {
		p := o.get(kwProperties)
		if p == nil || p.kind != isMap {
			continue
		}
		for _, m := range p.fields {
			have := variants[m.key]
			if f := (form{m.key, string(m.val.text())}); !known[f] {
				known[f] = true
				variants[m.key] = append(have, m.val)
			}
			if have == nil {
				props.fields = append(props.fields, field{m.key, kwOther, nil})
			}
		}
	}
	for i := range props.fields {
		key := props.fields[i].key
		vs := variants[key]
		if len(vs) == 1 {
			props.fields[i].val = vs[0]
			continue
		}
		s := (&node{kind: isSchema}).at(vs[0])
		s.set(kwAnyOf, (&node{kind: isList, list: vs}).at(vs[0]))
		props.fields[i].val = s
		l.addLossf(dragoman.Lowered, dragoman.Info, vs[0], "property %.60q has %d schemas in the branches; combined with anyOf", key, len(vs))
	}
	sum := &node{kind: isSchema, parent: n.parent, token: n.token}
	if !n.has(kwType) {
		sum.set(kwType, dataString("object"))
	}
	if len(props.fields) > 0 {
		sum.set(kwProperties, props)
	}
	if len(required) > 0 {
		sum.set(kwRequired, stringsOf(required))
	}
	if len(objects) == 1 {
		for _, m := range objects[0].fields {
			if m.kw == kwOther && sum.name(m.key) == nil || m.kw != kwOther && !sum.has(m.kw) {
				sum.fields = append(sum.fields, m)
			}
		}
	} else if !slices.ContainsFunc(objects, func(o *node) bool {
		ap := o.get(kwAdditionalProperties)
		return ap == nil || !ap.isFalse()
	}) {
		sum.set(kwAdditionalProperties, &node{kind: isBool, raw: []byte("false")})
	}
	l.merge(n, sum, false)
}
