package schema

// catalogue lists every profile by its maker. A new target is a line here.
func catalogue() []func() Profile {
	return []func() Profile{
		OpenAITool, OpenAIOutput, OpenAIStrict,
		AnthropicTool, AnthropicStrict,
		GeminiParameters, GeminiJSONSchema, GeminiResponseSchema, GeminiResponseJSONSchema,
		OllamaTool, OllamaFormat,
		BedrockTool, BedrockStrict, BedrockNova,
		AzureStrict, XAITool, MoonshotTool, FireworksTool, LlamaCPPTool, CompatTool,
	}
}

// anyFormat lists formats that belong to no type in particular.
func anyFormat(names ...string) []formatRule {
	out := make([]formatRule, len(names))
	for i, name := range names {
		out[i].format = name
	}
	return out
}

func strictCore() keywordSet {
	return setOf(kwRef, kwDefs, kwAnyOf, kwProperties, kwAdditionalProperties, kwItems, kwType, kwEnum, kwConst,
		kwRequired, kwFormat, kwPattern, kwMinItems, kwTitle, kwDescription)
}

// OpenAITool is a function's parameters without strict, on Chat Completions
// and Responses. Nearly any JSON Schema is taken below the root.
func OpenAITool() Profile {
	return Profile{name: "openai.tool", rootObject: true, arrayItems: true}
}

// OpenAIOutput is a response schema without strict.
func OpenAIOutput() Profile {
	return Profile{name: "openai.output", answers: true, rootObject: true, arrayItems: true}
}

