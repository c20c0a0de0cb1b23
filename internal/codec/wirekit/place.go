package wirekit

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// StreamPlace is how far a stream was read, so that an error can say where in
// it it is. The zero value is its beginning.
type StreamPlace struct {
	event int   // the number of the event at hand, counted from 1
	start int64 // its first byte
	next  int64 // the first byte behind it
}

// Enter takes the next event. It counts the ones that have data.
func (p *StreamPlace) Enter(ev sse.Event) {
	if ev.HasData {
		p.event++
	}
	p.start = p.next
	p.next += int64(len(ev.Raw))
}

// Error is what was wrong with ev, the event at hand. The offset of err counts
// from the event's data, that of the result from the beginning of the stream.
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

// Beyond is what was wrong with the event after the one at hand, which was
// never read.
func (p *StreamPlace) Beyond(d dragoman.Dialect, err error) error {
	return &dragoman.DecodeError{
		Dialect: d, What: "stream", Offset: p.next,
		Err: fmt.Errorf("event %d: %w", p.event+1, err),
	}
}

// dataStart is where in an event its data begins. It has no such place where it
// was joined from several lines.
func dataStart(ev sse.Event) (int64, bool) {
	at := cap(ev.Raw) - cap(ev.Data) // slices of one buffer
	if ev.Joined || at < 0 || at > len(ev.Raw) || !bytes.HasPrefix(ev.Raw[at:], ev.Data) {
		return 0, false
	}
	return int64(at), true
}
