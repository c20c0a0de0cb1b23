package sse

import "bytes"

// Whole returns how many bytes at the start of buf are complete events: up to and
// including its last blank line. It does not parse the lines, so it is fast for a proxy
// that passes bytes through.
func Whole(buf []byte) int {
	for i := len(buf) - 1; i > 0; i-- {
		if c := buf[i]; c <= '\r' && endsBlank(buf[:i+1]) {
			return i + 1
		}
	}
	return 0
}

// endsBlank reports whether p ends with a blank line. Lines end with LF, CR or CRLF.
func endsBlank(p []byte) bool {
	n := len(p)
	switch before := p[n-2]; {
	case p[n-1] == '\n' && before == '\r':
		return n > 2 && (p[n-3] == '\n' || p[n-3] == '\r')
	case p[n-1] == '\n':
		return before == '\n'
	default:
		return p[n-1] == '\r' && before == '\r' // a CR after an LF is half of a line end
	}
}

// Next returns the length of the first event of p, whose lines end with eol, and whether
// its blank line is part of p.
func Next(p []byte, eol byte) (n int, whole bool) {
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], eol)
		if i < 0 {
			return len(p), false
		}
		at += i + 1
		switch {
		case at < len(p) && p[at] == eol:
			return at + 1, true
		case at+1 < len(p) && p[at] == '\r' && p[at+1] == '\n':
			return at + 2, true
		}
	}
}

// Parts returns the name of an event and its data, from the first data line to the end of
// the event.
func Parts(event []byte, eol byte) (name, data []byte) {
	for len(event) > 0 {
		if data, ok := bytes.CutPrefix(event, []byte("data:")); ok {
			return name, data
		}
		n := bytes.IndexByte(event, eol) + 1
		if n == 0 {
			n = len(event)
		}
		if value, ok := bytes.CutPrefix(event[:n], []byte("event:")); ok {
			name = bytes.TrimSpace(value)
		}
		event = event[n:]
	}
	return name, nil
}

// LineData returns the data of one line. ok is false for a comment and for other fields. A
// line without a known field is data as a whole: of a stream of JSON values, or of a
// response that is not a stream.
func LineData(line []byte) (data []byte, ok bool) {
	line = bytes.TrimPrefix(line, []byte("\ufeff"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return data, true
	}
	for _, field := range [...]string{":", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return nil, false
		}
	}
	return line, true
}
