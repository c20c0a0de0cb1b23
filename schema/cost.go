package schema

import (
	"math"

	dragoman "github.com/dragoman-go/dragoman"
)

// cost estimates how much work a schema can cause, before anything is evaluated. Every
// validator evaluates each branch separately, so nested choices multiply, and a recursive one
// multiplies with the depth of the arguments.
type cost struct {
	root *node
	// perValue is the maximum number of evaluations per value; infinite for a recursive schema.
	perValue float64
	// closures lists the schemas that are evaluated together with a schema, and how often.
	closures map[*node][]weighted
}

type weighted struct {
	n     *node
	times float64
}

// newCost analyzes a schema whose references are bound and free of loops.
func newCost(root *node) (*cost, error) {
	in := map[*node]float64{}
	var inPlace func(n *node) float64
	inPlace = func(n *node) float64 {
		if v, ok := in[n]; ok {
			return v
		}
		sum := 1.0
		n.inPlace(func(c *node) { sum += inPlace(c) })
		in[n] = sum
		return sum
	}
	var worst *node
	reach(root, func(n *node) {
		if inPlace(n) > maxInPlace && worst == nil {
			worst = n
		}
	})
	if worst != nil {
		return nil, &Error{Pointer: worst.pointer(), Reason: "its allOf, anyOf, oneOf and references take too many steps to combine", Err: dragoman.ErrTooLarge}
	}
	c := &cost{root: root, perValue: math.Inf(1)}
	if recursiveSchema(root) == nil {
		total := map[*node]float64{}
		var all func(n *node) float64
		all = func(n *node) float64 {
			if v, ok := total[n]; ok {
				return v
			}
			sum := 1.0
			if n.ref != nil {
				sum += all(n.ref)
			}
			n.children(func(c *node) { sum += all(c) })
			total[n] = sum
			return sum
		}
		c.perValue = all(root)
	}
	return c, c.close(root)
}

// close computes the closures.
func (c *cost) close(root *node) error {
	c.closures = map[*node][]weighted{}
	entries := 0
	var visit func(n *node) []weighted
	visit = func(n *node) []weighted {
		if have, ok := c.closures[n]; ok || entries > maxClosure {
			return have
		}
		index := map[*node]int{n: 0}
		out := []weighted{{n, 1}}
		n.inPlace(func(sub *node) {
			below := visit(sub)
			if entries > maxClosure {
				return
			}
			for _, w := range below {
				if i, ok := index[w.n]; ok {
					out[i].times += w.times
				} else {
					index[w.n] = len(out)
					out = append(out, w)
				}
			}
		})
		entries += len(out)
		c.closures[n] = out
		return out
	}
	var err error
	reach(root, func(n *node) {
		if err == nil {
			visit(n)
			if entries > maxClosure {
				err = &Error{Reason: "its references are too nested to limit the work of validation", Err: dragoman.ErrTooLarge}
			}
		}
	})
	return err
}

// allows reports whether validating v, which consists of that many values, stays within the
// limits.
func (c *cost) allows(v any, values int) bool {
	if c.perValue*float64(values) <= maxWork {
		return true
	}
	left := float64(maxWork)
	return c.spend(v, []weighted{{c.root, 1}}, &left)
}

// spend subtracts from left the maximum cost of validating v against the schemas.
func (c *cost) spend(v any, against []weighted, left *float64) bool {
	index := map[*node]int{}
	var here []weighted
	for _, a := range against {
		for _, w := range c.closures[a.n] {
			times := w.times * a.times
			if *left -= times; *left < 0 {
				return false
			}
			if i, ok := index[w.n]; ok {
				here[i].times += times
			} else {
				index[w.n] = len(here)
				here = append(here, weighted{w.n, times})
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, val := range v {
			var below []weighted
			for _, w := range here {
				w.n.forProperty(key, func(s *node) { below = append(below, weighted{s, w.times}) })
			}
			if len(below) > 0 && !c.spend(val, below, left) {
				return false
			}
		}
	case []any:
		for _, val := range v {
			var below []weighted
			for _, w := range here {
				w.n.forItem(func(s *node) { below = append(below, weighted{s, w.times}) })
			}
			if len(below) > 0 && !c.spend(val, below, left) {
				return false
			}
		}
	}
	return true
}

// forProperty calls f for each schema that may apply to a property.
func (n *node) forProperty(key string, f func(*node)) {
	for _, m := range n.fields {
		switch m.kw {
		case kwProperties:
			if m.val.kind == isMap {
				if s := m.val.name(key); s != nil && s.kind == isSchema {
					f(s)
				}
			}
		case kwPatternProperties:
			if m.val.kind == isMap {
				m.val.entries(f)
			}
		case kwAdditionalProperties, kwUnevaluatedProperties:
			if m.val.kind == isSchema {
				f(m.val)
			}
		}
	}
}

// forItem calls f for each schema that may apply to an item.
func (n *node) forItem(f func(*node)) {
	for _, m := range n.fields {
		switch m.kw {
		case kwItems, kwPrefixItems, kwContains, kwAdditionalItems, kwUnevaluatedItems:
			switch m.val.kind {
			case isSchema:
				f(m.val)
			case isList:
				m.val.entries(f)
			}
		}
	}
}
