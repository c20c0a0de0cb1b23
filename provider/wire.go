package provider

import (
	"context"

	"github.com/dragoman-go/dragoman/internal/modelcall"
)

var _ modelcall.Model = (*Client)(nil)

// Wire is for package session, which stores native histories of conversations with the model.
// An empty name means the client's own model.
func (c *Client) Wire(ctx context.Context, model string) (modelcall.Wire, error) {
	target, on, err := c.Target(ctx, model)
	if err != nil {
		return modelcall.Wire{}, err
	}
	return modelcall.Wire{Codec: c.codec(), Target: target, Extensions: on, Config: c.Extensions.Config}, nil
}
