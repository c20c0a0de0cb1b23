package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/toolwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// Finish implements [blockwire.StreamWire].
func (e *streamEncoder) Finish(dst []byte, p *blockwire.Out, final dragoman.Part) ([]byte, error) {
	switch part := final.(type) {
	case *dragoman.Text:
		return e.finishText(dst, p, part)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.At.String(), "a refusal written as text")
		extra.Report(e.rep, part.Extra, name, p.At)
		return e.finishText(dst, p, &dragoman.Text{Text: part.Text})
	case *dragoman.Data:
		return e.finishText(dst, p, &dragoman.Text{Text: string(part.JSON)})
	case *dragoman.Reasoning:
		return e.finishReasoning(dst, p, part)
	case *dragoman.ToolCall:
		return e.finishCall(dst, p, part)
	case *dragoman.Opaque:
		return e.finishOpaque(dst, p, part), nil
	case *dragoman.Media:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "an answer takes no %s; a note stands in for it", part.Media)
		return e.finishText(dst, p, &dragoman.Text{Text: toolwire.Placeholder(part)})
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "%s has no place in an answer", extra.A(string(part.Kind())))
		return dst, nil
	}
}

func (e *streamEncoder) finishText(dst []byte, p *blockwire.Out, t *dragoman.Text) ([]byte, error) {
	rest := e.Remainder(p, t.Text)
	dst, err := e.Begun(dst, p, t)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "text_delta", "text", rest, nil)
	}
	extra.Report(e.rep, t.Extra, name, p.At)
	extra.ReportState(e.rep, t.Signature, p.At)
	if list, ok := extra.Get(t.Extra, name, "/citations"); ok && len(list) > 0 && list[0] == '[' {
		r := jsonwire.NewReader(list)
		for range r.Array() {
			citation := r.Raw()
			if r.Err() != nil {
				break
			}
			w := e.frame("content_block_delta")
			w.IntField("index", p.Index)
			w.Key("delta")
			w.BeginObject()
			w.StringField("type", "citations_delta")
			w.RawField("citation", citation)
			w.EndObject()
			dst = e.flush(dst, "content_block_delta")
		}
	}
	return e.StopBlock(dst, p), nil
}

// finishReasoning closes thinking with its signature; thinking of which nothing
// can be shown has no block.
func (e *streamEncoder) finishReasoning(dst []byte, p *blockwire.Out, r *dragoman.Reasoning) ([]byte, error) {
	signature := blockwire.Signature(r, e.first.Origin, name, p.At, e.rep)
	extra.Report(e.rep, r.Extra, name, p.At)
	if !p.Opened() {
		if !blockwire.Shows(r, e.first.Origin, name) {
			return dst, nil
		}
		if r.Redacted {
			var w jsonwire.Writer
			writeReasoning(&w, r, "")
			return e.whole(dst, p, w.Buf), nil
		}
	}
	rest := e.Remainder(p, blockwire.Visible(r))
	dst, err := e.Begun(dst, p, r)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "thinking_delta", "thinking", rest, nil)
	}
	if signature != "" {
		dst = e.deltaFrame(dst, p, "signature_delta", "signature", signature, nil)
	}
	return e.StopBlock(dst, p), nil
}

// finishCall closes a call. Its arguments go out as they came, also when they
// are not JSON: the client sees what the model wrote. Nothing is written for
// an empty object, which the start of the block already says (quirk C19).
func (e *streamEncoder) finishCall(dst []byte, p *blockwire.Out, c *dragoman.ToolCall) ([]byte, error) {
	if c.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "call of %q was run by its provider", c.Name)
		return dst, nil
	}
	rest := e.callRest(p, c)
	dst, err := e.Begun(dst, p, c)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "input_json_delta", "partial_json", rest, nil)
	}
	wirekit.ReportCall(e.reg, c, p.Sent.Len() > 0, p.At, e.rep)
	return e.StopBlock(dst, p), nil
}

// callRest is what of a call's arguments was not sent yet.
func (e *streamEncoder) callRest(p *blockwire.Out, c *dragoman.ToolCall) string {
	whole := p.WholeArguments(c)
	if p.Sent.Len() == 0 && whole == "{}" {
		return ""
	}
	return e.Remainder(p, whole)
}

// finishOpaque writes a block as it is. The input of a tool that the provider
// runs comes in a delta, as clients expect it.
func (e *streamEncoder) finishOpaque(dst []byte, p *blockwire.Out, o *dragoman.Opaque) []byte {
	if o.Dialect != name {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "%s of %s has no place here", extra.A(o.Type), o.Dialect)
		return dst
	}
	if o.Type == "" {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, p.At.String(), "a block without a type cannot be streamed")
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
			raw = withMembers(raw, member{name: "input", raw: []byte("{}")})
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

// whole writes a block that comes complete with its start.
func (e *streamEncoder) whole(dst []byte, p *blockwire.Out, raw []byte) []byte {
	w := e.blockFrame(p)
	w.Raw(raw)
	dst = e.flushStart(dst, p)
	return e.StopBlock(dst, p)
}
