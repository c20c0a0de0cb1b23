package gateway

import (
	"bytes"
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// tap reads a response that is passed through, for its end and its token usage. It inspects each
// event once: the event name or, in dialects without event names, a field.
type tap struct {
	codec  dialect.Codec
	stream *wire.Stream
	lines  framing.Lines
	model  string // the requested model
	// first and last are the events that report tokens, except for those of ending: the events
	// that may end the response, and those with counts after them.
	first, last, ending []byte
	// final is the last event, for dialects in which only the last event shows that nothing is
	// missing.
	final []byte
	// named reports that the name of an event ended the response.
	named bool
	// head is the first event, or all of them if the last one repeats them, in chunks that need
	// not be copied when more arrive; headBytes is its length.
	head      [][]byte
	headBytes int
	// eol is the last byte of this server's line ends; 0 if unknown.
	eol byte
	// open reports that the last event is incomplete.
	open bool
	// events is the number of events; unreadable reports that one was too long to be held back, or
	// invalid.
	events     int64
	unreadable bool
	// ended reports that no more events will come; failed is the error that the server reported,
	// or nil.
	ended  bool
	failed error
}

func newTap(codec dialect.Codec) *tap {
	w := wire.Of(codec)
	t := &tap{codec: codec, stream: &w.Stream}
	t.lines, _ = w.Stream.Framing.(framing.Lines)
	return t
}

// wholeEvents returns how many bytes of buf are whole events.
func (t *tap) wholeEvents(buf []byte) int { return t.lines.Whole(buf) }

// complete reports whether the rest of a stream is empty, or an event that only lacks its blank
// line (quirk C18).
func (t *tap) complete(rest []byte) bool { return t.lines.Complete(rest) }

// id returns the id of the response in its first event.
func (t *tap) id() (id string) {
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		if e, ok := ev.(*dragoman.ResponseStart); ok {
			id = e.Response.ID
		}
		return nil
	}
	for _, p := range t.head {
		_ = d.Feed(p, see) // an unreadable event has no id
	}
	return id
}

// separator returns the separator before a new event; the previous event may lack its end.
func (t *tap) separator() []byte {
	if t.open {
		return t.lines.End()
	}
	return nil
}

// errorEvents returns the events that end a stream with an error. It closes open parts if clients of
// the dialect need that.
func (t *tap) errorEvents(seed string, e *dragoman.APIError) (events []byte) {
	enc := t.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: seed, Model: t.model})
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{})
	write := func(ev dragoman.Event) (err error) {
		if _, ok := ev.(*dragoman.StreamError); ok {
			ev = &dragoman.StreamError{Err: e}
		}
		events, err = enc.Encode(events, ev)
		return err
	}
	for _, p := range t.head {
		_ = d.Feed(p, write) // ignore unreadable events
	}
	if n := len(t.head) - 1; n >= 0 && t.wholeEvents(t.head[n]) != len(t.head[n]) {
		_ = d.Feed(t.lines.End(), write)
	}
	events = events[:0] // already sent
	_ = d.Close(write)
	if closed, err := enc.Close(events); err == nil {
		events = closed
	}
	if t.stream.FailureAfter != nil {
		events = t.stream.FailureAfter(t.head, events)
	}
	return events
}

const (
	// maxHead limits the stored beginning of a response, maxFinal its last event and maxEnding
	// the events that may end it, unless a single one is longer. This bounds memory for servers
	// that mark every event as the last.
	maxHead   = 2 << 20
	maxFinal  = 4 << 10
	maxEnding = 64 << 10
	// headChunkSize is the minimum size of a chunk of the head.
	headChunkSize = 4 << 10
)

// read records complete events.
func (t *tap) read(p []byte) {
	if t.stream.Repeats {
		t.storeHead(p)
	}
	if t.eol == 0 {
		t.eol = framing.LineEnd(p)
	}
	for len(p) > 0 {
		n, whole := t.lines.Next(p, t.eol)
		t.open = !whole
		t.readEvent(p[:n])
		p = p[n:]
	}
}

// readEvent records one event.
func (t *tap) readEvent(event []byte) {
	name, data := t.lines.Parts(event, t.eol)
	if len(data) == 0 { // a comment, or a blank
		return
	}
	t.events++
	if t.head == nil {
		t.head = [][]byte{bytes.Clone(event[:min(len(event), maxHead)])}
	}
	ends, counting := t.stream.End.May(name, data), t.stream.Usage.IsSet(data)
	t.ended = t.ended || ends && t.stream.End.Is(name, data)
	switch {
	case ends && t.stream.Repeats && !counting: // it may be as long as all of the others
		t.named = true
	case ends || counting && len(t.ending) > 0:
		t.named = t.named || t.stream.Repeats
		if len(t.ending)+len(event) > maxEnding {
			t.ending = t.ending[:0]
		}
		t.ending = append(append(t.ending, t.final...), event...)
	case counting && t.first == nil:
		t.first = bytes.Clone(event)
	case counting:
		t.last = append(t.last[:0], event...)
	}
	t.final = t.final[:0]
	if !ends && !counting && !t.stream.End.Named() && len(event) <= maxFinal {
		t.final = append(t.final, event...)
	}
}

// storeHead adds events to the head.
func (t *tap) storeHead(p []byte) {
	p = p[:min(len(p), maxHead-t.headBytes)]
	t.headBytes += len(p)
	for len(p) > 0 {
		last := len(t.head) - 1
		if last < 0 || len(t.head[last]) == cap(t.head[last]) {
			size := min(max(headChunkSize, t.headBytes/4), 16*headChunkSize)
			t.head, last = append(t.head, make([]byte, 0, size)), last+1
		}
		piece := t.head[last]
		n := min(len(p), cap(piece)-len(piece))
		t.head[last], p = append(piece, p[:n]...), p[n:]
	}
}

// end reports whether the response is complete, and its usage.
func (t *tap) end() (ended bool, usage dragoman.Usage) {
	// The decoder of the dialect reads the stored events, because it knows how counts add up.
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.ResponseStart:
			usage = usage.Merge(ev.Response.Usage)
		case *dragoman.ResponseEnd:
			ended, usage = true, usage.Merge(ev.Usage)
		case *dragoman.StreamError:
			usage = usage.Merge(ev.Usage)
			if ev.Err != nil && !errors.Is(ev.Err, dragoman.ErrIncompleteStream) {
				ended, t.failed = true, ev.Err // the server reported the error
			}
		}
		return nil
	}
	for _, p := range [][]byte{t.first, t.last, t.ending, t.final} {
		if err := d.Feed(p, see); err != nil {
			t.unreadable = true
			return t.named, usage
		}
	}
	_ = d.Close(see) // see gets the error as an event
	return ended || t.named, usage
}
