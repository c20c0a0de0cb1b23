package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// Emitter streams the parts of an answer as blocks, one after the other. What is
// promised: blocks come in the order in which their parts started, with dense
// indexes; one is closed before the next is opened, so that a part which starts
// while another is open waits (quirk C21); no delta is empty; and no block of a
// call is closed that says another call than the end of its part does, nor one
// that broke off before the whole answer has ended, because clients run what is
// closed. Unknown fields that the events of a part carry are written into the
// events of its block. How anything is written only the [StreamWire] knows.
type Emitter struct {
	Dialect dragoman.Dialect
	Wire    StreamWire
	rep     *dragoman.Report
	// BareStart says that a block of text has a start of its own, which can be
	// written before anything is said.
	BareStart bool

	// Next is the index of the next block.
	Next int64
	// Calls and Refused say what was among the parts.
	Calls, Refused bool

	parts  map[int]*Out
	places extra.Places
	// queue holds the parts that are not wholly written, in order of start;
	// only the first may have an open block that we opened.
	queue  []*Out
	others bool // parts of other choices were left out
}

// StreamWire is what a wire writes of an answer, each behind dst.
type StreamWire interface {
	// OpenBlock gives a part the block of the next number and writes what comes
	// before its deltas.
	OpenBlock(dst []byte, p *Out, part dragoman.Part) ([]byte, error)
	// Delta writes a fragment of what the open block grows, which may be empty,
	// with the unknown fields that it carries.
	Delta(dst []byte, p *Out, text string, fields *dragoman.Extra) []byte
	// Finish writes what is left of a part, and closes its block.
	Finish(dst []byte, p *Out, final dragoman.Part) ([]byte, error)
	// StopBlock closes a block, after its [Emitter.Fields].
	StopBlock(dst []byte, p *Out) []byte
	// Fail ends the stream with an error.
	Fail(dst []byte, err *dragoman.APIError) []byte
}

// Out is a part on its way to the wire.
type Out struct {
	Skeleton dragoman.Part
	Final    dragoman.Part // nil while the part is open
	At       extra.Path
	Index    int64 // of its block, -1 before that was opened
	Sent     stream.Sent
	// Opening and Closing are the unknown fields of the events that open and
	// close the block.
	Opening, Closing *dragoman.Extra

	waiting []byte
	fields  []*dragoman.Extra // of deltas that wait
	summary int
}

// Opened reports whether the part has its block.
func (p *Out) Opened() bool { return p.Index >= 0 }

// NewEmitter returns one that starts with nothing.
func NewEmitter(d dragoman.Dialect, wire StreamWire, rep *dragoman.Report) Emitter {
	return Emitter{Dialect: d, Wire: wire, rep: rep, parts: make(map[int]*Out)}
}

// track makes p the part that starts; it is false for a part that is not
// written.
func (e *Emitter) track(ev *dragoman.PartStart, p *Out) bool {
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
	at, message := e.places.Next(ev)
	if ev.Header != nil {
		ReportHeader(e.rep, ev.Header, e.Dialect, message)
	}
	p.Skeleton, p.At, p.Opening, p.Sent = ev.Part, at, e.own(ev.Extra), stream.SentOf(ev.Part)
	e.parts[ev.Index] = p
	switch part := ev.Part.(type) {
	case *dragoman.ToolCall:
		e.Calls = e.Calls || !part.Hosted
	case *dragoman.Refusal:
		e.Refused = true
	}
	return true
}

// ReportHeader reports what the header of an answer's message says that the
// wire has no member for.
func ReportHeader(rep *dragoman.Report, m *dragoman.Message, d dragoman.Dialect, at extra.Path) {
	extra.Report(rep, m.Extra, d, at)
	wirekit.ReportSpeaker(rep, m, at)
	if m.Phase != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
}

// PartStart queues a part.
func (e *Emitter) PartStart(dst []byte, ev *dragoman.PartStart) ([]byte, error) {
	p := &Out{Index: -1}
	if !e.track(ev, p) {
		return dst, nil
	}
	e.queue = append(e.queue, p)
	return e.Advance(dst, false)
}

// PartDelta writes a fragment of the part at the head of the queue, and keeps
// one of any other.
func (e *Emitter) PartDelta(dst []byte, ev *dragoman.PartDelta) ([]byte, error) {
	p := e.parts[ev.Index]
	fields := e.own(ev.Extra)
	if ev.Choice != 0 || p == nil || p.Final != nil || ev.Text == "" && fields == nil {
		return dst, nil
	}
	if ev.Text != "" && ev.Summary != p.summary {
		// Summaries, and the thinking itself, are paragraphs of one text.
		if p.summary != 0 || p.Sent.Len()+len(p.waiting) > 0 {
			p.waiting = append(p.waiting, "\n\n"...)
		}
		p.summary = ev.Summary
	}
	if len(p.waiting) == 0 && len(p.fields) == 0 && len(e.queue) > 0 && p == e.queue[0] && p.Opened() && p.Grows() {
		return e.delta(dst, p, ev.Text, fields), nil
	}
	p.waiting = append(p.waiting, ev.Text...)
	if fields != nil {
		p.fields = append(p.fields, fields)
	}
	return e.Advance(dst, false)
}

