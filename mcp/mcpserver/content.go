package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// dialectMCP is the dialect of parts that came from an MCP server.
const dialectMCP = "mcp"

// toolResult returns the result of a tool for the client.
func (s *Server) toolResult(c *call, d *definition, parts []dragoman.Part, failed bool) mcp.Result {
	var structured json.RawMessage
	blocks := jsonwire.Writer{}
	blocks.BeginArray()
	for i, p := range parts {
		if data, ok := p.(*dragoman.Data); ok && structured == nil && !isLink(data.JSON) {
			structured = data.JSON
		}
		for _, b := range s.blocks(c, p, i) {
			blocks.Known(b)
		}
	}
	blocks.EndArray()
	r := newResult(c.modern)
	r.add("content", blocks.Buf)
	// Clients of older revisions expect an object. The text has every value.
	if structured != nil && (c.modern || jsonwire.NewReader(structured).Kind() == '{') {
		r.add("structuredContent", structured)
	}
	return r.set("isError", failed)
}

// blocks returns the content blocks of a part.
func (s *Server) blocks(c *call, p dragoman.Part, i int) []json.RawMessage {
	switch p := p.(type) {
	case *dragoman.Text:
		text := p.Text
		if s.o.Unfenced {
			text = textkit.Unfence(text)
		}
		return one(withExtra(object("type", "text", "text", text), p.Extra))
	case *dragoman.Data:
		if isLink(p.JSON) {
			return one(p.JSON)
		}
		return one(object("type", "text", "text", string(p.JSON)))
	case *dragoman.Media:
		return one(s.media(c, p, i))
	case *dragoman.Opaque:
		if p.Dialect == dialectMCP && jsonwire.Check(p.JSON) == nil {
			return one(p.JSON)
		}
	}
	return one(object("type", "text", "text", fmt.Sprintf("[A part of the kind %q cannot be sent over MCP.]", p.Kind())))
}

func one(b json.RawMessage) []json.RawMessage { return []json.RawMessage{b} }

// object returns an object of strings.
func object(pairs ...string) json.RawMessage {
	w := jsonwire.Writer{}
	w.BeginObject()
	for i := 0; i+1 < len(pairs); i += 2 {
		w.StringField(pairs[i], pairs[i+1])
	}
	w.EndObject()
	return w.Buf
}

// withExtra adds the annotations and metadata that a part from an MCP server has.
func withExtra(block json.RawMessage, extra *dragoman.Extra) json.RawMessage {
	if extra == nil {
		return block
	}
	for _, f := range extra.For(dialectMCP) {
		if f.Path == "/annotations" || f.Path == "/_meta" {
			block = jsonwire.With(block, f.Path[1:], f.Value)
		}
	}
	return block
}

// isLink reports whether data is a link to a resource, which is a block of its own.
func isLink(data json.RawMessage) bool {
	var link struct {
		Type string `json:"type"`
		URI  string `json:"uri"`
		Name string `json:"name"`
	}
	return json.Unmarshal(data, &link) == nil && link.Type == "resource_link" && link.URI != "" && link.Name != ""
}

func (s *Server) media(c *call, m *dragoman.Media, i int) json.RawMessage {
	mime, text := m.MIME, m.Text
	if s.o.Unfenced {
		text = textkit.Unfence(text)
	}
	switch {
	case m.Base64 != "" && (m.Media == "image" || m.Media == "audio") && mime != "":
		return withExtra(object("type", m.Media, "data", m.Base64, "mimeType", mime), m.Extra)
	case m.Base64 != "":
		if mime == "" {
			mime = "application/octet-stream"
		}
		return withExtra(resourceBlock(object("uri", mediaURI(c, m, i), "mimeType", mime, "blob", m.Base64)), m.Extra)
	case m.Text != "":
		if mime == "" {
			mime = "text/plain"
		}
		return withExtra(resourceBlock(object("uri", mediaURI(c, m, i), "mimeType", mime, "text", text)), m.Extra)
	case m.URL != "":
		name := m.Name
		if name == "" {
			name = m.Media
		}
		link := object("type", "resource_link", "uri", m.URL, "name", name)
		if mime != "" {
			link = jsonwire.With(link, "mimeType", encode(mime))
		}
		return withExtra(link, m.Extra)
	}
	return object("type", "text", "text", fmt.Sprintf("[The %s %s is stored elsewhere and cannot be sent over MCP.]", m.Media, m.Name))
}

func resourceBlock(resource json.RawMessage) json.RawMessage {
	return jsonwire.With(object("type", "resource"), "resource", resource)
}

// mediaURI returns the URI of an embedded file: its name if that is a URI, or one that is made
// of the call.
func mediaURI(c *call, m *dragoman.Media, i int) string {
	if u, err := url.Parse(m.Name); err == nil && u.Scheme != "" {
		return m.Name
	}
	uri := fmt.Sprintf("result:%s/%d", c.run, i+1)
	if m.Name != "" {
		uri += "/" + url.PathEscape(m.Name)
	}
	return uri
}

// Content is the content of a resource, or one file of it. Exactly one of Text and Blob is sent:
// Blob if it is not nil.
type Content struct {
	// URI is the URI of the content; empty means the URI that was read.
	URI  string
	MIME string
	Text string
	Blob []byte
}

func (c Content) json(uri string) json.RawMessage {
	if c.URI != "" {
		uri = c.URI
	}
	pairs := []string{"uri", uri}
	if c.MIME != "" {
		pairs = append(pairs, "mimeType", c.MIME)
	}
	if c.Blob != nil {
		pairs = append(pairs, "blob", base64.StdEncoding.EncodeToString(c.Blob))
	} else {
		pairs = append(pairs, "text", strings.ToValidUTF8(c.Text, "\uFFFD"))
	}
	return object(pairs...)
}
