package strictupstream

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schemaRules are the rules of a vendor for JSON Schemas in a request.
type schemaRules struct {
	// forbidden are keywords that are refused.
	forbidden []string
	// formats of strings; nil allows all.
	formats []string
	// closed requires additionalProperties:false on every object. complete requires every
	// property to be in required.
	closed, complete bool
	// items requires items in every array.
	items bool
	// oneItems refuses a list of schemas as items.
	oneItems bool
	// refSiblings lists the keywords that are allowed next to $ref; nil allows all.
	refSiblings []string
	// simplePatterns refuses look-around and back references.
	simplePatterns bool
	// gemini applies the Gemini rules for parameters: one type, enums of non-empty strings,
	// and required properties that exist.
	gemini bool
}

var strictFormats = strings.Fields("date-time time date duration email hostname ipv4 ipv6 uuid")

var (
	// openAISchema applies to tools that are not strict.
	openAISchema = &schemaRules{items: true}
	openAIStrict = &schemaRules{
		forbidden: strings.Fields("allOf oneOf not if then else dependentRequired dependentSchemas patternProperties prefixItems"),
		formats:   strictFormats, closed: true, complete: true, items: true, refSiblings: []string{}, simplePatterns: true,
	}
	anthropicStrict = &schemaRules{
		forbidden: strings.Fields("oneOf not minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems contains"),
		formats:   append([]string{"uri"}, strictFormats...), closed: true, simplePatterns: true,
	}
	// moonshotSchema applies to the tools of Kimi models. It has no tuples (quirk A15).
	moonshotSchema = &schemaRules{forbidden: strings.Fields("prefixItems unevaluatedItems"), refSiblings: []string{}, oneItems: true}
	// geminiJSONSchema applies to parametersJsonSchema and responseJsonSchema.
	geminiJSONSchema = &schemaRules{refSiblings: []string{"description", "default"}}
	geminiTypes      = &schemaRules{items: true, gemini: true}
)

// check returns the reason why a vendor refuses a schema, or "".
func (r *schemaRules) check(schema map[string]any, at string) string {
	for _, key := range r.forbidden {
		if set(schema, key) {
			return fmt.Sprintf("In context=%s, '%s' is not permitted.", at, key)
		}
	}
	if format := str(schema, "format"); r.formats != nil && format != "" && !slices.Contains(r.formats, format) {
		return fmt.Sprintf("In context=%s, '%s' is not a valid format.", at, format)
	}
	if why := r.checkRef(schema, at); why != "" {
		return why
	}
	if pattern := str(schema, "pattern"); r.simplePatterns && complexPattern.MatchString(pattern) {
		return fmt.Sprintf("In context=%s, the pattern '%s' uses look-around or back references, which are not supported.", at, pattern)
	}
	if why := r.checkType(schema, at); why != "" {
		return why
	}
	properties := obj(schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if why := r.check(obj(properties, name), at+".properties."+name); why != "" {
			return why
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner := obj(schema, key); len(inner) > 0 {
			if why := r.check(inner, at+"."+key); why != "" {
				return why
			}
		}
	}
	for _, key := range []string{"anyOf", "allOf", "oneOf"} {
		for i, inner := range objects(schema, key) {
			if why := r.check(inner, fmt.Sprintf("%s.%s.%d", at, key, i)); why != "" {
				return why
			}
		}
	}
	for _, key := range []string{"$defs", "definitions"} {
		definitions := obj(schema, key)
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			if why := r.check(obj(definitions, name), at+"."+key+"."+name); why != "" {
				return why
			}
		}
	}
	return ""
}

// complexPattern matches look-around and back references in a pattern.
var complexPattern = regexp.MustCompile(`\(\?<?[=!]|\\[1-9]`)

// checkRef applies the rules for the siblings of $ref (quirk A4).
func (r *schemaRules) checkRef(schema map[string]any, at string) string {
	if !set(schema, "$ref") || r.refSiblings == nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if key != "$ref" && !strings.HasPrefix(key, "$def") && !slices.Contains(r.refSiblings, key) {
			return fmt.Sprintf("In context=%s, $ref cannot have keywords {'%s'}.", at, key)
		}
	}
	return ""
}

// checkType applies the rules for objects and arrays.
func (r *schemaRules) checkType(schema map[string]any, at string) string {
	types, isList := schema["type"].([]any)
	if !isList {
		types = []any{schema["type"]}
	}
	isType := func(name string) bool {
		return slices.ContainsFunc(types, func(t any) bool { s, _ := t.(string); return strings.EqualFold(s, name) })
	}
	properties := obj(schema, "properties")
	switch {
	case r.items && isType("array") && !set(schema, "items") && !set(schema, "prefixItems"):
		return fmt.Sprintf("In context=%s, array schema missing items.", at)
	case r.oneItems && list(schema, "items") != nil:
		return fmt.Sprintf("At path '%s.items': items must be an object", at)
	case r.closed && (isType("object") || set(schema, "properties")) && schema["additionalProperties"] != false:
		return fmt.Sprintf("In context=%s, 'additionalProperties' is required to be supplied and to be false.", at)
	}
	if r.complete && isType("object") {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if !slices.Contains(list(schema, "required"), any(name)) {
				return fmt.Sprintf("In context=%s, 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", at, name)
			}
		}
	}
	if !r.gemini {
		return ""
	}
	if isList {
		return fmt.Sprintf("%s.type: Proto field is not repeating, cannot start list.", at)
	}
	for _, key := range []string{"properties", "required"} {
		if set(schema, key) && !isType("object") && !set(schema, "anyOf") { // quirk A19
			return fmt.Sprintf("%s.%s: only allowed for OBJECT type", at, key)
		}
	}
	for _, e := range list(schema, "enum") {
		if s, ok := e.(string); !ok || s == "" {
			return fmt.Sprintf("%s.enum: cannot be empty and must be strings", at)
		}
	}
	for _, name := range list(schema, "required") {
		if s, _ := name.(string); !set(properties, s) {
			return fmt.Sprintf("%s.required: property is not defined: %v", at, name)
		}
	}
	return ""
}

