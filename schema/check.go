package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Violation is one rule that a schema, or a value, breaks.
type Violation struct {
	// Pointer is the JSON pointer of the place.
	Pointer string
	// Rule names what was broken: a keyword, or a rule of a target.
	Rule string
	// Detail says what was expected, in words a model can act on.
	Detail string
}

func (v Violation) String() string {
	at := cut(v.Pointer, 120)
	if at == "" {
		at = "(root)"
	}
	return at + ": " + v.Detail
}

// Check lists the rules of p that src breaks as it is written, in document
// order of sorted names; nil when p's API takes it. It knows the rules from
// the wire reference and shares nothing with [Lower], so that each can test
// the other.
func Check(src json.RawMessage, p Profile) []Violation {
	c := checker{rules: rulesOf(p.name)}
	doc, err := decode(src, MaxSchemaDepth, false)
	if err != nil {
		c.add("", "json", err.Error())
		return c.found
	}
	c.doc = doc
	root, ok := doc.(map[string]any)
	if !ok {
		c.add("", "root", "must be an object of keywords")
		return c.found
	}
	if c.rules.rootObject {
		c.root(root)
	}
	c.schema(root, "", 0)
	c.recursion()
	c.limits()
	return c.found
}

// apiRules is what the wire reference says about one surface.
type apiRules struct {
	rootObject bool
	items      bool
	strict     bool
	keywords   []string
	formats    []string
	all        bool // every property required
	acyclic    bool
	smallMin   bool // minItems 0 or 1 only
	most       map[string]int
}

func rulesOf(name string) apiRules {
	core := []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
		"required", "format", "pattern", "minItems", "title", "description",
	}
	switch name {
	case "openai.tool", "openai.output":
		return apiRules{rootObject: true, items: true}
	case "anthropic.tool":
		return apiRules{rootObject: true}
	case "openai.strict":
		return apiRules{
			rootObject: true, items: true, strict: true, all: true,
			keywords: append(core, "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "maxItems"),
			formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
			most:     map[string]int{"properties": 5000, "levels": 10, "names": 120_000, "enum values": 1000},
		}
	case "anthropic.strict":
		return apiRules{
			rootObject: true, items: true, strict: true, acyclic: true, smallMin: true,
			keywords: append(core, "allOf"),
			formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
			most:     map[string]int{"optional": 24, "unions": 16},
		}
	default:
		return apiRules{}
	}
}

type checker struct {
	rules apiRules
	doc   any
	found []Violation
	// refs maps the pointer of each schema that refers to its target.
	refs map[string]string
	// count sums what the target bounds.
	count map[string]int
}

func (c *checker) add(ptr, rule, detail string) {
	if len(c.found) < maxLosses {
		c.found = append(c.found, Violation{ptr, rule, detail})
	}
}

func (c *checker) sum(what string, n int) {
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[what] += n
}

func (c *checker) root(s map[string]any) {
	if s["type"] != "object" {
		c.add("", "root", `the root's type must be "object"`)
	}
	if _, ok := s["properties"].(map[string]any); !ok {
		c.add("", "root", "the root must have properties")
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "enum", "not", "const", "$ref"} {
		if _, ok := s[k]; ok {
			c.add("", "root", "the root must not have "+k)
		}
	}
}

func (c *checker) schema(v any, ptr string, level int) {
	if b, ok := v.(bool); ok {
		if c.rules.strict {
			c.add(ptr, "typed", "a schema must not be "+strconv.FormatBool(b))
		}
		return
	}
	s, ok := v.(map[string]any)
	if !ok {
		c.add(ptr, "schema", "must be an object or a boolean")
		return
	}
	if c.rules.strict {
		c.strict(s, ptr, level)
	}
	c.general(s, ptr)
	for _, key := range slices.Sorted(maps.Keys(s)) {
		val, at := s[key], ptr+"/"+escapeToken(key)
		switch key {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			m, ok := val.(map[string]any)
			if !ok {
				c.add(at, key, "must be an object of schemas")
				continue
			}
			below := level
			if key == "properties" {
				below++
			}
			for _, name := range slices.Sorted(maps.Keys(m)) {
				c.schema(m[name], at+"/"+escapeToken(name), below)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, ok := val.([]any)
			if !ok || len(list) == 0 {
				c.add(at, key, "must be a list of schemas, not empty")
				continue
			}
			for i, e := range list {
				c.schema(e, at+"/"+strconv.Itoa(i), level)
			}
		case "items", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems",
			"unevaluatedItems", "unevaluatedProperties", "contentSchema":
			c.schema(val, at, level)
		case "additionalProperties":
			if !c.rules.strict {
				c.schema(val, at, level)
			}
		}
	}
}

// general is what every API demands of a schema.
func (c *checker) general(s map[string]any, ptr string) {
	types := typesOf(s)
	if _, ok := s["type"]; ok {
		if len(types) == 0 {
			c.add(ptr+"/type", "type", "must be a type or a list of types")
		}
		for i, t := range types {
			if !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, t) {
				c.add(ptr+"/type", "type", strconv.Quote(t)+" is not a JSON type")
			}
			if slices.Contains(types[:min(i, 8)], t) { // there are seven
				c.add(ptr+"/type", "type", "names a type twice")
			}
		}
	}
	if _, has := s["items"]; c.rules.items && slices.Contains(types, "array") && !has && s["$ref"] == nil {
		c.add(ptr, "items", "an array must have items")
	}
	for _, k := range []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
		"maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
	} {
		if v, ok := s[k]; ok {
			if _, num := v.(json.Number); !num {
				c.add(ptr+"/"+k, k, "must be a number")
			}
		}
	}
	for _, k := range []string{"$ref", "title", "description", "format", "pattern", "$schema", "$id"} {
		if v, ok := s[k]; ok {
			if _, str := v.(string); !str {
				c.add(ptr+"/"+k, k, "must be a string")
			}
		}
	}
	if v, ok := s["enum"]; ok {
		if list, isList := v.([]any); !isList || len(list) == 0 {
			c.add(ptr+"/enum", "enum", "must be a list of values, not empty")
		}
	}
	if v, ok := s["required"]; ok {
		if _, ok := namesOf(v); !ok {
			c.add(ptr+"/required", "required", "must be a list of names, each once")
		}
	}
	if _, ok := s["nullable"]; ok {
		c.add(ptr+"/nullable", "nullable", "is not JSON Schema")
	}
	if ref, ok := s["$ref"].(string); ok {
		c.ref(s, ref, ptr)
	}
}

