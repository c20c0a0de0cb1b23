package bedrock

import (
	"cmp"
	"math"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/stream"
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
	return &streamEncoder{
		answerEncoder: answerEncoder{reg: wirekit.EncodeRegistry(nil, c.Limits(), o), o: o, rep: new(dragoman.Report)},
		parts:         make(map[int]*outPart),
		shown:         make(map[int64]*outPart),
		rebuild:       o.Rebuild,
	}
}

type streamEncoder struct {
	answerEncoder
	w     jsonwire.Writer // the payload of one event
	parts map[int]*outPart
	// queue holds the parts that are not wholly written, in order of start;
	// only the first may have an open block that we opened.
	queue []*outPart
	// next is the index of the next block.
	next int64

	started bool
	stopped bool // messageStop was written
	counted bool // metadata was written
	done    bool
	first   dragoman.Response // what the start told
	calls   bool
	refused bool
	others  bool // parts of other choices were left out
	err     error

	native  bool // the events at hand were written as a chunk
	rebuild bool // no later chunk is written as it is
	event   wireEvent
	shown   map[int64]*outPart // native blocks that are open, by index
	last    *outPart           // the block of the last chunk, until its part starts
	strange strange            // types of events that were reported
}

// outPart is a part on its way to the wire.
type outPart struct {
	skeleton dragoman.Part // nil for a native block that no part stands for
	final    dragoman.Part // nil while the part is open
	at       extra.Path
	block    int64 // index on the wire, -1 before its block was opened
	waiting  []byte
	sent     stream.Sent
	summary  int

	// What native chunks did.
	closed bool   // its block
	signed string // the signature of the thinking
	cited  int
	whole  bool // all that the block holds beyond its text
}

func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if c, ok := ev.(*dragoman.Chunk); ok {
		return e.chunk(dst, c), e.err
	}
	if e.done || e.native && e.note(ev) {
		return dst, e.err
	}
	e.leaveNative()
	var err error
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		dst = e.start(dst, ev.Response)
	case *dragoman.PartStart:
		dst, err = e.partStart(dst, ev)
	case *dragoman.PartDelta:
		dst, err = e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		dst, err = e.partEnd(dst, ev)
	case *dragoman.ResponseEnd:
		dst, err = e.responseEnd(dst, ev)
	case *dragoman.StreamError:
		dst = e.fail(dst, ev.Err)
	}
	return dst, cmp.Or(err, e.err)
}

func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.done {
		return dst, e.err
	}
	if e.native && e.stopped { // as it came: the end without its numbers
		e.done = true
		return dst, e.err
	}
	return e.fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: dragoman.ErrIncompleteStream.Error()}), e.err
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

// track makes p the part that starts; it is false for a part that is not
// written.
func (e *streamEncoder) track(ev *dragoman.PartStart, p *outPart) bool {
	if ev.Choice != 0 {
		if !e.others {
			e.others = true
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/alternatives", "further candidates; the API answers with one")
		}
		return false
	}
	if ev.Part == nil || e.parts[ev.Index] != nil {
		return false // a second start of one part is none
	}
	if ev.Header != nil {
		e.unsaid(ev.Header, extra.Elem("/output", ev.Message))
	}
	p.skeleton, p.at = ev.Part, extra.Elem("/output", ev.Message).Elem("parts", ev.Index)
	e.parts[ev.Index] = p
	if p.sent.Len() == 0 {
		p.sent = stream.SentOf(ev.Part)
	}
	switch part := ev.Part.(type) {
	case *dragoman.ToolCall:
		e.calls = e.calls || !part.Hosted
	case *dragoman.Refusal:
		e.refused = true
	}
	return true
}

func (e *streamEncoder) partStart(dst []byte, ev *dragoman.PartStart) ([]byte, error) {
	dst = e.start(dst, dragoman.Response{})
	if e.stopped {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, extra.Elem("/output", ev.Message).Elem("parts", ev.Index).String(), "starts after messageStop was sent")
		return dst, nil
	}
	p := &outPart{block: -1}
	if !e.track(ev, p) {
		return dst, nil
	}
	e.queue = append(e.queue, p)
	return e.advance(dst, false)
}

func (e *streamEncoder) partDelta(dst []byte, ev *dragoman.PartDelta) ([]byte, error) {
	p := e.parts[ev.Index]
	if ev.Choice != 0 || p == nil || p.final != nil || ev.Text == "" {
		return dst, nil
	}
	if ev.Summary != p.summary {
		// Summaries, and the thinking itself, are paragraphs of one text.
		if p.summary != 0 || p.sent.Len()+len(p.waiting) > 0 {
			p.waiting = append(p.waiting, "\n\n"...)
		}
		p.summary = ev.Summary
	}
	if len(p.waiting) == 0 && len(e.queue) > 0 && p == e.queue[0] && p.block >= 0 && p.grows() {
		return e.delta(dst, p, ev.Text), nil
	}
	p.waiting = append(p.waiting, ev.Text...)
	return e.advance(dst, false)
}

func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) ([]byte, error) {
	p := e.parts[ev.Index]
	if ev.Choice != 0 || p == nil || p.final != nil || ev.Part == nil {
		return dst, nil
	}
	p.final = ev.Part
	if p.closed && e.contradicts(p) {
		return e.spliced(dst, p), nil
	}
	return e.advance(dst, false)
}

