package provider

import (
	"context"

	"github.com/dragoman-go/dragoman/internal/serving/modelwire"
)

var _ modelwire.Model = (*Client)(nil)

// Wire is for package session, which stores native histories of conversations with the model.
// An empty name means the client's own model.
func (c *Client) Wire(ctx context.Context, model string) (modelwire.Wire, error) {
	target, on, err := c.Target(ctx, model)
	if err != nil {
		return modelwire.Wire{}, err
	}
	return modelwire.Wire{Codec: c.codec(), Target: target, Extensions: on, Config: c.Extensions.Config}, nil
}