func (c *checker) ref(s map[string]any, ref, ptr string) {
	if c.refs == nil {
		c.refs = map[string]string{}
	}
	if strings.HasPrefix(ref, "#") && (len(ref) == 1 || ref[1] == '/') {
		if !c.exists(ref) {
			c.add(ptr+"/$ref", "$ref", "leads nowhere")
		}
		c.refs[ptr] = ref[1:]
	} else if c.rules.strict {
		c.add(ptr+"/$ref", "$ref", "must be # or #/$defs/…")
	}
	if !c.rules.strict {
		return
	}
	if len(s) > 1 {
		c.add(ptr, "$ref", "nothing may stand beside $ref")
	}
	if ref != "#" && (!strings.HasPrefix(ref, "#/$defs/") || strings.Count(ref, "/") != 2) {
		c.add(ptr+"/$ref", "$ref", "must be # or #/$defs/…")
	}
}

// exists follows a pointer through the document.
func (c *checker) exists(ref string) bool {
	_, frag, ok := join("", ref)
	if !ok {
		return false
	}
	at := c.doc
	for i, token := range strings.Split(frag, "/") {
		if i == 0 {
			continue
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[token]; !ok {
				return false
			}
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(v) {
				return false
			}
			at = v[n]
		default:
			return false
		}
	}
	return true
}

// strict is what the subsets for constrained decoding demand.
func (c *checker) strict(s map[string]any, ptr string, level int) {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(c.rules.keywords, k) {
			c.add(ptr+"/"+escapeToken(k), "keyword", k+" is not in the subset")
		}
	}
	if f, ok := s["format"].(string); ok && !slices.Contains(c.rules.formats, f) {
		c.add(ptr+"/format", "format", strconv.Quote(f)+" is not in the subset")
	}
	if p, ok := s["pattern"].(string); ok {
		for _, bad := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
			if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(p, `\\`, ""), `\(`, ""), bad) {
				c.add(ptr+"/pattern", "pattern", "must not look around")
			}
		}
	}
	if n, ok := s["minItems"].(json.Number); ok && c.rules.smallMin && n != "0" && n != "1" {
		c.add(ptr+"/minItems", "minItems", "must be 0 or 1")
	}
	types := typesOf(s)
	_, union := s["anyOf"]
	_, ref := s["$ref"]
	_, all := s["allOf"]
	if len(types) == 0 && !union && !ref && !all {
		c.add(ptr, "typed", "must have a type")
	}
	if union || len(types) > 1 {
		c.sum("unions", 1)
	}
	if list, ok := s["enum"].([]any); ok {
		c.sum("enum values", len(list))
	}
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count["levels"] = max(c.count["levels"], level)
	if slices.Contains(types, "object") {
		c.object(s, ptr)
	}
}

func (c *checker) object(s map[string]any, ptr string) {
	if s["additionalProperties"] != false {
		c.add(ptr, "closed", "additionalProperties must be false")
	}
	props, ok := s["properties"].(map[string]any)
	if !ok {
		c.add(ptr, "properties", "an object must have properties")
	}
	required, _ := namesOf(s["required"])
	for _, name := range required {
		if _, ok := props[name]; !ok {
			c.add(ptr+"/required", "required", strconv.Quote(name)+" is no property")
		}
	}
	c.sum("properties", len(props))
	c.sum("optional", len(props)-len(required))
	demanded := nameSet(required)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		c.sum("names", len(name))
		if c.rules.all && !demanded[name] {
			c.add(ptr+"/required", "required", strconv.Quote(name)+" must be required")
		}
	}
}

// recursion finds a schema that contains itself: a target below which some
// reference leads back to it.
func (c *checker) recursion() {
	if !c.rules.acyclic {
		return
	}
	places := slices.Sorted(maps.Keys(c.refs))
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(target string) bool
	visit = func(target string) bool {
		state[target] = open
		for _, place := range places {
			if place != target && !strings.HasPrefix(place, target+"/") {
				continue
			}
			next := c.refs[place]
			if state[next] == open || state[next] == 0 && visit(next) {
				return true
			}
		}
		state[target] = done
		return false
	}
	if visit("") {
		c.add("", "recursion", "the schema must not contain itself")
		return
	}
	for _, place := range places {
		if t := c.refs[place]; state[t] == 0 && visit(t) {
			c.add(place, "recursion", "the schema must not contain itself")
			return
		}
	}
}

func (c *checker) limits() {
	for _, what := range slices.Sorted(maps.Keys(c.rules.most)) {
		if have, most := c.count[what], c.rules.most[what]; have > most {
			c.add("", "limit", strconv.Itoa(have)+" "+what+", at most "+strconv.Itoa(most))
		}
	}
}

func typesOf(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, e := range t {
			str, ok := e.(string)
			if !ok {
				return nil
			}
			out = append(out, str)
		}
		return out
	default:
		return nil
	}
}

func namesOf(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok || seen[s] {
			return nil, false
		}
		seen[s] = true
		out = append(out, s)
	}
	return out, true
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