// openAISchemas checks the schemas of tools and of the response. Each function has a name,
// parameters and strict; format has a schema and strict.
func (j *judge) openAISchemas(functions []map[string]any, format map[string]any) *Refusal {
	for _, f := range functions {
		parameters, has := f["parameters"].(map[string]any)
		if !has {
			continue
		}
		if typ := str(parameters, "type"); typ != "object" {
			return j.bad("invalid_function_parameters", "", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", str(f, "name"), typ)
		}
		rules := openAISchema
		if f["strict"] == true {
			rules = openAIStrict
		}
		if why := rules.check(parameters, "()"); why != "" {
			return j.bad("invalid_function_parameters", "", "Invalid schema for function '%s': %s", str(f, "name"), why)
		}
	}
	if schema := obj(format, "schema"); schema != nil && format["strict"] == true {
		if str(schema, "type") != "object" {
			return j.bad("", "response_format", "Invalid schema for response_format '%s': schema must be a JSON Schema of 'type: \"object\"'.", str(format, "name"))
		}
		if why := openAIStrict.check(schema, "()"); why != "" {
			return j.bad("", "response_format", "Invalid schema for response_format '%s': %s", str(format, "name"), why)
		}
	}
	return nil
}

// anthropicSchemas checks the schemas of tools and of the response.
func (j *judge) anthropicSchemas(req map[string]any) *Refusal {
	strict, optionals, unionTypes := 0, 0, 0
	for i, t := range objects(req, "tools") {
		schema := obj(t, "input_schema")
		if schema == nil {
			continue
		}
		if str(schema, "type") != "object" {
			return j.bad("", "", "tools.%d.custom.input_schema.type: Field required", i)
		}
		if t["strict"] != true {
			continue
		}
		strict++
		optional, unions := grammarSize(schema)
		optionals, unionTypes = optionals+optional, unionTypes+unions
		if why := anthropicStrict.check(schema, "()"); why != "" {
			return j.bad("", "", "tools.%d.custom: %s", i, why)
		}
	}
	if strict > 20 {
		return j.bad("", "", "Too many strict tools: %d", strict)
	}
	if schema := obj(obj(obj(req, "output_config"), "format"), "schema"); schema != nil {
		if why := anthropicStrict.check(schema, "()"); why != "" {
			return j.bad("", "", "output_config.format.schema: %s", why)
		}
		optional, unions := grammarSize(schema)
		optionals, unionTypes = optionals+optional, unionTypes+unions
	}
	switch {
	case optionals > 24:
		return j.bad("", "", "Schemas contains too many optional parameters (%d), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24).", optionals)
	case unionTypes > 16:
		return j.bad("", "", "Schemas contains too many parameters with union types (%d parameters with type arrays or anyOf). Reduce the number of nullable or union-typed parameters (limit: 16).", unionTypes)
	}
	return nil
}

// grammarSize counts the optional properties of a schema, and its nodes with a union type.
// Anthropic bounds both for all strict schemas of a request together.
func grammarSize(v any) (optional, unions int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			o, u := grammarSize(e)
			optional, unions = optional+o, unions+u
		}
	case map[string]any:
		if types, ok := v["type"].([]any); set(v, "anyOf") || ok && len(types) > 1 {
			unions++
		}
		for name := range obj(v, "properties") {
			if !slices.Contains(list(v, "required"), any(name)) {
				optional++
			}
		}
		for _, key := range []string{"items", "anyOf", "allOf"} {
			o, u := grammarSize(v[key])
			optional, unions = optional+o, unions+u
		}
		for _, key := range []string{"properties", "$defs", "definitions"} {
			for _, inner := range obj(v, key) {
				o, u := grammarSize(inner)
				optional, unions = optional+o, unions+u
			}
		}
	}
	return optional, unions
}

// geminiSchemas checks schemas in the Gemini schema format.
func (j *judge) geminiSchemas(req, config map[string]any) *Refusal {
	declared := 0
	for _, t := range objects(req, "tools") {
		for i, f := range objects(t, "functionDeclarations") {
			declared++
			if set(f, "parameters") && set(f, "parametersJsonSchema") {
				return j.bad("", "", "function_declarations[%d]: parameters and parameters_json_schema are mutually exclusive", i)
			}
			if why := geminiTypes.check(obj(f, "parameters"), "parameters"); why != "" {
				return j.bad("", "", "GenerateContentRequest.tools[0].function_declarations[%d].%s", i, why)
			}
			if why := geminiJSONSchema.check(obj(f, "parametersJsonSchema"), "parameters_json_schema"); why != "" {
				return j.bad("", "", "GenerateContentRequest.tools[0].function_declarations[%d].%s", i, why)
			}
		}
	}
	if declared > 512 {
		return j.bad("", "", "at most 512 function declarations are supported, got %d", declared)
	}
	if set(config, "responseSchema") && set(config, "responseJsonSchema") {
		return j.bad("", "", "response_schema and response_json_schema are mutually exclusive")
	}
	if why := geminiTypes.check(obj(config, "responseSchema"), "response_schema"); why != "" {
		return j.bad("", "", "GenerateContentRequest.generation_config.%s", why)
	}
	if why := geminiJSONSchema.check(obj(config, "responseJsonSchema"), "response_json_schema"); why != "" {
		return j.bad("", "", "GenerateContentRequest.generation_config.%s", why)
	}
	return nil
}
