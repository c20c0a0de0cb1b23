package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/schema"
)

// Limits of a schema.
const (
	maxSchemaDepth = 64
	maxSubschemas  = 10_000
)

// noParameters is the schema of a tool that declares none.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// input is the schema of arguments.
type input struct {
	// params is the schema for models, and original the one of the server if it can be used
	// to validate arguments.
	params, original json.RawMessage
	wrapped          bool
	// tree is the decoded original; nil if there is none.
	tree any
}

// readInput returns the schema of the arguments, repaired if necessary (quirk H1).
func readInput(raw json.RawMessage, rep *reporter) (input, *unusable) {
	const at = "inputSchema"
	switch kindOf(raw) {
	case 0:
		rep.addf(Repaired, at, "the schema is missing; models see an object without properties")
		return input{params: noParameters}, nil
	case 'n', 't':
		rep.addf(Repaired, at, "the schema is %s; models see an object without properties", raw)
		return input{params: noParameters}, nil
	case '{':
	default:
		return input{}, unusablef(at, "want an object, have %s", nounOf(raw))
	}
	tree, err := decodeTree(raw)
	if err != nil {
		return input{}, unusablef(at, "%v", err)
	}
	s, err := examine(tree)
	if err != nil {
		return input{}, unusablef(at, "%v", err)
	}
	in := input{tree: tree}
	fixed := s.fixRoot(raw, at, rep)
	if !s.canBeObject("", 0) {
		if in.params, in.wrapped, err = schema.Wrap(fixed); err != nil || !in.wrapped {
			return input{}, unusablef(at, "the root of the schema is not an object, and it cannot be wrapped")
		}
		if _, err := schema.Compile(raw); err != nil {
			return input{}, unusablef(at, "%s", clip(err.Error()))
		}
		rep.addf(Repaired, at, "the schema does not describe an object; models pass the value in the property \"value\"")
		in.original = raw
		return in, nil
	}
	_, err = schema.Compile(fixed)
	if err != nil {
		if s.external {
			return input{}, unusablef(at, "%s", textkit.Visible(clip(err.Error())))
		}
		if fixed, err = repair(fixed, at, rep); err != nil {
			return input{}, unusablef(at, "%s", textkit.Visible(clip(err.Error())))
		}
	}
	in.params = fixed
	if bytes.Equal(fixed, raw) {
		in.params, in.original = raw, raw
	} else if _, err := schema.Compile(raw); err == nil {
		in.original = raw
	}
	return in, nil
}

// readOutput returns the schema of structured results, or nil if it cannot be used.
func readOutput(raw json.RawMessage, rep *reporter) json.RawMessage {
	const at = "outputSchema"
	switch kindOf(raw) {
	case 0, 'n':
		return nil
	case '{', 't', 'f':
	default:
		rep.addf(Dropped, at, "want an object, have %s", nounOf(raw))
		return nil
	}
	tree, err := decodeTree(raw)
	if err == nil {
		_, err = examine(tree)
	}
	if err == nil {
		_, err = schema.Compile(raw)
	}
	if err != nil {
		rep.addf(Dropped, at, "%s", textkit.Visible(clip(err.Error())))
		return nil
	}
	return raw
}

// repair returns a valid form of a schema that cannot be compiled.
func repair(src json.RawMessage, at string, rep *reporter) (json.RawMessage, error) {
	low, err := schema.Lower(src, schema.Profile{})
	if err != nil {
		return nil, err
	}
	if _, err := schema.Compile(low.Schema); err != nil {
		return nil, err
	}
	const most = 5
	for i, loss := range low.Report.Losses {
		if i == most {
			rep.addf(Repaired, at, "%s", textkit.Count(len(low.Report.Losses)-most, "more repair"))
			break
		}
		rep.addf(Repaired, at, "%s: %s", textkit.Visible(clip(loss.Path)), textkit.Visible(clip(loss.Detail)))
	}
	return low.Schema, nil
}

