package bedrock

import (
	"cmp"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec].
//
// It writes what the API writes: one messageStart; blocks one after the other
// with consecutive indexes, where only calls and images have a start and all
// have a stop (quirk C33); messageStop; metadata. Overlapping parts are written
// one by one: a later part waits until the open one ends (quirk C21).
//
// Unknown events and unknown fields of this dialect are written.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	e := &streamEncoder{StreamEncoder: blockwire.NewStreamEncoder(format, o)}
	e.response = responseEncoder{e.ResponseEncoder}
	e.Use(e)
	return e
}

type streamEncoder struct {
	blockwire.StreamEncoder
	response responseEncoder
}

// WriteUnknown implements [blockwire.EventWriter].
func (e *streamEncoder) WriteUnknown(dst, raw []byte) []byte { return append(dst, raw...) }

// frame starts the payload of an event.
func (e *streamEncoder) frame() *jsonwire.Writer {
	e.W.Buf = e.W.Buf[:0]
	e.W.BeginObject()
	return &e.W
}

// flush writes the current event.
func (e *streamEncoder) flush(dst []byte, typ string) []byte {
	e.W.EndObject()
	return e.message(dst, ":event-type", typ, "event")
}

// message frames the current payload as a message of the given type.
func (e *streamEncoder) message(dst []byte, key, typ, kind string) []byte {
	out, err := eventstream.Append(dst, []eventstream.Header{
		{Name: key, Value: eventstream.Text(typ)},
		{Name: ":content-type", Value: eventstream.Text("application/json")},
		{Name: ":message-type", Value: eventstream.Text(kind)},
	}, e.W.Buf)
	e.Err = cmp.Or(e.Err, err)
	return out
}

// WriteStart implements [blockwire.EventWriter].
func (e *streamEncoder) WriteStart(dst []byte, _ *dragoman.Response, fields *dragoman.Extra) []byte {
	w := e.frame()
	w.StringField("role", "assistant")
	extra.WriteBelow(w, fields, name, "")
	return e.flush(dst, eventStart)
}

// OpenBlock implements [blockwire.StreamWire]. Only calls and images have a
// start.
func (e *streamEncoder) OpenBlock(dst []byte, p *blockwire.Out, part dragoman.Part) ([]byte, error) {
	e.Number(p)
	c, ok := part.(*dragoman.ToolCall)
	if !ok {
		return dst, nil
	}
	return e.openCall(dst, p, c)
}

// Delta implements [blockwire.StreamWire].
func (e *streamEncoder) Delta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	if fields == nil {
		fields, p.Opening = p.Opening, nil // the block has no start
	}
	return e.fragment(dst, p, p.Skeleton, text, fields)
}

// Fragment implements [blockwire.EventWriter].
func (e *streamEncoder) Fragment(dst []byte, p *blockwire.Out, part dragoman.Part, text string) []byte {
	return e.fragment(dst, p, part, text, nil)
}

func (e *streamEncoder) fragment(dst []byte, p *blockwire.Out, part dragoman.Part, text string, fields *dragoman.Extra) []byte {
	switch part.(type) {
	case *dragoman.Reasoning:
		return e.thought(dst, p, "text", text, fields)
	case *dragoman.ToolCall:
		return e.inputDelta(dst, p, text, fields)
	default:
		return e.textDelta(dst, p, text, fields)
	}
}

// deltaFrame writes a delta of the open block: the field that write writes, if
// write is not nil, and unknown fields. A delta is a union, so an unknown field
// gets a delta of its own.
func (e *streamEncoder) deltaFrame(dst []byte, p *blockwire.Out, fields *dragoman.Extra, write func(w *jsonwire.Writer), written ...string) []byte {
	if write != nil && extra.Has(fields, name, "/delta") {
		var known, unknown dragoman.Extra
		for _, f := range fields.Fields {
			if rest, ok := strings.CutPrefix(f.Path, "/delta/"); ok && !strings.Contains(rest, "/") {
				unknown.Fields = append(unknown.Fields, f)
			} else {
				known.Fields = append(known.Fields, f)
			}
		}
		known.Dialect, unknown.Dialect = name, name
		dst = e.deltaFrame(dst, p, &known, write, written...)
		return e.deltaFrame(dst, p, &unknown, nil)
	}
	w := e.frame()
	w.IntField("contentBlockIndex", p.Index)
	w.Key("delta")
	w.BeginObject()
	if write != nil {
		write(w)
	}
	extra.WriteBelow(w, fields, name, "/delta", written...)
	w.EndObject()
	extra.WriteBelow(w, fields, name, "", "/delta")
	return e.flush(dst, eventDelta)
}

