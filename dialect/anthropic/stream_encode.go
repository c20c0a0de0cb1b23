package anthropic

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec].
//
// Its output satisfies the strictest clients (quirk C20): one message_start;
// blocks one after the other with consecutive indexes; start before delta
// before stop; non-empty deltas of the block's own kind; at least one block;
// message_delta, then message_stop. Overlapping parts are written one by one: a
// later part waits until the open one ends (quirk C21).
//
// Unknown events and unknown fields of this dialect are written.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	e := &streamEncoder{StreamEncoder: blockwire.NewStreamEncoder(format, o)}
	e.response = responseEncoder{e.ResponseEncoder}
	e.Use(e)
	e.BareStart = true
	return e
}

type streamEncoder struct {
	blockwire.StreamEncoder
	response responseEncoder
}

// WriteUnknown implements [blockwire.EventWriter].
func (e *streamEncoder) WriteUnknown(dst, raw []byte) []byte {
	for _, event := range sse.Events(raw) {
		dst = sse.Append(dst, cmp.Or(string(event.Name), wirekit.EventType(event.Data)), event.Data)
	}
	return dst
}

// frame starts the data of an event.
func (e *streamEncoder) frame(typ string) *jsonwire.Writer {
	e.W.Buf = e.W.Buf[:0]
	e.W.BeginObject()
	e.W.StringField("type", typ)
	return &e.W
}

// flush writes the current event.
func (e *streamEncoder) flush(dst []byte, typ string) []byte {
	e.W.EndObject()
	if bytes.ContainsAny(e.W.Buf, "\r\n") {
		e.W.Buf = oneLine(e.W.Buf) // a native value may span several lines
	}
	return sse.Append(dst, typ, e.W.Buf)
}

// WriteStart implements [blockwire.EventWriter].
func (e *streamEncoder) WriteStart(dst []byte, resp *dragoman.Response, fields *dragoman.Extra) []byte {
	e.Counted = resp.Usage
	w := e.frame("message_start")
	w.Key("message")
	w.BeginObject()
	e.response.header(w, resp)
	w.Key("content")
	w.BeginArray()
	w.EndArray()
	w.NullField("stop_reason")
	w.NullField("stop_sequence")
	extra.Write(w, resp.Extra, name, "")
	w.Key("usage")
	tier := responseTiers().ResponseTier(resp.ServiceTier, resp.Origin, e.Rep)
	writeUsage(w, resp.Usage, tier, new(dragoman.Report)) // message_delta reports the losses
	w.EndObject()
	extra.WriteBelow(w, fields, name, "")
	return e.flush(dst, "message_start")
}

// OpenBlock implements [blockwire.StreamWire]. It writes content_block_start
// with the empty field that clients append to.
func (e *streamEncoder) OpenBlock(dst []byte, p *blockwire.Out, part dragoman.Part) ([]byte, error) {
	w := e.blockFrame(p)
	switch part := part.(type) {
	case *dragoman.Reasoning:
		w.BeginObject()
		w.StringField("type", "thinking")
		w.StringField("thinking", "")
		w.StringField("signature", "")
		extra.Write(w, part.Extra, name, "")
		w.EndObject()
	case *dragoman.ToolCall:
		c := *e.Identified(part, p.At)
		c.Arguments, c.Payload, c.Cache, c.Problem = "", codes.PayloadObject, nil, nil
		if err := e.Reg.WriteCall(w, &c, p.At, new(dragoman.Report)); err != nil { // the end of the call reports the losses
			return dst, fmt.Errorf("anthropic: %s: %w", p.At, err)
		}
	default:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", "")
		if t, ok := part.(*dragoman.Text); ok {
			extra.WriteUnless(w, t.Extra, name, func(path string) bool { return path == "/citations" })
			if v, ok := extra.Get(t.Extra, name, "/citations"); ok && string(v) == "null" {
				w.NullField("citations")
			} else if ok {
				w.RawField("citations", []byte("[]")) // the list follows in deltas
			}
		}
		w.EndObject()
	}
	return e.flushStart(dst, p), nil
}

// flushStart writes the current block start.
func (e *streamEncoder) flushStart(dst []byte, p *blockwire.Out) []byte {
	extra.WriteBelow(&e.W, p.Opening, name, "")
	return e.flush(dst, "content_block_start")
}

// blockFrame starts the next block.
func (e *streamEncoder) blockFrame(p *blockwire.Out) *jsonwire.Writer {
	e.Number(p)
	w := e.frame("content_block_start")
	w.IntField("index", p.Index)
	w.Key("content_block")
	return w
}

// Delta implements [blockwire.StreamWire].
func (e *streamEncoder) Delta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	return e.fragment(dst, p, p.Skeleton, text, fields)
}

// deltaFrame writes a delta of the open block. The fields may include an
// unknown type; such a delta has no text.
func (e *streamEncoder) deltaFrame(dst []byte, p *blockwire.Out, typ, key, text string, fields *dragoman.Extra) []byte {
	w := e.frame("content_block_delta")
	w.IntField("index", p.Index)
	w.Key("delta")
	w.BeginObject()
	if _, unknown := extra.Get(fields, name, "/delta/type"); !unknown {
		w.StringField("type", typ)
		w.StringField(key, text)
	}
	extra.Write(w, fields, name, "/delta")
	w.EndObject()
	extra.WriteBelow(w, fields, name, "", "/delta")
	return e.flush(dst, "content_block_delta")
}

