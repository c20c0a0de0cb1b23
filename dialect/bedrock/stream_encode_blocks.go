package bedrock

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// openCall writes the start of a call: the block as in a response, without its
// input, which is written as deltas.
func (e *streamEncoder) openCall(dst []byte, p *blockwire.Out, part *dragoman.ToolCall) ([]byte, error) {
	c := *e.Identified(part, p.At)
	c.Arguments, c.Payload, c.Problem = "", codes.PayloadObject, nil
	var block jsonwire.Writer
	if err := e.Reg.WriteCall(&block, &c, p.At, new(dragoman.Report)); err != nil { // the end of the call reports the losses
		return dst, fmt.Errorf("bedrock: %s: %w", p.At, err)
	}
	return e.blockStart(dst, p, withInner(block.Buf, keyCall, "input", nil)), nil
}

func (e *streamEncoder) blockStart(dst []byte, p *blockwire.Out, opening []byte) []byte {
	w := e.frame()
	w.IntField("contentBlockIndex", p.Index)
	w.Key("start")
	w.Known(opening)
	extra.WriteBelow(w, p.Opening, name, "", "/start")
	p.Opening = nil
	return e.flush(dst, eventBlockStart)
}

// innerField returns a field of the inner object of a block, or nil.
func innerField(raw []byte, key, field string) (value []byte) {
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
			if string(k) == field {
				value = r.Raw()
			} else {
				r.Skip()
			}
		}
	}
	return value
}

// Citations implements [blockwire.EventWriter].
func (e *streamEncoder) Citations(t *dragoman.Text) [][]byte {
	return blockwire.Elements(extra.Get(t.Extra, name, "/citationsContent/citations"))
}

// Cite implements [blockwire.EventWriter].
func (e *streamEncoder) Cite(dst []byte, p *blockwire.Out, citation []byte) []byte {
	return e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) { w.RawField("citation", citation) })
}

// Signature implements [blockwire.EventWriter].
func (e *streamEncoder) Signature(dst []byte, p *blockwire.Out, signature string) []byte {
	return e.thought(dst, p, "signature", signature, nil)
}

// Redacted implements [blockwire.EventWriter].
func (e *streamEncoder) Redacted(dst []byte, p *blockwire.Out, r *dragoman.Reasoning) ([]byte, error) {
	dst, err := e.EnsureOpen(dst, p, r)
	if err == nil {
		dst = e.thought(dst, p, "redactedContent", r.Encrypted, nil)
	}
	return e.StopBlock(dst, p), err
}

// Media implements [blockwire.EventWriter]. It writes an image in one delta.
// Other media cannot be streamed and is replaced by a note.
func (e *streamEncoder) Media(dst []byte, p *blockwire.Out, m *dragoman.Media) ([]byte, bool) {
	if m.Media != codes.MediaImage || refusesMedia(e.Reg.View(), m) != "" {
		return dst, false
	}
	var block jsonwire.Writer
	writeMedia(e.Reg.View(), &block, m, p.At, e.Rep)
	e.Number(p)
	dst = e.blockStart(dst, p, withInner(block.Buf, "image", "source", nil))
	dst = e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) {
		w.Key("image")
		w.BeginObject()
		w.RawField("source", innerField(block.Buf, "image", "source"))
		w.EndObject()
	})
	return e.StopBlock(dst, p), true
}

// Opaque implements [blockwire.EventWriter]. It writes the block of a hosted
// tool. Other blocks cannot be streamed.
func (e *streamEncoder) Opaque(dst []byte, p *blockwire.Out, o *dragoman.Opaque) []byte {
	lost := func(sev dragoman.Severity, format string, args ...any) {
		e.Rep.Addf(dragoman.Dropped, sev, p.At.String(), format, args...)
	}
	if !json.Valid(o.JSON) {
		lost(dragoman.Serious, "%s block that is not valid JSON", o.Type)
		return dst
	}
	key, field := startKey(o.JSON), ""
	switch key {
	case keyCall:
		field = "input"
	case keyResult:
		field = "content"
	default:
		lost(dragoman.Warn, "%s block cannot be streamed", o.Type)
		return dst
	}
	e.Number(p)
	dst = e.blockStart(dst, p, withInner(o.JSON, key, field, nil))
	value := innerField(o.JSON, key, field)
	switch {
	case value == nil:
	case key == keyResult:
		dst = e.deltaFrame(dst, p, nil, func(w *jsonwire.Writer) { w.RawField(keyResult, value) })
	default:
		dst = e.inputDelta(dst, p, string(value), nil)
	}
	return e.StopBlock(dst, p)
}
