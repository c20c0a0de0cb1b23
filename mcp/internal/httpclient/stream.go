package httpclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

const (
	maxEventID = 1 << 10
	maxRetry   = time.Hour
	readSize   = 16 << 10
)

// stream is a response stream and its continuations.
type stream struct {
	// lastID is the id of the last event; the stream continues after it.
	lastID string
	// retry is the pause before that which the server asks for; negative means unset.
	retry time.Duration
	// progress counts messages and new ids.
	progress int
	// attempts counts continuations without progress, and total all of them.
	attempts, total int
}

func newStream() *stream { return &stream{retry: -1} }

// errStop ends the reading of a stream without an error.
var errStop = errors.New("stop")

// read calls f for the data of each event until the stream ends. It returns nil at the end of
// the stream and after errStop.
func (s *stream) read(body io.Reader, limit int, f func(name, data []byte) error) error {
	p := sse.Parser{Max: limit}
	event := func(ev sse.Event) error {
		s.fields(ev.Raw)
		if len(bytes.TrimSpace(ev.Data)) == 0 {
			return nil // an event that only has an id
		}
		s.progress++
		return f(ev.Name, bytes.Clone(ev.Data))
	}
	buf := make([]byte, readSize)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := p.Feed(buf[:n], event); err != nil {
				return streamError(err, limit)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			// An event without its blank line counts if its JSON is complete.
			return streamError(p.Close(event), limit)
		case err != nil:
			return err
		}
	}
}

func streamError(err error, limit int) error {
	switch {
	case errors.Is(err, errStop):
		return nil
	case errors.Is(err, sse.ErrTooLong):
		return fmt.Errorf("%w of %s", rpc.ErrTooLarge, textkit.Count(limit, "byte"))
	}
	return err
}

// fields reads id and retry of an event.
func (s *stream) fields(event []byte) {
	for len(event) > 0 {
		line := event
		if i := bytes.IndexAny(event, "\r\n"); i >= 0 {
			line, event = event[:i], event[i+1:]
		} else {
			event = nil
		}
		if len(line) == 0 || line[0] != 'i' && line[0] != 'r' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			if id := string(value); len(id) <= maxEventID && isHeaderValue(id) && id != s.lastID {
				s.lastID = id
				s.progress++
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
			}
		}
	}
}

// Bounds of continuations.
const (
	maxAttempts  = 5    // without progress
	maxTotal     = 1000 // of one stream
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
	minDelay     = 50 * time.Millisecond
)

// again returns how long to wait before the stream is continued. ok is false if it was tried
// too often: the count begins again only when the server sends something new (pitfall K13).
func (s *stream) again(random func(time.Duration) time.Duration) (delay time.Duration, ok bool) {
	if s.progress > 0 {
		s.progress, s.attempts = 0, 0
	}
	s.attempts++
	s.total++
	if s.attempts > maxAttempts || s.total > maxTotal {
		return 0, false
	}
	backoff := min(firstBackoff<<(s.attempts-1), maxBackoff)
	switch {
	case s.retry < 0:
		delay = backoff/2 + random(backoff/2)
	case s.attempts == 1:
		delay = s.retry // exactly what the server asks for
	default:
		delay = s.retry + random(backoff)
	}
	return max(delay, minDelay), true
}
