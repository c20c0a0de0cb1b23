package bedrock

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

var (
	// toolProfile describes toolSpec.inputSchema.json for Claude and for
	// unknown models.
	toolProfile = schema.NewProfile(toolRules("bedrock.tool"))
	// strictProfile describes a strict tool or an output schema, by Anthropic's
	// rules (quirks A31, F3).
	strictProfile = schema.NewProfile(toolwire.ClaudeStrictRules("bedrock.strict"))
	// novaProfile describes toolSpec.inputSchema.json for Amazon Nova, which
	// accepts three keywords at the root.
	novaProfile = func() schema.Profile {
		r := toolRules("bedrock.nova")
		r.RootKeywords = []string{"type", "properties", "required"}
		r.InlineRefs = true
		r.Refused = []string{"$dynamicRef", "$recursiveRef"}
		r.Reference.RootKeys = []string{"type", "properties", "required"}
		r.Reference.Never = []string{"$ref", "$defs", "definitions"}
		return schema.NewProfile(r)
	}()
)

func toolRules(name string) schemarules.Rules {
	return schemarules.Rules{
		Name: name, RootObject: true, ArrayItems: true, ModernDefs: true, Names: toolwire.ClaudeNames(),
		Reference: &schemarules.Reference{RootObject: true, Items: true, Names: toolwire.ClaudeNamePattern},
	}
}

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{toolProfile, strictProfile, novaProfile}
}

func (toolCodec) Surfaces(caps *targets.Capabilities) (loose, strict *schema.Profile) {
	if caps.ClosedSchemas {
		return &novaProfile, &strictProfile
	}
	return &toolProfile, &strictProfile
}
