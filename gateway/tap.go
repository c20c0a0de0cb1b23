package gateway

import (
	"bytes"
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// tap watches an answer that is passed on, without a word: whether it came to its
// end, and what was counted. Each event is looked at once, as it passes: at its name, or
// for a member that says so where its dialect names none.
type tap struct {
	codec  dialect.Codec
	stream *wire.Stream
	lines  framing.Lines
	model  string // that was asked for
	// first and last are the events that count tokens, but for those of ending: the ones
	// that may end the answer, and what counts behind them.
	first, last, ending []byte
	// final is the last event, where only what came last shows that nothing is missing.
	final []byte
	// named says that an event has ended the answer by its name.
	named bool
	// head is the first event, or all of them where the last one tells them again, in
	// pieces that need not be copied when more comes; headBytes is how long it is.
	head      [][]byte
	headBytes int
	// eol is the last byte of this server's lines; 0: it is not known yet.
	eol byte
	// open says that the last event lacks its end.
	open bool
	// pieces is how many events came; unsure says that one was too long to be held back, or
	// cannot be read.
	pieces int64
	unsure bool
	// over says that nothing more is to come, failed what the server said that went wrong;
	// nil: nothing.
	over   bool
	failed error
}

func newTap(codec dialect.Codec) *tap {
	w := wire.Of(codec)
	t := &tap{codec: codec, stream: &w.Stream}
	t.lines, _ = w.Stream.Framing.(framing.Lines)
	return t
}

// whole returns how many bytes of buf are whole events.
func (t *tap) whole(buf []byte) int { return t.lines.Whole(buf) }

// complete reports whether what a stream ends with is nothing, or an event that only
// lacks its blank line (quirk C18).
func (t *tap) complete(rest []byte) bool { return t.lines.Complete(rest) }

// id is that of the answer, as its first event has it.
func (t *tap) id() (id string) {
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		if e, ok := ev.(*dragoman.ResponseStart); ok {
			id = e.Response.ID
		}
		return nil
	}
	for _, p := range t.head {
		_ = d.Feed(p, see) // what cannot be read has none
	}
	return id
}

// gap is what parts an event from those before it, the last of which may lack its end.
func (t *tap) gap() []byte {
	if t.open {
		return t.lines.End()
	}
	return nil
}

// broken are the events that end a stream with an error. What is open is ended, where the
// dialect's clients want that.
func (t *tap) broken(seed string, e *dragoman.APIError) (events []byte) {
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
		_ = d.Feed(p, write) // what cannot be read was not said
	}
	if n := len(t.head) - 1; n >= 0 && t.whole(t.head[n]) != len(t.head[n]) {
		_ = d.Feed(t.lines.End(), write)
	}
	events = events[:0] // it has been said
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
	// maxHead is how much is kept of the beginning of an answer, maxFinal of its last event
	// and maxEnding of those that may end it, unless one alone is longer: servers that say of
	// every event that it is the last are not remembered for ever.
	maxHead   = 2 << 20
	maxFinal  = 4 << 10
	maxEnding = 64 << 10
	// pieceSize is the least piece of the head.
	pieceSize = 4 << 10
)

// see takes note of whole events.
func (t *tap) see(p []byte) {
	if t.stream.Repeats {
		t.keep(p)
	}
	if t.eol == 0 {
		t.eol = framing.LineEnd(p)
	}
	for len(p) > 0 {
		n, whole := t.lines.Next(p, t.eol)
		t.open = !whole
		t.note(p[:n])
		p = p[n:]
	}
}

// note takes note of one event.
func (t *tap) note(event []byte) {
	name, data := t.lines.Parts(event, t.eol)
	if len(data) == 0 { // a comment, or a blank
		return
	}
	t.pieces++
	if t.head == nil {
		t.head = [][]byte{bytes.Clone(event[:min(len(event), maxHead)])}
	}
	ends, counting := t.stream.End.May(name, data), t.stream.Usage.IsSet(data)
	t.over = t.over || ends && t.stream.End.Is(name, data)
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

// keep adds events to the head.
func (t *tap) keep(p []byte) {
	p = p[:min(len(p), maxHead-t.headBytes)]
	t.headBytes += len(p)
	for len(p) > 0 {
		last := len(t.head) - 1
		if last < 0 || len(t.head[last]) == cap(t.head[last]) {
			size := min(max(pieceSize, t.headBytes/4), 16*pieceSize)
			t.head, last = append(t.head, make([]byte, 0, size)), last+1
		}
		piece := t.head[last]
		n := min(len(p), cap(piece)-len(piece))
		t.head[last], p = append(piece, p[:n]...), p[n:]
	}
}

// end reports whether the answer came to its end, and what was counted.
func (t *tap) end() (ended bool, usage dragoman.Usage) {
	// The dialect's own decoder reads what was kept: the arithmetic of counts is its.
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
				ended, t.failed = true, ev.Err // the server said what went wrong
			}
		}
		return nil
	}
	for _, p := range [][]byte{t.first, t.last, t.ending, t.final} {
		if err := d.Feed(p, see); err != nil {
			t.unsure = true
			return t.named, usage
		}
	}
	_ = d.Close(see) // it says what see has heard
	return ended || t.named, usage
}