func decodeTree(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// drafts are the dialects of JSON Schema that can be validated.
var drafts = []string{
	"json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema",
	"json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema",
	"json-schema.org/schema",
}

func knownDraft(uri string) bool {
	uri = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(uri, "https://"), "http://"), "#")
	return slices.Contains(drafts, strings.TrimSuffix(uri, "/"))
}

// Keywords by what they hold.
var (
	oneSchema  = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	schemaList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemaMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
	// inPlace are the keywords whose schemas apply to the same value.
	inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)

// examined is a schema whose limits and references were checked.
type examined struct {
	root  any
	nodes map[string]map[string]any // by JSON pointer
	order []string                  // the pointers in the order of discovery
	// anchors maps names to pointers.
	anchors map[string]string
	// external reports a reference that does not begin with #.
	external, hasID bool
}

// examine checks the dialect, the limits and the references of a schema.
func examine(root any) (*examined, error) {
	s := &examined{root: root, nodes: map[string]map[string]any{}, anchors: map[string]string{}}
	if object, ok := root.(map[string]any); ok {
		if uri, ok := object["$schema"].(string); ok && !knownDraft(uri) {
			return nil, fmt.Errorf("unknown $schema %q: known are the drafts 2020-12, 2019-09, 07, 06 and 04", textkit.Visible(clip(uri)))
		}
	}
	if err := s.walk("", root, 1); err != nil {
		return nil, err
	}
	if err := s.followRefs(); err != nil {
		return nil, err
	}
	return s, s.findCycle()
}

func (s *examined) walk(at string, v any, depth int) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if depth > maxSchemaDepth {
		return fmt.Errorf("the schema is nested more than %d deep", maxSchemaDepth)
	}
	if s.nodes[at] != nil {
		return nil
	}
	if len(s.nodes) >= maxSubschemas {
		return fmt.Errorf("the schema has more than %d subschemas", maxSubschemas)
	}
	s.nodes[at] = object
	s.order = append(s.order, at)
	for _, k := range [...]string{"$anchor", "$dynamicAnchor"} {
		if name, ok := object[k].(string); ok {
			s.anchors[name] = at
		}
	}
	for _, k := range [...]string{"$id", "id"} {
		if id, ok := object[k].(string); ok {
			s.hasID = true
			if name, ok := strings.CutPrefix(id, "#"); ok {
				s.anchors[name] = at
			}
		}
	}
	var err error
	children(at, object, func(at string, v any, _ string) {
		if err == nil {
			err = s.walk(at, v, depth+1)
		}
	})
	return err
}

