package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// pass passes a request on as it is, and the answer back, byte for byte.
func (x *exchange) pass(ctx context.Context, up *upstream) (err error) {
	body := x.body
	if name := up.client.Model; !x.call.InURL && name != "" && name != x.asked.model {
		if body, err = jsonwire.ReplaceString(x.body, name, []string{"model"}); err != nil {
			return serving.Refuse(err)
		}
	}
	passed, err := up.client.Pass(ctx, provider.Passage{Model: x.asked.model, Body: body, Stream: x.asked.stream, Header: x.r.Header})
	if err != nil {
		return err
	}
	defer func() { _ = passed.Body.Close() }() // it was read as far as anybody wants
	if passed.Err != nil {
		return newPassedError(up.dialect, passed)
	}
	x.entry.transparent = true
	x.out.begin(passed.Status, func(h http.Header) {
		copyHeader(h, passed.Header)
		if x.asked.stream {
			h.Set("X-Accel-Buffering", "no")
		}
		x.entry.status = passed.Status
	})
	t := newTap(x.codec, x.asked.stream)
	err = x.copy(passed.Body, t)
	ended, usage := t.end()
	x.entry.usage = usage
	if err == nil && !ended {
		err = dragoman.ErrIncompleteStream
	}
	return begun(err)
}

// copyHeader sets what a server said beside its answer. Its id of the request stands
// beside ours.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if to.Get(name) != "" {
			name = "X-Upstream-" + name
		}
		to[name] = values
	}
}

// room is how much of an answer is read at once. Thousands of streams wait with one
// each.
const room = 4 << 10

// maxEvent bounds an event that is held back until it is whole.
const maxEvent = 1 << 20

