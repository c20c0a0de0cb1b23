// Package emitcheck checks the output of a server like the strictest clients of each dialect:
// from the bytes alone, by the rules of the wire reference. It shares no code with the
// encoders that it checks.
//
//	if err := emitcheck.Stream(dialectname.Anthropic, resp.Header, body); err != nil {
//		t.Errorf("%v\n%s", err, body)
//	}
//
// [Handler] wraps a server and checks every response against its request. [Proxy] does so for
// a server in another process; the program checkproxy is such a proxy.
//
// An error names the place and the broken rule. The checkers accept unknown block types, items
// and fields. What they know must be complete and in order.
package emitcheck

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// Whole checks a response that is not streamed. It does not check a nil header.
func Whole(d dragoman.Dialect, status int, header http.Header, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d, want 200", status)
	}
	if err := headers(d, header, "application/json"); err != nil {
		return err
	}
	c := &check{}
	root := c.root(body)
	switch d {
	case dialectname.OpenAIChat:
		chatWhole(root)
	case dialectname.OpenAIResponses:
		responsesWhole(root)
	case dialectname.Anthropic:
		anthropicWhole(root)
	case dialectname.Gemini:
		geminiWhole(root)
	case dialectname.Ollama:
		ollamaWhole(root)
	case dialectname.Bedrock:
		bedrockWhole(root)
	case "cohere.chat":
		cohereWhole(root)
	default:
		return fmt.Errorf("no rules for dialect %s", d)
	}
	return c.err
}

// Error checks an error response, which is sent before the first byte of a normal response
// (quirk J3).
func Error(d dragoman.Dialect, status int, header http.Header, body []byte) error {
	if status < 400 || status > 599 {
		return fmt.Errorf("status %d, want 400 to 599 for an error", status)
	}
	if err := headers(d, header, "application/json"); err != nil {
		return err
	}
	c := &check{}
	if d == dialectname.Gemini {
		geminiErrorBody(c, status, body)
		return c.err
	}
	root := c.root(body)
	switch d {
	case dialectname.OpenAIChat, dialectname.OpenAIResponses:
		openaiError(root.obj("error"))
	case dialectname.Anthropic:
		anthropicError(root)
	case dialectname.Ollama:
		root.nonEmptyText("error")
	case dialectname.Bedrock, "cohere.chat":
		root.nonEmptyText("message")
	default:
		return fmt.Errorf("no rules for dialect %s", d)
	}
	return c.err
}

// Stream checks a whole stream. It does not check a nil header. Gemini has two forms, which
// the header or the first byte distinguishes.
func Stream(d dragoman.Dialect, header http.Header, body []byte) error {
	s := NewStream(d, header)
	if _, err := s.Write(body); err != nil {
		return err
	}
	return s.Close()
}

// Checker checks a stream incrementally, for example as the writer of an [io.TeeReader].
type Checker struct {
	frames framing
	err    error
}

// framing splits bytes into frames and passes them to a judge.
type framing interface {
	feed(p []byte) error
	end() error
}

// NewStream returns a checker for one stream.
func NewStream(d dragoman.Dialect, header http.Header) *Checker {
	j, err := newFrameChecker(d)
	if err != nil {
		return &Checker{err: err}
	}
	return newChecker(d, header, j)
}

// Order checks a stream that contains values that a codec passes through from another server.
// It checks framing, order, pairing and required fields, but not whether a server of the
// dialect would use these values.
func Order(d dragoman.Dialect, body []byte) error {
	j, err := newFrameChecker(d)
	if err != nil {
		return err
	}
	j.setPassThrough()
	s := newChecker(d, nil, j)
	if _, err := s.Write(body); err != nil {
		return err
	}
	return s.Close()
}

// frameChecker checks the frames of a stream one by one. name is the event name, n the number of the
// event or line.
type frameChecker interface {
	next(n int, name string, data []byte) error
	end() error
	setPassThrough()
	isPassThrough() bool
}

