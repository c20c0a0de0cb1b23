package bedrock

import (
	"cmp"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// NewStreamEncoder implements [dialect.Codec].
//
// What it writes is what the API writes: one messageStart; blocks one after the
// other with dense indexes, of which only those of calls and images have a
// start, and all a stop (quirk C33); messageStop, then metadata. Parts that
// overlap are written one by one: a later one waits until the open one has ended
// (quirk C21).
//
// Unknown events, and unknown fields of known events, of this dialect are
// written.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	rep := new(dragoman.Report)
	e := &streamEncoder{
		answerEncoder: answerEncoder{reg: wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o), o: o, rep: rep},
	}
	e.Emitter = blockwire.NewEmitter(name, e, rep)
	return e
}

type streamEncoder struct {
	final wirekit.FinalFields
	answerEncoder
	blockwire.Emitter
	w jsonwire.Writer // the payload of one event

	started bool
	done    bool
	first   dragoman.Response // what the start told
	err     error
	untold  wirekit.Untold
}

func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if e.done {
		return dst, e.err
	}
	var err error
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		dst = append(dst, e.untold.Chunk(ev, name, e.o, e.rep)...)
	case *dragoman.ResponseStart:
		dst = e.start(dst, ev.Response, ev.Extra)
	case *dragoman.PartStart:
		e.final.Start(ev)
		dst, err = e.partStart(dst, ev)
	case *dragoman.PartDelta:
		dst, err = e.PartDelta(dst, ev)
	case *dragoman.PartEnd:
		e.final.End(e.rep, name, ev)
		dst, err = e.PartEnd(dst, ev)
	case *dragoman.ResponseEnd:
		dst, err = e.responseEnd(dst, ev)
	case *dragoman.StreamError:
		wirekit.ReportCost(e.rep, ev.Usage, dragoman.Usage{})
		dst = e.Fail(dst, ev.Err)
	}
	return dst, cmp.Or(err, e.err)
}

func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.done {
		return dst, e.err
	}
	return e.Fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: dragoman.ErrIncompleteStream.Error()}), e.err
}

// frame starts the payload of an event.
func (e *streamEncoder) frame() *jsonwire.Writer {
	e.w.Buf = e.w.Buf[:0]
	e.w.BeginObject()
	return &e.w
}

// flush writes the event that was framed.
func (e *streamEncoder) flush(dst []byte, typ string) []byte {
	e.w.EndObject()
	return e.message(dst, ":event-type", typ, "event")
}

// message frames the payload as a message of a type.
func (e *streamEncoder) message(dst []byte, key, typ, kind string) []byte {
	out, err := eventstream.Append(dst, []eventstream.Header{
		{Name: key, Value: eventstream.Text(typ)},
		{Name: ":content-type", Value: eventstream.Text("application/json")},
		{Name: ":message-type", Value: eventstream.Text(kind)},
	}, e.w.Buf)
	e.err = cmp.Or(e.err, err)
	return out
}

func (e *streamEncoder) start(dst []byte, resp dragoman.Response, fields *dragoman.Extra) []byte {
	if e.started {
		return dst
	}
	e.started, e.first = true, resp
	w := e.frame()
	w.StringField("role", "assistant")
	extra.WriteBelow(w, fields, name, "")
	return e.flush(dst, eventStart)
}

func (e *streamEncoder) partStart(dst []byte, ev *dragoman.PartStart) ([]byte, error) {
	return e.PartStart(e.start(dst, dragoman.Response{}, nil), ev)
}

// OpenBlock implements [blockwire.StreamWire]. Only the blocks of calls and
// images have a start.
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
	switch p.Skeleton.(type) {
	case *dragoman.Reasoning:
		return e.thought(dst, p, "text", text, fields)
	case *dragoman.ToolCall:
		return e.inputDelta(dst, p, text, fields)
	default:
		return e.textDelta(dst, p, text, fields)
	}
}

