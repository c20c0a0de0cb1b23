package sim

import (
	"bytes"
	"context"
	"net/http"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// script is an HTTP response to play, with or without a fault.
type script struct {
	// first is the delay before the status.
	first  time.Duration
	status int
	header http.Header
	// chunks are written and flushed one by one.
	chunks [][]byte
	end    ending
}

// ending determines how a response ends.
type ending int

const (
	endWell  ending = iota
	endCut          // the connection is dropped
	endStall        // the connection stalls for an hour and is then dropped
)

const stallTime = time.Hour

// errorScript returns an error response.
func errorScript(codec dialect.Codec, e *dragoman.APIError) script {
	s := script{header: http.Header{}}
	var body []byte
	s.status, body = serving.Error(s.header, codec, e)
	s.chunks = [][]byte{body}
	return s
}

// halve keeps the first half of the response: whole events of a stream, or half of the bytes
// if there is only one chunk.
func (s *script) halve() {
	if len(s.chunks) == 1 {
		s.chunks[0] = s.chunks[0][:len(s.chunks[0])/2]
		return
	}
	s.chunks = s.chunks[:len(s.chunks)/2]
}

// truncate cuts the response within the last event that is long enough.
func (s *script) truncate() {
	n := len(s.chunks)
	for n > 1 && len(s.chunks[n-1]) < 40 {
		n--
	}
	s.chunks = s.chunks[:n]
	if n > 0 {
		last := &s.chunks[n-1]
		*last = (*last)[:len(*last)*2/3]
	}
}

// malform breaks the JSON of the event in the middle, or of the whole response. It also
// damages binary frames.
func (s *script) malform(_ dialect.Codec) {
	if len(s.chunks) == 0 {
		return
	}
	at := len(s.chunks) / 2
	chunk := bytes.Clone(s.chunks[at])
	if i := lastColon(chunk); i >= 0 {
		chunk[i] = ';'
	}
	s.chunks[at] = chunk
}

// lastColon returns the index of the last colon of the JSON objects in a text that is not part
// of a string, or -1.
func lastColon(b []byte) int {
	last, depth, quoted := -1, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == ':' && depth > 0:
			last = i
		}
	}
	return last
}

// errorIn200 replaces the response with an error with status 200.
func (s *script) errorIn200(codec dialect.Codec) {
	e := &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "the simulator was asked for this error"}
	streamed := s.header.Get("content-type") != "application/json" || len(s.chunks) > 1
	if !streamed {
		_, body, _ := codec.EncodeError(e)
		s.chunks = [][]byte{body}
		return
	}
	wire, err := codec.NewStreamEncoder(dialect.EncodeOptions{}).Encode(nil, &dragoman.StreamError{Err: e})
	if err == nil {
		s.chunks = [][]byte{wire}
	}
}

// play writes the response. It stops if the client disconnects.
func (s *script) play(ctx context.Context, w http.ResponseWriter, pace Pace) {
	if pace.wait(ctx, s.first) != nil {
		return
	}
	for key, values := range s.header {
		w.Header()[key] = values
	}
	if s.end == endCut {
		w.Header().Del("content-length")
	}
	w.WriteHeader(s.status)
	flush := http.NewResponseController(w).Flush
	for _, chunk := range s.chunks {
		if ctx.Err() != nil {
			return
		}
		if _, err := w.Write(chunk); err != nil || flush() != nil {
			return
		}
	}
	if s.end == endStall && pace.wait(ctx, stallTime) != nil {
		return
	}
	if s.end != endWell {
		panic(http.ErrAbortHandler) // drops the connection
	}
}
