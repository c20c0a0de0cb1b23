package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// Wire describes how a model's requests are encoded: the codec and target of its native
// history, and the extensions that act on it. Sessions use it to connect to a model.
type Wire struct {
	Codec  dialect.Codec
	Target targets.Target
	// Extensions are those that are active for the model, and Config their settings by name.
	Extensions *extension.Resolution
	Config     map[string]json.RawMessage
}

// Wired is a model that has a wire, such as a [Client].
type Wired interface {
	dragoman.Model
	// Wire returns the wire of a model; an empty name means the model's own.
	Wire(ctx context.Context, model string) (Wire, error)
}

var _ Wired = (*Client)(nil)

// Wire implements [Wired].
func (c *Client) Wire(ctx context.Context, model string) (Wire, error) {
	target, on, err := c.Target(ctx, model)
	if err != nil {
		return Wire{}, err
	}
	return Wire{Codec: c.codec(), Target: target, Extensions: on, Config: c.Extensions.Config}, nil
}

// ErrNoWire reports that a model has no wire of its own.
var ErrNoWire = errors.New("provider: the model has no wire")

// WireOf returns the wire of a model. The error wraps [ErrNoWire] for a simulator that is
// called in process, and for a [Chain], whose models may have several wires.
func WireOf(ctx context.Context, model dragoman.Model, name string) (Wire, error) {
	switch m := model.(type) {
	case Wired:
		return m.Wire(ctx, name)
	case *Chain:
		return Wire{}, fmt.Errorf("%w: a chain has several models; use one of them", ErrNoWire)
	default:
		return Wire{}, fmt.Errorf("%w: %T sends no requests to a provider; use a model of a provider", ErrNoWire, model)
	}
}
