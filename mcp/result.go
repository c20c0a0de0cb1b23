package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/tool"
)

// maxBlocks limits the blocks of a result.
const maxBlocks = 10_000

// output returns the result of a call for the model. The _meta of the result stays out of it.
func (t *remoteTool) output(raw json.RawMessage) (tool.Output, error) {
	m := fieldsOf(raw)
	out := tool.Output{Failed: string(m["isError"]) == "true"}
	if t.server.all.opts.Forward {
		out.Envelope = &dragoman.Native{Format: formatMCP, JSON: raw}
	}
	parts, texts, err := contentParts(m["content"])
	if err != nil {
		return out, &serverError{fmt.Sprintf("The server %q sent a result that cannot be read: %v", t.server.label, err), err}
	}
	structured, has := m["structuredContent"]
	o := &t.server.all.opts
	switch {
	case !has:
	case out.Failed: // the message matters, not whether the value fits the schema (quirk H7)
		if strings.TrimSpace(strings.Join(texts, "")) == "" {
			parts = append(parts, &dragoman.Data{JSON: structured})
		}
	default:
		if t.results != nil && o.StrictOutput {
			if err := t.results.Validate(structured); err != nil {
				return out, &serverError{fmt.Sprintf("The server %q ran %s, but its result violates its schema: %v", t.server.label, t.def.Name, err), err}
			}
		}
		same := len(texts) == 1 && sameJSON(texts[0], structured)
		switch {
		case len(parts) > 0 && sameJSON(string(m["content"]), fieldsOf(structured)["content"]):
			// The value repeats the blocks, and with them the data of images.
		case len(texts) == 0:
			parts = append(parts, &dragoman.Data{JSON: structured})
		case same && o.PreferStructured, o.PreferStructured:
			parts = slices.DeleteFunc(parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindText && !embedded(p) })
			parts = append([]dragoman.Part{&dragoman.Data{JSON: structured}}, parts...)
		}
	}
	out.Content = parts
	if out.Failed && len(parts) == 0 {
		out.Content = []dragoman.Part{&dragoman.Text{Text: "The tool failed without a message."}}
	}
	return out, nil
}

// embedded reports whether a part is the text of a resource, which has a heading.
func embedded(p dragoman.Part) bool {
	t, ok := p.(*dragoman.Text)
	return ok && strings.HasPrefix(t.Text, resourceHeading)
}

const resourceHeading = "Resource "

// sameJSON reports whether a text is the JSON of a value.
func sameJSON(text string, value json.RawMessage) bool {
	a, err := catalog.Canonical(json.RawMessage(text))
	if err != nil {
		return false
	}
	b, err := catalog.Canonical(value)
	return err == nil && bytes.Equal(a, b)
}

// contentParts returns the blocks of a result, and the texts among them. A block that cannot be
// read does not hide the others (quirk H8).
func contentParts(raw json.RawMessage) (parts []dragoman.Part, texts []string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, nil
	}
	r := jsonwire.NewReader(raw)
	if r.Kind() != '[' {
		return nil, nil, fmt.Errorf("its content is not a list")
	}
	for i := range r.Array() {
		block := slices.Clone(r.Raw())
		if i >= maxBlocks {
			continue
		}
		p := contentPart(block)
		if text, ok := p.(*dragoman.Text); ok && jsonwire.Unquote(fieldsOf(block)["type"]) == "text" {
			texts = append(texts, text.Text)
		}
		parts = append(parts, p)
	}
	return parts, texts, r.Err()
}

// maxMeta limits the annotations and the _meta of a block, each.
const maxMeta = 64 << 10

// contentPart returns a block as a part. Its annotations and _meta are for programs: they are
// kept in Extra, which no model gets (quirk H14).
func contentPart(block json.RawMessage) dragoman.Part {
	m := fieldsOf(block)
	p := plainPart(block, m)
	for _, name := range []string{"annotations", "_meta"} {
		raw := m[name]
		if len(raw) == 0 || raw[0] != '{' || len(raw) > maxMeta {
			continue
		}
		switch p := p.(type) {
		case *dragoman.Text:
			extra.Add(&p.Extra, extra.MCP, "", []byte(name), raw)
		case *dragoman.Media:
			extra.Add(&p.Extra, extra.MCP, "", []byte(name), raw)
		}
	}
	return p
}

// plainPart returns the content of a block.
func plainPart(block json.RawMessage, m map[string]json.RawMessage) dragoman.Part {
	str := func(name string) string { return jsonwire.Unquote(m[name]) }
	switch kind := str("type"); kind {
	case "text":
		return &dragoman.Text{Text: str("text")}
	case "image", "audio":
		return media(kind, str("mimeType"), str("data"), "")
	case "resource_link":
		text := fmt.Sprintf("Link to a resource: %s <%s>", str("name"), str("uri"))
		if mime := str("mimeType"); mime != "" {
			text += " (" + mime + ")"
		}
		if d := str("description"); d != "" {
			text += ": " + d
		}
		return &dragoman.Text{Text: text}
	case "resource":
		return resourcePart(m["resource"])
	default: // unknown: the model may read it, but not its metadata
		rest := jsonwire.Without(block, "_meta", "annotations")
		return &dragoman.Text{Text: string(rest)}
	}
}

// resourcePart returns the contents of a resource as a part.
func resourcePart(raw json.RawMessage) dragoman.Part {
	m := fieldsOf(raw)
	uri, mime := jsonwire.Unquote(m["uri"]), jsonwire.Unquote(m["mimeType"])
	switch {
	case m["text"] != nil:
		return &dragoman.Text{Text: resourceHeading + uri + ":\n" + jsonwire.Unquote(m["text"])}
	case m["blob"] != nil:
		kind := "file"
		for _, k := range []string{codes.MediaImage, "audio", "video"} {
			if strings.HasPrefix(mime, k+"/") {
				kind = k
			}
		}
		return media(kind, mime, jsonwire.Unquote(m["blob"]), uri)
	default:
		return &dragoman.Text{Text: string(raw)}
	}
}

// media returns a part with binary content, or a note if that cannot be decoded.
func media(kind, mime, data, name string) dragoman.Part {
	standard, err := standardBase64(data)
	if err != nil || standard == "" {
		return &dragoman.Text{Text: fmt.Sprintf("(The server sent %s content of the type %q that cannot be decoded.)", kind, mime)}
	}
	if mime == "" {
		mime = map[string]string{"image": "image/png", "audio": "audio/wav"}[kind]
		if mime == "" {
			mime = "application/octet-stream"
		}
	}
	return &dragoman.Media{Media: kind, MIME: mime, Base64: standard, Name: name}
}

// standardBase64 returns base64 in the standard alphabet with padding. Servers send it with
// line ends, in the URL alphabet, without padding, or as a data URL.
func standardBase64(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "data:"); ok {
		if _, after, ok := strings.Cut(rest, ";base64,"); ok {
			s = after
		}
	}
	clean := strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(clean, "="))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// fieldsOf returns the fields of an object; nil for any other value.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return nil
	}
	out := map[string]json.RawMessage{}
	for key := range r.Object() {
		name := string(key)
		out[name] = r.Raw()
	}
	return out
}
