package modelcall

import (
	"context"
	"encoding/json"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// Wire describes how a model's requests are encoded: the codec and target of its native
// history, and the extensions that act on it.
type Wire struct {
	Codec  dialect.Codec
	Target targets.Target
	// Extensions are those that are active for the model, and Config their settings by name.
	Extensions *extension.Resolution
	Config     map[string]json.RawMessage
}

// Model is a model that has a wire, such as a provider.Client.
type Model interface {
	// Wire returns the wire of a model; an empty name means the model's own.
	Wire(ctx context.Context, model string) (Wire, error)
}
