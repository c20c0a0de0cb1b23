package bedrock

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/go-json-experiment/json/jsontext"
)

// openCall writes the start of a call: the block as it is in a response, but
// for its input, which comes in deltas.
func (e *streamEncoder) openCall(dst []byte, p *outPart, part *dragoman.ToolCall) ([]byte, error) {
	c := *e.identified(part, p.at)
	c.Arguments, c.Payload, c.Problem = "", dragoman.PayloadObject, nil
	var block jsonwire.Writer
	if err := e.reg.WriteCall(&block, &c, p.at, e.rep); err != nil {
		return dst, fmt.Errorf("bedrock: %s: %w", p.at, err)
	}
	return e.blockStart(dst, p, withoutInner(block.Buf, keyCall, "input")), nil
}

// blockStart writes the start of a block.
func (e *streamEncoder) blockStart(dst []byte, p *outPart, opening []byte) []byte {
	w := e.frame()
	w.IntField("contentBlockIndex", p.block)
	w.Key("start")
	w.Known(opening)
	return e.flush(dst, eventBlockStart)
}

// withoutInner returns a block without a member of the object in it.
func withoutInner(raw []byte, key, inner string) []byte {
	var w jsonwire.Writer
	r := jsonwire.NewReader(raw)
	w.BeginObject()
	for k := range r.Object() {
		w.QuotedKey(string(k))
		if string(k) != key || r.Kind() != '{' {
			w.Known(r.Raw())
			continue
		}
		w.BeginObject()
		for k := range r.Object() {
			if string(k) == inner {
				r.Skip()
				continue
			}
			w.QuotedKey(string(k))
			w.Known(r.Raw())
		}
		w.EndObject()
	}
	w.EndObject()
	if r.Err() != nil {
		return raw
	}
	return w.Buf
}

// inner returns a member of the object in a block; nil where there is none.
func inner(raw []byte, key, member string) (value []byte) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return nil
	}
	for k := range r.Object() {
		if string(k) != key || r.Kind() != '{' {
			r.Skip()
			continue
		}
		for k := range r.Object() {
			if string(k) == member {
				value = r.Raw()
			} else {
				r.Skip()
			}
		}
	}
	return value
}

// finish writes what is left of a part and closes its block. A part that never
// ended is closed with what had arrived.
func (e *streamEncoder) finish(dst []byte, p *outPart) ([]byte, error) {
	final := p.final
	if final == nil {
		final = unfinished(p)
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
		return e.finishOpaque(dst, p, part)
	case *dragoman.Media:
		return e.finishMedia(dst, p, part)
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
		e.rep.Add(dragoman.Dropped, dragoman.Warn, p.at.String(), "the final value differs from the fragments that were sent")
		return ""
	}
	return rest
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
	cites := e.citations(t, p)
	extra.Report(e.rep, t.Extra, name, p.at)
	extra.ReportState(e.rep, t.Signature, p.at)
	if p.block < 0 && rest == "" && len(cites) == 0 {
		return dst, nil // a text of nothing has no block that anybody could see
	}
	dst, err := e.begun(dst, p, t)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.textDelta(dst, p, rest)
	}
	for _, c := range cites {
		dst = e.deltaFrame(dst, p, func(w *jsonwire.Writer) { w.RawField("citation", c) })
	}
	return e.blockStop(dst, p), nil
}

// citations are those of a text that were not sent yet.
func (e *streamEncoder) citations(t *dragoman.Text, p *outPart) [][]byte {
	list, ok := extra.Get(t.Extra, name, "/citationsContent/citations")
	if !ok || len(list) == 0 || list[0] != '[' {
		return nil
	}
	var out [][]byte
	r := jsonwire.NewReader(list)
	for i := range r.Array() {
		if c := r.Raw(); r.Err() == nil && i >= p.cited {
			out = append(out, c)
		}
	}
	return out
}