// OpenAIStrict is a function's parameters, or a response schema, with strict.
func OpenAIStrict() Profile {
	return Profile{
		name:      "openai.strict",
		whitelist: true,
		allowed: strictCore().with(kwMultipleOf, kwMinimum, kwMaximum, kwExclusiveMinimum,
			kwExclusiveMaximum, kwMaxItems),
		formats:     anyFormat("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
		regexps:     plainRegexps,
		rootObject:  true,
		arrayItems:  true,
		modernDefs:  true,
		rootDefs:    true,
		bareRefs:    true,
		mergeAllOf:  true,
		anyOfOnly:   true,
		typed:       true,
		closed:      true,
		allRequired: true,
		limits:      limits{properties: 5000, levels: 10, nameChars: 120_000, enumValues: 1000},
	}
}

// AzureStrict is OpenAI's strict subset as Azure serves it: without bounds,
// formats and patterns, and smaller.
func AzureStrict() Profile {
	p := OpenAIStrict()
	p.name = "azure.strict"
	p.allowed = setOf(kwRef, kwDefs, kwAnyOf, kwProperties, kwAdditionalProperties, kwItems, kwType, kwEnum, kwConst,
		kwRequired, kwTitle, kwDescription)
	p.limits.properties, p.limits.levels = 100, 5
	return p
}

// claudeNames is how Anthropic wants properties to be named (quirk A23).
func claudeNames() nameRule { return nameRule{max: 64, punctuation: ".-"} }

// AnthropicTool is a tool's input_schema without strict: JSON Schema 2020-12
// with an object at the root.
func AnthropicTool() Profile {
	return Profile{name: "anthropic.tool", rootObject: true, modernDefs: true, names: claudeNames()}
}

// AnthropicStrict is a strict tool's input_schema, or output_config.format.
func AnthropicStrict() Profile {
	return Profile{
		name:        "anthropic.strict",
		whitelist:   true,
		allowed:     strictCore(),
		formats:     anyFormat("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
		minItemsMax: 1,
		regexps:     plainRegexps,
		names:       claudeNames(),
		rootObject:  true,
		arrayItems:  true,
		modernDefs:  true,
		rootDefs:    true,
		bareRefs:    true,
		noRecursion: true,
		mergeAllOf:  true,
		anyOfOnly:   true,
		typed:       true,
		closed:      true,
		limits:      limits{optional: 24, unions: 16},
	}
}

// geminiNames is how Gemini wants the properties of a function to be named
// (quirk A23).
func geminiNames() nameRule { return nameRule{max: 64, letterFirst: true} }

// geminiBudget is far above any sensible tool, and below what makes the API
// complain about nesting after references were expanded (quirk A39).
const geminiBudget = 64 << 10

// GeminiParameters is a function declaration's parameters: a fixed set of
// OpenAPI's keywords, on the Developer API and on Vertex (quirks A1, A2). A
// tool without arguments is sent without the member (quirk A20); that is for
// who writes the tool.
func GeminiParameters() Profile {
	p := GeminiResponseSchema()
	p.name, p.answers = "gemini.parameters", false
	p.names = geminiNames()
	p.rootObject = true
	p.mapEntries = true
	p.enums = stringEnums
	return p
}

// GeminiResponseSchema is generationConfig.responseSchema: the keywords of
// parameters, with any root, and with nothing in it that would have to be
// undone in the answer.
func GeminiResponseSchema() Profile {
	return Profile{
		name:      "gemini.response_schema",
		answers:   true,
		whitelist: true,
		allowed: setOf(kwType, kwFormat, kwDescription, kwNullable, kwDefault, kwExample, kwEnum, kwItems, kwMinItems,
			kwMaxItems, kwProperties, kwPropertyOrdering, kwRequired, kwMinProperties, kwMaxProperties, kwMinLength,
			kwMaxLength, kwPattern, kwMinimum, kwMaximum, kwAnyOf),
		formats: []formatRule{
			{"enum", "string"},
			{"date-time", "string"},
			{"float", "number"},
			{"double", "number"},
			{"int32", "integer"},
			{"int64", "integer"},
		},
		enums:         toldEnums,
		anyCase:       true,
		noBooleans:    true,
		arrayItems:    true,
		itemTypes:     []string{"string"},
		inlineRefs:    true,
		mergeAllOf:    true,
		anyOfOnly:     true,
		loneAnyOf:     true,
		noEmptyProps:  true,
		inferred:      true,
		oneType:       true,
		nullableFlag:  true,
		knownRequired: true,
		maxBytes:      geminiBudget,
	}
}

// GeminiJSONSchema is a function declaration's parametersJsonSchema, which is
// to be preferred: references, maps and lists of types survive (quirk A2).
func GeminiJSONSchema() Profile {
	p := GeminiResponseJSONSchema()
	p.name, p.answers = "gemini.json_schema", false
	p.names = geminiNames()
	p.rootObject = true
	return p
}

// GeminiResponseJSONSchema is generationConfig.responseJsonSchema, which may
// have any root.
func GeminiResponseJSONSchema() Profile {
	return Profile{
		name:      "gemini.response_json_schema",
		answers:   true,
		whitelist: true,
		allowed: setOf(kwID, kwDefs, kwRef, kwAnchor, kwType, kwFormat, kwTitle, kwDescription, kwEnum, kwItems,
			kwPrefixItems, kwMinItems, kwMaxItems, kwMinimum, kwMaximum, kwAnyOf, kwOneOf, kwProperties,
			kwAdditionalProperties, kwRequired, kwPropertyOrdering),
		enums:          scalarEnums,
		noBooleans:     true,
		arrayItems:     true,
		modernDefs:     true,
		rootDefs:       true,
		bareRefs:       true,
		optionalCycles: true,
		mergeAllOf:     true,
		knownRequired:  true,
		maxBytes:       geminiBudget,
	}
}

// OllamaTool is a function's parameters on Ollama's own API, which drops
// every other keyword without a word (quirk A47).
func OllamaTool() Profile {
	return Profile{
		name:          "ollama.tool",
		whitelist:     true,
		allowed:       setOf(kwAnyOf, kwType, kwItems, kwDescription, kwEnum, kwProperties, kwRequired),
		rootWhitelist: true,
		rootAllowed:   setOf(kwType, kwItems, kwProperties, kwRequired),
		rootObject:    true,
		noBooleans:    true,
		arrayItems:    true,
		inlineRefs:    true,
		mergeAllOf:    true,
		anyOfOnly:     true,
		inferred:      true,
		anyTypes:      everyType(),
		itemTypes:     itemType(),
	}
}

// everyType names what a schema takes that leaves its type open.
func everyType() []string {
	return []string{"string", "number", "boolean", "object", "array", "null"}
}

// itemType names what items take that say nothing, where it must be said.
func itemType() []string { return []string{"string", "number", "boolean", "object", "null"} }

// grammar is what servers want that compile a schema to a grammar: a type on
// every node, and patterns they can translate (quirks A27, A48).
func grammar() Profile {
	return Profile{
		regexps:    grammarRegexps,
		noBooleans: true,
		arrayItems: true,
		inferred:   true,
		anyTypes:   everyType(),
		itemTypes:  itemType(),
	}
}

// OllamaFormat is the schema in Ollama's format, which is compiled to a
// grammar.
func OllamaFormat() Profile {
	p := grammar()
	p.name, p.answers = "ollama.format", true
	return p
}

// LlamaCPPTool is a function's parameters on llama.cpp, LM Studio and their
// kin.
func LlamaCPPTool() Profile {
	p := grammar()
	p.name = "llamacpp.tool"
	p.rootObject = true
	return p
}

// BedrockTool is toolSpec.inputSchema.json on Converse, for Claude and for
// models about which nothing else is known.
func BedrockTool() Profile {
	return Profile{name: "bedrock.tool", rootObject: true, arrayItems: true, modernDefs: true, names: claudeNames()}
}

// BedrockStrict is a strict tool, or an output schema, on Converse: what
// Anthropic wants of them (quirks A31, F3).
func BedrockStrict() Profile {
	p := AnthropicStrict()
	p.name = "bedrock.strict"
	return p
}

// BedrockNova is toolSpec.inputSchema.json for Amazon's own models, which take
// three keywords at the root.
func BedrockNova() Profile {
	p := BedrockTool()
	p.name = "bedrock.nova"
	p.rootWhitelist = true
	p.rootAllowed = setOf(kwType, kwProperties, kwRequired)
	p.inlineRefs = true
	p.refused = setOf(kwDynamicRef, kwRecursiveRef)
	return p
}

// XAITool is a function's parameters at xAI, which never answers when a
// schema is large (quirk A39).
func XAITool() Profile {
	p := OpenAITool()
	p.name = "xai.tool"
	p.maxBytes = 32 << 10
	return p
}

// MoonshotTool is a function's parameters at Moonshot: nothing beside a
// reference or a union, and no tuples (quirks A4, A15).
func MoonshotTool() Profile {
	return Profile{
		name: "moonshot.tool",
		refused: setOf(kwSchema, kwID, kwAnchor, kwDynamicRef, kwDynamicAnchor, kwRecursiveRef, kwRecursiveAnchor,
			kwDefinitions, kwAllOf, kwOneOf, kwNot, kwIf, kwThen, kwElse, kwDependentSchemas, kwDependencies,
			kwPrefixItems, kwAdditionalItems, kwUnevaluatedItems, kwUnevaluatedProperties, kwContains, kwMinContains,
			kwMaxContains, kwPatternProperties, kwPropertyNames, kwDependentRequired, kwDiscriminator),
		rootObject: true,
		noBooleans: true,
		arrayItems: true,
		modernDefs: true,
		rootDefs:   true,
		bareRefs:   true,
		mergeAllOf: true,
		anyOfOnly:  true,
	}
}

// FireworksTool is a function's parameters at Fireworks, which knows
// definitions under their new name only (quirk A3).
func FireworksTool() Profile {
	p := OpenAITool()
	p.name = "fireworks.tool"
	p.modernDefs = true
	return p
}

// CompatTool is for a server that speaks OpenAI's language and about which
// nothing is known: what nearly all of them take (quirks A3, A8, A14).
func CompatTool() Profile {
	return Profile{
		name:      "compat.tool",
		whitelist: true,
		allowed: setOf(kwType, kwTitle, kwDescription, kwDefault, kwEnum, kwFormat, kwPattern, kwMinLength, kwMaxLength,
			kwMinimum, kwMaximum, kwExclusiveMinimum, kwExclusiveMaximum, kwMultipleOf, kwItems, kwMinItems, kwMaxItems,
			kwUniqueItems, kwProperties, kwAdditionalProperties, kwRequired, kwMinProperties, kwMaxProperties, kwAnyOf),
		regexps:       plainRegexps,
		rootObject:    true,
		noBooleans:    true,
		arrayItems:    true,
		inlineRefs:    true,
		mergeAllOf:    true,
		anyOfOnly:     true,
		inferred:      true,
		oneType:       true,
		knownRequired: true,
	}
}
