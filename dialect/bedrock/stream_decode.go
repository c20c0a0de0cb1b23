package bedrock

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
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
	blocks := blockDecoder{Decoder: blockwire.NewDecoder(format, o)}
	d := &streamDecoder{answer: newAnswer(blocks), blocks: blocks}
	d.Init(blocks.Decoder, &d.answer.Answer, d)
	d.frames.Max = o.Limit()
	return d
}

type streamDecoder struct {
	blockwire.StreamDecoder[*streamBlock]
	wireEvent // the one at hand
	frames    eventstream.Parser
	blocks    blockDecoder
	answer    answer

	last    *streamBlock // the latest, which a delta without an index belongs to
	events  int          // frames seen
	stopped bool         // messageStop was seen
	counted bool         // metadata was seen
	fed     bool         // a byte came
	page    bool         // what came is no event stream, but text
	bytes   int64        // that came
	endsAt  int64        // the byte behind the last frame that counts
	behind  wirekit.Late
}

// maxMembers bounds the members of a response that are not modelled.
const maxMembers = 64

// errEnded stops the framing behind the end of a response: nothing that comes
// there is anybody's (quirk C12).
var errEnded = errors.New("bedrock: the response has ended")

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.Failed != nil {
		return d.Failed
	}
	if d.Done && len(p) > 0 {
		d.behind.Bytes(d.Rep)
	}
	if d.Done || len(p) == 0 {
		return nil
	}
	d.bytes += int64(len(p))
	if !d.fed {
		d.fed, d.page = true, isText(p[0])
	}
	if d.page {
		d.None.Fed(p)
		return nil
	}
	d.Parts.Use(d.Held.Hold)
	err := d.frames.Feed(p, func(f eventstream.Frame) error { return d.frame(f, emit) })
	if !errors.Is(err, errEnded) {
		d.Failed = frameError(err)
	} else if d.bytes > d.endsAt {
		d.behind.Bytes(d.Rep)
	}
	return d.Failed
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
	d.Parts.Use(emit)
	if d.Done {
		return d.Failed
	}
	broken := d.Failed
	if broken == nil && !d.page {
		broken = frameError(d.frames.Close())
	}
	if broken == nil && d.stopped { // the numbers are missing, not the answer
		d.End()
		return d.Parts.Err()
	}
	return d.Cut(broken)
}

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
	chunk := d.Chunk(f.Raw)
	switch {
	case failed != nil:
	case failure:
		d.exception(f)
	default:
		d.unmodelled(chunk)
		if failed = d.event(); failed == nil {
			failed = d.Bound.Err()
		}
	}
	if err := d.Held.Release(chunk, d.carrier, emit); err != nil {
		return err
	}
	if failed != nil {
		return d.place(f, failed)
	}
	if d.Done {
		d.endsAt = f.Offset + int64(len(f.Raw))
		return errEnded
	}
	return nil
}

// unmodelled takes what the event at hand says that has no canonical form (quirk
// J7): its unknown fields, or the whole of an unknown event. A nil chunk leaves
// both out, which is reported.
func (d *streamDecoder) unmodelled(chunk *dragoman.Chunk) {
	if knownEvent(d.typ) {
		d.Unmodelled(chunk, d.UnknownFields(d.typ, &d.strays), d.unread)
		return
	}
	if chunk != nil {
		chunk.Opaque = true
	}
	d.Unmodelled(chunk, d.UnknownEvent(d.typ), nil)
}

// carrier returns a delta for the unknown fields of a delta that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if string(d.typ) != eventDelta {
		return nil
	}
	b := d.Open[d.index]
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
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "/output/message/content", "content behind messageStop")
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
	if len(f.Payload) >= bodies.MaxValues { // else it cannot hold as many
		if err := wirekit.CheckSize(name, "stream", f.Payload, d.Options); err != nil {
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
		if d.Blocks > 0 || d.stopped {
			return blockwire.ErrSpliced
		}
		d.Start()
		d.members()
	case eventBlockStart:
		return d.blockStart()
	case eventDelta:
		return d.blockDelta()
	case eventBlockStop:
		d.blockStop()
	case eventStop:
		d.Start()
		d.answer.Say(d.word)
		d.members()
		d.stopped = true
	case eventMetadata:
		d.Start()
		d.members()
		d.counted = true
		if d.usage != nil {
			r := jsonwire.NewReader(d.usage)
			d.answer.counters.read(r, d.answer.Keep, d.Rep)
			if err := r.Err(); err != nil {
				return jsonwire.PlaceAt("/usage", -1, err)
			}
		}
	}
	if d.stopped && d.counted {
		d.End()
	}
	return nil
}

// members keeps what an event says of the whole response.
func (d *streamDecoder) members() {
	for _, m := range d.rest {
		key := []byte(m.name)
		_, known := extra.Replaces(d.answer.Resp.Extra, "", key)
		if known || len(d.answer.Resp.Extra.For(name)) < maxMembers {
			d.answer.member(key, m.raw)
		} else {
			d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "", "members that are not modelled: more than %d", maxMembers)
		}
	}
}

// Usage implements [blockwire.BlockReader].
func (d *streamDecoder) Usage() dragoman.Usage { return d.answer.counters.usage() }

// exception ends the stream with an error that the server told (quirk C14): an
// exception of the API's, or an error of the connection's.
func (d *streamDecoder) exception(f eventstream.Frame) {
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
	d.Break(e)
}
