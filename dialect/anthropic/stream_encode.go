package anthropic

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// NewStreamEncoder implements [dialect.Codec].
//
// What it writes satisfies the strictest clients (quirk C20): one
// message_start; blocks one after the other with dense indexes; start before
// delta before stop; deltas of the block's own kind and never empty; at least
// one block; message_delta, then message_stop. Parts that overlap are written
// one by one: a later one waits until the open one has ended (quirk C21).
//
// Native chunks are written as they are. A stream that goes on from events
// after some continues what they began; a message_delta among them is followed
// by another, which counts.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	return &streamEncoder{
		answerEncoder: answerEncoder{reg: wirekit.EncodeRegistry(nil, c.Limits(), o), o: o, rep: new(dragoman.Report)},
		sse:           sse.Parser{Max: math.MaxInt},
		parts:         make(map[int]*outPart),
		shown:         make(map[int]*outPart),
		rebuild:       o.Rebuild,
	}
}

type streamEncoder struct {
	answerEncoder
	w     jsonwire.Writer // the data of one event
	parts map[int]*outPart
	// queue holds the parts that are not wholly written, in order of start;
	// only the first may have an open block that we opened.
	queue []*outPart
	// next is the index of the next block.
	next int

	started bool
	ending  bool // a native message_delta was written
	done    bool
	first   dragoman.Response // what message_start told
	calls   bool
	refused bool
	others  bool // parts of other choices were left out

	native  bool // the events at hand were written as a chunk
	rebuild bool // no later chunk is written as it is
	sse     sse.Parser
	event   wireEvent
	shown   map[int]*outPart // native blocks that are open, by index
	last    *outPart         // the block of the last chunk, until its part starts
	strange map[string]bool  // types of events that were reported
}

// outPart is a part on its way to the wire.
type outPart struct {
	skeleton dragoman.Part // nil for a native block that no part stands for
	final    dragoman.Part // nil while the part is open
	at       extra.Path
	block    int // index on the wire, -1 before its block was opened
	waiting  []byte
	sent     stream.Sent
	summary  int

	// What native chunks did.
	closed bool // its block
	signed bool // the thinking
	cited  int
}

func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if c, ok := ev.(*dragoman.Chunk); ok {
		return e.chunk(dst, c), nil
	}
	if e.done || e.native && e.note(ev) {
		return dst, nil
	}
	e.leaveNative()
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		return e.start(dst, ev.Response), nil
	case *dragoman.PartStart:
		return e.partStart(dst, ev)
	case *dragoman.PartDelta:
		return e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		return e.partEnd(dst, ev)
	case *dragoman.ResponseEnd:
		return e.responseEnd(dst, ev)
	case *dragoman.StreamError:
		return e.fail(dst, ev.Err), nil
	default:
		return dst, nil
	}
}

func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.done {
		return dst, nil
	}
	return e.fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: dragoman.ErrIncompleteStream.Error()}), nil
}

// frame starts the data of an event.
func (e *streamEncoder) frame(typ string) *jsonwire.Writer {
	e.w.Buf = e.w.Buf[:0]
	e.w.BeginObject()
	e.w.StringField("type", typ)
	return &e.w
}

// flush writes the event that was framed.
func (e *streamEncoder) flush(dst []byte, typ string) []byte {
	e.w.EndObject()
	if bytes.ContainsAny(e.w.Buf, "\r\n") {
		e.w.Buf = oneLine(e.w.Buf) // from a native value that was written over several lines
	}
	return sse.Append(dst, typ, e.w.Buf)
}

func (e *streamEncoder) start(dst []byte, resp dragoman.Response) []byte {
	if e.started {
		return dst
	}
	e.started, e.first = true, resp
	w := e.frame("message_start")
	w.Key("message")
	w.BeginObject()
	e.header(w, &resp)
	w.Key("content")
	w.BeginArray()
	w.EndArray()
	w.NullField("stop_reason")
	w.NullField("stop_sequence")
	extra.Write(w, resp.Extra, name, "")
	w.Key("usage")
	writeUsage(w, resp.Usage, resp.ServiceTier, new(dragoman.Report)) // the end tells more
	w.EndObject()
	return e.flush(dst, "message_start")
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
	if e.ending {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, extra.Elem("/output", ev.Message).Elem("parts", ev.Index).String(), "starts after message_delta was sent")
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
	case *dragoman.Text, *dragoman.Refusal, *dragoman.Reasoning:
		return true
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

// opensEarly reports whether a block can start before its part is whole.
func opensEarly(p *outPart) bool {
	switch part := p.skeleton.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		return true
	case *dragoman.Reasoning:
		return !part.Redacted && len(p.waiting) > 0
	case *dragoman.ToolCall:
		return part.Name != "" && part.ID != "" && !part.Hosted && p.grows()
	default:
		return false
	}
}

