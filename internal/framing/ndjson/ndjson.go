// Package ndjson parses and writes newline-delimited JSON, without I/O.
//
// A [Parser] accepts bytes in chunks of any size, and calls back once per line. A line
// ends with LF. A CR before it, and any other white space around the value, is not part
// of the value. A last line without LF is delivered at the end of the stream (quirk
// C18).
package ndjson

import (
	"bytes"
	"errors"
)

// DefaultMaxLine limits one line: real lines contain base64 images (quirk C18).
const DefaultMaxLine = 64 << 20

// ErrTooLong reports that a line exceeds the limit.
var ErrTooLong = errors.New("ndjson: line exceeds the size limit")

// Line is one line. Its slices are valid until the callback returns.
type Line struct {
	// Data is the value, without the white space around it. It is empty for a blank
	// line, which matters only to callers that forward Raw.
	Data []byte
	// Raw is the line in wire format, including its end.
	Raw []byte
}

// Parser splits a stream into lines. The zero value is ready to use.
type Parser struct {
	// Max limits the bytes of one line, including its end; 0 means DefaultMaxLine.
	Max int

	buf   []byte // bytes of the current line
	scan  int    // how far buf was searched for the line end
	begun bool   // the first line was delivered
}

// Feed adds bytes and calls emit for every line that they complete. It returns the
// first error of emit, after which the parser must not be used.
func (p *Parser) Feed(b []byte, emit func(Line) error) error {
	if need := len(p.buf) + len(b); need > cap(p.buf) {
		// Double: append would grow a long line by only a quarter at a time.
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
		// Whether a line is too long must not depend on how the stream was split.
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

// Close delivers the last line if it has no line end.
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

// Append appends one value as a line. The data is JSON, so a line end in it can only be
// white space between tokens. It is written as a space, so that no data can begin a new
// line.
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

// Whole returns how many bytes at the start of buf are complete lines.
func Whole(buf []byte) int { return bytes.LastIndexByte(buf, '\n') + 1 }

// Next returns the length of the first line of p, and whether its end is part of p.
func Next(p []byte) (n int, whole bool) {
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		return i + 1, true
	}
	return len(p), false
}