func newFrameChecker(d dragoman.Dialect) (frameChecker, error) {
	switch d {
	case dialectname.OpenAIChat:
		return &chatStream{}, nil
	case dialectname.OpenAIResponses:
		return &responsesStream{}, nil
	case dialectname.Anthropic:
		return &anthropicStream{}, nil
	case dialectname.Gemini:
		return &geminiStream{}, nil
	case dialectname.Ollama:
		return &ollamaStream{}, nil
	case dialectname.Bedrock:
		return &bedrockStream{open: -1}, nil
	case "cohere.chat":
		return &cohereStream{}, nil
	default:
		return nil, fmt.Errorf("no rules for dialect %s", d)
	}
}

func newChecker(d dragoman.Dialect, header http.Header, to frameChecker) *Checker {
	of := func(contentType string, f framing) *Checker {
		err := headers(d, header, contentType)
		if err == nil {
			err = unbuffered(header)
		}
		return &Checker{frames: f, err: err}
	}
	passThrough := lineReader{passThrough: to.isPassThrough()}
	switch d {
	case dialectname.Ollama:
		return of("application/x-ndjson", &lines{checker: to, lines: passThrough})
	case dialectname.Bedrock:
		return of("application/vnd.amazon.eventstream", &frames{checker: to})
	case dialectname.Gemini:
		switch {
		case header == nil:
			return &Checker{frames: &eitherFraming{checker: to}}
		case contentType(header, "application/json") == nil:
			return of("application/json", &array{checker: to})
		}
	}
	return of("text/event-stream", &sseFraming{named: d == dialectname.OpenAIResponses || d == dialectname.Anthropic || d == "cohere.chat", checker: to, lines: passThrough})
}

// Write checks the next bytes. After an error it always returns that error.
func (c *Checker) Write(p []byte) (int, error) {
	if c.err == nil {
		c.err = c.frames.feed(p)
	}
	if c.err != nil {
		return 0, c.err
	}
	return len(p), nil
}

// Close checks the end of the stream.
func (c *Checker) Close() error {
	if c.err == nil {
		c.err = c.frames.end()
		if c.err == nil {
			// Nothing may follow; a second Close finds the same end.
			c.frames = ended{}
		}
	}
	return c.err
}

type ended struct{}

func (ended) feed([]byte) error { return errors.New("bytes after the end of the stream") }
func (ended) end() error        { return nil }

// requestIDs lists the headers in which vendors identify a request for support. The reference
// has none for other vendors.
var requestIDs = map[dragoman.Dialect]string{
	dialectname.OpenAIChat: "X-Request-Id", dialectname.OpenAIResponses: "X-Request-Id", dialectname.Anthropic: "Request-Id",
}

// roots lists path prefixes that only one vendor has.
var roots = []struct {
	path    string
	dialect dragoman.Dialect
}{
	{"/v1/messages", dialectname.Anthropic},
	{"/v1beta", dialectname.Gemini},
	{"/v1/projects/", dialectname.Gemini}, // Vertex
	{"/api/", dialectname.Ollama},
	{"/model/", dialectname.Bedrock},
}

// headers checks the headers that every response has.
func headers(d dragoman.Dialect, header http.Header, want string) error {
	if err := contentType(header, want); err != nil || header == nil {
		return err
	}
	if name := requestIDs[d]; name != "" && header.Get(name) == "" {
		return fmt.Errorf("missing header %s, which %s uses to identify a request", name, d)
	}
	return nil
}

// unbuffered checks the headers of a stream that keep proxies from buffering it (quirk J2).
func unbuffered(header http.Header) error {
	if got := header.Get("Cache-Control"); header != nil && !strings.Contains(got, "no-cache") {
		return fmt.Errorf("header Cache-Control: %q, want no-cache for a stream", got)
	}
	return nil
}

func contentType(header http.Header, want string) error {
	if header == nil {
		return nil
	}
	got := header.Get("Content-Type")
	typ, params, err := mime.ParseMediaType(got)
	if charset := params["charset"]; err != nil || typ != want || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("content type %q, want %s", got, want)
	}
	return nil
}