// deltaFrame writes a delta of the open block: the member that write makes, if it
// is not nil, and unknown fields. A delta is a union, so an unknown member of it
// gets a delta of its own.
func (e *streamEncoder) deltaFrame(dst []byte, p *blockwire.Out, fields *dragoman.Extra, write func(w *jsonwire.Writer), written ...string) []byte {
	if write != nil && extra.Has(fields, name, "/delta") {
		var beside, alone dragoman.Extra
		for _, f := range fields.Fields {
			if rest, ok := strings.CutPrefix(f.Path, "/delta/"); ok && !strings.Contains(rest, "/") {
				alone.Fields = append(alone.Fields, f)
			} else {
				beside.Fields = append(beside.Fields, f)
			}
		}
		beside.Dialect, alone.Dialect = name, name
		dst = e.deltaFrame(dst, p, &beside, write, written...)
		return e.deltaFrame(dst, p, &alone, nil)
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

func (e *streamEncoder) thought(dst []byte, p *blockwire.Out, member, text string, fields *dragoman.Extra) []byte {
	return e.innerDelta(dst, p, keyReasoning, member, text, fields)
}

// innerDelta writes a text in an object of the delta.
func (e *streamEncoder) innerDelta(dst []byte, p *blockwire.Out, key, member, text string, fields *dragoman.Extra) []byte {
	if text == "" && fields != nil {
		return e.deltaFrame(dst, p, fields, nil)
	}
	place := "/delta/" + key
	return e.deltaFrame(dst, p, fields, func(w *jsonwire.Writer) {
		w.Key(key)
		w.BeginObject()
		w.StringField(member, text)
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

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response, nil)
	dst, err := e.Advance(dst, true)
	if err != nil || e.done {
		return dst, err
	}
	resp := ev.Response
	resp.Alternatives = nil
	resp.Extra = cmp.Or(resp.Extra, e.first.Extra)
	resp.Stop = wirekit.Standing(ev.Stop, e.Ended(), wirekit.Barred)
	resp.ID, resp.Model = cmp.Or(resp.ID, e.first.ID), cmp.Or(resp.Model, e.first.Model)
	if resp.Created.IsZero() {
		resp.Created = e.first.Created
	}
	wirekit.ReportDetails(e.rep, ev.Stop, "")
	dst = e.messageStop(dst, ev.Stop, &resp)
	dst = e.metadata(dst, &resp, e.first.Usage.Merge(ev.Usage), ev.Extra)
	e.done = true
	e.unsaidResponse(&resp)
	return dst, nil
}

const modelResponse = "/additionalModelResponseFields"

func (e *streamEncoder) messageStop(dst []byte, told dragoman.Stop, resp *dragoman.Response) []byte {
	origin := cmp.Or(resp.Origin, e.first.Origin)
	w := e.frame()
	w.StringField("stopReason", e.word(told, resp.Stop, origin, e.Calls, e.Refused))
	e.sequence(w, resp.Stop, resp.Extra)
	writeExtras(w, resp.Extra, func(path string) bool { return path != modelResponse })
	return e.flush(dst, eventStop)
}

func (e *streamEncoder) metadata(dst []byte, resp *dragoman.Response, usage dragoman.Usage, fields *dragoman.Extra) []byte {
	w := e.frame()
	w.Key("usage")
	writeUsage(w, usage, e.rep)
	if _, ok := extra.Get(resp.Extra, name, "/metrics"); !ok {
		e.metrics(w)
	}
	tier := cmp.Or(resp.ServiceTier, e.first.ServiceTier)
	e.tier(w, tier, cmp.Or(resp.Origin, e.first.Origin))
	writeExtras(w, resp.Extra, func(path string) bool {
		return path == modelResponse || modelled(path) || path == "/serviceTier" && tier != ""
	})
	extra.WriteBelow(w, fields, name, "")
	return e.flush(dst, eventMetadata)
}

// Fail implements [blockwire.StreamWire]: an exception is the only way to fail
// after the start.
func (e *streamEncoder) Fail(dst []byte, err *dragoman.APIError) []byte {
	if e.done {
		return dst
	}
	e.done = true
	if err == nil {
		err = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	e.w.Buf = e.w.Buf[:0]
	if raw := nativeError(err); raw != nil {
		e.w.Raw(raw)
	} else {
		e.w.BeginObject()
		e.w.StringField("message", cmp.Or(err.Message, string(err.Class)))
		e.w.EndObject()
		wirekit.ReportError(e.rep, err, wirekit.ErrorSaid{Type: streamWord(err)}, "/error")
	}
	return e.message(dst, ":exception-type", streamWord(err), "exception")
}
