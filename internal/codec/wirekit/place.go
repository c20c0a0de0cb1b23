package wirekit

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// StreamPlace is the read position in a stream, so that errors can include it. The zero
// value is the beginning.
type StreamPlace struct {
	event int   // number of the current event, counted from 1
	start int64 // offset of its first byte
	next  int64 // offset of the first byte after it
}

// Enter moves to the next event. Only events with data are counted.
func (p *StreamPlace) Enter(ev sse.Event) {
	if ev.HasData {
		p.event++
	}
	p.start = p.next
	p.next += int64(len(ev.Raw))
}

// Error returns err as an error in the current event ev. The offset of err counts from
// the event's data; the offset of the result counts from the beginning of the stream.
func (p *StreamPlace) Error(d dragoman.Dialect, ev sse.Event, err error) error {
	e := &dragoman.DecodeError{Dialect: d, What: "stream", Offset: p.start}
	var at *jsonwire.Error
	if errors.As(err, &at) {
		e.Pointer, err = at.Pointer, at.Err
		if data, ok := dataStart(ev); ok && at.Offset >= 0 {
			e.Offset += data + at.Offset
		}
	}
	e.Err = fmt.Errorf("event %d: %w", p.event, err)
	return e
}

// Framing returns the error of the parser. An event that is too long is beyond the current
// one, and wraps [dragoman.ErrTooLarge].
func (p *StreamPlace) Framing(d dragoman.Dialect, err error) error {
	if errors.Is(err, sse.ErrTooLong) {
		return p.Beyond(d, fmt.Errorf("%w: %w", dragoman.ErrTooLarge, err))
	}
	return err
}

// Beyond returns an error in the event after the current one, which was never read.
func (p *StreamPlace) Beyond(d dragoman.Dialect, err error) error {
	return &dragoman.DecodeError{
		Dialect: d, What: "stream", Offset: p.next,
		Err: fmt.Errorf("event %d: %w", p.event+1, err),
	}
}

// dataStart returns the offset of the data in an event. ok is false if the data was
// joined from several lines.
func dataStart(ev sse.Event) (offset int64, ok bool) {
	at := cap(ev.Raw) - cap(ev.Data) // slices of one buffer
	if ev.Joined || at < 0 || at > len(ev.Raw) || !bytes.HasPrefix(ev.Raw[at:], ev.Data) {
		return 0, false
	}
	return int64(at), true
}
