package provider

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// maxHeld bounds the events that are held back, and their native bytes: a server
// that says nothing in many words is passed on.
const (
	maxHeld      = 256
	maxHeldBytes = 1 << 20
)

// holder holds the events of a stream back until one of them is content,
// reasoning or a call. Until then a stream that fails has not been seen by
// anybody.
type holder struct {
	yield func(dragoman.Event, error) bool
	// open says that events are passed on as they come.
	open bool
	// left says that the caller wants no more.
	left  bool
	held  []dragoman.Event
	bytes int
	// failover goes with the start and the end of the response.
	failover *dragoman.Failover
}

// take takes an event, and reports whether more are wanted.
func (h *holder) take(ev dragoman.Event) bool {
	if h.open {
		h.left = h.left || !h.yield(ev, nil)
		return !h.left
	}
	if c, ok := ev.(*dragoman.Chunk); ok { // its bytes are valid until the next
		kept := *c
		kept.Raw = bytes.Clone(c.Raw)
		h.bytes += len(kept.Raw)
		ev = &kept
	}
	h.held = append(h.held, ev)
	if stream.HasContent(ev) || len(h.held) >= maxHeld || h.bytes >= maxHeldBytes {
		return h.release()
	}
	return true
}

// release passes on what is held, and from then on everything. It reports
// whether more is wanted.
func (h *holder) release() bool {
	h.open = true
	for _, ev := range h.held {
		if h.left {
			break
		}
		h.left = !h.yield(ev, nil)
	}
	h.held = nil
	return !h.left
}