// copy passes on what comes, whole events at a time: where the server is cut off
// amid one, the client gets an error instead of half of it.
func (x *exchange) copy(body io.Reader, t *tap) error {
	buf := make([]byte, 0, room)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		whole := len(buf)
		if err == nil && len(buf) < maxEvent {
			whole = t.whole(buf)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			if whole = 0; !x.asked.stream {
				whole = len(buf)
			}
		}
		if whole > 0 {
			t.see(buf[:whole])
			if err := x.out.send(buf[:whole]); err != nil {
				return err
			}
			buf = append(buf[:0], buf[whole:]...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// passedError is the refusal of a server whose dialect is the client's, in its own
// bytes.
type passedError struct {
	dialect dragoman.Dialect
	status  int
	header  http.Header
	body    []byte
	err     *dragoman.APIError
}

func newPassedError(d dragoman.Dialect, p *provider.Passed) error {
	body, err := io.ReadAll(p.Body)
	if err != nil {
		return p.Err
	}
	return &passedError{dialect: d, status: p.Status, header: p.Header, body: body, err: p.Err}
}

func (e *passedError) Error() string { return e.err.Error() }
func (e *passedError) Unwrap() error { return e.err }

// write answers with the refusal as it came. That a server does not take our
// credential is no refusal of the client's request.
func (e *passedError) write(x *exchange) {
	if told := upstreamError(e.err); told != e.err {
		status, body := serving.Error(x.w.Header(), x.codec, told)
		x.entry.status = status
		x.out.begin(status, func(http.Header) {})
		_ = x.out.write(body) // who has gone away is told nothing
		return
	}
	x.entry.status = e.status
	x.out.begin(e.status, func(h http.Header) { copyHeader(h, e.header) })
	_ = x.out.write(e.body) // who has gone away is told nothing
}

// tap watches an answer that is passed on, without a word: whether it came to its
// end, and what was counted. It looks at few bytes more than once.
type tap struct {
	codec  dialect.Codec
	stream bool
	// first and last are the events that count tokens, tail are the last bytes.
	first, last, tail []byte
	seen              bool
}

func newTap(codec dialect.Codec, stream bool) *tap { return &tap{codec: codec, stream: stream} }

// whole is how many bytes of buf are whole events.
func (t *tap) whole(buf []byte) int {
	switch {
	case !t.stream:
		return len(buf)
	case t.codec.Dialect() == dragoman.Ollama:
		return bytes.LastIndexByte(buf, '\n') + 1
	case bytes.HasSuffix(buf, []byte("\n\n")), bytes.HasSuffix(buf, []byte("\r\n\r\n")):
		return len(buf)
	}
	if i := bytes.LastIndex(buf, []byte("\n\n")); i >= 0 {
		return i + 2
	}
	if i := bytes.LastIndex(buf, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return 0
}

const (
	// tailSize is how much of the end of an answer is looked at, maxKept how long an
	// event may be that counts tokens.
	tailSize = 4 << 10
	maxKept  = 2 << 20
)

// see takes note of whole events.
func (t *tap) see(p []byte) {
	t.seen = true
	if len(p) >= tailSize {
		t.tail = append(t.tail[:0], p[len(p)-tailSize:]...)
	} else {
		if len(t.tail)+len(p) > 2*tailSize {
			t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailSize:]...)
		}
		t.tail = append(t.tail, p...)
	}
	if !t.stream {
		if len(t.last)+len(p) <= maxKept { // all of it
			t.last = append(t.last, p...)
		} else {
			t.last = nil
		}
		return
	}
	for rest := p; counts(t.codec.Dialect(), rest); {
		event, more := t.eventWith(rest)
		if len(event) <= maxKept {
			if t.last = append(t.last[:0], event...); t.first == nil {
				t.first = bytes.Clone(event)
			}
		}
		rest = more
	}
}

// counter is the name of the member that counts tokens.
func counter(d dragoman.Dialect) []byte {
	switch d {
	case dragoman.Gemini:
		return []byte(`"usageMetadata"`)
	case dragoman.Ollama:
		return []byte(`"eval_count"`)
	default:
		return []byte(`"usage"`)
	}
}

// counts reports whether an event counts tokens. "usage":null does not.
func counts(d dragoman.Dialect, p []byte) bool { return counterAt(d, p) >= 0 }

func counterAt(d dragoman.Dialect, p []byte) int {
	name := counter(d)
	for at := 0; ; {
		i := bytes.Index(p[at:], name)
		if i < 0 {
			return -1
		}
		at += i + len(name)
		if rest := bytes.TrimLeft(p[at:min(len(p), at+8)], ": "); len(rest) > 0 && rest[0] != 'n' {
			return at
		}
	}
}

// eventWith is the first event of p that counts tokens, and what stands behind it.
func (t *tap) eventWith(p []byte) (event, rest []byte) {
	at := counterAt(t.codec.Dialect(), p)
	end := []byte("\n\n")
	if t.codec.Dialect() == dragoman.Ollama {
		end = end[:1]
	} else if bytes.Contains(p, []byte("\r\n\r\n")) {
		end = []byte("\r\n\r\n")
	}
	from := max(0, bytes.LastIndex(p[:at], end)+len(end))
	if bytes.LastIndex(p[:at], end) < 0 {
		from = 0
	}
	to := len(p)
	if i := bytes.Index(p[at:], end); i >= 0 {
		to = at + i + len(end)
	}
	return p[from:to], p[to:]
}

// end reports whether the answer came to its end, and what was counted.
func (t *tap) end() (ended bool, usage dragoman.Usage) {
	if !t.stream {
		if resp, _, err := t.codec.DecodeResponse(t.last, dialect.DecodeOptions{NoNative: true}); err == nil {
			usage = resp.Usage
		}
		return true, usage
	}
	// The dialect's own decoder reads what was kept: the arithmetic of counts is its.
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.ResponseStart:
			usage = usage.Merge(ev.Response.Usage)
		case *dragoman.ResponseEnd:
			ended, usage = true, usage.Merge(ev.Usage)
		case *dragoman.StreamError:
			usage = usage.Merge(ev.Usage)
			if ev.Err != nil && !errors.Is(ev.Err, dragoman.ErrIncompleteStream) {
				ended = true // the server said what went wrong
			}
		}
		return nil
	}
	tail := t.terminal()
	pieces := [][]byte{t.first, t.last, tail}
	if bytes.Equal(t.first, t.last) || bytes.Contains(tail, t.last) {
		pieces[1] = nil
	}
	if bytes.Contains(tail, t.first) {
		pieces[0] = nil
	}
	for _, p := range pieces {
		if err := d.Feed(p, see); err != nil {
			return true, usage // what cannot be judged is not called broken
		}
	}
	_ = d.Close(see) // it says what see has heard
	return ended, usage
}

// terminal are the whole events of the tail that end answers; of dialects that name
// their events the others would not be understood without those before.
func (t *tap) terminal() []byte {
	tail := t.tail
	if t.codec.Dialect() == dragoman.Ollama {
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && len(tail) > tailSize/2 {
			tail = tail[i+1:]
		}
		return tail
	}
	var out []byte
	for event := range bytes.SplitAfterSeq(bytes.ReplaceAll(tail, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
		if terminates(t.codec.Dialect(), event) {
			out = append(out, event...)
		}
	}
	return out
}

func terminates(d dragoman.Dialect, event []byte) bool {
	name := func(s string) bool {
		return bytes.HasPrefix(event, []byte("event: "+s)) || bytes.HasPrefix(event, []byte("event:"+s))
	}
	switch d {
	case dragoman.Anthropic:
		return name("message_delta") || name("message_stop") || name("error")
	case dragoman.OpenAIResponses:
		return name("response.completed") || name("response.incomplete") || name("response.failed") || name("error")
	default:
		return bytes.HasPrefix(event, []byte("data:"))
	}
}
