package schema

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// keywordType returns the type that a keyword applies to; empty means all.
func keywordType(k keyword) string {
	switch k {
	case kwProperties, kwRequired, kwAdditionalProperties, kwPatternProperties, kwMinProperties, kwMaxProperties,
		kwPropertyNames, kwPropertyOrdering, kwDependentRequired, kwDependentSchemas, kwUnevaluatedProperties:
		return "object"
	case kwItems, kwPrefixItems, kwAdditionalItems, kwMinItems, kwMaxItems, kwUniqueItems, kwContains, kwMinContains,
		kwMaxContains, kwUnevaluatedItems:
		return "array"
	case kwMinLength, kwMaxLength, kwPattern, kwContentEncoding, kwContentMediaType, kwContentSchema:
		return "string"
	case kwMinimum, kwMaximum, kwExclusiveMinimum, kwExclusiveMaximum, kwMultipleOf:
		return "number"
	default:
		return ""
	}
}

// dropForeign drops keywords about types that the value cannot have (quirk
// A19).
func (l *lowerer) dropForeign(n *node) {
	types := n.types()
	n.fields = slices.DeleteFunc(n.fields, func(m field) bool {
		about := keywordType(m.kw)
		if about == "" || slices.Contains(types, about) || about == "number" && slices.Contains(types, "integer") {
			return false
		}
		l.addLossf(dragoman.Dropped, dragoman.Info, m.val, "%s does not apply to type %s", m.key, strings.Join(types, ", "))
		return true
	})
}

// lowerObject closes an object and completes its required names, if the profile requires it.
func (l *lowerer) lowerObject(n *node) {
	p := l.p
	props := n.get(kwProperties)
	if p.closed {
		l.closeObject(n, props != nil && len(props.fields) > 0)
		if l.err != nil {
			return
		}
		if props == nil {
			l.addLoss(dragoman.Synthesized, dragoman.Info, n, "empty properties added")
			props = &node{kind: isMap}
			n.set(kwProperties, props)
		}
	}
	if props != nil && (p.closed || p.noBooleans) {
		props.fields = slices.DeleteFunc(props.fields, func(m field) bool {
			if m.val.isFalse() {
				l.addLossf(dragoman.Dropped, dragoman.Info, m.val, "property %.60q can never be present", m.key)
			}
			return m.val.isFalse()
		})
	}
	if p.closed || p.knownRequired {
		l.completeRequired(n, props)
	}
	if p.noEmptyProps && props != nil && len(props.fields) == 0 {
		l.addLoss(dragoman.Dropped, dragoman.Info, props, "properties: empty")
		n.del(kwProperties)
		props = nil
	}
	if p.mapEntries && props == nil && n != l.root {
		l.listEntries(n)
	}
}

func (l *lowerer) closeObject(n *node, declared bool) {
	if pp := n.get(kwPatternProperties); pp != nil && len(pp.fields) > 0 {
		l.refuse(pp, "patternProperties is a free-form map, which this target would always leave empty; send the tool without strict")
		return
	}
	ap := n.get(kwAdditionalProperties)
	switch {
	case ap != nil && ap.isFalse():
		return
	case ap == nil && (declared || n == l.root):
		l.addLoss(dragoman.Synthesized, dragoman.Info, n, "additionalProperties: false added; other properties are no longer accepted")
	case ap != nil && ap.anything() && declared:
		l.addLoss(dragoman.Lowered, dragoman.Warn, ap, "other properties are no longer accepted")
	default:
		l.refuse(n, "a free-form map, which this target would always leave empty; send the tool without strict")
		return
	}
	n.set(kwAdditionalProperties, &node{kind: isBool, raw: []byte("false")})
}

// completeRequired keeps the names that exist (quirk A18) and adds the others if all are
// required; those become nullable, and null means absent (quirk A26).
func (l *lowerer) completeRequired(n, props *node) {
	have := n.required()
	if len(have) == 0 && !l.p.allRequired {
		return
	}
	known := map[string]bool{}
	if props != nil {
		known = make(map[string]bool, len(props.fields))
		for _, m := range props.fields {
			known[m.key] = true
		}
	}
	names := make([]string, 0, len(have))
	required := make(map[string]bool, len(have))
	for _, r := range have {
		if known[r] {
			names = append(names, r)
			required[r] = true
		} else {
			l.addLossf(dragoman.Dropped, dragoman.Info, n.get(kwRequired), "required names %.60q, which is not a property", r)
		}
	}
	if l.p.allRequired {
		for _, m := range props.fields {
			if !required[m.key] {
				l.addLossf(dragoman.Lowered, dragoman.Warn, m.val, "optional property %.60q becomes required; null means absent", m.key)
				names = append(names, m.key)
				l.optional = append(l.optional, m.val)
			}
		}
	}
	switch {
	case slices.Equal(names, have):
	case len(names) == 0:
		n.del(kwRequired)
	default:
		n.set(kwRequired, stringsOf(names))
	}
}
