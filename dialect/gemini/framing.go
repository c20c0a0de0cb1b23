package gemini

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/framing/sse"
)

// frames splits the bytes of a stream into events. It accepts both framings of
// the API: server-sent events, or one JSON array whose elements are the events
// (quirk C29).
type frames struct {
	// max bounds the bytes of one event.
	max    int
	events sse.Parser
	array  arrayParser
	// head holds the bytes received before the first byte that identifies the
	// framing.
	head  []byte
	known bool
	list  bool
}

// maxHead is the number of bytes of white space that frames buffers while it
// waits for the first byte of content.
const maxHead = 4 << 10

// feed parses the next bytes and calls emit for every event they complete.
func (f *frames) feed(p []byte, emit func(sse.Event) error) error {
	if !f.known {
		f.head = append(f.head, p...)
		started := bytes.TrimLeft(bytes.TrimPrefix(f.head, []byte("\xef\xbb\xbf")), " \t\r\n")
		if len(started) == 0 && len(f.head) < maxHead || bytes.HasPrefix([]byte("\xef\xbb\xbf"), started) && len(started) > 0 {
			return nil
		}
		f.setFraming(started)
		p, f.head = f.head, nil
	}
	if f.list {
		return f.array.feed(p, emit)
	}
	return f.events.Feed(p, emit)
}

func (f *frames) setFraming(started []byte) {
	f.known, f.list = true, len(started) > 0 && started[0] == '['
	f.events.Max, f.array.max = f.max, f.max
}

// close emits the event that the end of the stream left unfinished.
func (f *frames) close(emit func(sse.Event) error) error {
	if !f.known {
		p := f.head
		f.setFraming(nil)
		if err := f.events.Feed(p, emit); err != nil {
			return err
		}
	}
	if f.list {
		return f.array.close(emit)
	}
	return f.events.Close(emit)
}

// arrayParser splits a JSON array into its elements. The raw bytes of an event
// are its element and everything between it and the element before. The end of
// the array is an event without data.
type arrayParser struct {
	max  int
	buf  []byte // bytes of the event being read; those before scan are parsed
	scan int
	elem int // start of the element in buf; -1 before it
	// opened and closed record whether the brackets of the array were read.
	opened, closed bool
	depth          int
	quoted, escape bool
	started        bool
}

func (a *arrayParser) feed(p []byte, emit func(sse.Event) error) error {
	if !a.started {
		a.started, a.elem = true, -1
	}
	if need := len(a.buf) + len(p); need > cap(a.buf) {
		// Double the buffer; append would grow a long event by a quarter at a
		// time.
		a.buf = append(make([]byte, 0, max(need, 2*cap(a.buf))), a.buf...)
	}
	a.buf = append(a.buf, p...)
	start := 0 // of the event being read
	for a.scan < len(a.buf) {
		end, whole := a.step()
		if !whole {
			continue
		}
		if end-start > a.max {
			return sse.ErrTooLong
		}
		ev := sse.Event{Raw: a.buf[start:end]}
		if a.elem >= 0 {
			ev.Data, ev.HasData = a.buf[a.elem:end], true
		}
		a.elem = -1
		if err := emit(ev); err != nil {
			return err
		}
		start = end
	}
	if start > 0 {
		n := copy(a.buf, a.buf[start:])
		a.buf, a.scan = a.buf[:n], a.scan-start
		if a.elem >= 0 {
			a.elem -= start
		}
	}
	if len(a.buf) > a.max {
		return sse.ErrTooLong
	}
	return nil
}

// step parses the next byte. whole reports that this byte, or the one before
// it, ends an event, which then ends at end.
func (a *arrayParser) step() (end int, whole bool) {
	c := a.buf[a.scan]
	at := a.scan
	a.scan++
	switch {
	case a.closed:
		return 0, false // bytes after the array
	case a.elem < 0:
		return a.between(c, at)
	case a.quoted:
		switch {
		case a.escape:
			a.escape = false
		case c == '\\':
			a.escape = true
		case c == '"':
			a.quoted = false
			return at + 1, a.depth == 0
		}
		return 0, false
	}
	switch c {
	case '"':
		a.quoted = true
	case '{', '[':
		a.depth++
	case '}', ']':
		if a.depth--; a.depth <= 0 {
			return at + 1, true
		}
	case ',', ' ', '\t', '\r', '\n':
		if a.depth == 0 { // after a number or a literal
			a.scan = at
			return at, true
		}
	}
	return 0, false
}

// between parses a byte outside the elements.
func (a *arrayParser) between(c byte, at int) (end int, whole bool) {
	switch c {
	case ' ', '\t', '\r', '\n', ',', 0xef, 0xbb, 0xbf:
	case ']':
		a.closed = true
		return at + 1, true
	case '[':
		if !a.opened {
			a.opened = true
			return 0, false
		}
		a.elem, a.depth = at, 1
	case '{':
		a.elem, a.depth = at, 1
	case '"':
		a.elem, a.depth, a.quoted = at, 0, true
	default:
		a.elem, a.depth = at, 0
	}
	return 0, false
}

// close emits an unfinished element, or the white space after the array.
func (a *arrayParser) close(emit func(sse.Event) error) error {
	if len(a.buf) == 0 {
		return nil
	}
	ev := sse.Event{Raw: a.buf}
	if a.elem >= 0 {
		ev.Data, ev.HasData = a.buf[a.elem:], true
	}
	a.buf = nil
	return emit(ev)
}
