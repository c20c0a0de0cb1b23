package openairesponses

import (
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{toolwire.OpenAITool, toolwire.OpenAIOutput, toolwire.OpenAIStrict}
}

func (toolCodec) Surfaces(*targets.Capabilities) (loose, strict *schema.Profile) {
	return &toolwire.OpenAITool, &toolwire.OpenAIStrict
}