// advance writes what the head of the queue allows. At the end of the response
// nothing waits any longer.
func (e *streamEncoder) advance(dst []byte, all bool) ([]byte, error) {
	if e.stopped { // nothing can be added to the message; only taken back
		for _, p := range e.queue {
			if p.block >= 0 && e.contradicts(p) {
				return e.spliced(dst, p), nil
			}
		}
		return dst, nil
	}
	for len(e.queue) > 0 {
		p := e.queue[0]
		if p.skeleton == nil {
			dst = e.blockStop(dst, p)
			e.queue = e.queue[1:]
			continue
		}
		var err error
		if p.block < 0 && opensEarly(p) {
			if dst, err = e.open(dst, p, p.skeleton); err != nil {
				return dst, err
			}
		}
		if p.block >= 0 && len(p.waiting) > 0 && p.grows() {
			text := string(p.waiting)
			p.waiting = nil
			dst = e.delta(dst, p, text)
		}
		// A call that broke off is not closed before it is known whether the
		// whole stream did: clients run what is closed.
		if !all && (p.final == nil || truncated(p.final)) {
			return dst, nil
		}
		if p.block >= 0 && e.contradicts(p) {
			return e.spliced(dst, p), nil
		}
		if dst, err = e.finish(dst, p); err != nil {
			return dst, err
		}
		e.queue = e.queue[1:]
	}
	return dst, nil
}

// grows reports whether the block is lengthened by the part's own deltas. The
// object around freeform input, and an opaque block, are known at the end.
func (p *outPart) grows() bool {
	switch part := p.skeleton.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		return true
	case *dragoman.Reasoning:
		return !part.Redacted
	case *dragoman.ToolCall:
		return part.Payload == dragoman.PayloadObject
	default:
		return false
	}
}

func truncated(p dragoman.Part) bool {
	c, ok := p.(*dragoman.ToolCall)
	return ok && wirekit.Cut(c)
}

// opensEarly reports whether a block can start before its part is whole. Text
// and thinking have no start: their first fragment opens the block.
func opensEarly(p *outPart) bool {
	switch part := p.skeleton.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		return len(p.waiting) > 0
	case *dragoman.Reasoning:
		return !part.Redacted && len(p.waiting) > 0
	case *dragoman.ToolCall:
		return part.Name != "" && part.ID != "" && !part.Hosted && p.grows()
	default:
		return false
	}
}

// open gives a part its block, and writes the start of one that has a start.
func (e *streamEncoder) open(dst []byte, p *outPart, part dragoman.Part) ([]byte, error) {
	p.block = e.next
	e.next++
	c, ok := part.(*dragoman.ToolCall)
	if !ok {
		return dst, nil
	}
	return e.openCall(dst, p, c)
}

// delta writes a fragment of what the open block grows.
func (e *streamEncoder) delta(dst []byte, p *outPart, text string) []byte {
	if text == "" {
		return dst
	}
	p.sent.Add(text)
	switch p.skeleton.(type) {
	case *dragoman.Reasoning:
		return e.thought(dst, p, "text", text)
	case *dragoman.ToolCall:
		return e.inputDelta(dst, p, text)
	default:
		return e.textDelta(dst, p, text)
	}
}

// deltaFrame writes a delta of the open block, the member of which write makes.
func (e *streamEncoder) deltaFrame(dst []byte, p *outPart, write func(w *jsonwire.Writer)) []byte {
	w := e.frame()
	w.IntField("contentBlockIndex", p.block)
	w.Key("delta")
	w.BeginObject()
	write(w)
	w.EndObject()
	return e.flush(dst, eventDelta)
}

func (e *streamEncoder) textDelta(dst []byte, p *outPart, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) { w.StringField("text", text) })
}

func (e *streamEncoder) inputDelta(dst []byte, p *outPart, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) {
		w.Key(keyCall)
		w.BeginObject()
		w.StringField("input", text)
		w.EndObject()
	})
}

func (e *streamEncoder) thought(dst []byte, p *outPart, member, text string) []byte {
	return e.deltaFrame(dst, p, func(w *jsonwire.Writer) {
		w.Key(keyReasoning)
		w.BeginObject()
		w.StringField(member, text)
		w.EndObject()
	})
}

func (e *streamEncoder) blockStop(dst []byte, p *outPart) []byte {
	e.frame().IntField("contentBlockIndex", p.block)
	return e.flush(dst, eventBlockStop)
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response)
	dst, err := e.advance(dst, true)
	if err != nil || e.done {
		return dst, err
	}
	resp := ev.Response
	resp.Alternatives = nil
	resp.Extra = cmp.Or(resp.Extra, e.first.Extra)
	resp.Stop = wirekit.Standing(ev.Stop, ended(e.parts), wirekit.Barred)
	resp.ID, resp.Model = cmp.Or(resp.ID, e.first.ID), cmp.Or(resp.Model, e.first.Model)
	if resp.Created.IsZero() {
		resp.Created = e.first.Created
	}
	if !e.stopped {
		dst = e.messageStop(dst, &resp)
	}
	if !e.counted {
		dst = e.metadata(dst, &resp, e.first.Usage.Merge(ev.Usage))
	}
	e.done = true
	e.unsaidResponse(&resp)
	return dst, nil
}

const modelResponse = "/additionalModelResponseFields"

func (e *streamEncoder) messageStop(dst []byte, resp *dragoman.Response) []byte {
	e.stopped = true
	origin := cmp.Or(resp.Origin, e.first.Origin)
	w := e.frame()
	w.StringField("stopReason", e.word(resp.Stop, origin, e.calls, e.refused))
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
	e.tier(w, tier)
	writeExtras(w, resp.Extra, func(path string) bool {
		return path == modelResponse || modelled(path) || path == "/serviceTier" && tier != ""
	})
	return e.flush(dst, eventMetadata)
}

// fail writes an exception, the only way to fail after the start.
func (e *streamEncoder) fail(dst []byte, err *dragoman.APIError) []byte {
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
	}
	return e.message(dst, ":exception-type", streamWord(err), "exception")
}

// clip is an index of the wire that a next one can follow.
func clip(index int64) int64 { return min(max(index, 0), math.MaxInt32) }
