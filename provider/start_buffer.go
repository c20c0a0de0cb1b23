package provider

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// The limits of a [startBuffer]: beyond them, a stream without content is passed through.
const (
	maxHeld      = 256
	maxHeldBytes = 1 << 20
)

// startBuffer holds the events of a stream until one of them has content. Until then the caller
// has seen nothing, so that another attempt or another model can respond. It is the only buffer of
// events between a decoder and the caller: a [Chain] and its clients share one, and the gateway
// does not buffer.
type startBuffer struct {
	yield func(dragoman.Event, error) bool
	// open reports that events are sent at once, stopped that the caller wants no more.
	open, stopped bool
	held          []dragoman.Event
	bytes         int
	// exchange sends its patches before an event; nil sends none.
	exchange *exchange
	// failover is set in the start and the end of the response if it is not nil.
	failover *dragoman.Failover
	// end is the ResponseEnd. It is not set if the buffer was open and has no failover.
	end *dragoman.ResponseEnd
}

// add adds an event and reports whether the caller wants more.
func (b *startBuffer) add(ev dragoman.Event) bool {
	if b.failover != nil {
		b.setFailover(ev)
	}
	if !b.open {
		return b.hold(ev)
	}
	if b.exchange != nil {
		b.exchange.sendPatches()
	}
	b.stopped = b.stopped || !b.yield(ev, nil)
	return !b.stopped
}

// hold stores an event, and flushes the buffer if the event has content or the buffer is full.
func (b *startBuffer) hold(ev dragoman.Event) bool {
	if c, ok := ev.(*dragoman.Chunk); ok { // its bytes are valid until the next event
		stored := *c
		stored.Raw = bytes.Clone(c.Raw)
		b.bytes += len(stored.Raw)
		ev = &stored
	}
	if end, ok := ev.(*dragoman.ResponseEnd); ok {
		b.end = end
	}
	b.held = append(b.held, ev)
	if stream.HasContent(ev) || len(b.held) >= maxHeld || b.bytes >= maxHeldBytes {
		return b.flush()
	}
	return true
}

// setFailover sets the failover in the start and the end of a response.
func (b *startBuffer) setFailover(ev dragoman.Event) {
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		ev.Response.Failover = b.failover
	case *dragoman.ResponseEnd:
		ev.Response.Failover = b.failover
		b.end = ev
	}
}

// flush sends the held events, and opens the buffer. It reports whether the caller wants more.
func (b *startBuffer) flush() bool {
	b.open = true
	for _, ev := range b.held {
		if !b.add(ev) {
			break
		}
	}
	b.held = nil
	return !b.stopped
}

// isEmpty reports whether the response ended without content and without a reason.
func (b *startBuffer) isEmpty() bool {
	return !b.open && b.end != nil && stream.Unexplained(b.end.Stop.Reason)
}

// drop discards the held events of a failed attempt.
func (b *startBuffer) drop() { b.held, b.bytes, b.end = nil, 0, nil }
