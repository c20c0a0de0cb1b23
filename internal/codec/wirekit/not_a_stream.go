package wirekit

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// headBytes limits what is stored of a response before its first event.
const headBytes = 4 << 10

// NotAStream distinguishes a response that is not an event stream (a JSON error or a
// page, sent with status 200) from a stream that broke. It stores the beginning of the
// response for the error message. The zero value is ready to use.
type NotAStream struct {
	head []byte
	cut  bool // more bytes came than were stored
	seen bool // an event with data arrived: it is a stream
}

// Event records that an event with data arrived, so the response is a stream.
func (n *NotAStream) Event() { n.seen, n.head = true, nil }

// Fed records bytes that the parser was fed just before. This order avoids copying a
// stream whose first bytes contain an event.
func (n *NotAStream) Fed(p []byte) {
	if n.seen {
		return
	}
	room := headBytes - len(n.head)
	if len(p) > room {
		n.cut, p = true, p[:room]
	}
	n.head = append(n.head, p...)
}

// Failure returns the error in a response that has no field of an event stream. read is
// the DecodeError function of a codec. If read finds no error in the response, the
// message quotes its beginning. Failure returns nil for a stream and for an empty
// response.
func (n *NotAStream) Failure(read func(status int, header http.Header, body []byte) *dragoman.APIError) *dragoman.APIError {
	body := bytes.TrimSpace(bytes.TrimPrefix(n.head, []byte("\xef\xbb\xbf")))
	if n.seen || len(body) == 0 || hasField(body) {
		return nil
	}
	if !n.cut {
		if e := read(0, nil, body); e != nil && e.Native != nil { // read understood it
			return e
		}
	}
	return &dragoman.APIError{
		Class: dragoman.ErrorServer, Message: fmt.Sprintf("no event in the stream; it begins with %q", beginning(body)),
		Err: dragoman.ErrIncompleteStream,
	}
}

// hasField reports whether any line belongs to an event stream: a comment or one of the
// four fields.
func hasField(body []byte) bool {
	for line := range bytes.FieldsFuncSeq(body, func(r rune) bool { return r == '\n' || r == '\r' }) {
		field, _, _ := bytes.Cut(line, []byte{':'})
		switch string(field) {
		case "", "data", "event", "id", "retry":
			return true
		}
	}
	return false
}

func beginning(body []byte) string {
	const most = 200
	if len(body) <= most {
		return string(body)
	}
	return strings.ToValidUTF8(string(body[:most]), "") + "…"
}

// Incomplete returns the error for closing a stream that failed with e: e itself, or an
// error that wraps e and also reports the missing terminal event. This does not make an
// error that the server reported retryable.
func Incomplete(e *dragoman.APIError) error {
	if errors.Is(e, dragoman.ErrIncompleteStream) {
		return e
	}
	return fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, e)
}
