package anthropic

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

var (
	// toolProfile describes the input_schema of a tool that is not strict: JSON
	// Schema 2020-12 with an object at the root.
	toolProfile = schema.NewProfile(schemarules.Rules{
		Name: "anthropic.tool", RootObject: true, ModernDefs: true, Names: toolwire.ClaudeNames(),
		Reference: &schemarules.Reference{RootObject: true, Names: toolwire.ClaudeNamePattern},
	})
	// strictProfile describes the input_schema of a strict tool, or
	// output_config.format.
	strictProfile = schema.NewProfile(toolwire.ClaudeStrictRules("anthropic.strict"))
)

func (toolCodec) Profiles() []schema.Profile { return []schema.Profile{toolProfile, strictProfile} }

func (toolCodec) Surfaces(*targets.Capabilities) (loose, strict *schema.Profile) {
	return &toolProfile, &strictProfile
}
