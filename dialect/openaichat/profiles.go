package openaichat

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Schema profiles of compatible servers that do not accept the same schemas as OpenAI. A target
// selects one with Capabilities.ToolSchema.
var (
	// azureStrict is the strict subset of OpenAI as served by Azure: smaller, and without bounds,
	// formats and patterns.
	azureStrict = func() schema.Profile {
		keywords := []string{
			"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
			"required", "title", "description",
		}
		r := toolwire.OpenAIStrictRules()
		r.Name = "azure.strict"
		r.Keywords = keywords
		r.Limits.Properties, r.Limits.Levels = 100, 5
		r.Reference.Keywords = keywords
		r.Reference.Most["properties"], r.Reference.Most["levels"] = 100, 5
		return schema.NewProfile(r)
	}()

	// xaiTool describes function parameters at xAI, which does not respond if a schema is large
	// (quirk A39).
	xaiTool = func() schema.Profile {
		r := toolwire.OpenAIToolRules("xai.tool")
		r.MaxBytes = 32 << 10
		r.Reference.Most = map[string]int{"bytes": 32 << 10}
		return schema.NewProfile(r)
	}()

	// moonshotTool describes function parameters at Moonshot: no siblings of a reference or a
	// union, and no tuples (quirks A4, A15).
	moonshotTool = schema.NewProfile(schemarules.Rules{
		Name: "moonshot.tool",
		Refused: []string{
			"$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
			"definitions", "allOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
			"prefixItems", "additionalItems", "unevaluatedItems", "unevaluatedProperties", "contains", "minContains",
			"maxContains", "patternProperties", "propertyNames", "dependentRequired", "discriminator",
		},
		RootObject: true,
		NoBooleans: true,
		ArrayItems: true,
		ModernDefs: true,
		RootDefs:   true,
		BareRefs:   true,
		MergeAllOf: true,
		AnyOfOnly:  true,
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, NoBooleans: true, BareRefs: true,
			Never: []string{"allOf", "oneOf", "prefixItems", "unevaluatedItems", "definitions", "not", "if", "then", "else"},
		},
	})

	// fireworksTool describes function parameters at Fireworks, which only accepts $defs, not
	// definitions (quirk A3).
	fireworksTool = func() schema.Profile {
		r := toolwire.OpenAIToolRules("fireworks.tool")
		r.ModernDefs = true
		r.Reference.Never = []string{"definitions"}
		return schema.NewProfile(r)
	}()

	// llamaCPPTool describes function parameters on llama.cpp, LM Studio and similar servers.
	llamaCPPTool = func() schema.Profile {
		r := schemarules.Grammar("llamacpp.tool")
		r.RootObject = true
		r.Reference = &schemarules.Reference{RootObject: true, Items: true, NoBooleans: true, Typed: true, Patterns: "grammar"}
		return schema.NewProfile(r)
	}()

	// compatTool is for unknown servers. It has the keywords that nearly all servers accept
	// (quirks A3, A8, A14).
	compatTool = schema.NewProfile(schemarules.Rules{
		Name: "compat.tool",
		Keywords: []string{
			"type", "title", "description", "default", "enum", "format", "pattern", "minLength", "maxLength",
			"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items", "minItems", "maxItems",
			"uniqueItems", "properties", "additionalProperties", "required", "minProperties", "maxProperties", "anyOf",
		},
		Regexps:       schemarules.PlainRegexps,
		RootObject:    true,
		NoBooleans:    true,
		ArrayItems:    true,
		InlineRefs:    true,
		MergeAllOf:    true,
		AnyOfOnly:     true,
		Inferred:      true,
		OneType:       true,
		KnownRequired: true,
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, NoBooleans: true, OneType: true, Known: true, Patterns: "plain",
			Never: []string{
				"$ref", "$defs", "definitions", "$schema", "$id", "allOf", "oneOf", "prefixItems", "not", "if", "then",
				"else", "dependentSchemas", "patternProperties", "const", "nullable",
			},
		},
	})
)

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{
		toolwire.OpenAITool, toolwire.OpenAIOutput, toolwire.OpenAIStrict,
		azureStrict, xaiTool, moonshotTool, fireworksTool, llamaCPPTool, compatTool,
	}
}

func (toolCodec) Surfaces(*targets.Capabilities) (loose, strict *schema.Profile) {
	return &toolwire.OpenAITool, &toolwire.OpenAIStrict
}
