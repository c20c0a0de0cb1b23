package stream

import (
	dragoman "github.com/dragoman-go/dragoman"
)

// Held keeps back the events of one event of the wire until it was read to its
// end: only then is it known what may go before them, its bytes or an empty
// chunk. The zero value is ready.
type Held struct{ events []dragoman.Event }

// Hold takes an event. It refuses none.
func (h *Held) Hold(ev dragoman.Event) error {
	h.events = append(h.events, ev)
	return nil
}

// Release hands out chunk, unless it is nil, and what was held, in order, up to
// the first event that emit refuses. Nothing is held afterwards.
func (h *Held) Release(chunk *dragoman.Chunk, emit func(dragoman.Event) error) error {
	var err error
	if chunk != nil {
		err = emit(chunk)
	}
	for i, ev := range h.events {
		if err != nil {
			break
		}
		h.events[i] = nil // the calls of a stream end in one event, and each may be long
		err = emit(ev)
	}
	clear(h.events)
	h.events = h.events[:0]
	return err
}