func (e *streamEncoder) textDelta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	if text == "" {
		return e.deltaFrame(dst, p, fields, nil)
	}
	return e.deltaFrame(dst, p, fields, func(w *jsonwire.Writer) { w.StringField("text", text) })
}

func (e *streamEncoder) inputDelta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	return e.innerDelta(dst, p, keyCall, "input", text, fields)
}

func (e *streamEncoder) thought(dst []byte, p *blockwire.Out, field, text string, fields *dragoman.Extra) []byte {
	return e.innerDelta(dst, p, keyReasoning, field, text, fields)
}

// innerDelta writes a text inside an object of the delta.
func (e *streamEncoder) innerDelta(dst []byte, p *blockwire.Out, key, field, text string, fields *dragoman.Extra) []byte {
	if text == "" && fields != nil {
		return e.deltaFrame(dst, p, fields, nil)
	}
	place := "/delta/" + key
	return e.deltaFrame(dst, p, fields, func(w *jsonwire.Writer) {
		w.Key(key)
		w.BeginObject()
		w.StringField(field, text)
		extra.WriteBelow(w, fields, name, place)
		w.EndObject()
	}, place)
}

// StopBlock implements [blockwire.StreamWire].
func (e *streamEncoder) StopBlock(dst []byte, p *blockwire.Out) []byte {
	dst = e.Fields(dst, p)
	if p.Opening != nil {
		dst = e.deltaFrame(dst, p, p.Opening, nil)
	}
	w := e.frame()
	w.IntField("contentBlockIndex", p.Index)
	extra.WriteBelow(w, p.Closing, name, "")
	return e.flush(dst, eventBlockStop)
}

// WriteEnd implements [blockwire.EventWriter].
func (e *streamEncoder) WriteEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	resp := ev.Response
	resp.Alternatives = nil
	resp.Extra = cmp.Or(resp.Extra, e.First.Extra)
	resp.Stop = wirekit.EffectiveStop(ev.Stop, e.Ended(), wirekit.BlockedReason)
	resp.ID, resp.Model = cmp.Or(resp.ID, e.First.ID), cmp.Or(resp.Model, e.First.Model)
	if resp.Created.IsZero() {
		resp.Created = e.First.Created
	}
	wirekit.ReportDetails(e.Rep, ev.Stop, "")
	dst = e.messageStop(dst, ev.Stop, &resp)
	dst = e.metadata(dst, &resp, e.First.Usage.Merge(ev.Usage), ev.Extra)
	e.response.reportResponse(&resp)
	return dst, nil
}

const modelResponse = "/additionalModelResponseFields"

func (e *streamEncoder) messageStop(dst []byte, original dragoman.Stop, resp *dragoman.Response) []byte {
	origin := cmp.Or(resp.Origin, e.First.Origin)
	w := e.frame()
	w.StringField("stopReason", e.response.stopReason(original, resp.Stop, origin, e.Calls, e.Refused))
	e.response.sequence(w, resp.Stop, resp.Extra)
	extra.WriteUnless(w, resp.Extra, name, func(path string) bool { return path != modelResponse })
	return e.flush(dst, eventStop)
}

func (e *streamEncoder) metadata(dst []byte, resp *dragoman.Response, usage dragoman.Usage, fields *dragoman.Extra) []byte {
	w := e.frame()
	w.Key("usage")
	writeUsage(w, usage, e.Rep)
	if _, ok := extra.Get(resp.Extra, name, "/metrics"); !ok {
		e.response.metrics(w)
	}
	tier := cmp.Or(resp.ServiceTier, e.First.ServiceTier)
	e.response.tier(w, tier, cmp.Or(resp.Origin, e.First.Origin))
	extra.WriteUnless(w, resp.Extra, name, func(path string) bool {
		return path == modelResponse || isModeled(path) || path == "/serviceTier" && tier != ""
	})
	extra.WriteBelow(w, fields, name, "")
	return e.flush(dst, eventMetadata)
}

// WriteError implements [blockwire.EventWriter].
func (e *streamEncoder) WriteError(dst []byte, err *dragoman.APIError) []byte {
	if raw := nativeError(err); raw != nil {
		e.W.Raw(raw)
	} else {
		e.W.BeginObject()
		e.W.StringField("message", cmp.Or(err.Message, string(err.Class)))
		e.W.EndObject()
		wirekit.ReportError(e.Rep, err, wirekit.WrittenError{Type: streamErrorType(err)}, "/error")
	}
	return e.message(dst, ":exception-type", streamErrorType(err), "exception")
}
