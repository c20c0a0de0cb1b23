package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/toolwire"
	"github.com/dragoman-go/dragoman/schema"
)

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{toolwire.OpenAITool, toolwire.OpenAIOutput, toolwire.OpenAIStrict}
}

func (toolCodec) Surfaces(*dragoman.Capabilities) (loose, strict *schema.Profile) {
	return &toolwire.OpenAITool, &toolwire.OpenAIStrict
}
