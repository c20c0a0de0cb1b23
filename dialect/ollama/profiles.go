package ollama

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

var (
	// toolProfile describes the parameters of a function. The server silently drops every other
	// keyword (quirk A47).
	toolProfile = schema.NewProfile(schemarules.Rules{
		Name:         "ollama.tool",
		Keywords:     []string{"anyOf", "type", "items", "description", "enum", "properties", "required"},
		RootKeywords: []string{"type", "items", "properties", "required"},
		RootObject:   true,
		NoBooleans:   true,
		ArrayItems:   true,
		InlineRefs:   true,
		MergeAllOf:   true,
		AnyOfOnly:    true,
		Inferred:     true,
		AnyTypes:     schemarules.EveryType(),
		ItemTypes:    schemarules.ItemTypes(),
		Reference: &schemarules.Reference{
			RootObject: true, Items: true, NoBooleans: true, Typed: true,
			RootKeys: []string{"type", "$defs", "items", "required", "properties"},
			Keywords: []string{"anyOf", "type", "items", "description", "enum", "properties", "required"},
		},
	})
	// formatProfile describes the schema in the format field, which the server compiles to a
	// grammar.
	formatProfile = func() schema.Profile {
		r := schemarules.Grammar("ollama.format")
		r.Answers = true
		r.Reference = &schemarules.Reference{Items: true, NoBooleans: true, Typed: true, Patterns: "grammar"}
		return schema.NewProfile(r)
	}()
)

func (toolCodec) Profiles() []schema.Profile { return []schema.Profile{toolProfile, formatProfile} }

func (toolCodec) Surfaces(*targets.Capabilities) (loose, strict *schema.Profile) {
	return &toolProfile, &toolProfile
}
