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
	// Pointer is the JSON pointer of the position.
	Pointer string
	// Rule is the broken rule: a keyword, or a rule of a target.
	Rule string
	// Detail says what was expected. It is written so that a model can act on it.
	Detail string
}

func (v Violation) String() string {
	at := cut(v.Pointer, 120)
	if at == "" {
		at = "(root)"
	}
	return at + ": " + v.Detail
}

// Check lists the rules of p that src breaks, in document order of sorted names. It returns nil
// if p's API accepts src. Its rules come from the API reference and it shares no code with
// [Lower], so that each can test the other.
func Check(src json.RawMessage, p Profile) []Violation {
	c := checker{rules: p.reference}
	if c.rules == nil {
		c.rules = &apiRules{}
	}
	doc, err := decode(src, maxSchemaDepth, false)
	if err != nil {
		c.add("", "json", err.Error())
		return c.found
	}
	c.doc = doc
	root, ok := doc.(map[string]any)
	if !ok {
		c.add("", "root", "must be an object")
		return c.found
	}
	c.root(root)
	c.schema(root, place{})
	c.recursion()
	c.requiredCycles()
	c.limits()
	if most := c.rules.most["bytes"]; most > 0 && len(src) > most {
		c.add("", "limit", strconv.Itoa(len(src))+" bytes, at most "+strconv.Itoa(most))
	}
	return c.found
}

type checker struct {
	rules *apiRules
	doc   any
	found []Violation
	// refs maps the pointer of each schema with a reference to its target.
	refs map[string]string
	// owners maps the pointer of each schema with a reference to the nearest property or
	// definition around it.
	owners map[string]string
	// required lists the pointers of required properties.
	required []string
	// count holds the counts that the target limits.
	count map[string]int
}

// place is the position of a schema.
type place struct {
	ptr string
	// level counts the properties on the path.
	level int
	// owner is the pointer of the nearest property or definition.
	owner string
}

func (p place) at(key string) place {
	p.ptr += "/" + escapeToken(key)
	return p
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
	if c.rules.rootKeys != nil {
		for _, k := range slices.Sorted(maps.Keys(s)) {
			if !slices.Contains(c.rules.rootKeys, k) {
				c.add("/"+escapeToken(k), "root", "the root must not have "+k)
			}
		}
	}
	if !c.rules.rootObject {
		return
	}
	if t, _ := s["type"].(string); t != "object" && !(c.rules.upper && t == "OBJECT") {
		c.add("", "root", `the root's type must be "object"`)
	}
	if _, ok := s["properties"].(map[string]any); !ok && !c.rules.flagged {
		c.add("", "root", "the root must have properties")
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "enum", "not", "const", "$ref"} {
		if _, ok := s[k]; ok {
			c.add("", "root", "the root must not have "+k)
		}
	}
}

func (c *checker) schema(v any, p place) {
	if b, ok := v.(bool); ok {
		if c.rules.strict || c.rules.noBooleans {
			c.add(p.ptr, "typed", "a schema must not be "+strconv.FormatBool(b))
		}
		return
	}
	s, ok := v.(map[string]any)
	if !ok {
		c.add(p.ptr, "schema", "must be an object or a boolean")
		return
	}
	c.vocabulary(s, p)
	if c.rules.strict {
		c.strict(s, p)
	}
	c.general(s, p)
	c.shape(s, p)
	for _, key := range slices.Sorted(maps.Keys(s)) {
		c.checkSchemas(s, key, p)
	}
}

// checkSchemas checks the schemas in a keyword.
func (c *checker) checkSchemas(s map[string]any, key string, p place) {
	val, at := s[key], p.at(key)
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		m, ok := val.(map[string]any)
		if !ok {
			c.add(at.ptr, key, "must be an object of schemas")
			return
		}
		needed := map[string]bool{}
		if key == "properties" {
			at.level++
			names, _ := namesOf(s["required"])
			needed = nameSet(names)
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			entry := at.at(name)
			entry.owner = entry.ptr
			if key == "properties" && c.rules.names != nil && !c.rules.names.MatchString(name) {
				c.add(entry.ptr, "name", "must match "+c.rules.names.String())
			}
			if needed[name] {
				c.required = append(c.required, entry.ptr)
			}
			c.schema(m[name], entry)
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		list, ok := val.([]any)
		if !ok || len(list) == 0 {
			c.add(at.ptr, key, "must be a non-empty list of schemas")
			return
		}
		for i, e := range list {
			c.schema(e, at.at(strconv.Itoa(i)))
		}
	case "items", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		c.schema(val, at)
	case "additionalProperties":
		_, flag := val.(bool)
		if !c.rules.strict && !(flag && c.rules.noBooleans) {
			c.schema(val, at)
		}
	}
}

