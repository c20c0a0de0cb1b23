package bedrock

import (
	"cmp"

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
// Native chunks are written as they are. A stream that goes on from events
// after some continues what they began.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	rep := new(dragoman.Report)
	e := &streamEncoder{
		answerEncoder: answerEncoder{reg: wirekit.EncodeRegistry(nil, c.Limits(), o), o: o, rep: rep},
	}
	e.Emitter = blockwire.NewEmitter(name, e, rep)
	e.Rebuild = o.Rebuild
	return e
}

type streamEncoder struct {
	final wirekit.FinalFields
	answerEncoder
	blockwire.Emitter
	w jsonwire.Writer // the payload of one event

	started bool
	counted bool // metadata was written
	done    bool
	first   dragoman.Response // what the start told
	err     error

	event  wireEvent
	untold wirekit.Untold
}

func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if c, ok := ev.(*dragoman.Chunk); ok {
		return e.chunk(dst, c), e.err
	}
	if e.done || e.Native && e.note(ev) {
		return dst, e.err
	}
	e.LeaveNative()
	var err error
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		dst = e.start(dst, ev.Response)
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
	if e.Native && e.Sealed { // as it came: the end without its numbers
		e.done = true
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

func (e *streamEncoder) start(dst []byte, resp dragoman.Response) []byte {
	if e.started {
		return dst
	}
	e.started, e.first = true, resp
	e.frame().StringField("role", "assistant")
	return e.flush(dst, eventStart)
}

func (e *streamEncoder) partStart(dst []byte, ev *dragoman.PartStart) ([]byte, error) {
	dst = e.start(dst, dragoman.Response{})
	if e.Sealed {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, extra.Elem("/output", ev.Message).Elem("parts", ev.Index).String(), "starts after messageStop was sent")
		return dst, nil
	}
	return e.PartStart(dst, ev)
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
func (e *streamEncoder) Delta(dst []byte, p *blockwire.Out, text string) []byte {
	switch p.Skeleton.(type) {
	case *dragoman.Reasoning:
		return e.thought(dst, p, "text", text)
	case *dragoman.ToolCall:
		return e.inputDelta(dst, p, text)
	default:
		return e.textDelta(dst, p, text)
	}
}

// deltaFrame writes a delta of the open block, the member of which write makes.
func (e *streamEncoder) deltaFrame(dst []byte, p *blockwire.Out, write func(w *jsonwire.Writer)) []byte {
	w := e.frame()
	w.IntField("contentBlockIndex", p.Index)
	w.Key("delta")
	w.BeginObject()
	write(w)
	w.EndObject()
	return e.flush(dst, eventDelta)
}

func (e *streamEncoder) textDelta(dst []byte, p *blockwire.Out, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) { w.StringField("text", text) })
}

func (e *streamEncoder) inputDelta(dst []byte, p *blockwire.Out, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) {
		w.Key(keyCall)
		w.BeginObject()
		w.StringField("input", text)
		w.EndObject()
	})
}

func (e *streamEncoder) thought(dst []byte, p *blockwire.Out, member, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) {
		w.Key(keyReasoning)
		w.BeginObject()
		w.StringField(member, text)
		w.EndObject()
	})
}

// StopBlock implements [blockwire.StreamWire].
func (e *streamEncoder) StopBlock(dst []byte, p *blockwire.Out) []byte {
	e.frame().IntField("contentBlockIndex", p.Index)
	return e.flush(dst, eventBlockStop)
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response)
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
	if !e.Sealed {
		dst = e.messageStop(dst, ev.Stop, &resp)
	}
	if !e.counted {
		dst = e.metadata(dst, &resp, e.first.Usage.Merge(ev.Usage))
	}
	e.done = true
	e.unsaidResponse(&resp)
	return dst, nil
}

const modelResponse = "/additionalModelResponseFields"

func (e *streamEncoder) messageStop(dst []byte, told dragoman.Stop, resp *dragoman.Response) []byte {
	e.Sealed = true
	origin := cmp.Or(resp.Origin, e.first.Origin)
	w := e.frame()
	w.StringField("stopReason", e.word(told, resp.Stop, origin, e.Calls, e.Refused))
	e.sequence(w, resp.Stop, resp.Extra)
	writeExtras(w, resp.Extra, func(path string) bool { return path != modelResponse })
	return e.flush(dst, eventStop)
}

func (e *streamEncoder) metadata(dst []byte, resp *dragoman.Response, usage dragoman.Usage) []byte {
	e.counted = true
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
