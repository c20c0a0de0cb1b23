package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// lineReader reads lines of limited length.
type lineReader struct {
	r     *bufio.Reader
	limit int
	first bool
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit, first: true}
}

// Parts of a line above the limit that are kept.
const (
	keptHead = 1 << 10
	keptTail = 2 << 10
)

// longLine is a line above the limit.
type longLine struct{ head, tail []byte }

// next returns the next line without white space around it, in memory of its own, or what is
// kept of one above the limit. At the end it returns an error with the last line.
func (l *lineReader) next() (text []byte, long *longLine, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case long != nil:
			long.tail = keepTail(long.tail, part)
		case len(text)+len(part) > l.limit+len("\r\n"):
			long = &longLine{}
			text = append(text, part...)
			long.head = bytes.Clone(text[:min(len(text), keptHead)])
			long.tail = keepTail(nil, text)
			text = nil
		case errors.Is(err, bufio.ErrBufferFull) && cap(text)-len(text) < len(part):
			// Double: append would grow a long line by only a quarter at a time.
			text = append(append(make([]byte, 0, 2*cap(text)+2*len(part)), text...), part...)
		default:
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.first {
			l.first = false
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		return bytes.TrimSpace(text), long, err
	}
}

func keepTail(tail, part []byte) []byte {
	if len(part) >= keptTail {
		return append(tail[:0], part[len(part)-keptTail:]...)
	}
	if over := len(tail) + len(part) - keptTail; over > 0 {
		tail = tail[:copy(tail, tail[over:])]
	}
	return append(tail, part...)
}

// id returns the id of a response that was too long, or "". It is before the result or after
// it, depending on the server.
func (l *longLine) id() rpc.ID {
	r := jsonwire.Borrow(l.head)
	defer r.Return()
	for key := range r.Object() {
		switch string(key) {
		case "id":
			if id, err := rpc.ParseID(r.Raw()); err == nil && r.Err() == nil {
				return id
			}
			return ""
		case "result", "error":
			return l.idAtEnd()
		}
		r.Skip()
	}
	return ""
}

// idAtEnd finds the id in the end of a message: after the last "id" only other short members
// follow.
func (l *longLine) idAtEnd() rpc.ID {
	at := bytes.LastIndex(l.tail, []byte(`"id"`))
	if at < 0 {
		return ""
	}
	object := append([]byte{'{'}, bytes.TrimSpace(l.tail[at:])...)
	if jsonwire.Check(object) != nil {
		return "" // it is deeper in the message
	}
	messages, err := rpc.Decode(jsonwire.With(jsonwire.With(object, "jsonrpc", []byte(`"2.0"`)), "result", []byte("{}")))
	if err != nil || len(messages) != 1 {
		return ""
	}
	return messages[0].ID
}
