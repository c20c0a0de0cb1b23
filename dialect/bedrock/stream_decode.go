package bedrock

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// NewStreamDecoder implements [dialect.Codec]. It is fed the frames of the
// binary event stream.
//
// A response ends with messageStop and metadata, in either order, or with
// messageStop and the end of the stream. The end of a call is held back until
// then: only then is it known that the calls of this response may run (quirks
// C13, C34). A damaged or truncated frame is an error (quirk C33).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{blockDecoder: newBlockDecoder(c, o)}
	d.answer = answer{decoder: &d.blockDecoder, keep: wirekit.Keeper{Bound: &d.bound}}
	d.answer.resp.Origin = d.origin
	d.bound.Max = o.Limit()
	d.parts.DeltasOnly, d.parts.Bound = o.DeltasOnly, &d.bound
	d.frames.Max = o.Limit()
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	return d
}

type streamDecoder struct {
	blockDecoder
	wireEvent // the one at hand
	frames    eventstream.Parser
	parts     stream.Parts
	answer    answer

	open    map[int64]*streamBlock // by index of the wire
	last    *streamBlock           // the latest, which a delta without an index belongs to
	calls   []*streamBlock         // in order of start, until they are settled
	ids     map[string]bool        // of calls that were started
	blocks  int                    // blocks seen
	events  int                    // frames seen
	started bool
	stopped bool // messageStop was seen
	counted bool // metadata was seen
	done    bool
	failed  error
	fed     bool // a byte came
	page    bool // what came is no event stream, but text
	none    wirekit.NotAStream
	unknown wirekit.Unknown // events
	untold  wirekit.Untold
	bytes   int64 // that came
	endsAt  int64 // the byte behind the last frame that counts
	behind  wirekit.Late
	held    stream.Held // the events of the frame at hand
	bound   stream.Bound
}

// maxMembers bounds the members of a response that are not modelled.
const maxMembers = 64

func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// errEnded stops the framing behind the end of a response: nothing that comes
// there is anybody's (quirk C12).
var errEnded = errors.New("bedrock: the response has ended")

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.failed != nil {
		return d.failed
	}
	if d.done && len(p) > 0 {
		d.behind.Bytes(d.rep)
	}
	if d.done || len(p) == 0 {
		return nil
	}
	d.bytes += int64(len(p))
	if !d.fed {
		d.fed, d.page = true, isText(p[0])
	}
	if d.page {
		d.none.Fed(p)
		return nil
	}
	d.parts.Use(d.held.Hold)
	err := d.frames.Feed(p, func(f eventstream.Frame) error { return d.frame(f, emit) })
	if !errors.Is(err, errEnded) {
		d.failed = frameError(err)
	} else if d.bytes > d.endsAt {
		d.behind.Bytes(d.rep)
	}
	return d.failed
}

// clone copies what outlives the event at hand, within the bound.
func (d *streamDecoder) clone(b []byte) []byte {
	d.bound.Take(len(b))
	return bytes.Clone(b)
}

// isText reports whether a stream that begins with this byte is none: as the
// length of a frame it would say a hundred megabytes and more, while a page or a
// JSON document begins so.
func isText(b byte) bool { return b >= ' ' || b == '\t' || b == '\n' || b == '\r' }

// frameError places an error of the framing. Any other is returned as it is.
func frameError(err error) error {
	var at *eventstream.Error
	if !errors.As(err, &at) {
		return err
	}
	cause := at.Err
	if errors.Is(cause, eventstream.ErrTooLong) {
		cause = fmt.Errorf("%w: %w", dragoman.ErrTooLarge, cause)
	}
	return &dragoman.DecodeError{Dialect: name, What: "stream", Offset: at.Offset, Err: cause}
}

