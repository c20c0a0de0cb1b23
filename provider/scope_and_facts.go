package provider

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/targets"
)

// capabilities returns the capabilities of a model, before extensions and Override.
func (c *Client) capabilities(model string) targets.Capabilities {
	if c.Capabilities != nil {
		return c.Capabilities(model)
	}
	return c.tableCapabilities(model)
}

// tableCapabilities returns the capabilities of a model from the table of models.
func (c *Client) tableCapabilities(model string) targets.Capabilities {
	if k := c.cachedModel.Load(); k != nil && k.model == model {
		return k.caps
	}
	m, _ := c.Fact(model)
	caps := m.Capabilities(c.codec().Dialect())
	c.cachedModel.Store(&knownModel{model, caps})
	return caps
}

// knownModel caches the capabilities of the last requested model.
type knownModel struct {
	model string
	caps  targets.Capabilities
}

// Fact returns the facts about a model, including prices, by the server's name for it. An empty
// name means the client's model. ok is false if nothing is known.
func (c *Client) Fact(model string) (m models.Model, ok bool) {
	table := c.Models
	if table == nil {
		table = models.Default()
	}
	return table.Lookup(c.lookupProvider(), cmp.Or(model, c.Model))
}

// lookupProvider returns the provider under which models are looked up: Server, or the vendor of
// the dialect. A Chat server with another base URL is unknown.
func (c *Client) lookupProvider() string {
	if c.Server != "" {
		return c.Server
	}
	e := &wire.Of(c.codec()).Endpoint
	if e.OwnServer && c.BaseURL != "" {
		return ""
	}
	if e.Vendor == "" {
		vendor, _, _ := strings.Cut(string(c.codec().Dialect()), ".")
		return vendor
	}
	return e.Vendor
}

// scope returns a name for the account and endpoint, without revealing them: a hash of the
// endpoint, keyed with the credential. It separates the opaque state of different accounts.
func (c *Client) scope(ctx context.Context) string {
	account := ""
	if a, ok := c.Auth.(accountAuth); ok {
		account = a.account(ctx)
	}
	base := c.base()
	if s := c.cachedScope.Load(); s != nil && s.account == account && s.base == base {
		return s.name
	}
	h := hmac.New(sha256.New, []byte("dragoman scope\x00"+account))
	h.Write([]byte(base))
	s := &scope{account, base, hex.EncodeToString(h.Sum(nil)[:8])}
	c.cachedScope.Store(s)
	return s.name
}

// scope caches the name of an account at an endpoint.
type scope struct{ account, base, name string }
