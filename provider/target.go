package provider

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/models"
)

// capabilities returns what a model can do, before extensions and Override.
func (c *Client) capabilities(model string) dragoman.Capabilities {
	if c.Capabilities != nil {
		return c.Capabilities(model)
	}
	return c.known(model)
}

// known returns what the dialect and the table of models know of a model by its
// name.
func (c *Client) known(model string) dragoman.Capabilities {
	if k := c.facts.Load(); k != nil && k.model == model {
		return k.caps
	}
	d := c.codec().Dialect()
	var caps dragoman.Capabilities
	switch d {
	case dragoman.Gemini:
		caps = gemini.CapabilitiesOf(model)
	case dragoman.Bedrock:
		caps = bedrock.CapabilitiesOf(model)
	}
	m, _ := c.Fact(model)
	layOver(&caps, m.Capabilities(d))
	c.facts.Store(&knownModel{model, caps})
	return caps
}

// knownModel holds the capabilities of the model that was last asked for.
type knownModel struct {
	model string
	caps  dragoman.Capabilities
}

// Fact returns what the table of models knows of a model, prices included, under
// the server's name for it. An empty model means the client's. ok is false where
// nothing is known.
func (c *Client) Fact(model string) (m models.Model, ok bool) {
	table := c.Models
	if table == nil {
		table = models.Default()
	}
	return table.Lookup(c.server(), cmp.Or(model, c.Model))
}

// server is the provider under which models are looked up: Server, or the vendor
// of the dialect. Whoever serves Chat under another base URL is not known.
func (c *Client) server() string {
	if c.Server != "" {
		return c.Server
	}
	switch d := c.codec().Dialect(); d {
	case dragoman.OpenAIChat:
		if c.BaseURL != "" {
			return ""
		}
		return "openai"
	case dragoman.OpenAIResponses:
		return "openai"
	default:
		vendor, _, _ := strings.Cut(string(d), ".")
		return vendor
	}
}

// layOver sets the capabilities that are not zero over others.
func layOver(to *dragoman.Capabilities, from dragoman.Capabilities) {
	over, with := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range with.NumField() {
		if f := with.Field(i); !f.IsZero() {
			over.Field(i).Set(f)
		}
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
