package schema

import dragoman "github.com/dragoman-go/dragoman"

// entryKey and entryValue are the fields of one entry of a map that is written as a list.
const (
	entryKey   = "key"
	entryValue = "value"
)

// listEntries writes a free-form map as a list of entries, because targets without
// additionalProperties send empty maps (quirk A42). The arguments are translated back.
func (l *lowerer) listEntries(n *node) {
	values := n.get(kwAdditionalProperties)
	if values == nil || values.isFalse() {
		return
	}
	if values.isTrue() || values.empty() {
		l.addLoss(dragoman.Lowered, dragoman.Warn, values, "models of this target usually send an empty object for a free-form map")
		n.del(kwAdditionalProperties)
		return
	}
	l.addLoss(dragoman.Lowered, dragoman.Warn, values, "a map becomes a list of entries, each with key and value")
	key := (&node{kind: isSchema}).at(values)
	key.set(kwType, dataString("string"))
	entry := (&node{kind: isSchema}).at(values)
	entry.set(kwType, dataString("object"))
	entry.set(kwProperties, &node{kind: isMap, fields: []field{{entryKey, kwOther, key}, {entryValue, kwOther, values}}})
	entry.set(kwRequired, stringsOf([]string{entryKey, entryValue}))
	// The limits on the size of the map become limits on the list.
	var kept []field
	for _, m := range n.fields {
		switch {
		case m.kw == kwMinProperties:
			kept = append(kept, field{keywords[kwMinItems].name, kwMinItems, m.val})
		case m.kw == kwMaxProperties:
			kept = append(kept, field{keywords[kwMaxItems].name, kwMaxItems, m.val})
		case keywordType(m.kw) == "" || m.kw == kwPropertyNames || m.kw == kwPatternProperties:
			kept = append(kept, m)
		}
	}
	n.fields = kept
	n.setTypes([]string{"array"})
	n.set(kwItems, entry)
	l.undo.entries(n)
}
