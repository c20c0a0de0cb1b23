package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
)

// capabilities is what a model can do.
func (c *Client) capabilities(model string) dragoman.Capabilities {
	if c.Capabilities != nil {
		return c.Capabilities(model)
	}
	return knownCapabilities(c.codec().Dialect(), model)
}

// knownCapabilities is what a dialect knows of a model by its name.
func knownCapabilities(d dragoman.Dialect, model string) dragoman.Capabilities {
	switch d {
	case dragoman.Gemini:
		return gemini.CapabilitiesOf(model)
	case dragoman.Bedrock:
		return bedrock.CapabilitiesOf(model)
	default:
		return dragoman.Capabilities{}
	}
}

// scope tells accounts and endpoints apart in what a model mints, without
// telling what they are: the credential keys the hash of the endpoint.
func (c *Client) scope(ctx context.Context) string {
	account := ""
	if a, ok := c.Auth.(accountant); ok {
		account = a.account(ctx)
	}
	base := c.base()
	if s := c.scoped.Load(); s != nil && s.account == account && s.base == base {
		return s.name
	}
	h := hmac.New(sha256.New, []byte("dragoman scope\x00"+account))
	h.Write([]byte(base))
	s := &scope{account, base, hex.EncodeToString(h.Sum(nil)[:8])}
	c.scoped.Store(s)
	return s.name
}

// scope is the name of an account at an endpoint.
type scope struct{ account, base, name string }
