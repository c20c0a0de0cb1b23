// Package eventstream parses and writes the AWS binary event stream
// (application/vnd.amazon.eventstream), without I/O.
//
// A frame is a prelude (the length of the frame, the length of its headers, a checksum
// of these eight bytes), headers, a payload, and a checksum of everything before it. A
// [Parser] accepts bytes in chunks of any size, and calls back once per frame:
//
//	var p eventstream.Parser
//	err := p.Feed(chunk, func(f eventstream.Frame) error {
//		fmt.Printf("%s %s\n", f.Text(":event-type"), f.Payload)
//		return nil
//	})
//
// A damaged frame, and a frame that the end of the stream truncates, is an error with
// its position in the stream. Neither is treated as the end (quirk C33).
package eventstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// DefaultMax limits one frame. AWS itself sends at most 24 MiB.
const DefaultMax = 64 << 20

// Errors in a frame.
var (
	// ErrChecksum reports that the bytes of a frame are damaged.
	ErrChecksum = errors.New("eventstream: checksum mismatch")
	// ErrLength reports that the lengths of a frame contradict each other.
	ErrLength = errors.New("eventstream: invalid frame lengths")
	// ErrHeader reports that the headers of a frame cannot be read.
	ErrHeader = errors.New("eventstream: malformed frame headers")
	// ErrTooLong reports that a frame exceeds the limit.
	ErrTooLong = errors.New("eventstream: frame exceeds the size limit")
	// ErrTruncated reports that the stream ended inside a frame.
	ErrTruncated = errors.New("eventstream: the stream ends inside a frame")
)

// Error is an error in a frame, with its position in the stream.
type Error struct {
	// Offset is the byte at which the frame begins.
	Offset int64
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%v (frame at byte %d)", e.Err, e.Offset) }

func (e *Error) Unwrap() error { return e.Err }

const (
	preludeBytes  = 8
	checksumBytes = 4
	// minFrame is a frame without headers and payload.
	minFrame = preludeBytes + checksumBytes + checksumBytes
)

// Frame is one message of a stream. Its slices are valid until the parser is
// fed again.
type Frame struct {
	// Headers is the header block in wire format; see [Frame.All] and [Frame.Get].
	Headers []byte
	Payload []byte
	// Raw is the frame in wire format, including its checksums, and Offset the position
	// in the stream at which it begins.
	Raw    []byte
	Offset int64
}

// PayloadOffset returns the position in the stream at which the payload begins.
func (f Frame) PayloadOffset() int64 {
	return f.Offset + preludeBytes + checksumBytes + int64(len(f.Headers))
}

// Parser splits a stream into frames. The zero value is ready to use.
type Parser struct {
	// Max limits the bytes of one frame; 0 means DefaultMax.
	Max int

	buf    []byte // bytes that were fed; unread from pos on
	pos    int    // start of the frame being read
	size   int    // length of the current frame; 0 before its prelude is read
	offset int64  // position of the current frame in the stream
	err    error
}

// Feed adds bytes and calls emit for every frame that they complete. It returns the
// first error, its own or that of emit. Later calls return the same error.
func (p *Parser) Feed(b []byte, emit func(Frame) error) error {
	if p.err != nil {
		return p.err
	}
	p.keep(b)
	for p.err == nil && p.step(emit) {
	}
	return p.err
}

// Close ends the stream. An incomplete frame is an error.
func (p *Parser) Close() error {
	if p.err == nil && p.pos < len(p.buf) {
		p.fail(ErrTruncated)
	}
	return p.err
}

// Offset returns the position in the stream at which the next frame begins.
func (p *Parser) Offset() int64 { return p.offset }

func (p *Parser) fail(err error) { p.err = &Error{Offset: p.offset, Err: err} }

// keep appends to the unread bytes. The buffer grows with the bytes that arrived, never
// with a length that the stream claims. It doubles, because append would grow a long
// frame by only a quarter.
func (p *Parser) keep(b []byte) {
	if p.pos > 0 {
		p.buf, p.pos = append(p.buf[:0], p.buf[p.pos:]...), 0
	}
	if need := len(p.buf) + len(b); need > cap(p.buf) {
		p.buf = append(make([]byte, 0, max(need, 2*cap(p.buf))), p.buf...)
	}
	p.buf = append(p.buf, b...)
}

// step reads one frame and reports whether there was a complete one.
func (p *Parser) step(emit func(Frame) error) bool {
	ahead := p.buf[p.pos:]
	if p.size == 0 {
		if len(ahead) < preludeBytes+checksumBytes {
			return false
		}
		size, err := p.prelude(ahead)
		if err != nil {
			p.fail(err)
			return false
		}
		p.size = size
	}
	if len(ahead) < p.size {
		return false
	}
	f, err := p.frame(ahead[:p.size:p.size])
	if err != nil {
		p.fail(err)
		return false
	}
	p.pos, p.offset, p.size = p.pos+p.size, p.offset+int64(p.size), 0
	p.err = emit(f)
	return true
}

// prelude reads the length of a frame. It checks the checksum first, because a damaged
// length is meaningless.
func (p *Parser) prelude(b []byte) (int, error) {
	size := binary.BigEndian.Uint32(b)
	headers := binary.BigEndian.Uint32(b[4:])
	limit := p.Max
	if limit <= 0 {
		limit = DefaultMax
	}
	switch {
	case crc32.ChecksumIEEE(b[:preludeBytes]) != binary.BigEndian.Uint32(b[preludeBytes:]):
		return 0, fmt.Errorf("%w: prelude", ErrChecksum)
	case size < minFrame || headers > size-minFrame:
		return 0, fmt.Errorf("%w: %d bytes of headers in a frame of %d", ErrLength, headers, size)
	case uint64(size) > uint64(limit):
		return 0, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLong, size, limit)
	default:
		return int(size), nil
	}
}

// frame parses a complete frame.
func (p *Parser) frame(raw []byte) (Frame, error) {
	end := len(raw) - checksumBytes
	if crc32.ChecksumIEEE(raw[:end]) != binary.BigEndian.Uint32(raw[end:]) {
		return Frame{}, fmt.Errorf("%w: frame", ErrChecksum)
	}
	start := preludeBytes + checksumBytes
	payload := start + int(binary.BigEndian.Uint32(raw[4:]))
	f := Frame{Headers: raw[start:payload:payload], Payload: raw[payload:end:end], Raw: raw, Offset: p.offset}
	return f, checkHeaders(f.Headers)
}

// Append appends a frame to dst. Headers are written in the given order; their names
// must have 1 to 255 bytes and be distinct.
func Append(dst []byte, headers []Header, payload []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, preludeBytes+checksumBytes)...)
	head := len(dst)
	for _, h := range headers {
		var err error
		if dst, err = h.append(dst); err != nil {
			return dst[:start], err
		}
	}
	if err := checkHeaders(dst[head:]); err != nil {
		return dst[:start], err
	}
	size := uint64(len(dst)-start) + uint64(len(payload)) + checksumBytes
	if size > math.MaxUint32 {
		return dst[:start], fmt.Errorf("%w: %d bytes", ErrTooLong, size)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(len(dst)-head))
	binary.BigEndian.PutUint32(dst[start+preludeBytes:], crc32.ChecksumIEEE(dst[start:start+preludeBytes]))
	dst = append(dst, payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:])), nil
}
