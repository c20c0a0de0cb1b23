package anthropic

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/go-json-experiment/json/jsontext"
)

// finish writes what is left of a part and closes its block. A part that never
// ended is closed with what had arrived.
func (e *streamEncoder) finish(dst []byte, p *outPart) ([]byte, error) {
	final := p.final
	if final == nil {
		final = unfinished(p)
	}
	if k := p.skeleton.Kind(); p.block >= 0 && !p.grows() && k != dragoman.KindOpaque && k != dragoman.KindToolCall {
		return e.blockStop(dst, p), nil // a native chunk brought it whole
	}
	switch part := final.(type) {
	case *dragoman.Text:
		return e.finishText(dst, p, part)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.at.String(), "a refusal written as text")
		extra.Report(e.rep, part.Extra, name, p.at)
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
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "an answer takes no %s; a note stands in for it", part.Media)
		return e.finishText(dst, p, &dragoman.Text{Text: interop.Placeholder(part)})
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "a %s has no place in an answer", part.Kind())
		return dst, nil
	}
}

// unfinished is the value of a part whose end never came.
func unfinished(p *outPart) dragoman.Part {
	text := p.sent.String() + string(p.waiting)
	p.waiting = nil
	switch part := p.skeleton.(type) {
	case *dragoman.Text:
		t := *part
		t.Text = text
		return &t
	case *dragoman.Refusal:
		return &dragoman.Refusal{Text: text, Extra: part.Extra}
	case *dragoman.Reasoning:
		r := *part
		r.Text = text
		return &r
	case *dragoman.ToolCall:
		c := *part
		c.Arguments = text
		return &c
	default:
		return part
	}
}

// remainder is what of a text was not sent yet. A text that does not go on
// from what was sent cannot be taken back: that is reported.
func (e *streamEncoder) remainder(p *outPart, whole string) string {
	rest, ok := p.sent.Rest(whole)
	if !ok {
		e.differs(p)
		return ""
	}
	return rest
}

func (e *streamEncoder) differs(p *outPart) {
	e.rep.Add(dragoman.Dropped, dragoman.Warn, p.at.String(), "the final value differs from the fragments that were sent")
}

// begun opens the block of a part that could not open early.
func (e *streamEncoder) begun(dst []byte, p *outPart, part dragoman.Part) ([]byte, error) {
	if p.block >= 0 {
		return dst, nil
	}
	return e.open(dst, p, part)
}

func (e *streamEncoder) finishText(dst []byte, p *outPart, t *dragoman.Text) ([]byte, error) {
	rest := e.remainder(p, t.Text)
	p.waiting = nil
	dst, err := e.begun(dst, p, t)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "text_delta", "text", rest)
	}
	extra.Report(e.rep, t.Extra, name, p.at)
	extra.ReportState(e.rep, t.Signature, p.at)
	if list, ok := extra.Get(t.Extra, name, "/citations"); ok && len(list) > 0 && list[0] == '[' {
		r := jsonwire.NewReader(list)
		for i := range r.Array() {
			citation := r.Raw()
			if r.Err() != nil {
				break
			}
			if i < p.cited {
				continue
			}
			w := e.frame("content_block_delta")
			w.IntField("index", int64(p.block))
			w.Key("delta")
			w.BeginObject()
			w.StringField("type", "citations_delta")
			w.RawField("citation", citation)
			w.EndObject()
			dst = e.flush(dst, "content_block_delta")
		}
	}
	return e.blockStop(dst, p), nil
}

// finishReasoning closes thinking with its signature; thinking of which nothing
// can be shown has no block.
func (e *streamEncoder) finishReasoning(dst []byte, p *outPart, r *dragoman.Reasoning) ([]byte, error) {
	signature := e.signature(e.first.Origin, r, p.at)
	extra.Report(e.rep, r.Extra, name, p.at)
	if p.block < 0 {
		if !e.shows(e.first.Origin, r) {
			return dst, nil
		}
		if r.Redacted {
			var w jsonwire.Writer
			writeReasoning(&w, r, "")
			return e.whole(dst, p, w.Buf), nil
		}
	}
	rest := e.remainder(p, blockwire.Visible(r))
	dst, err := e.begun(dst, p, r)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "thinking_delta", "thinking", rest)
	}
	if signature != "" && !p.signed {
		dst = e.deltaFrame(dst, p, "signature_delta", "signature", signature)
	}
	return e.blockStop(dst, p), nil
}

