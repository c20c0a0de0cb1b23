package bedrock

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/toolwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// openCall writes the start of a call: the block as it is in a response, but
// for its input, which comes in deltas.
func (e *streamEncoder) openCall(dst []byte, p *blockwire.Out, part *dragoman.ToolCall) ([]byte, error) {
	c := *e.identified(part, p.At)
	c.Arguments, c.Payload, c.Problem = "", dragoman.PayloadObject, nil
	var block jsonwire.Writer
	if err := e.reg.WriteCall(&block, &c, p.At, new(dragoman.Report)); err != nil { // its end reports
		return dst, fmt.Errorf("bedrock: %s: %w", p.At, err)
	}
	return e.blockStart(dst, p, withoutInner(block.Buf, keyCall, "input")), nil
}

// blockStart writes the start of a block.
func (e *streamEncoder) blockStart(dst []byte, p *blockwire.Out, opening []byte) []byte {
	w := e.frame()
	w.IntField("contentBlockIndex", p.Index)
	w.Key("start")
	w.Known(opening)
	extra.WriteBelow(w, p.Opening, name, "", "/start")
	p.Opening = nil
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
		return e.finishOpaque(dst, p, part)
	case *dragoman.Media:
		return e.finishMedia(dst, p, part)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "%s has no place in an answer", extra.A(string(part.Kind())))
		return dst, nil
	}
}

func (e *streamEncoder) finishText(dst []byte, p *blockwire.Out, t *dragoman.Text) ([]byte, error) {
	rest := e.Remainder(p, t.Text)
	cites := citations(t)
	extra.Report(e.rep, t.Extra, name, p.At)
	extra.ReportState(e.rep, t.Signature, p.At)
	if !p.Opened() && rest == "" && len(cites) == 0 {
		return dst, nil // a text of nothing has no block that anybody could see
	}
	dst, err := e.Begun(dst, p, t)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.textDelta(dst, p, rest, nil)
	}
	for _, c := range cites {
		dst = e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) { w.RawField("citation", c) })
	}
	return e.StopBlock(dst, p), nil
}

// citations are those of a text.
func citations(t *dragoman.Text) [][]byte {
	list, ok := extra.Get(t.Extra, name, "/citationsContent/citations")
	if !ok || len(list) == 0 || list[0] != '[' {
		return nil
	}
	var out [][]byte
	r := jsonwire.NewReader(list)
	for range r.Array() {
		if c := r.Raw(); r.Err() == nil {
			out = append(out, c)
		}
	}
	return out
}

// finishReasoning closes thinking with its signature; thinking of which nothing
// can be shown has no block.
func (e *streamEncoder) finishReasoning(dst []byte, p *blockwire.Out, r *dragoman.Reasoning) ([]byte, error) {
	signature := blockwire.Signature(r, e.first.Origin, name, p.At, e.rep)
	extra.Report(e.rep, r.Extra, name, p.At)
	if !p.Opened() && !blockwire.Shows(r, e.first.Origin, name) {
		return dst, nil
	}
	if r.Redacted {
		dst, err := e.Begun(dst, p, r)
		if err == nil {
			dst = e.thought(dst, p, "redactedContent", r.Encrypted, nil)
		}
		return e.StopBlock(dst, p), err
	}
	rest := e.Remainder(p, blockwire.Visible(r))
	if !p.Opened() && rest == "" && signature == "" {
		return dst, nil
	}
	dst, err := e.Begun(dst, p, r)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.thought(dst, p, "text", rest, nil)
	}
	if signature != "" {
		dst = e.thought(dst, p, "signature", signature, nil)
	}
	return e.StopBlock(dst, p), nil
}

// finishCall closes a call. Its arguments go out as they came, also when they
// are not JSON: the client sees what the model wrote.
func (e *streamEncoder) finishCall(dst []byte, p *blockwire.Out, c *dragoman.ToolCall) ([]byte, error) {
	if c.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "call of %q was run by its provider", c.Name)
		return dst, nil
	}
	rest := e.Remainder(p, p.WholeArguments(c))
	dst, err := e.Begun(dst, p, c)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.inputDelta(dst, p, rest, nil)
	}
	wirekit.ReportCall(e.reg, c, p.Sent.Len() > 0, p.At, e.rep)
	return e.StopBlock(dst, p), nil
}

// finishMedia writes an image in one piece; other media has no form in a
// stream, and a note stands in for it.
func (e *streamEncoder) finishMedia(dst []byte, p *blockwire.Out, m *dragoman.Media) ([]byte, error) {
	if m.Media != dragoman.MediaImage || refusesMedia(e.reg.View(), m) != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "a stream takes no such %s; a note stands in for it", m.Media)
		return e.finishText(dst, p, &dragoman.Text{Text: toolwire.Placeholder(m)})
	}
	var block jsonwire.Writer
	writeMedia(e.reg.View(), &block, m, p.At, e.rep)
	e.Number(p)
	dst = e.blockStart(dst, p, withoutInner(block.Buf, "image", "source"))
	dst = e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) {
		w.Key("image")
		w.BeginObject()
		w.RawField("source", inner(block.Buf, "image", "source"))
		w.EndObject()
	})
	return e.StopBlock(dst, p), nil
}

// finishOpaque writes the block of a tool that the provider runs; others have
// no form in a stream.
func (e *streamEncoder) finishOpaque(dst []byte, p *blockwire.Out, o *dragoman.Opaque) ([]byte, error) {
	lost := func(sev dragoman.Severity, format string, args ...any) {
		e.rep.Addf(dragoman.Dropped, sev, p.At.String(), format, args...)
	}
	if o.Dialect != name {
		lost(dragoman.Serious, "%s of %s has no place here", extra.A(o.Type), o.Dialect)
		return dst, nil
	}
	if !json.Valid(o.JSON) {
		lost(dragoman.Serious, "%s that is no JSON", extra.A(o.Type))
		return dst, nil
	}
	key, member := startKey(o.JSON), ""
	switch key {
	case keyCall:
		member = "input"
	case keyResult:
		member = "content"
	default:
		lost(dragoman.Warn, "%s cannot be streamed", extra.A(o.Type))
		return dst, nil
	}
	e.Number(p)
	dst = e.blockStart(dst, p, withoutInner(o.JSON, key, member))
	value := inner(o.JSON, key, member)
	switch {
	case value == nil:
	case key == keyResult:
		dst = e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) { w.RawField(keyResult, value) })
	default:
		dst = e.inputDelta(dst, p, string(value), nil)
	}
	return e.StopBlock(dst, p), nil
}