// vocabulary checks keywords, formats and patterns.
func (c *checker) vocabulary(s map[string]any, p place) {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		known := c.rules.keywords == nil || slices.Contains(c.rules.keywords, k) || p.ptr == "" && slices.Contains(c.rules.rootKeys, k)
		if !known || slices.Contains(c.rules.never, k) {
			c.add(p.at(k).ptr, "keyword", k+" is not in the subset")
		}
	}
	if f, ok := s["format"].(string); ok && c.rules.formats != nil {
		if about, known := c.rules.formats[f]; !known || about != "" && !slices.Equal(c.types(s), []string{about}) {
			c.add(p.ptr+"/format", "format", strconv.Quote(f)+" is not in the subset")
		}
	}
	if pat, ok := s["pattern"].(string); ok {
		c.pattern(pat, p)
	}
}

func (c *checker) pattern(pat string, p place) {
	plain := strings.ReplaceAll(strings.ReplaceAll(pat, `\\`, ""), `\(`, "")
	var never []string
	switch c.rules.patterns {
	case "plain":
		never = []string{"(?=", "(?!", "(?<=", "(?<!"}
	case "grammar":
		never = []string{"(?"}
		if !strings.HasPrefix(pat, "^") || !strings.HasSuffix(pat, "$") {
			c.add(p.ptr+"/pattern", "pattern", "must be anchored at both ends")
		}
	}
	for _, bad := range never {
		if strings.Contains(plain, bad) {
			c.add(p.ptr+"/pattern", "pattern", "must not look around")
		}
	}
}

// shape checks what individual targets require of the form of a schema.
func (c *checker) shape(s map[string]any, p place) {
	types := c.types(s)
	_, list := s["type"].([]any)
	_, union := s["anyOf"]
	combined := union
	for _, k := range []string{"$ref", "oneOf", "allOf", "$dynamicRef", "$recursiveRef"} {
		_, has := s[k]
		combined = combined || has
	}
	if list && c.rules.oneType {
		c.add(p.ptr+"/type", "type", "must be one type")
	}
	if c.rules.typed && len(types) == 0 && !combined {
		c.add(p.ptr, "typed", "must have a type")
	}
	if c.rules.flagged && slices.Contains(types, "null") {
		c.add(p.ptr+"/type", "type", "write null as nullable: true")
	}
	if union && c.rules.alone && len(s) > 1 {
		c.add(p.ptr, "anyOf", "anyOf must be the only keyword")
	}
	if c.rules.itemType && slices.Contains(types, "array") {
		if items, ok := s["items"].(map[string]any); ok && len(c.types(items)) == 0 && items["anyOf"] == nil {
			c.add(p.ptr+"/items", "typed", "must have a type")
		}
	}
	c.propertyNames(s, p, types)
	c.values(s, p, types)
}

// propertyNames checks the declared and required names of an object.
func (c *checker) propertyNames(s map[string]any, p place, types []string) {
	if !c.rules.known {
		return
	}
	props, _ := s["properties"].(map[string]any)
	required, _ := namesOf(s["required"])
	for _, name := range required {
		if _, ok := props[name]; !ok && slices.Contains(types, "object") {
			c.add(p.ptr+"/required", "required", strconv.Quote(name)+" is not a property")
		}
	}
	if c.rules.flagged {
		for _, k := range []string{"properties", "required"} {
			if _, ok := s[k]; ok && !slices.Contains(types, "object") {
				c.add(p.ptr+"/"+k, k, "belongs to an object")
			}
		}
		if _, ok := s["properties"]; ok && len(props) == 0 {
			c.add(p.ptr+"/properties", "properties", "must not be empty")
		}
	}
}

// values checks the values of an enum.
func (c *checker) values(s map[string]any, p place, types []string) {
	list, ok := s["enum"].([]any)
	if !ok || c.rules.enum == "" {
		return
	}
	for i, v := range list {
		text, str := v.(string)
		_, num := v.(json.Number)
		if c.rules.enum == "strings" && (!str || text == "") || !str && !num {
			c.add(p.ptr+"/enum/"+strconv.Itoa(i), "enum", "a value that this target cannot list")
		}
	}
	if c.rules.enum == "strings" && !slices.Equal(types, []string{"string"}) {
		c.add(p.ptr+"/enum", "enum", "is allowed only for strings")
	}
}