// children calls f for each subschema, in a fixed order, with its pointer and keyword.
func children(at string, object map[string]any, f func(at string, v any, keyword string)) {
	for _, k := range sortedKeys(object) {
		v := object[k]
		here := at + "/" + escapePointer(k)
		if list, ok := v.([]any); ok && slices.Contains(schemaList, k) {
			for i, e := range list {
				f(here+"/"+strconv.Itoa(i), e, k)
			}
		} else if slices.Contains(oneSchema, k) {
			f(here, v, k)
		}
		if m, ok := v.(map[string]any); ok && slices.Contains(schemaMap, k) {
			for _, name := range sortedKeys(m) {
				f(here+"/"+escapePointer(name), m[name], k)
			}
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

func unescapePointer(s string) string {
	if !strings.Contains(s, "~") {
		return s
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
}

// refsOf are the references of a schema.
func refsOf(object map[string]any) (refs []string) {
	for _, k := range [...]string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if text, ok := object[k].(string); ok {
			refs = append(refs, text)
		}
	}
	return refs
}

// followRefs checks that each reference leads to a place in the schema. Nothing is fetched.
func (s *examined) followRefs() error {
	for i := 0; i < len(s.order); i++ { // grows while references lead to other places
		at := s.order[i]
		for _, ref := range refsOf(s.nodes[at]) {
			if !strings.HasPrefix(ref, "#") {
				s.external = true
				if !s.hasID {
					return fmt.Errorf("%s refers to %q: references to other documents are not followed", orRoot(at), textkit.Visible(clip(ref)))
				}
				continue
			}
			target, v, ok := s.resolve(ref)
			if !ok {
				if s.hasID {
					s.external = true // relative to an $id: the validator decides
					continue
				}
				return fmt.Errorf("%s refers to %q, which does not exist", orRoot(at), textkit.Visible(clip(ref)))
			}
			if err := s.walk(target, v, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the root"
	}
	return textkit.Visible(clip(pointer))
}

// resolve returns the place that a reference beginning with # leads to.
func (s *examined) resolve(ref string) (pointer string, v any, ok bool) {
	fragment, err := url.PathUnescape(ref[1:])
	if err != nil {
		return "", nil, false
	}
	if fragment != "" && fragment[0] != '/' {
		at, found := s.anchors[fragment]
		return at, s.nodes[at], found
	}
	v = s.root
	if fragment == "" {
		return "", v, true
	}
	for _, token := range strings.Split(fragment[1:], "/") {
		token = unescapePointer(token)
		switch c := v.(type) {
		case map[string]any:
			if v, ok = c[token]; !ok {
				return "", nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return "", nil, false
			}
			v = c[i]
		default:
			return "", nil, false
		}
		pointer += "/" + escapePointer(token)
	}
	return pointer, v, true
}

// errCycle reports a reference that applies to the value that it started from, forever.
var errCycle = errors.New("leads back to itself through references, without a property in between")

// findCycle returns an error if a schema applies itself to the same value. Recursion through
// properties or items is fine.
func (s *examined) findCycle() error {
	const active, done = 1, 2
	state := map[string]int{}
	type frame struct {
		at   string
		next []string
	}
	for _, start := range s.order {
		if state[start] != 0 {
			continue
		}
		stack := []frame{{start, s.applied(start)}}
		state[start] = active
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.at] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.next[0]
			top.next = top.next[1:]
			switch state[next] {
			case active:
				return fmt.Errorf("%s %w", orRoot(next), errCycle)
			case 0:
				state[next] = active
				stack = append(stack, frame{next, s.applied(next)})
			}
		}
	}
	return nil
}

// applied returns the places of the schemas that apply to the same value.
func (s *examined) applied(at string) (out []string) {
	object := s.nodes[at]
	for _, ref := range refsOf(object) {
		if strings.HasPrefix(ref, "#") {
			if target, _, ok := s.resolve(ref); ok && s.nodes[target] != nil {
				out = append(out, target)
			}
		}
	}
	children(at, object, func(at string, _ any, keyword string) {
		if slices.Contains(inPlace, keyword) && s.nodes[at] != nil {
			out = append(out, at)
		}
	})
	return out
}

// otherTypes are the types of values that are not objects, in the words of several languages.
var otherTypes = []string{"string", "number", "integer", "boolean", "array", "null", "str", "int", "float", "double", "bool", "list", "tuple"}

// canBeObject reports whether the schema at a place accepts an object.
func (s *examined) canBeObject(at string, depth int) bool {
	object := s.nodes[at]
	if object == nil || depth > maxSchemaDepth {
		return true
	}
	other := func(name any) bool {
		text, ok := name.(string)
		return ok && slices.Contains(otherTypes, strings.ToLower(text))
	}
	switch t := object["type"].(type) {
	case string:
		return !other(t)
	case []any:
		if len(t) > 0 && !slices.ContainsFunc(t, func(v any) bool { return !other(v) }) {
			return false
		}
	}
	if c, ok := object["const"]; ok {
		_, ok = c.(map[string]any)
		return ok
	}
	if list, ok := object["enum"].([]any); ok && len(list) > 0 {
		return slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return ok })
	}
	for _, ref := range refsOf(object) {
		if strings.HasPrefix(ref, "#") {
			if target, _, ok := s.resolve(ref); ok && !s.canBeObject(target, depth+1) {
				return false
			}
		}
	}
	for _, k := range [...]string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[k].([]any)
		can := 0
		for i := range list {
			if s.canBeObject(at+"/"+k+"/"+strconv.Itoa(i), depth+1) {
				can++
			}
		}
		if len(list) > 0 && (can == 0 || k == "allOf" && can < len(list)) {
			return false
		}
	}
	has := func(k string) bool { _, ok := object[k]; return ok }
	if object["type"] == nil && (has("items") || has("prefixItems")) {
		return has("properties") || has("required") || has("additionalProperties")
	}
	return true
}