func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.parts.Use(emit)
	if d.done {
		return d.failed
	}
	broken := d.failed
	if broken == nil && !d.page {
		broken = frameError(d.frames.Close())
	}
	if broken == nil && d.stopped { // the numbers are missing, not the answer
		d.end()
		return d.parts.Err()
	}
	d.failed = dragoman.ErrIncompleteStream
	d.start()
	d.settle(false)
	cut := d.cut(broken)
	d.send(&dragoman.StreamError{Err: cut, Usage: d.answer.counters.usage()})
	d.done = true
	if e := d.parts.Err(); e != nil {
		return e
	}
	return wirekit.Incomplete(cut)
}

// cut is the error of a stream without an end. It says what is known of why.
func (d *streamDecoder) cut(broken error) *dragoman.APIError {
	err := fmt.Errorf("%s stream: %w", name, dragoman.ErrIncompleteStream)
	if broken != nil {
		err = fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, broken) // which names the dialect
	} else if e := d.none.Failure(Codec{}.DecodeError); e != nil {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// send emits an event that is no part's.
func (d *streamDecoder) send(ev dragoman.Event) { d.parts.Send(ev) }

// frame takes one frame of the wire.
func (d *streamDecoder) frame(f eventstream.Frame, emit func(dragoman.Event) error) error {
	d.events++
	kind := f.Text(":message-type")
	failure := string(kind) == "exception" || string(kind) == "error" || f.Text(":exception-type") != nil
	var failed error
	if !failure {
		failed = d.readEvent(f)
	}
	if !failure && failed == nil && d.late() {
		return nil
	}
	var chunk *dragoman.Chunk
	if !d.o.NoNative {
		chunk = &dragoman.Chunk{Dialect: name, Raw: f.Raw}
	}
	switch {
	case failed != nil:
	case failure:
		d.exception(f)
	default:
		d.unmodelled(chunk)
		if failed = d.event(); failed == nil {
			failed = d.bound.Err()
		}
	}
	if err := d.held.Release(chunk, d.carrier, emit); err != nil {
		return err
	}
	if failed != nil {
		return d.place(f, failed)
	}
	if d.done {
		d.endsAt = f.Offset + int64(len(f.Raw))
		return errEnded
	}
	return nil
}

// unmodelled takes what the event at hand says that has no canonical form (quirk
// J7): its unknown fields, or the whole of an unknown event. A nil chunk leaves
// both out, which is reported.
func (d *streamDecoder) unmodelled(chunk *dragoman.Chunk) {
	var loss *dragoman.Loss
	if knownEvent(d.typ) {
		loss = d.unknown.Members(d.typ, &d.strays)
		for _, f := range d.unread {
			d.held.Field(f.place, []byte(f.name), f.raw)
		}
	} else if loss = d.unknown.Of(d.typ); chunk != nil {
		chunk.Opaque = true
	}
	if chunk == nil {
		d.untold.Lose(loss, d.rep)
	} else {
		chunk.Loss = loss
	}
}

// carrier returns a delta for the unknown fields of a delta that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if string(d.typ) != eventDelta {
		return nil
	}
	b := d.open[d.index]
	if b == nil && !d.hasIndex {
		b = d.last
	}
	if b == nil || b.Part == nil {
		return nil
	}
	return b.Part.Carrier()
}

// late reports whether the event at hand is content that comes behind the end
// of the message. It is nobody's, and not passed on either (quirk C12).
func (d *streamDecoder) late() bool {
	if !d.stopped {
		return false
	}
	switch string(d.typ) {
	case eventBlockStart, eventDelta, eventBlockStop:
		d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/output/message/content", "content behind messageStop")
		return true
	default:
		return false
	}
}

