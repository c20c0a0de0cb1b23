package toolwire

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/schema"
)

// The surfaces that the two OpenAI dialects share.
var (
	// OpenAITool is the profile for the parameters of a function without strict. Below the root it
	// accepts nearly any JSON Schema.
	OpenAITool = schema.NewProfile(OpenAIToolRules("openai.tool"))
	// OpenAIOutput is a response schema without strict.
	OpenAIOutput = schema.NewProfile(schemarules.Rules{
		Name: "openai.output", Answers: true, RootObject: true, ArrayItems: true,
		Reference: &schemarules.Reference{RootObject: true, Items: true},
	})
	// OpenAIStrict is a function's parameters, or a response schema, with strict.
	OpenAIStrict = schema.NewProfile(OpenAIStrictRules())
)

// OpenAIToolRules returns the rules for a function's parameters without strict. Servers
// that are compatible with OpenAI add theirs.
func OpenAIToolRules(name string) schemarules.Rules {
	return schemarules.Rules{
		Name: name, RootObject: true, ArrayItems: true,
		Reference: &schemarules.Reference{RootObject: true, Items: true},
	}
}

// OpenAIStrictRules returns the rules of the strict subset.
func OpenAIStrictRules() schemarules.Rules {
	return schemarules.Rules{
		Name: "openai.strict",
		Keywords: append(schemarules.StrictKeywords(), "multipleOf", "minimum", "maximum", "exclusiveMinimum",
			"exclusiveMaximum", "maxItems"),
		Formats:     schemarules.Formats("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
		Regexps:     schemarules.PlainRegexps,
		RootObject:  true,
		ArrayItems:  true,
		ModernDefs:  true,
		RootDefs:    true,
		BareRefs:    true,
		MergeAllOf:  true,
		AnyOfOnly:   true,
		Typed:       true,
		Closed:      true,
		AllRequired: true,
		Limits:      schemarules.Limits{Properties: 5000, Levels: 10, NameChars: 120_000, EnumValues: 1000},
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, Strict: true, All: true, BareRefs: true, Patterns: "plain",
			Keywords: []string{
				"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
				"required", "title", "description", "format", "pattern", "minItems", "multipleOf", "minimum", "maximum",
				"exclusiveMinimum", "exclusiveMaximum", "maxItems",
			},
			Formats: map[string]string{
				"date-time": "", "time": "", "date": "", "duration": "", "email": "", "hostname": "", "ipv4": "", "ipv6": "", "uuid": "",
			},
			Most: map[string]int{"properties": 5000, "levels": 10, "names": 120_000, "enum values": 1000},
		},
	}
}

// ClaudeNames returns the rule for property names that Claude models have (quirk A23),
// on every server.
func ClaudeNames() schemarules.Names { return schemarules.Names{Max: 64, Punctuation: ".-"} }

// ClaudeNamePattern is the same rule as a regular expression, as in the wire reference.
const ClaudeNamePattern = `^[a-zA-Z0-9_.-]{1,64}$`

// ClaudeStrictRules returns the rules of the strict subset that Claude models have, on
// every server.
func ClaudeStrictRules(name string) schemarules.Rules {
	return schemarules.Rules{
		Name:        name,
		Keywords:    schemarules.StrictKeywords(),
		Formats:     schemarules.Formats("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
		MinItemsMax: 1,
		Regexps:     schemarules.PlainRegexps,
		Names:       ClaudeNames(),
		RootObject:  true,
		ArrayItems:  true,
		ModernDefs:  true,
		RootDefs:    true,
		BareRefs:    true,
		NoRecursion: true,
		MergeAllOf:  true,
		AnyOfOnly:   true,
		Typed:       true,
		Closed:      true,
		Limits:      schemarules.Limits{Optional: 24, Unions: 16},
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, Strict: true, Acyclic: true, SmallMin: true, BareRefs: true, Patterns: "plain",
			Keywords: []string{
				"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
				"required", "title", "description", "format", "pattern", "minItems", "allOf",
			},
			Formats: map[string]string{
				"date-time": "", "time": "", "date": "", "duration": "", "email": "", "hostname": "", "uri": "",
				"ipv4": "", "ipv6": "", "uuid": "",
			},
			Names: ClaudeNamePattern,
			Most:  map[string]int{"optional": 24, "unions": 16},
		},
	}
}