// finishReasoning closes thinking with its signature; thinking of which nothing
// can be shown has no block.
func (e *streamEncoder) finishReasoning(dst []byte, p *outPart, r *dragoman.Reasoning) ([]byte, error) {
	signature := e.signature(e.first.Origin, r, p.at)
	extra.Report(e.rep, r.Extra, name, p.at)
	if p.block < 0 && !e.shows(e.first.Origin, r) {
		return dst, nil
	}
	if r.Redacted {
		dst, err := e.begun(dst, p, r)
		if err == nil && !p.whole {
			dst = e.thought(dst, p, "redactedContent", r.Encrypted)
		}
		return e.blockStop(dst, p), err
	}
	rest := e.remainder(p, blockwire.Visible(r))
	signature, signed := strings.CutPrefix(signature, p.signed)
	if p.block < 0 && rest == "" && signature == "" {
		return dst, nil
	}
	dst, err := e.begun(dst, p, r)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.thought(dst, p, "text", rest)
	}
	if signed && signature != "" {
		dst = e.thought(dst, p, "signature", signature)
	}
	return e.blockStop(dst, p), nil
}

// finishCall closes a call. Its arguments go out as they came, also when they
// are not JSON: the client sees what the model wrote.
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
		dst = e.inputDelta(dst, p, rest)
	}
	extra.Report(e.rep, c.Extra, name, p.at)
	return e.blockStop(dst, p), nil
}

// callRest is what of a call's arguments was not sent yet.
func (e *streamEncoder) callRest(p *outPart, c *dragoman.ToolCall) string {
	return e.remainder(p, wholeArguments(p, c))
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

// finishMedia writes an image in one piece; other media has no form in a
// stream, and a note stands in for it.
func (e *streamEncoder) finishMedia(dst []byte, p *outPart, m *dragoman.Media) ([]byte, error) {
	if p.block >= 0 && p.whole {
		return e.blockStop(dst, p), nil
	}
	if m.Media != dragoman.MediaImage || e.reg.CanWriteBedrockMedia(m) != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "a stream takes no such %s; a note stands in for it", m.Media)
		return e.finishText(dst, p, &dragoman.Text{Text: interop.Placeholder(m)})
	}
	var block jsonwire.Writer
	e.reg.WriteBedrockMedia(&block, m, p.at, e.rep)
	if p.block < 0 {
		p.block = e.next
		e.next++
		dst = e.blockStart(dst, p, withoutInner(block.Buf, "image", "source"))
	}
	dst = e.deltaFrame(dst, p, func(w *jsonwire.Writer) {
		w.Key("image")
		w.BeginObject()
		w.RawField("source", inner(block.Buf, "image", "source"))
		w.EndObject()
	})
	return e.blockStop(dst, p), nil
}

// finishOpaque writes the block of a tool that the provider runs; others have
// no form in a stream.
func (e *streamEncoder) finishOpaque(dst []byte, p *outPart, o *dragoman.Opaque) ([]byte, error) {
	lost := func(sev dragoman.Severity, format string, args ...any) {
		e.rep.Addf(dragoman.Dropped, sev, p.at.String(), format, args...)
	}
	if p.block >= 0 && p.whole {
		return e.blockStop(dst, p), nil
	}
	if o.Dialect != name {
		lost(dragoman.Serious, "a %.60s of %s has no place here", o.Type, o.Dialect)
		if p.block >= 0 {
			dst = e.blockStop(dst, p)
		}
		return dst, nil
	}
	member := ""
	switch startKey(o.JSON) {
	case keyCall:
		member = "input"
	case keyResult:
		member = "content"
	default:
		if p.block >= 0 {
			return e.blockStop(dst, p), nil
		}
		lost(dragoman.Warn, "a %.60s cannot be streamed", o.Type)
		return dst, nil
	}
	key := startKey(o.JSON)
	if p.block < 0 {
		p.block = e.next
		e.next++
		dst = e.blockStart(dst, p, withoutInner(o.JSON, key, member))
	}
	value := inner(o.JSON, key, member)
	switch {
	case value == nil:
	case key == keyResult:
		dst = e.deltaFrame(dst, p, func(w *jsonwire.Writer) { w.RawField(keyResult, value) })
	default:
		if rest := e.remainder(p, string(value)); rest != "" {
			dst = e.inputDelta(dst, p, rest)
		}
	}
	return e.blockStop(dst, p), nil
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
