package interop

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

// strictUse counts the strict schemas of a request, their optional properties and their
// unions.
type strictUse struct{ tools, optional, unions int }

// ReserveStrict counts the output schema of a request as one of its strict schemas, because
// some dialects limit them together. Call it before [Registry.WriteTools], which sends tools
// beyond the limit without the strict flag.
func (r *Registry) ReserveStrict(schema json.RawMessage) {
	use := sizeOf(schema)
	r.strict.optional += use.optional
	r.strict.unions += use.unions
}

// takeStrict counts a strict tool. It returns why the tool cannot be strict; empty if it
// can.
func (r *Registry) takeStrict(most toolwire.StrictLimits, schema json.RawMessage) string {
	if most == (toolwire.StrictLimits{}) {
		return ""
	}
	use := sizeOf(schema)
	sum := strictUse{r.strict.tools + 1, r.strict.optional + use.optional, r.strict.unions + use.unions}
	for _, n := range []struct {
		have, most int
		what       string
	}{
		{sum.tools, most.Tools, "strict tools"},
		{sum.optional, most.Optional, "optional properties in strict schemas"},
		{sum.unions, most.Unions, "unions in strict schemas"},
	} {
		if n.most > 0 && n.have > n.most {
			return fmt.Sprintf("the request would have %d %s, and the API accepts %d", n.have, n.what, n.most)
		}
	}
	r.strict = sum
	return ""
}

// sizeOf counts the optional properties and the unions of a schema.
func sizeOf(schema json.RawMessage) strictUse {
	var use strictUse
	var root any
	if json.Unmarshal(schema, &root) == nil { // other code reports invalid JSON
		use.add(root)
	}
	return use
}

func (u *strictUse) add(node any) {
	s, ok := node.(map[string]any)
	if !ok {
		return
	}
	types, _ := s["type"].([]any)
	if s["anyOf"] != nil || s["oneOf"] != nil || len(types) > 1 {
		u.unions++
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	u.optional += max(0, len(properties)-len(required))
	u.add(s["items"])
	for _, key := range []string{"properties", "$defs", "definitions"} {
		inner, _ := s[key].(map[string]any)
		for _, schema := range inner {
			u.add(schema)
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		inner, _ := s[key].([]any)
		for _, schema := range inner {
			u.add(schema)
		}
	}
}
