// Package ndjson frames newline-delimited JSON, both ways, without I/O.
//
// A [Parser] takes bytes as they come, in pieces of any size, and calls back
// once per line. A line ends with LF; a CR before it, and any other white space
// around the value, is no part of the value. A last line that the end of the
// stream leaves without its LF is delivered (quirk C18).
package ndjson

import (
	"bytes"
	"errors"
)

// DefaultMaxLine bounds one line: real ones hold base64 images (quirk C18).
const DefaultMaxLine = 64 << 20

// ErrTooLong says that a line exceeds the bound.
var ErrTooLong = errors.New("ndjson: line exceeds the size limit")

// Line is one line. Its slices are valid until the callback returns.
type Line struct {
	// Data is the value, without the white space around it; empty for a blank
	// line, which is of interest only to who forwards Raw.
	Data []byte
	// Raw is the line as it came, with its end.
	Raw []byte
}

// Parser splits a stream into lines. The zero value is ready.
type Parser struct {
	// Max bounds the bytes of one line, its end included; 0 means
	// DefaultMaxLine.
	Max int

	buf   []byte // bytes of the line being read
	scan  int    // how far it was searched for its end
	begun bool   // the first line was delivered
}

// Feed takes the next bytes and calls emit for every line they complete. It
// returns the first error of emit, after which the parser must not be used.
func (p *Parser) Feed(b []byte, emit func(Line) error) error {
	if need := len(p.buf) + len(b); need > cap(p.buf) {
		// Double, where append would grow a long line by a quarter at a time.
		p.buf = append(make([]byte, 0, max(need, 2*cap(p.buf))), p.buf...)
	}
	p.buf = append(p.buf, b...)
	limit := p.limit()
	start := 0
	for {
		i := bytes.IndexByte(p.buf[p.scan:], '\n')
		if i < 0 {
			break
		}
		end := p.scan + i + 1
		// Whether a line is too long must not depend on where it was cut.
		if end-start > limit {
			return ErrTooLong
		}
		p.scan = end
		if err := p.deliver(p.buf[start:end:end], emit); err != nil {
			return err
		}
		start = end
	}
	if start > 0 { // keep only the unfinished line
		p.buf = p.buf[:copy(p.buf, p.buf[start:])]
	}
	p.scan = len(p.buf)
	if len(p.buf) > limit {
		return ErrTooLong
	}
	return nil
}

// Close delivers the line that the end of the stream left unfinished.
func (p *Parser) Close(emit func(Line) error) error {
	last := p.buf
	p.buf, p.scan = nil, 0
	if len(last) == 0 {
		return nil
	}
	return p.deliver(last, emit)
}

func (p *Parser) limit() int {
	if p.Max > 0 {
		return p.Max
	}
	return DefaultMaxLine
}

func (p *Parser) deliver(raw []byte, emit func(Line) error) error {
	data := raw
	if !p.begun {
		p.begun = true
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	return emit(Line{Data: bytes.Trim(data, " \t\r\n"), Raw: raw})
}

// Append appends one value as a line. Its data is JSON: a line end in it can
// only be white space between its tokens and is written as a blank, so that
// nothing in it can begin a line of its own.
func Append(dst, data []byte) []byte {
	start := len(dst)
	dst = append(dst, data...)
	for i, c := range dst[start:] {
		if c == '\n' || c == '\r' {
			dst[start+i] = ' '
		}
	}
	return append(dst, '\n')
}

// Whole returns how many bytes at the start of buf are whole lines.
func Whole(buf []byte) int { return bytes.LastIndexByte(buf, '\n') + 1 }

// Next returns the length of the first line of p, and whether its end is part of p.
func Next(p []byte) (n int, whole bool) {
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		return i + 1, true
	}
	return len(p), false
}
