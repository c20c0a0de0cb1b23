package wirekit

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// headBytes bounds what is kept of an answer that has shown no event yet.
const headBytes = 4 << 10

// NotAStream tells an answer that is no event stream at all (a JSON error or a
// page, sent with status 200) from a stream that broke, and keeps its
// beginning to say so. The zero value is ready.
type NotAStream struct {
	head []byte
	cut  bool // more came than was kept
	seen bool // an event with data: it is a stream
}

// Event says that an event with data came: this is a stream.
func (n *NotAStream) Event() { n.seen, n.head = true, nil }

// Fed takes bytes that the parser was fed just before, so that nothing is
// copied of a stream whose first bytes hold an event.
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

// Failure returns what an answer without any field of an event stream says:
// its error, if read, which is a codec's DecodeError, finds one in it, else how
// it begins. It returns nil for a stream, and for an answer of no bytes.
func (n *NotAStream) Failure(read func(status int, header http.Header, body []byte) *dragoman.APIError) *dragoman.APIError {
	body := bytes.TrimSpace(bytes.TrimPrefix(n.head, []byte("\xef\xbb\xbf")))
	if n.seen || len(body) == 0 || hasField(body) {
		return nil
	}
	if !n.cut {
		if e := read(0, nil, body); e != nil && e.Native != nil { // it was understood
			return e
		}
	}
	return &dragoman.APIError{
		Class: dragoman.ErrorServer, Message: fmt.Sprintf("no event in the stream; it begins with %q", beginning(body)),
		Err: dragoman.ErrIncompleteStream,
	}
}

// hasField reports whether any line is one of an event stream: a comment or one
// of the four fields.
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

// Incomplete is what closing a stream that failed with e returns: e itself, or
// an error around it that also says that the terminal event is missing. An
// error that the server reported is not made retryable by that.
func Incomplete(e *dragoman.APIError) error {
	if errors.Is(e, dragoman.ErrIncompleteStream) {
		return e
	}
	return fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, e)
}
