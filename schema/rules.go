package schema

import "regexp"

// apiRules is what the wire reference says about one surface.
type apiRules struct {
	rootObject bool
	// rootKeys lists what the root may have; nil means whatever others may.
	rootKeys []string
	// keywords lists what is known; nil means everything but never.
	keywords []string
	never    []string
	// formats maps a format to the type it is for; nil means any format.
	formats map[string]string
	// patterns is "", "plain" or "grammar".
	patterns string
	// enum is "", "scalars" or "strings".
	enum  string
	names *regexp.Regexp

	items      bool // arrays must have items
	itemType   bool // and those a type
	strict     bool // constrained decoding: closed objects, types everywhere
	all        bool // every property required
	acyclic    bool
	smallMin   bool // minItems 0 or 1 only
	bareRefs   bool
	dollars    bool // except for keywords that begin with $
	noBooleans bool
	typed      bool
	oneType    bool
	upper      bool // types in capitals as well
	flagged    bool // OpenAPI: nullable, and keywords only of the declared type
	alone      bool // nothing beside anyOf
	known      bool // required names properties
	// optionalCycles: a schema may contain itself in optional properties only.
	optionalCycles bool
	most           map[string]int
}

// rulesOf is the wire reference by name of the surface.
func rulesOf(name string) apiRules {
	switch name {
	case "openai.tool", "openai.output", "xai.tool":
		r := apiRules{rootObject: true, items: true}
		if name == "xai.tool" {
			r.most = map[string]int{"bytes": 32 << 10}
		}
		return r
	case "anthropic.tool":
		return apiRules{rootObject: true, names: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)}
	case "openai.strict", "azure.strict":
		return openAIStrictRules(name == "azure.strict")
	case "anthropic.strict", "bedrock.strict":
		return apiRules{
			rootObject: true, items: true, strict: true, acyclic: true, smallMin: true, bareRefs: true, patterns: "plain",
			keywords: append(strictKeywords(), "format", "pattern", "minItems", "allOf"),
			formats: map[string]string{
				"date-time": "", "time": "", "date": "", "duration": "", "email": "", "hostname": "", "uri": "",
				"ipv4": "", "ipv6": "", "uuid": "",
			},
			names: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
			most:  map[string]int{"optional": 24, "unions": 16},
		}
	case "gemini.parameters", "gemini.response_schema":
		return geminiSchemaRules(name == "gemini.parameters")
	case "gemini.json_schema", "gemini.response_json_schema":
		r := apiRules{
			items: true, noBooleans: true, bareRefs: true, dollars: true, known: true, optionalCycles: true, enum: "scalars",
			keywords: []string{
				"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
				"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties",
				"required", "propertyOrdering",
			},
		}
		if name == "gemini.json_schema" {
			r.rootObject = true
			r.names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
		}
		return r
	case "ollama.tool":
		return apiRules{
			rootObject: true, items: true, noBooleans: true, typed: true,
			rootKeys: []string{"type", "$defs", "items", "required", "properties"},
			keywords: []string{"anyOf", "type", "items", "description", "enum", "properties", "required"},
		}
	case "ollama.format", "llamacpp.tool":
		return apiRules{rootObject: name == "llamacpp.tool", items: true, noBooleans: true, typed: true, patterns: "grammar"}
	case "bedrock.tool":
		return apiRules{rootObject: true, items: true, names: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)}
	case "bedrock.nova":
		return apiRules{
			rootObject: true, items: true, names: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
			rootKeys: []string{"type", "properties", "required"}, never: []string{"$ref", "$defs", "definitions"},
		}
	case "moonshot.tool":
		return apiRules{
			rootObject: true, items: true, noBooleans: true, bareRefs: true,
			never: []string{"allOf", "oneOf", "prefixItems", "unevaluatedItems", "definitions", "not", "if", "then", "else"},
		}
	case "fireworks.tool":
		return apiRules{rootObject: true, items: true, never: []string{"definitions"}}
	case "compat.tool":
		return apiRules{
			rootObject: true, items: true, noBooleans: true, oneType: true, known: true, patterns: "plain",
			never: []string{
				"$ref", "$defs", "definitions", "$schema", "$id", "allOf", "oneOf", "prefixItems", "not", "if", "then",
				"else", "dependentSchemas", "patternProperties", "const", "nullable",
			},
		}
	default:
		return apiRules{}
	}
}

func strictKeywords() []string {
	return []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
		"required", "title", "description",
	}
}

func openAIStrictRules(azure bool) apiRules {
	r := apiRules{
		rootObject: true, items: true, strict: true, all: true, bareRefs: true, patterns: "plain",
		keywords: strictKeywords(),
		formats: map[string]string{
			"date-time": "", "time": "", "date": "", "duration": "", "email": "", "hostname": "", "ipv4": "", "ipv6": "", "uuid": "",
		},
		most: map[string]int{"properties": 5000, "levels": 10, "names": 120_000, "enum values": 1000},
	}
	if azure {
		r.most["properties"], r.most["levels"] = 100, 5
		return r
	}
	r.keywords = append(r.keywords, "format", "pattern", "minItems", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "maxItems")
	return r
}

// geminiSchemaRules is the Schema object of Gemini's API, in a function's
// parameters or in a response schema.
func geminiSchemaRules(function bool) apiRules {
	r := apiRules{
		items: true, itemType: true, noBooleans: true, oneType: true, upper: true, flagged: true, alone: true, known: true,
		enum: "strings",
		keywords: []string{
			"type", "format", "title", "description", "nullable", "default", "example", "enum", "items", "minItems",
			"maxItems", "properties", "propertyOrdering", "required", "minProperties", "maxProperties", "minLength",
			"maxLength", "pattern", "minimum", "maximum", "anyOf",
		},
		formats: map[string]string{
			"enum": "string", "date-time": "string", "float": "number", "double": "number", "int32": "integer", "int64": "integer",
		},
	}
	if function {
		r.rootObject = true
		r.names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	}
	return r
}