// open writes content_block_start with the empty field that clients append to.
func (e *streamEncoder) open(dst []byte, p *outPart, part dragoman.Part) ([]byte, error) {
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
		c := *e.identified(part, p.at)
		c.Arguments, c.Payload, c.Cache, c.Problem = "", dragoman.PayloadObject, nil, nil
		if err := e.reg.WriteCall(w, &c, p.at, e.rep); err != nil {
			return dst, fmt.Errorf("anthropic: %s: %w", p.at, err)
		}
	default:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", "")
		if t, ok := part.(*dragoman.Text); ok {
			writeExtras(w, t.Extra, func(path string) bool { return path == "/citations" })
			if v, ok := extra.Get(t.Extra, name, "/citations"); ok && string(v) == "null" {
				w.NullField("citations")
			} else if ok {
				w.RawField("citations", []byte("[]")) // the list follows in deltas
			}
		}
		w.EndObject()
	}
	return e.flush(dst, "content_block_start"), nil
}

// blockFrame frames the start of the next block.
func (e *streamEncoder) blockFrame(p *outPart) *jsonwire.Writer {
	p.block = e.next
	e.next++
	w := e.frame("content_block_start")
	w.IntField("index", int64(p.block))
	w.Key("content_block")
	return w
}

// delta writes a fragment of what the open block grows.
func (e *streamEncoder) delta(dst []byte, p *outPart, text string) []byte {
	if text == "" {
		return dst
	}
	p.sent.Add(text)
	switch p.skeleton.(type) {
	case *dragoman.Reasoning:
		return e.deltaFrame(dst, p, "thinking_delta", "thinking", text)
	case *dragoman.ToolCall:
		return e.deltaFrame(dst, p, "input_json_delta", "partial_json", text)
	default:
		return e.deltaFrame(dst, p, "text_delta", "text", text)
	}
}

func (e *streamEncoder) deltaFrame(dst []byte, p *outPart, typ, key, text string) []byte {
	w := e.frame("content_block_delta")
	w.IntField("index", int64(p.block))
	w.Key("delta")
	w.BeginObject()
	w.StringField("type", typ)
	w.StringField(key, text)
	w.EndObject()
	return e.flush(dst, "content_block_delta")
}

func (e *streamEncoder) blockStop(dst []byte, p *outPart) []byte {
	w := e.frame("content_block_stop")
	w.IntField("index", int64(p.block))
	return e.flush(dst, "content_block_stop")
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response)
	dst, err := e.advance(dst, true)
	if err != nil || e.done {
		return dst, err
	}
	if e.next == 0 && !e.ending { // some clients take a message without blocks for a broken one
		p := &outPart{skeleton: &dragoman.Text{}, sent: stream.SentOf(&dragoman.Text{})}
		if dst, err = e.open(dst, p, p.skeleton); err != nil {
			return dst, err
		}
		dst = e.blockStop(dst, p)
	}
	dst = e.messageDelta(dst, ev)
	e.frame("message_stop")
	dst = e.flush(dst, "message_stop")
	e.done = true
	resp := ev.Response
	resp.Alternatives = nil
	if resp.Extra == nil {
		resp.Extra = e.first.Extra
	}
	if resp.Created.IsZero() {
		resp.Created = e.first.Created
	}
	e.unsaidResponse(&resp)
	return dst, nil
}

func (e *streamEncoder) messageDelta(dst []byte, ev *dragoman.ResponseEnd) []byte {
	origin := ev.Response.Origin
	if origin == nil {
		origin = e.first.Origin
	}
	w := e.frame("message_delta")
	w.Key("delta")
	w.BeginObject()
	e.stop(w, wirekit.Standing(ev.Stop, ended(e.parts), wirekit.Barred), origin, e.calls, e.refused)
	news := fresh(e.first.Extra, ev.Response.Extra)
	inside := func(path string) bool {
		return path == "/container" || path == "/stop_details" && ev.Stop.Details == nil
	}
	writeExtras(w, news, func(path string) bool { return !inside(path) })
	w.EndObject()
	writeExtras(w, news, func(path string) bool {
		switch path {
		case "/stop_details", "/type", "/delta", "/usage":
			return true
		default:
			return inside(path)
		}
	})
	usage := e.first.Usage.Merge(ev.Usage)
	if !usage.Output.Known {
		e.rep.Add(dragoman.Synthesised, dragoman.Info, "/usage", "unknown counts written as 0, because clients demand them")
	}
	extra.Report(e.rep, usage.Extra, name, extra.At("/usage"))
	usage.Extra = fresh(e.first.Usage.Extra, usage.Extra)
	w.Key("usage")
	writeCounters(w, usage, "")
	return e.flush(dst, "message_delta")
}

// fresh are the members of all that were not told yet, or not so.
func fresh(told, all *dragoman.Extra) *dragoman.Extra {
	if all.For(name) == nil {
		return nil
	}
	known := make(map[string]string)
	for _, f := range told.For(name) {
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

// fail writes an error event, the only way to fail after the start.
func (e *streamEncoder) fail(dst []byte, err *dragoman.APIError) []byte {
	if e.done {
		return dst
	}
	e.done = true
	if err == nil {
		err = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	typ, _ := wordsOf(err)
	e.w.Buf = e.w.Buf[:0]
	if raw := nativeError(err); raw != nil && err.Type != "" && typeOf(raw) == "error" {
		e.w.Raw(oneLine(raw))
	} else {
		writeError(&e.w, err, typ)
	}
	return sse.Append(dst, "error", e.w.Buf)
}

// oneLine is JSON without the line breaks that SSE would cut it at.
func oneLine(raw []byte) []byte {
	return slices.DeleteFunc(slices.Clone(raw), func(b byte) bool { return b == '\n' || b == '\r' })
}
