package mcpgate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// maxName is the length of a name that every client accepts.
const maxName = 64

// publicName returns the name of a prompt at the endpoint of all servers.
func publicName(label, name string) string {
	full := "mcp_" + label + "__" + name
	legal := len(full) <= maxName && !strings.Contains(label, "__") && !strings.HasSuffix(label, "_")
	clean := []byte(full)
	for i, c := range clean {
		if !textkit.InSet("a-zA-Z0-9_-", c) {
			clean[i], legal = '_', false
		}
	}
	if legal {
		return full
	}
	const digits = 8
	sum := sha256.Sum256([]byte(label + "\x00" + name))
	suffix := "_" + hex.EncodeToString(sum[:])[:digits]
	return string(clean[:min(len(clean), maxName-len(suffix))]) + suffix
}

// uriPrefix returns the prefix of the resources of a server at the endpoint of all servers: its
// label if that can begin a URI, or a legal form of it. It has no plus sign.
func uriPrefix(label string) string {
	legal := len(label) <= maxName
	var b strings.Builder
	for i, c := range []byte(label) {
		switch {
		case c >= 'a' && c <= 'z', i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.'):
			b.WriteByte(c)
		default:
			b.WriteByte('x')
			legal = false
		}
	}
	if legal && label != "" {
		return label
	}
	sum := sha256.Sum256([]byte(label))
	out := b.String()
	return out[:min(len(out), maxName/2)] + "-" + hex.EncodeToString(sum[:4])
}

const uiScheme = "ui://"

// publicURI returns the URI of a resource for clients of the endpoint.
func (e *endpoint) publicURI(label, uri string) string {
	if e.label != "" {
		return uri
	}
	if rest, ok := strings.CutPrefix(uri, uiScheme); ok { // hosts know user interfaces by the scheme
		return uiScheme + uriPrefix(label) + "+" + rest
	}
	return uriPrefix(label) + "+" + uri
}

// ownerOf returns the server of a resource and its URI there; nil if the key cannot use it. The
// prefix is looked up among the servers.
func (e *endpoint) ownerOf(uri string) (*upstream, string) {
	rest, scheme := uri, ""
	if e.label == "" {
		if after, ok := strings.CutPrefix(uri, uiScheme); ok {
			rest, scheme = after, uiScheme
		}
	}
	prefix, own, cut := strings.Cut(rest, "+")
	for _, u := range e.whole() {
		switch {
		case e.label != "":
			return u, uri
		case cut && uriPrefix(u.config.Name) == prefix:
			return u, scheme + own
		}
	}
	return nil, ""
}

// renameURI changes the URI in a field of an object.
func (e *endpoint) renameURI(label string, object []byte, field string) []byte {
	return jsonwire.EditField(object, field, func(uri []byte) []byte {
		if len(uri) == 0 || uri[0] != '"' {
			return uri
		}
		return jsonwire.Quote(e.publicURI(label, jsonwire.Unquote(uri)))
	})
}

// renameBlock changes the URIs in a content block.
func (e *endpoint) renameBlock(label string, block []byte) []byte {
	switch jsonwire.TypeOf(block) {
	case "resource_link":
		return e.renameURI(label, block, "uri")
	case "resource":
		return jsonwire.EditField(block, "resource", func(o []byte) []byte { return e.renameURI(label, o, "uri") })
	default:
		return block
	}
}

// renameURIs changes the URIs in the raw result of a tool.
func (e *endpoint) renameURIs(ctx context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
	info, ok := tool.InfoFrom(ctx)
	if !ok || out.Envelope == nil || !strings.Contains(string(out.Envelope.JSON), `"resource`) {
		return out, nil
	}
	owner, ok := e.owner(info.Key.Name)
	if !ok {
		return out, nil
	}
	raw := jsonwire.EditField(out.Envelope.JSON, "content", func(list []byte) []byte {
		return jsonwire.EditEach(list, func(b []byte) []byte { return e.renameBlock(owner.server, b) })
	})
	out.Envelope = &dragoman.Native{Format: out.Envelope.Format, JSON: raw}
	return out, nil
}

// adapt returns a tool for the endpoint: with the URI of its user interface as the endpoint has
// it.
func (e *endpoint) adapt(label string, t tool.Tool) tool.Tool {
	spec := t.Spec()
	if e.label != "" || spec.Source == nil || !strings.Contains(string(spec.Source.JSON), "resourceUri") {
		return t
	}
	own := *spec
	source := *spec.Source
	source.JSON = jsonwire.EditField(source.JSON, "_meta", func(meta []byte) []byte {
		meta = e.renameURI(label, meta, "ui/resourceUri")
		return jsonwire.EditField(meta, "ui", func(ui []byte) []byte { return e.renameURI(label, ui, "resourceUri") })
	})
	own.Source = &source
	return &adapted{Tool: t, spec: &own}
}

// adapted is a tool with another definition for clients.
type adapted struct {
	tool.Tool
	spec *dragoman.ToolSpec
}

func (t *adapted) Spec() *dragoman.ToolSpec { return t.spec }

// Settings returns the settings of the tool.
func (t *adapted) Settings() tool.Settings {
	if s, ok := t.Tool.(interface{ Settings() tool.Settings }); ok {
		return s.Settings()
	}
	return tool.Settings{}
}

// owner is where a tool comes from.
type owner struct{ server, tool string }

// owner returns where a tool comes from, by its name in records.
func (e *endpoint) owner(name string) (owner, bool) {
	all := e.owners.Load()
	if all == nil {
		return owner{}, false
	}
	o, ok := (*all)[name]
	return o, ok
}