// StopBlock implements [blockwire.StreamWire].
func (e *streamEncoder) StopBlock(dst []byte, p *blockwire.Out) []byte {
	dst = e.Fields(dst, p)
	w := e.frame("content_block_stop")
	w.IntField("index", p.Index)
	extra.WriteBelow(w, p.Closing, name, "")
	return e.flush(dst, "content_block_stop")
}

// Fragment implements [blockwire.EventWriter].
func (e *streamEncoder) Fragment(dst []byte, p *blockwire.Out, part dragoman.Part, text string) []byte {
	return e.fragment(dst, p, part, text, nil)
}

func (e *streamEncoder) fragment(dst []byte, p *blockwire.Out, part dragoman.Part, text string, fields *dragoman.Extra) []byte {
	switch part.(type) {
	case *dragoman.Reasoning:
		return e.deltaFrame(dst, p, "thinking_delta", "thinking", text, fields)
	case *dragoman.ToolCall:
		return e.deltaFrame(dst, p, "input_json_delta", "partial_json", text, fields)
	default:
		return e.deltaFrame(dst, p, "text_delta", "text", text, fields)
	}
}

// WriteEnd implements [blockwire.EventWriter].
func (e *streamEncoder) WriteEnd(dst []byte, ev *dragoman.ResponseEnd) (_ []byte, err error) {
	resp := ev.Response
	resp.Alternatives = nil
	if resp.Extra == nil {
		resp.Extra = e.First.Extra
	}
	note, rest := e.response.failure(wirekit.EffectiveStop(ev.Stop, e.Ended(), wirekit.BlockedReason), e.Calls, resp.Extra)
	if e.Next == 0 || note != "" { // some clients treat a message without blocks as broken
		if dst, err = e.wholeText(dst, note); err != nil {
			return dst, err
		}
	}
	dst = e.messageDelta(dst, ev)
	extra.WriteBelow(e.frame("message_stop"), ev.Extra, name, "")
	dst = e.flush(dst, "message_stop")
	if resp.Created.IsZero() {
		resp.Created = e.First.Created
	}
	if tier := resp.ServiceTier; tier != "" && tier != e.First.ServiceTier {
		e.Rep.Addf(dragoman.Dropped, dragoman.Info, "/service_tier", "service tier %.40q arrived after message_start, which is the only event that has it", tier)
	}
	e.response.reportResponse(&resp, rest)
	return dst, nil
}

// wholeText writes a text block that no event announced.
func (e *streamEncoder) wholeText(dst []byte, text string) ([]byte, error) {
	p := &blockwire.Out{Skeleton: &dragoman.Text{}, Sent: stream.SentOf(&dragoman.Text{})}
	dst, err := e.OpenBlock(dst, p, p.Skeleton)
	if err != nil {
		return dst, err
	}
	if text != "" {
		dst = e.Delta(dst, p, text, nil)
	}
	return e.StopBlock(dst, p), nil
}

func (e *streamEncoder) messageDelta(dst []byte, ev *dragoman.ResponseEnd) []byte {
	origin := ev.Response.Origin
	if origin == nil {
		origin = e.First.Origin
	}
	w := e.frame("message_delta")
	w.Key("delta")
	w.BeginObject()
	e.response.stop(w, ev.Stop, wirekit.EffectiveStop(ev.Stop, e.Ended(), wirekit.BlockedReason), origin, e.Calls, e.Refused)
	news := unwrittenFields(e.First.Extra, ev.Response.Extra)
	inside := func(path string) bool {
		return path == "/container" || path == "/stop_details" && ev.Stop.Details == nil
	}
	extra.WriteUnless(w, news, name, func(path string) bool { return !inside(path) })
	w.EndObject()
	extra.WriteUnless(w, news, name, func(path string) bool {
		switch path {
		case "/stop_details", "/type", "/delta", "/usage":
			return true
		default:
			return inside(path)
		}
	})
	usage := wirekit.FillTotals(e.First.Usage.Merge(ev.Usage), e.Rep)
	if !usage.Output.Known {
		e.Rep.Add(dragoman.Synthesized, dragoman.Info, "/usage", "unknown counts written as 0 because clients require them")
	}
	extra.Report(e.Rep, usage.Extra, name, extra.At("/usage"))
	usage.Extra = unwrittenFields(e.First.Usage.Extra, usage.Extra)
	w.Key("usage")
	writeCounters(w, usage, "")
	return e.flush(dst, "message_delta")
}

// unwrittenFields returns the fields of all that are not in written, or have another
// value there.
func unwrittenFields(written, all *dragoman.Extra) *dragoman.Extra {
	if all.For(name) == nil {
		return nil
	}
	known := make(map[string]string)
	for _, f := range written.For(name) {
		known[f.Path] = string(f.Value)
	}
	out := &dragoman.Extra{Dialect: name}
	for _, f := range all.Fields {
		if v, ok := known[f.Path]; !ok || v != string(f.Value) {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// WriteError implements [blockwire.EventWriter].
func (e *streamEncoder) WriteError(dst []byte, err *dragoman.APIError) []byte {
	typ, _ := errorTypeOf(err)
	if raw := nativeError(err); raw != nil && err.Type != "" && typeOf(raw) == "error" {
		e.W.Raw(oneLine(raw))
	} else {
		wirekit.ReportError(e.Rep, err, writeError(&e.W, err, typ), "/error")
	}
	return sse.Append(dst, "error", e.W.Buf)
}

// oneLine removes line breaks from JSON, because SSE would split it there.
func oneLine(raw []byte) []byte {
	return slices.DeleteFunc(slices.Clone(raw), func(b byte) bool { return b == '\n' || b == '\r' })
}