func (e *Emitter) delta(dst []byte, p *Out, text string, fields *dragoman.Extra) []byte {
	p.Sent.Add(text)
	return e.Wire.Delta(dst, p, text, fields)
}

// own returns unknown fields of the emitter's dialect; nil for others.
func (e *Emitter) own(fields *dragoman.Extra) *dragoman.Extra {
	if fields.For(e.Dialect) == nil {
		return nil
	}
	return fields
}

// Fields writes the unknown fields of deltas that waited, each in a delta of its
// own.
func (e *Emitter) Fields(dst []byte, p *Out) []byte {
	fields := p.fields
	p.fields = nil
	for _, f := range fields {
		dst = e.Wire.Delta(dst, p, "", f)
	}
	return dst
}

// PartEnd ends a part.
func (e *Emitter) PartEnd(dst []byte, ev *dragoman.PartEnd) ([]byte, error) {
	p := e.parts[ev.Index]
	if ev.Choice != 0 || p == nil || p.Final != nil || ev.Part == nil {
		return dst, nil
	}
	p.Final, p.Closing = ev.Part, e.own(ev.Extra)
	return e.Advance(dst, false)
}

// Advance writes what the head of the queue allows. At the end of the response
// nothing waits any longer: then all is true.
func (e *Emitter) Advance(dst []byte, all bool) ([]byte, error) {
	for len(e.queue) > 0 {
		p := e.queue[0]
		var err error
		if !p.Opened() && e.opensEarly(p) {
			if dst, err = e.Wire.OpenBlock(dst, p, p.Skeleton); err != nil {
				return dst, err
			}
		}
		if p.Opened() && len(p.waiting) > 0 && p.Grows() {
			text := string(p.waiting)
			p.waiting = nil
			var first *dragoman.Extra
			if len(p.fields) > 0 {
				first, p.fields = p.fields[0], p.fields[1:]
			}
			dst = e.delta(dst, p, text, first)
		}
		if p.Opened() && p.Grows() {
			dst = e.Fields(dst, p)
		}
		// A call that broke off is not closed before it is known whether the
		// whole stream did: clients run what is closed.
		if !all && (p.Final == nil || truncated(p.Final)) {
			return dst, nil
		}
		if p.Opened() && p.contradicted() {
			return e.spliced(dst, p), nil
		}
		final := p.Final
		if final == nil {
			final = p.unfinished()
		}
		p.waiting = nil // the final value says it all
		if dst, err = e.Wire.Finish(dst, p, final); err != nil {
			return dst, err
		}
		p.written()
		e.queue = e.queue[1:]
	}
	return dst, nil
}

// Grows reports whether the block is lengthened by the part's own deltas. The
// object around freeform input, and an opaque block, are known at the end.
func (p *Out) Grows() bool {
	switch part := p.Skeleton.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		return true
	case *dragoman.Reasoning:
		return !part.Redacted
	case *dragoman.ToolCall:
		return part.Payload == codes.PayloadObject
	default:
		return false
	}
}

func truncated(p dragoman.Part) bool {
	c, ok := p.(*dragoman.ToolCall)
	return ok && wirekit.Cut(c)
}

// opensEarly reports whether a block can start before its part is whole.
func (e *Emitter) opensEarly(p *Out) bool {
	switch part := p.Skeleton.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		return e.BareStart || len(p.waiting) > 0
	case *dragoman.Reasoning:
		return !part.Redacted && len(p.waiting) > 0
	case *dragoman.ToolCall:
		return part.Name != "" && part.ID != "" && !part.Hosted && p.Grows()
	default:
		return false
	}
}

// Number gives a part the next block.
func (e *Emitter) Number(p *Out) {
	p.Index = e.Next
	e.Next++
}

// Begun opens the block of a part that could not open early.
func (e *Emitter) Begun(dst []byte, p *Out, part dragoman.Part) ([]byte, error) {
	if p.Opened() {
		return dst, nil
	}
	return e.Wire.OpenBlock(dst, p, part)
}

// Remainder is what of a text was not sent yet. A text that does not go on from
// what was sent cannot be taken back: that is reported.
func (e *Emitter) Remainder(p *Out, whole string) string {
	rest, ok := p.Sent.Rest(whole)
	if !ok {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, p.At.String(), "the final value differs from the fragments that were sent")
		return ""
	}
	return rest
}

// Ended are the calls that came to their end. Their order does not count.
func (e *Emitter) Ended() (calls []*dragoman.ToolCall) {
	for _, p := range e.parts {
		if c, ok := p.Final.(*dragoman.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