// general checks the rules that every API has.
func (c *checker) general(s map[string]any, p place) {
	ptr := p.ptr
	types := c.types(s)
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
			c.add(ptr+"/enum", "enum", "must be a non-empty list of values")
		}
	}
	if v, ok := s["required"]; ok {
		if _, ok := namesOf(v); !ok {
			c.add(ptr+"/required", "required", "must be a list of names, each once")
		}
	}
	if v, ok := s["nullable"]; ok {
		if _, flag := v.(bool); !flag || !c.rules.flagged {
			c.add(ptr+"/nullable", "nullable", "is not JSON Schema")
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		c.ref(s, ref, p)
	}
}

func (c *checker) ref(s map[string]any, ref string, p place) {
	if c.refs == nil {
		c.refs, c.owners = map[string]string{}, map[string]string{}
	}
	ptr := p.ptr
	if strings.HasPrefix(ref, "#") && (len(ref) == 1 || ref[1] == '/') {
		if !c.exists(ref) {
			c.add(ptr+"/$ref", "$ref", "leads nowhere")
		}
		c.refs[ptr], c.owners[ptr] = ref[1:], p.owner
		if _, target, ok := join("", ref); ok {
			c.refs[ptr] = target
		}
	} else if c.rules.strict {
		c.add(ptr+"/$ref", "$ref", "must be # or #/$defs/…")
	}
	if c.rules.bareRefs {
		for _, k := range slices.Sorted(maps.Keys(s)) {
			if k != "$ref" && !(c.rules.dollars && strings.HasPrefix(k, "$")) {
				c.add(ptr, "$ref", "$ref must be the only keyword")
				break
			}
		}
	}
	if c.rules.strict && ref != "#" && (!strings.HasPrefix(ref, "#/$defs/") || strings.Count(ref, "/") != 2) {
		c.add(ptr+"/$ref", "$ref", "must be # or #/$defs/…")
	}
}

// exists reports whether the document has a value at a reference.
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

// strict checks the requirements of subsets for constrained decoding.
func (c *checker) strict(s map[string]any, p place) {
	ptr := p.ptr
	if n, ok := s["minItems"].(json.Number); ok && c.rules.smallMin && n != "0" && n != "1" {
		c.add(ptr+"/minItems", "minItems", "must be 0 or 1")
	}
	types := c.types(s)
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
	c.count["levels"] = max(c.count["levels"], p.level)
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
			c.add(ptr+"/required", "required", strconv.Quote(name)+" is not a property")
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

// recursion reports a schema that contains itself: a schema from which references lead back to
// it.
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

// maxCyclePairs limits the references that circles checks, because it compares all pairs.
const maxCyclePairs = 400

// requiredCycles reports a required property in which a schema contains itself.
func (c *checker) requiredCycles() {
	if !c.rules.optionalCycles {
		return
	}
	places := slices.Sorted(maps.Keys(c.refs))
	if len(places) > maxCyclePairs {
		return
	}
	circular := map[string]bool{}
	for _, p := range places {
		circular[p] = c.reaches(places, c.refs[p], p)
	}
	for _, start := range append([]string{""}, c.required...) {
		seen := map[string]bool{}
		queue := []string{start}
		for len(queue) > 0 {
			owner := queue[0]
			queue = queue[1:]
			if seen[owner] {
				continue
			}
			seen[owner] = true
			for _, p := range places {
				switch {
				case c.owners[p] != owner:
				case circular[p]:
					c.add(p, "recursion", "only an optional property may contain the schema around it")
				default:
					queue = append(queue, c.refs[p])
				}
			}
		}
	}
}

// reaches reports whether references lead from one position to another.
func (c *checker) reaches(places []string, from, to string) bool {
	seen := map[string]bool{}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		if to == at || strings.HasPrefix(to, at+"/") {
			return true
		}
		for _, p := range places {
			if p == at || strings.HasPrefix(p, at+"/") {
				queue = append(queue, c.refs[p])
			}
		}
	}
	return false
}

func (c *checker) limits() {
	for _, what := range slices.Sorted(maps.Keys(c.rules.most)) {
		if have, most := c.count[what], c.rules.most[what]; have > most {
			c.add("", "limit", strconv.Itoa(have)+" "+what+", at most "+strconv.Itoa(most))
		}
	}
}

// types returns the types of a schema, in lower case if the target accepts both.
func (c *checker) types(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		if c.rules.upper && t == strings.ToUpper(t) {
			t = strings.ToLower(t)
		}
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
