package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// Emitter streams the parts of a response as blocks, one after another. It guarantees:
//
//   - Blocks come in the order in which their parts started, with dense indexes.
//   - A block is closed before the next one is opened. A part that starts while another
//     is open waits (quirk C21).
//   - No delta is empty.
//   - A call's block is not closed if it differs from the call at the end of its part,
//     or if the call was cut off and the response has not ended, because clients run
//     calls whose blocks are closed.
//   - Unknown fields in the events of a part are written into the events of its block.
//
// Only the [StreamWire] knows how events are written.
type Emitter struct {
	Dialect dragoman.Dialect
	Wire    StreamWire
	rep     *dragoman.Report
	// BareStart means that a text block has a start event that can be written before
	// its first delta.
	BareStart bool

	// Next is the index of the next block.
	Next int64
	// Calls and Refused report whether the parts include calls and a refusal.
	Calls, Refused bool

	parts  map[int]*Out
	places extra.Places
	// queue holds the parts that are not completely written, in order of start. Only
	// the first may have an open block.
	queue  []*Out
	others bool // parts of other choices were dropped
}

// StreamWire writes the events of a response. Each method appends to dst.
type StreamWire interface {
	// OpenBlock assigns the next block number to a part and writes what precedes its
	// deltas.
	OpenBlock(dst []byte, p *Out, part dragoman.Part) ([]byte, error)
	// Delta writes a fragment for the open block, with its unknown fields. The fragment
	// may be empty.
	Delta(dst []byte, p *Out, text string, fields *dragoman.Extra) []byte
	// Finish writes the rest of a part and closes its block.
	Finish(dst []byte, p *Out, final dragoman.Part) ([]byte, error)
	// StopBlock closes a block, after its [Emitter.Fields].
	StopBlock(dst []byte, p *Out) []byte
	// Fail ends the stream with an error.
	Fail(dst []byte, err *dragoman.APIError) []byte
}

// Out is a part that is being written.
type Out struct {
	Skeleton dragoman.Part
	Final    dragoman.Part // nil while the part is open
	At       extra.Path
	Index    int64 // of its block; -1 before the block is opened
	Sent     stream.Sent
	// Opening and Closing are the unknown fields of the events that open and
	// close the block.
	Opening, Closing *dragoman.Extra

	waiting []byte
	fields  []*dragoman.Extra // of waiting deltas
	summary int
}

// Opened reports whether the block of the part was opened.
func (p *Out) Opened() bool { return p.Index >= 0 }

// NewEmitter returns an emitter without parts.
func NewEmitter(d dragoman.Dialect, wire StreamWire, rep *dragoman.Report) Emitter {
	return Emitter{Dialect: d, Wire: wire, rep: rep, parts: make(map[int]*Out)}
}

// track records p as the part that starts. It returns false for a part that is not
// written.
func (e *Emitter) track(ev *dragoman.PartStart, p *Out) bool {
	if ev.Choice != 0 {
		if !e.others {
			e.others = true
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/alternatives", "further candidates; the API returns only one")
		}
		return false
	}
	if ev.Part == nil || e.parts[ev.Index] != nil {
		return false // ignore a second start of the same part
	}
	at, message := e.places.Next(ev)
	if ev.Header != nil {
		ReportHeader(e.rep, ev.Header, e.Dialect, message)
	}
	p.Skeleton, p.At, p.Opening, p.Sent = ev.Part, at, e.ownFields(ev.Extra), stream.SentOf(ev.Part)
	e.parts[ev.Index] = p
	switch part := ev.Part.(type) {
	case *dragoman.ToolCall:
		e.Calls = e.Calls || !part.Hosted
	case *dragoman.Refusal:
		e.Refused = true
	}
	return true
}

// ReportHeader reports the fields in the header of a response message that the wire
// lacks.
func ReportHeader(rep *dragoman.Report, m *dragoman.Message, d dragoman.Dialect, at extra.Path) {
	extra.Report(rep, m.Extra, d, at)
	wirekit.ReportName(rep, m, at)
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

// PartDelta writes a fragment of the part at the head of the queue, and buffers one of
// any other part.
func (e *Emitter) PartDelta(dst []byte, ev *dragoman.PartDelta) ([]byte, error) {
	p := e.parts[ev.Index]
	fields := e.ownFields(ev.Extra)
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

// ownFields returns unknown fields of the emitter's dialect; nil for others.
func (e *Emitter) ownFields(fields *dragoman.Extra) *dragoman.Extra {
	if fields.For(e.Dialect) == nil {
		return nil
	}
	return fields
}

// Fields writes the unknown fields of buffered deltas, each in a separate delta.
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
	p.Final, p.Closing = ev.Part, e.ownFields(ev.Extra)
	return e.Advance(dst, false)
}

// Advance writes as much of the queue as possible. At the end of the response, all is
// true and nothing stays buffered.
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
		// A call that was cut off is not closed until it is known whether the whole
		// stream was: clients run calls whose blocks are closed.
		if !all && (p.Final == nil || truncated(p.Final)) {
			return dst, nil
		}
		if p.Opened() && p.differsFromSent() {
			return e.spliced(dst, p), nil
		}
		final := p.Final
		if final == nil {
			final = p.unfinished()
		}
		p.waiting = nil // the final value includes it
		if dst, err = e.Wire.Finish(dst, p, final); err != nil {
			return dst, err
		}
		p.written()
		e.queue = e.queue[1:]
	}
	return dst, nil
}

// Grows reports whether the deltas of the part are written to the block as they come.
// The object around freeform input, and an opaque block, are known only at the end.
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
	return ok && wirekit.IsTruncated(c)
}

// opensEarly reports whether the block can start before its part is complete.
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

// Number assigns the next block number to a part.
func (e *Emitter) Number(p *Out) {
	p.Index = e.Next
	e.Next++
}

// EnsureOpen opens the block of a part, unless it is already open.
func (e *Emitter) EnsureOpen(dst []byte, p *Out, part dragoman.Part) ([]byte, error) {
	if p.Opened() {
		return dst, nil
	}
	return e.Wire.OpenBlock(dst, p, part)
}

// Remainder returns the part of a text that was not sent yet. If the text does not
// continue what was sent, it reports the difference and returns "", because sent text
// cannot be taken back.
func (e *Emitter) Remainder(p *Out, whole string) string {
	rest, ok := p.Sent.Rest(whole)
	if !ok {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, p.At.String(), "the final value differs from the fragments that were sent")
		return ""
	}
	return rest
}

// Ended returns the calls that are complete, in no particular order.
func (e *Emitter) Ended() (calls []*dragoman.ToolCall) {
	for _, p := range e.parts {
		if c, ok := p.Final.(*dragoman.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
