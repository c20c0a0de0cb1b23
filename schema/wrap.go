package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// wrapped is the property that Wrap adds.
const wrapped = "value"

// Wrap wraps a schema that does not describe a plain object (an array, a scalar, a union, an
// enum) in an object with the property "value", because every API requires an object at the
// root (quirk F6). It reports whether it did; if not, it returns src unchanged. [Unwrap]
// extracts the value from the response.
func Wrap(src json.RawMessage) (json.RawMessage, bool, error) {
	root, _, err := parse(src, maxSchemaNodes)
	if err != nil {
		return nil, false, err
	}
	l := newLowerer(&Profile{rootDefs: true})
	l.root = root
	l.bind()
	if l.err != nil {
		return nil, false, l.err
	}
	if plainObject(root, 0) {
		return src, false, nil
	}
	outer := &node{kind: isSchema}
	outer.set(kwType, dataString("object"))
	props := &node{kind: isMap, fields: []field{{wrapped, kwOther, root}}}
	outer.set(kwProperties, props)
	outer.set(kwRequired, stringsOf([]string{wrapped}))
	outer.set(kwAdditionalProperties, &node{kind: isBool, raw: []byte("false")})
	for _, k := range [...]keyword{kwSchema, kwDefs, kwDefinitions} {
		if v := root.get(k); v != nil {
			root.del(k)
			outer.set(k, v)
		}
	}
	l.root = outer
	l.finishRefs()
	if l.err != nil {
		return nil, false, l.err
	}
	var w jsonwire.Writer
	outer.write(&w)
	return w.Buf, true, nil
}

// plainObject reports whether a schema is of type object without a choice.
func plainObject(n *node, depth int) bool {
	if n.kind != isSchema || depth > 32 {
		return n.isTrue()
	}
	for _, k := range [...]keyword{kwAnyOf, kwOneOf, kwEnum, kwConst, kwNot} {
		if n.has(k) {
			return false
		}
	}
	if types := n.types(); types != nil {
		return len(types) == 1 && strings.EqualFold(types[0], "object")
	}
	if n.ref != nil {
		return plainObject(n.ref, depth+1)
	}
	if all := n.get(kwAllOf); all != nil && all.kind == isList {
		return !slices.ContainsFunc(all.list, func(m *node) bool { return !plainObject(m, depth+1) })
	}
	t := inferTypes(n)
	return t == nil || slices.Equal(t, []string{"object"})
}

// Unwrap extracts the value from the object that [Wrap] described.
func Unwrap(answer json.RawMessage) (json.RawMessage, error) {
	r := jsonwire.NewReader(answer)
	var out json.RawMessage
	for key := range r.Object() {
		if string(key) == wrapped {
			out = r.Raw()
		} else {
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fmt.Errorf("schema: the output has no property %q", wrapped)
	}
	return out, nil
}
