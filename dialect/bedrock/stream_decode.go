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
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec]. It reads the frames of the
// binary event stream.
//
// A response ends with messageStop and metadata, in either order, or with
// messageStop and the end of the stream. The end of a call is held back until
// then, because only then is it known that the calls of the response may run
// (quirks C13, C34). A damaged or truncated frame is an error (quirk C33).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	blocks := blockDecoder{Decoder: blockwire.NewDecoder(format, o)}
	d := &streamDecoder{response: newResponseDecoder(blocks), blocks: blocks}
	d.Init(blocks.Decoder, &d.response.Response, d)
	d.frames.Max = o.Limit()
	return d
}

type streamDecoder struct {
	blockwire.StreamDecoder[*streamBlock]
	wireEvent // the current event
	frames    eventstream.Parser
	blocks    blockDecoder
	response  responseDecoder

	lastBlock *streamBlock // the latest block, which a delta without an index belongs to
	events    int          // number of frames
	stopped   bool         // messageStop was seen
	counted   bool         // metadata was seen
	fed       bool         // a byte was received
	notStream bool         // the input is text, not an event stream
	bytes     int64        // number of bytes received
	endsAt    int64        // offset after the last frame that counts
	afterEnd  wirekit.Late
}

// maxFields limits the unknown fields of a response.
const maxFields = 64

// errEnded stops the framing at the end of a response: anything after it is
// ignored (quirk C12).
var errEnded = errors.New("bedrock: the response has ended")

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.Failed != nil {
		return d.Failed
	}
	if d.Done && len(p) > 0 {
		d.afterEnd.Bytes(d.Rep)
	}
	if d.Done || len(p) == 0 {
		return nil
	}
	d.bytes += int64(len(p))
	if !d.fed {
		d.fed, d.notStream = true, isText(p[0])
	}
	if d.notStream {
		d.None.Fed(p)
		return nil
	}
	d.Parts.Use(d.Held.Hold)
	err := d.frames.Feed(p, func(f eventstream.Frame) error { return d.frame(f, emit) })
	if !errors.Is(err, errEnded) {
		d.Failed = frameError(err)
	} else if d.bytes > d.endsAt {
		d.afterEnd.Bytes(d.Rep)
	}
	return d.Failed
}

// isText reports whether a first byte cannot start an event stream. As the
// length of a frame it would mean more than a hundred megabytes; an HTML page
// or a JSON document starts with it.
func isText(b byte) bool { return b >= ' ' || b == '\t' || b == '\n' || b == '\r' }

// frameError adds the position to a framing error. It returns other errors
// unchanged.
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
	if broken == nil && !d.notStream {
		broken = frameError(d.frames.Close())
	}
	if broken == nil && d.stopped { // only the usage is missing
		d.End()
		return d.Parts.Err()
	}
	return d.Cut(broken)
}

func (d *streamDecoder) frame(f eventstream.Frame, emit func(dragoman.Event) error) error {
	d.events++
	kind := f.Text(":message-type")
	failure := string(kind) == "exception" || string(kind) == "error" || f.Text(":exception-type") != nil
	var failed error
	if !failure {
		failed = d.readEvent(f)
	}
	if !failure && failed == nil && d.isAfterEnd() {
		return nil
	}
	chunk := d.Chunk(f.Raw)
	switch {
	case failed != nil:
	case failure:
		d.exception(f)
	default:
		d.unmodeled(chunk)
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

// unmodeled stores the unknown fields of the current event, or the whole event
// if it is unknown (quirk J7). With a nil chunk both are dropped, and the loss
// is reported.
func (d *streamDecoder) unmodeled(chunk *dragoman.Chunk) {
	if knownEvent(d.typ) {
		d.AddUnknown(chunk, d.UnknownFields(d.typ, &d.unknownFields), d.unread)
		return
	}
	if chunk != nil {
		chunk.Opaque = true
	}
	d.AddUnknown(chunk, d.UnknownEvent(d.typ), nil)
}

// carrier returns a delta for the unknown fields of a delta that emits nothing
// else.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if string(d.typ) != eventDelta {
		return nil
	}
	b := d.Open[d.index]
	if b == nil && !d.hasIndex {
		b = d.lastBlock
	}
	if b == nil || b.Part == nil {
		return nil
	}
	return b.Part.Carrier()
}

// isAfterEnd reports whether the current event is content after the end of the
// message. It is dropped and not passed through (quirk C12).
func (d *streamDecoder) isAfterEnd() bool {
	if !d.stopped {
		return false
	}
	switch string(d.typ) {
	case eventBlockStart, eventDelta, eventBlockStop:
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "/output/message/content", "content after messageStop")
		return true
	default:
		return false
	}
}

func (d *streamDecoder) readEvent(f eventstream.Frame) error {
	typ := f.Text(":event-type")
	if typ == nil {
		return errNoType
	}
	if !knownEvent(typ) || string(typ) == "initial-response" {
		d.typ = append(d.typ[:0], typ...)
		d.opening, d.duplicate, d.otherFields, d.whole = nil, "", d.otherFields[:0], false
		d.unknownFields.Reset()
		d.unread = d.unread[:0]
		return nil
	}
	if len(f.Payload) >= framing.MaxValues { // a shorter payload cannot exceed the limit
		if err := wirekit.CheckSize(name, "stream", f.Payload, d.Options); err != nil {
			return errors.Unwrap(err)
		}
	}
	return d.read(f.Payload, typ)
}

var errNoType = errors.New("frame without an :event-type header")

// place adds the position in the stream to an error.
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

// event handles the current event.
func (d *streamDecoder) event() error {
	switch string(d.typ) {
	case eventStart:
		if d.Blocks > 0 || d.stopped {
			return blockwire.ErrSpliced
		}
		d.Start()
		d.responseFields()
	case eventBlockStart:
		return d.blockStart()
	case eventDelta:
		return d.blockDelta()
	case eventBlockStop:
		d.blockStop()
	case eventStop:
		d.Start()
		d.response.SetStop(d.stopReason)
		d.responseFields()
		d.stopped = true
	case eventMetadata:
		d.Start()
		d.responseFields()
		d.counted = true
		if d.usage != nil {
			r := jsonwire.NewReader(d.usage)
			d.response.counters.read(r, d.response.Keep, d.Rep)
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

// responseFields stores the fields of an event that belong to the response.
func (d *streamDecoder) responseFields() {
	for _, m := range d.otherFields {
		key := []byte(m.name)
		_, known := extra.Replaces(d.response.Resp.Extra, "", key)
		if known || len(d.response.Resp.Extra.For(name)) < maxFields {
			d.response.sharedField(key, m.raw)
		} else {
			d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "", "more than %d unknown fields", maxFields)
		}
	}
}

// Usage implements [blockwire.BlockReader].
func (d *streamDecoder) Usage() dragoman.Usage { return d.response.counters.usage() }

// exception ends the stream with an error that the server sent (quirk C14): an
// exception of the API or an error of the connection.
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
