package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Citations implements [blockwire.EventWriter].
func (e *streamEncoder) Citations(t *dragoman.Text) [][]byte {
	return blockwire.Elements(extra.Get(t.Extra, name, "/citations"))
}

// Cite implements [blockwire.EventWriter].
func (e *streamEncoder) Cite(dst []byte, p *blockwire.Out, citation []byte) []byte {
	w := e.frame("content_block_delta")
	w.IntField("index", p.Index)
	w.Key("delta")
	w.BeginObject()
	w.StringField("type", "citations_delta")
	w.RawField("citation", citation)
	w.EndObject()
	return e.flush(dst, "content_block_delta")
}

// Signature implements [blockwire.EventWriter].
func (e *streamEncoder) Signature(dst []byte, p *blockwire.Out, signature string) []byte {
	return e.deltaFrame(dst, p, "signature_delta", "signature", signature, nil)
}

// Redacted implements [blockwire.EventWriter]. Redacted thinking is written in
// one event.
func (e *streamEncoder) Redacted(dst []byte, p *blockwire.Out, r *dragoman.Reasoning) ([]byte, error) {
	writeReasoning(e.blockFrame(p), r, "")
	dst = e.flushStart(dst, p)
	return e.StopBlock(dst, p), nil
}

// Media implements [blockwire.EventWriter]. A response cannot contain media.
func (e *streamEncoder) Media(dst []byte, _ *blockwire.Out, _ *dragoman.Media) ([]byte, bool) {
	return dst, false
}

// Opaque implements [blockwire.EventWriter]. The input of a hosted tool is
// written as a delta, as clients expect.
func (e *streamEncoder) Opaque(dst []byte, p *blockwire.Out, o *dragoman.Opaque) []byte {
	if o.Type == "" {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, p.At.String(), "block without a type cannot be streamed")
		return dst
	}
	raw := o.JSON
	input := []byte(nil)
	if o.Type == "server_tool_use" || o.Type == "mcp_tool_use" {
		r := jsonwire.NewReader(raw)
		for key := range r.Object() {
			if string(key) == "input" && r.Kind() == '{' {
				input = r.Raw()
			} else {
				r.Skip()
			}
		}
		if input != nil {
			raw = withFields(raw, field{name: "input", raw: []byte("{}")})
		}
	}
	w := e.blockFrame(p)
	w.Raw(raw)
	dst = e.flushStart(dst, p)
	if input != nil && string(input) != "{}" {
		dst = e.deltaFrame(dst, p, "input_json_delta", "partial_json", string(input), nil)
	}
	return e.StopBlock(dst, p)
}