// readEvent reads the event in a frame.
func (d *streamDecoder) readEvent(f eventstream.Frame) error {
	typ := f.Text(":event-type")
	if typ == nil {
		return errNoType
	}
	if !knownEvent(typ) || string(typ) == "initial-response" {
		d.typ = append(d.typ[:0], typ...)
		d.opening, d.twice, d.rest, d.whole = nil, "", d.rest[:0], false
		d.strays.Reset()
		d.unread = d.unread[:0]
		return nil
	}
	if len(f.Payload) >= dialect.MaxValues { // else it cannot hold as many
		if err := wirekit.CheckSize(name, "stream", f.Payload, d.o); err != nil {
			return errors.Unwrap(err)
		}
	}
	return d.read(f.Payload, typ)
}

var errNoType = errors.New("a frame without an :event-type")

// place says where in the stream an error is.
func (d *streamDecoder) place(f eventstream.Frame, err error) error {
	e := &dragoman.DecodeError{Dialect: name, What: "stream", Offset: f.Offset}
	var at *jsonwire.Error
	if errors.As(err, &at) {
		e.Pointer, err = at.Pointer, at.Err
		if at.Offset >= 0 {
			e.Offset = f.PayloadOffset() + at.Offset
		}
	}
	e.Err = fmt.Errorf("event %d: %w", d.events, err)
	return e
}

// event acts on the event that was read.
func (d *streamDecoder) event() error {
	switch string(d.typ) {
	case eventStart:
		if d.blocks > 0 || d.stopped {
			return errSpliced
		}
		d.start()
		d.members()
	case eventBlockStart:
		return d.blockStart()
	case eventDelta:
		return d.blockDelta()
	case eventBlockStop:
		d.blockStop()
	case eventStop:
		d.start()
		d.answer.say(d.word)
		d.members()
		d.stopped = true
	case eventMetadata:
		d.start()
		d.members()
		d.counted = true
		if d.usage != nil {
			r := jsonwire.NewReader(d.usage)
			d.answer.counters.read(r, d.answer.keep, d.rep)
			if err := r.Err(); err != nil {
				return placeAt("/usage", -1, err)
			}
		}
	}
	if d.stopped && d.counted {
		d.end()
	}
	return nil
}

var errSpliced = errors.New("a second message starts inside the first: two answers were spliced together")

// members keeps what an event says of the whole response.
func (d *streamDecoder) members() {
	for _, m := range d.rest {
		key := []byte(m.name)
		_, known := extra.Replaces(d.answer.resp.Extra, "", key)
		if known || len(d.answer.resp.Extra.For(name)) < maxMembers {
			d.answer.member(key, m.raw)
		} else {
			d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "", "members that are not modelled: more than %d", maxMembers)
		}
	}
}

// start emits the first event, also for a stream that lacks messageStart.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	resp := d.answer.resp
	resp.Extra = clone(resp.Extra)
	d.send(&dragoman.ResponseStart{Response: resp})
}

// clone copies extras that go on changing.
func clone(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	return &dragoman.Extra{Dialect: e.Dialect, Fields: slices.Clone(e.Fields)}
}

// end ends the response.
func (d *streamDecoder) end() {
	d.start()
	stop := d.settle(true)
	resp := d.answer.resp
	resp.Extra = clone(resp.Extra)
	d.send(&dragoman.ResponseEnd{Stop: stop, Usage: d.answer.counters.usage(), Response: resp})
	d.done = true
}

// exception ends the stream with an error that the server told (quirk C14): an
// exception of the API's, or an error of the connection's.
func (d *streamDecoder) exception(f eventstream.Frame) {
	d.start()
	d.settle(false)
	e := Codec{}.DecodeError(0, nil, bytes.Clone(f.Payload))
	if typ := f.Text(":exception-type"); typ != nil {
		e.Type = string(typ)
	} else if code := f.Text(":error-code"); code != nil {
		e.Type = string(code)
	}
	if message := f.Text(":error-message"); len(message) > 0 {
		e.Message = string(message)
	}
	if e.Message == "" {
		e.Message = e.Type
	}
	e.Class = classOf(e)
	d.send(&dragoman.StreamError{Err: e, Usage: d.answer.counters.usage()})
	d.done = true
}
