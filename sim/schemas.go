package sim

import (
	"encoding/json"
	"slices"
	"strings"
)

// flattener merges a schema with its references, allOf and unions into one. Of a union it
// takes the alternative with index pick.
type flattener struct {
	root any
	pick int
}

// maxSchemaSteps limits how many schemas are merged for one value.
const maxSchemaSteps = 64

// flat returns a schema merged with the schemas that it refers to or combines. It returns nil
// for a schema without keywords, or one that accepts nothing.
func (f flattener) flat(s any) *object {
	out := newObject()
	steps := 0
	f.into(out, s, &steps)
	return out
}

func (f flattener) into(out *object, s any, steps *int) {
	o, _ := s.(*object)
	if *steps++; o == nil || *steps > maxSchemaSteps {
		return
	}
	for _, k := range o.keys {
		v := o.values[k]
		switch k {
		case "$ref", "$dynamicRef":
			f.into(out, f.refer(v), steps)
		case "allOf":
			list, _ := v.([]any)
			for _, sub := range list {
				f.into(out, sub, steps)
			}
		case "anyOf", "oneOf":
			if list, _ := v.([]any); len(list) > 0 {
				f.into(out, list[f.pick%len(list)], steps)
			}
		case "properties":
			mergeProperties(out, v)
		case "required":
			mergeRequired(out, v)
		default:
			mergeKeyword(out, k, v)
		}
	}
}

// refer follows a reference within the schema.
func (f flattener) refer(ref any) any {
	name, _ := ref.(string)
	pointer, ok := strings.CutPrefix(name, "#")
	if !ok {
		return nil
	}
	v := f.root
	if pointer == "" {
		return v
	}
	if !strings.HasPrefix(pointer, "/") { // an anchor
		return anchored(v, pointer, 0)
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%20", " ").Replace(step)
		switch node := v.(type) {
		case *object:
			v = node.get(step)
		case []any:
			i, err := json.Number(step).Int64()
			if err != nil || i < 0 || i >= int64(len(node)) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

// anchored finds the schema with an anchor.
func anchored(v any, name string, depth int) any {
	if depth > maxSchemaSteps {
		return nil
	}
	switch v := v.(type) {
	case *object:
		if v.get("$anchor") == name || v.get("$dynamicAnchor") == name {
			return v
		}
		for _, k := range v.keys {
			if found := anchored(v.values[k], name, depth+1); found != nil {
				return found
			}
		}
	case []any:
		for _, e := range v {
			if found := anchored(e, name, depth+1); found != nil {
				return found
			}
		}
	}
	return nil
}

// mergeProperties adds properties. If a property exists already, both schemas apply.
func mergeProperties(out *object, v any) {
	have := objectAt(out, "properties")
	if have == nil {
		have = newObject()
		out.set("properties", have)
	}
	more, _ := v.(*object)
	if more == nil {
		return
	}
	for _, k := range more.keys {
		if have.has(k) {
			have.set(k, newObject("allOf", []any{have.get(k), more.values[k]}))
			continue
		}
		have.set(k, more.values[k])
	}
}

func mergeRequired(out *object, v any) {
	have, _ := out.get("required").([]any)
	more, _ := v.([]any)
	both := make([]any, 0, len(have)+len(more))
	seen := wordSet{}
	for _, e := range slices.Concat(have, more) {
		if name, ok := e.(string); ok && !seen[name] {
			seen[name] = true
			both = append(both, e)
		}
	}
	out.set("required", both)
}

// mergeKeyword adds a keyword. It keeps the narrower of two bounds, the intersection of two
// lists, and otherwise the first value.
func mergeKeyword(out *object, k string, v any) {
	if !out.has(k) {
		out.set(k, v)
		return
	}
	have := out.get(k)
	switch k {
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		if a, ok := toFloat(have); ok {
			if b, ok := toFloat(v); ok && b > a {
				out.set(k, v)
			}
		}
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		if a, ok := toFloat(have); ok {
			if b, ok := toFloat(v); ok && b < a {
				out.set(k, v)
			}
		}
	case "enum":
		a, _ := have.([]any)
		b, _ := v.([]any)
		both := slices.DeleteFunc(slices.Clone(a), func(e any) bool {
			text := string(appendTree(nil, e))
			return !slices.ContainsFunc(b, func(o any) bool { return string(appendTree(nil, o)) == text })
		})
		out.set(k, both)
	case "type":
		if _, list := have.([]any); list {
			out.set(k, v)
		}
	}
}

func toFloat(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// intOr returns an integer keyword, or a default.
func intOr(s *object, key string, or int) int {
	f, ok := toFloat(s.get(key))
	if !ok || f < 0 || f > 1<<20 {
		return or
	}
	return int(f)
}

// typeOf returns the type of the values to make for a flat schema: the type it has, the first
// of several that is not null, or the type that its keywords imply.
func typeOf(s *object) string {
	switch t := s.get("type").(type) {
	case string:
		return strings.ToLower(t)
	case []any:
		for _, e := range t {
			if name, _ := e.(string); name != "null" && name != "" {
				return name
			}
		}
		return "null"
	}
	for _, hint := range []struct{ keys, typ string }{
		{"properties required additionalProperties minProperties patternProperties", "object"},
		{"items prefixItems minItems uniqueItems contains", "array"},
		{"minimum maximum exclusiveMinimum exclusiveMaximum multipleOf", "number"},
	} {
		if slices.ContainsFunc(strings.Fields(hint.keys), s.has) {
			return hint.typ
		}
	}
	return "string"
}
