package cohere

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// The JSON Schema subset of Cohere's guide to structured outputs. Patterns are
// not sent, because the API does not support the anchors ^ and $, which nearly
// all patterns have.
var (
	keywords = []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const", "required",
		"format", "title", "description", "default",
	}
	formats = schemarules.Formats("date-time", "uuid", "date", "time")

	// toolProfile describes the parameters of a function, with and without
	// strict_tools. A tool is written the same way regardless of the other
	// tools of a request.
	toolProfile = profile("cohere.tool", false)
	// outputProfile describes the schema of a response format.
	outputProfile = profile("cohere.output", true)
)

func profile(name string, output bool) schema.Profile {
	return schema.NewProfile(schemarules.Rules{
		Name: name, Keywords: keywords, Formats: formats, Answers: output,
		RootObject: true, NoBooleans: true, ArrayItems: true, ModernDefs: true, RootDefs: true, BareRefs: true,
		MergeAllOf: true, AnyOfOnly: true,
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, NoBooleans: true, BareRefs: true, Keywords: keywords,
			Formats: map[string]string{"date-time": "", "uuid": "", "date": "", "time": ""},
		},
	})
}

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{toolProfile, outputProfile}
}

func (toolCodec) Surfaces(*targets.Capabilities) (loose, strict *schema.Profile) {
	return &toolProfile, &toolProfile
}
