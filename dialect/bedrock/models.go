package bedrock

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// CapabilitiesOf returns what is known of a model by its id, which may come with
// a region or the path of an ARN before it. Amazon's own models take tool schemas
// in a closed form only, and some models of Claude break an output format once
// tools are about (quirk F8). Of which ones take a strict flag nothing is known
// for sure, so that none is said to (quirk A31).
func CapabilitiesOf(model string) dragoman.Capabilities {
	model = strings.ToLower(model)
	return dragoman.Capabilities{
		ClosedSchemas:     strings.Contains(model, "amazon.nova"),
		NoOutputWithTools: strings.Contains(model, "claude-opus-4-7") || strings.Contains(model, "claude-opus-4-8"),
	}
}