// fixRoot returns the schema with what every provider requires of the root, and with the same
// bytes otherwise.
func (s *examined) fixRoot(raw json.RawMessage, at string, rep *reporter) json.RawMessage {
	root, ok := s.root.(map[string]any)
	if !ok {
		return raw
	}
	for _, k := range [...]string{"type", "properties", "required", "$schema"} {
		if v, ok := root[k]; ok && v == nil {
			rep.addf(Repaired, at, "%s is null; removed", k)
			raw = jsonwire.Without(raw, k)
		}
	}
	switch p := root["properties"].(type) {
	case nil, map[string]any:
	case []any:
		if len(p) == 0 { // an empty map of PHP
			rep.addf(Repaired, at, "properties is an empty list; removed")
			raw = jsonwire.Without(raw, "properties")
		}
	}
	if !s.canBeObject("", 0) {
		return raw
	}
	switch t := root["type"].(type) {
	case string:
	case nil:
		rep.addf(Repaired, at, "the root has no type; it is now object")
		raw = jsonwire.With(raw, "type", []byte(`"object"`))
	case []any:
		rep.addf(Repaired, at, "the root has a list of %s; it is now object", textkit.Count(len(t), "type"))
		raw = jsonwire.With(raw, "type", []byte(`"object"`))
	}
	return raw
}

// plainSchema returns a schema whose titles and descriptions have no hidden characters.
func plainSchema(src json.RawMessage, at string, rep *reporter) (json.RawMessage, *unusable) {
	if len(src) == 0 || !mayHide(src) {
		return src, nil
	}
	c := cleaner{}
	r := jsonwire.NewReader(src)
	var w jsonwire.Writer
	c.write(r, &w, false)
	switch {
	case c.badName != "":
		return nil, unusablef(at, "the name of the property %q has hidden or control characters", textkit.Visible(clip(c.badName)))
	case !c.changed || r.Err() != nil:
		return src, nil
	}
	rep.addf(Lowered, at, "hidden characters are removed from descriptions")
	return w.Buf, nil
}

// mayHide reports whether a JSON text can contain characters beyond ASCII or escapes.
func mayHide(src json.RawMessage) bool {
	return bytes.IndexByte(src, '\\') >= 0 || slices.ContainsFunc(src, func(b byte) bool { return b >= 0x80 })
}

// cleaner writes a schema again without hidden characters in its titles and descriptions.
type cleaner struct {
	changed bool
	badName string
}

// write copies a value. named means that it is an object of schemas by name.
func (c *cleaner) write(r *jsonwire.Reader, w *jsonwire.Writer, named bool) {
	switch r.Kind() {
	case '{':
		w.BeginObject()
		for key := range r.Object() {
			name := string(key)
			w.QuotedKey(name)
			switch {
			case named:
				if textkit.CheckDescription(name) != nil {
					c.badName = name
				}
				c.write(r, w, false)
			case name == "default" || name == "const" || name == "enum" || name == "examples":
				w.Raw(r.Raw())
			case (name == "description" || name == "title") && r.Kind() == '"':
				text := r.String()
				clean := removeHidden(text)
				c.changed = c.changed || clean != text
				w.String(clean)
			default:
				c.write(r, w, slices.Contains(schemaMap, name))
			}
		}
		w.EndObject()
	case '[':
		w.BeginArray()
		for range r.Array() {
			c.write(r, w, false)
		}
		w.EndArray()
	default:
		w.Raw(r.Raw())
	}
}
