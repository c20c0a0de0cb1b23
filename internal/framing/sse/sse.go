// Package sse parses and writes server-sent events, without I/O.
//
// A [Parser] accepts bytes in chunks of any size, and calls back once per event. It
// follows the WHATWG rules (comments, CR, LF and CRLF line ends, one optional space
// after the colon, several data lines, a BOM), with one exception that real servers
// need: an event without its blank line is delivered at the end of the stream (quirk
// C18).
package sse

import (
	"bytes"
	"errors"
	"math"
)

// DefaultMaxEvent limits one event: real events contain base64 images and whole
// response snapshots in a single line (quirk C18).
const DefaultMaxEvent = 64 << 20

// ErrTooLong reports that an event exceeds the limit.
var ErrTooLong = errors.New("sse: event exceeds the size limit")

// Event is one event. Its slices are valid until the callback returns.
type Event struct {
	// Name is the event's type; empty if the stream does not name it.
	Name []byte
	// Data is the data, with its lines joined by LF. It is a part of Raw unless Joined
	// is set.
	Data   []byte
	Joined bool
	// HasData is false for a blank line after nothing but comments or a name:
	// keep-alives, which matter only to callers that forward Raw.
	HasData bool
	// Raw is the event in wire format: the comments before it, its lines, and the blank
	// line that ends it.
	Raw []byte
}

// Parser splits a stream into events. The zero value is ready to use.
type Parser struct {
	// Max limits the bytes of one event; 0 means DefaultMaxEvent.
	Max int

	buf     []byte // bytes of the current event; scanned up to pos
	pos     int    // start of the current line
	scan    int    // where to search for its end
	name    []byte
	data    span   // the only data line, within buf
	joined  []byte // used instead for several data lines
	hasData bool
	started bool
}

// span is a range of the buffer.
type span struct{ start, end int }

// Feed adds bytes and calls emit for every event that they complete. It returns the
// first error of emit, after which the parser must not be used.
func (p *Parser) Feed(b []byte, emit func(Event) error) error {
	if need := len(p.buf) + len(b); need > cap(p.buf) {
		// Double: append would grow a long event by only a quarter at a time.
		p.buf = append(make([]byte, 0, max(need, 2*cap(p.buf))), p.buf...)
	}
	p.buf = append(p.buf, b...)
	if !p.started && len(p.buf) > 0 {
		// A BOM may be split across chunks.
		bom := []byte("\xef\xbb\xbf")
		if len(p.buf) < len(bom) && bytes.HasPrefix(bom, p.buf) {
			return nil
		}
		p.started = true
		if bytes.HasPrefix(p.buf, bom) {
			p.pos, p.scan = len(bom), len(bom)
		}
	}
	return p.lines(emit, false)
}

// Close delivers an unfinished event at the end of the stream.
func (p *Parser) Close(emit func(Event) error) error {
	p.started = true
	if err := p.lines(emit, true); err != nil {
		return err
	}
	if p.pos < len(p.buf) {
		p.line(span{p.pos, len(p.buf)})
		p.pos = len(p.buf)
	}
	if p.hasData {
		return p.dispatch(len(p.buf), emit)
	}
	return nil
}

func (p *Parser) lines(emit func(Event) error, closing bool) error {
	limit := p.Max
	if limit == 0 {
		limit = DefaultMaxEvent
	}
	start := 0 // start of the current event, within buf
	lf := -1   // the next LF, or len(buf) if there is no LF; stale if below scan
	for {
		// Search for each LF once, and for a CR only before it: this is linear for any
		// mix of line ends.
		if lf < p.scan {
			if lf = bytes.IndexByte(p.buf[p.scan:], '\n'); lf < 0 {
				lf = len(p.buf)
			} else {
				lf += p.scan
			}
		}
		end := lf
		if i := bytes.IndexByte(p.buf[p.scan:lf], '\r'); i >= 0 {
			end = p.scan + i
		}
		if end == len(p.buf) {
			p.scan = end
			break
		}
		next := end + 1
		if p.buf[end] == '\r' {
			if next == len(p.buf) && !closing {
				// An LF in the next chunk would belong to this line.
				p.scan = end
				break
			}
			if next < len(p.buf) && p.buf[next] == '\n' {
				next++
			}
		}
		line := span{p.pos, end}
		p.pos, p.scan = next, next
		if line.end > line.start {
			p.line(line)
			continue
		}
		// Whether an event is too long must not depend on how the stream was split.
		if next-start > limit {
			return ErrTooLong
		}
		if err := p.dispatchFrom(start, next, emit); err != nil {
			return err
		}
		start = next
	}
	// Keep only the unfinished event.
	if start > 0 {
		n := copy(p.buf, p.buf[start:])
		p.buf, p.pos, p.scan = p.buf[:n], p.pos-start, p.scan-start
		p.data.start, p.data.end = p.data.start-start, p.data.end-start
	}
	if len(p.buf) > limit {
		return ErrTooLong
	}
	return nil
}

func (p *Parser) line(at span) {
	line := p.buf[at.start:at.end]
	field, value, found := bytes.Cut(line, []byte{':'})
	if found && len(field) == 0 {
		return // a comment (quirk C15)
	}
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		switch {
		case !p.hasData:
			p.data, p.joined = span{at.end - len(value), at.end}, p.joined[:0]
		case len(p.joined) == 0:
			p.joined = append(p.joined, p.buf[p.data.start:p.data.end]...)
			fallthrough
		default:
			p.joined = append(append(p.joined, '\n'), value...)
		}
		p.hasData = true
	case "event":
		p.name = append(p.name[:0], value...)
	}
}

func (p *Parser) dispatch(end int, emit func(Event) error) error {
	err := p.dispatchFrom(0, end, emit)
	p.buf, p.pos, p.scan = p.buf[:0], 0, 0
	return err
}

func (p *Parser) dispatchFrom(start, end int, emit func(Event) error) error {
	ev := Event{Name: p.name, HasData: p.hasData, Raw: p.buf[start:end]}
	switch {
	case len(p.joined) > 0:
		ev.Data, ev.Joined = p.joined, true
	case p.hasData:
		ev.Data = p.buf[p.data.start:p.data.end]
	}
	p.name, p.joined, p.hasData = p.name[:0], p.joined[:0], false
	return emit(ev)
}

// Append appends one event to dst; an empty name is left out. The data is JSON, so a line
// end in it can only be white space between tokens. It is written as a space, so that no
// data can begin a new line.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	start := len(dst)
	dst = append(dst, data...)
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 { // rare
		for i, c := range dst[start:] {
			if c == '\n' || c == '\r' {
				dst[start+i] = ' '
			}
		}
	}
	return append(dst, '\n', '\n')
}

// Events returns the events of raw that have data.
func Events(raw []byte) (out []Event) {
	p := Parser{Max: math.MaxInt}
	take := func(ev Event) error {
		if ev.HasData {
			ev.Name, ev.Data = bytes.Clone(ev.Name), bytes.Clone(ev.Data)
			out = append(out, ev)
		}
		return nil
	}
	_ = p.Feed(raw, take) // neither can fail: there is no limit
	_ = p.Close(take)
	return out
}