// finishCall closes a call. Its arguments go out as they came, also when they
// are not JSON: the client sees what the model wrote. Nothing is written for
// an empty object, which the start of the block already says (quirk C19).
func (e *streamEncoder) finishCall(dst []byte, p *outPart, c *dragoman.ToolCall) ([]byte, error) {
	if c.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "call of %q was run by its provider", c.Name)
		return dst, nil
	}
	if c.Payload == dragoman.PayloadText && p.block < 0 {
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.at.String(), `freeform input written as the argument "input" of a function call`)
	}
	rest := e.callRest(p, c)
	dst, err := e.begun(dst, p, c)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.deltaFrame(dst, p, "input_json_delta", "partial_json", rest)
	}
	extra.Report(e.rep, c.Extra, name, p.at)
	return e.blockStop(dst, p), nil
}

// callRest is what of a call's arguments was not sent yet.
func (e *streamEncoder) callRest(p *outPart, c *dragoman.ToolCall) string {
	whole := wholeArguments(p, c)
	if p.sent.Len() == 0 && whole == "{}" {
		return ""
	}
	return e.remainder(p, whole)
}

// wholeArguments are the arguments of a call as fragments bring them.
func wholeArguments(p *outPart, c *dragoman.ToolCall) string {
	obj, exact := c.Object()
	switch {
	case c.Payload == dragoman.PayloadText, exact && p.sent.Len() == 0:
		return string(obj)
	case p.sent.Len() == 0: // a client must not get {} to run, nor two values
		told, _ := interop.AnswerObject(c)
		return string(told)
	default:
		return c.Arguments
	}
}

// contradicts reports whether the end of a part says another call than its
// block on the wire does. Clients run what is closed, so such a block is not.
func (e *streamEncoder) contradicts(p *outPart) bool {
	start, was := p.skeleton.(*dragoman.ToolCall)
	if p.final == nil {
		return false
	}
	c, is := p.final.(*dragoman.ToolCall)
	switch {
	case !was || !is:
		return was != is
	case c.Name != start.Name || c.Namespace != start.Namespace || c.Hosted != start.Hosted:
		return true
	}
	whole := wholeArguments(p, c)
	if p.closed {
		blank, _ := (&dragoman.ToolCall{Arguments: p.sent.String()}).Object()
		return p.sent.String() != whole && !sameArguments(p.sent.String(), whole) && (p.sent.Len() > 0 || string(blank) != whole)
	}
	return !strings.HasPrefix(whole, p.sent.String()) && !sameArguments(p.sent.String(), whole)
}

// sameArguments reports whether arguments that were sent are others only in
// their spelling: white space, or once more in quotes (quirk B3).
func sameArguments(sent, whole string) bool {
	if s := unquote([]byte(strings.TrimSpace(sent))); s != "" {
		sent = s
	}
	a, b := jsontext.Value(sent), jsontext.Value(whole)
	return a.Compact() == nil && b.Compact() == nil && string(a) == string(b)
}

// spliced ends the stream with an error where a call on the wire can no longer
// become the call it is.
func (e *streamEncoder) spliced(dst []byte, p *outPart) []byte {
	const why = "the final value of a call differs from what was streamed of it"
	e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), why+"; the stream ends with an error")
	return e.fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: why})
}

// finishOpaque writes a block as it is. The input of a tool that the provider
// runs comes in a delta, as clients expect it.
func (e *streamEncoder) finishOpaque(dst []byte, p *outPart, o *dragoman.Opaque) []byte {
	if p.block < 0 && o.Dialect != name {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "a %.60s of %s has no place here", o.Type, o.Dialect)
		return dst
	}
	if p.block < 0 && o.Type == "" {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, p.at.String(), "a block without a type cannot be streamed")
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
	if p.block < 0 {
		w := e.blockFrame(p)
		w.Raw(raw)
		dst = e.flush(dst, "content_block_start")
	} else if start, ok := p.skeleton.(*dragoman.Opaque); input == nil && (!ok || string(start.JSON) != string(o.JSON)) {
		// Only the API knows in which deltas the rest would come.
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, p.at.String(), "what came for a %.60s after its chunks ended", o.Type)
	}
	if input != nil && (p.sent.Len() > 0 || string(input) != "{}") {
		if rest := e.remainder(p, string(input)); rest != "" {
			dst = e.deltaFrame(dst, p, "input_json_delta", "partial_json", rest)
		}
	}
	return e.blockStop(dst, p)
}

// whole writes a block that comes complete with its start.
func (e *streamEncoder) whole(dst []byte, p *outPart, raw []byte) []byte {
	w := e.blockFrame(p)
	w.Raw(raw)
	dst = e.flush(dst, "content_block_start")
	return e.blockStop(dst, p)
}

// ended are the calls that came to their end. Their order does not count.
func ended(parts map[int]*outPart) (calls []*dragoman.ToolCall) {
	for _, p := range parts {
		if c, ok := p.final.(*dragoman.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
