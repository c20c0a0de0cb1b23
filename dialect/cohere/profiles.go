package cohere

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// The subset of JSON Schema is the one of Cohere's guide to structured outputs. Patterns
// are not sent: the API does not know the anchors ^ and $, which nearly all have.
var (
	keywords = []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const", "required",
		"format", "title", "description", "default",
	}
	formats = schemarules.Formats("date-time", "uuid", "date", "time")

	// toolProfile is a function's parameters, with strict_tools and without: a tool is
	// written alike, whatever other tools a request has.
	toolProfile = profile("cohere.tool", false)
	// outputProfile is the schema of a response format.
	outputProfile = profile("cohere.output", true)
)

func profile(name string, answers bool) schema.Profile {
	return schema.NewProfile(schemarules.Rules{
		Name: name, Keywords: keywords, Formats: formats, Answers: answers,
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
