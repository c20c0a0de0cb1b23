package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

// codecs are the codecs of all dialects.
var codecs = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{}}

// each runs a test for every dialect.
func each(t *testing.T, test func(t *testing.T, codec dialect.Codec)) {
	t.Helper()
	for _, codec := range codecs {
		t.Run(string(codec.Dialect()), func(t *testing.T) { test(t, codec) })
	}
}

// server is a scripted API of a dialect. It decodes and encodes with the codec.
type server struct {
	*httptest.Server
	t     *testing.T
	codec dialect.Codec

	mu sync.Mutex
	// got are the received requests.
	got []received
	// steps handle one request each; the last one handles all further requests.
	steps []step
}

type received struct {
	req    *dragoman.Request
	header http.Header
	path   string
	query  string
	body   []byte
	stream bool
}

// step handles one request.
type step func(s *server, w http.ResponseWriter, r *http.Request, got received)

func serve(t *testing.T, codec dialect.Codec, steps ...step) *server {
	t.Helper()
	s := &server{t: t, codec: codec, steps: steps}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.Close)
	return s
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, _, err := s.codec.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		s.t.Errorf("the request cannot be read: %v\n%s", err, body)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	got := received{req: req, header: r.Header, path: r.URL.EscapedPath(), query: r.URL.RawQuery, body: body, stream: req.Stream}
	if s.codec.Limits().ModelInURL {
		got.stream = strings.Contains(strings.ToLower(r.URL.Path), "stream")
	}
	s.mu.Lock()
	n := len(s.got)
	s.got = append(s.got, got)
	s.mu.Unlock()
	s.steps[min(n, len(s.steps)-1)](s, w, r, got)
}

func (s *server) requests() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *server) client(c *provider.Client) *provider.Client {
	c.Codec, c.BaseURL = s.codec, s.URL
	if c.Model == "" {
		c.Model = "model-1"
	}
	if c.HTTP == nil {
		c.HTTP = s.Client()
	}
	return c
}

// respond sends a response, complete or as a stream, as requested.
func respond(resp *dragoman.Response) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request, got received) {
		if got.stream {
			s.writeEvents(w, eventsOf(resp))
			return
		}
		enc, err := s.codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
		if err != nil {
			s.t.Errorf("the answer cannot be written: %v", err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(enc.Body)
	}
}

// writeEvents writes events, each flushed.
func (s *server) writeEvents(w http.ResponseWriter, events []dragoman.Event) {
	s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", StreamUsage: true}), events, true)
}

func (s *server) part(w http.ResponseWriter, enc dialect.StreamEncoder, events []dragoman.Event, end bool) {
	write := func(b []byte, err error) {
		if err != nil {
			s.t.Errorf("the stream cannot be written: %v", err)
		}
		_, _ = w.Write(b)
		w.(http.Flusher).Flush()
	}
	for _, ev := range events {
		write(enc.Encode(nil, ev))
	}
	if end {
		write(enc.Close(nil))
	}
}

// respondError sends an error.
func respondError(e *dragoman.APIError, header ...string) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
		status, body, _ := s.codec.EncodeError(e)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

// eventsOf returns a response as events.
func eventsOf(resp *dragoman.Response) []dragoman.Event {
	head := *resp
	head.Output, head.Stop = nil, dragoman.Stop{}
	events := []dragoman.Event{&dragoman.ResponseStart{Response: head}}
	i := 0
	for n, m := range resp.Output {
		for j, p := range m.Parts {
			start := &dragoman.PartStart{Index: i, Message: n, Part: skeleton(p)}
			if j == 0 {
				h := m
				h.Parts = nil
				start.Header = &h
			}
			events = append(events, start)
			for text := grown(p); text != ""; {
				n := min(3, len(text))
				events = append(events, &dragoman.PartDelta{Index: i, Kind: p.Kind(), Text: text[:n]})
				text = text[n:]
			}
			events = append(events, &dragoman.PartEnd{Index: i, Part: p})
			i++
		}
	}
	return append(events, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: head})
}

func skeleton(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Payload: p.Payload}
	default:
		return p
	}
}

func grown(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.ToolCall:
		return p.Arguments
	default:
		return ""
	}
}

var created = time.Unix(1_790_000_000, 0).UTC()

// textResponse returns a response with a text.
func textResponse(text string) *dragoman.Response {
	return &dragoman.Response{
		ID: "resp_1", Model: "model-1", Created: created,
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: text}}}},
		Stop:   dragoman.Stop{Reason: dragoman.StopEnd},
		Usage:  dragoman.Usage{Input: dragoman.Counted(7), Output: dragoman.Counted(3)},
	}
}

// callResponse returns a response with calls.
func callResponse(args ...string) *dragoman.Response {
	resp := textResponse("")
	resp.Output[0].Parts = nil
	for i, a := range args {
		resp.Output[0].Parts = append(resp.Output[0].Parts, &dragoman.ToolCall{
			ID: "call_" + string(rune('a'+i)), Name: "get_weather", Payload: codes.PayloadObject, Arguments: a,
		})
	}
	resp.Stop.Reason = dragoman.StopToolCalls
	return resp
}

// newRequest returns a request with one tool.
func newRequest() *dragoman.Request {
	return &dragoman.Request{
		Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Do I need a coat in Oslo?"}}}},
		Tools: []dragoman.ToolSpec{{
			Name: "get_weather", Description: "Current weather in a city.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}
}

// badSpec reports whether err is a SpecError.
func badSpec(err error) bool {
	var e *provider.SpecError
	return errors.As(err, &e)
}

// fakeClock is a clock that advance moves.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
	slept  []time.Duration // what was asked for
}

type fakeTimer struct {
	clock *fakeClock
	at    time.Time
	f     func()
	live  bool
}

func newClock() *fakeClock { return &fakeClock{now: created} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) provider.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{clock: c, at: c.now.Add(d), f: f, live: true}
	c.timers = append(c.timers, t)
	c.slept = append(c.slept, d)
	return t
}

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.live
	t.live = false
	return was
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.live
	t.live, t.at = true, t.clock.now.Add(d)
	return was
}

// advance moves the clock and fires the timers that are due.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for _, t := range c.timers {
		if t.live && !t.at.After(c.now) {
			t.live = false
			due = append(due, t.f)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// hasWait reports whether a timer with this duration was started.
func (c *fakeClock) hasWait(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.slept, d)
}

// eagerClock ends waits at once, except for those of an hour or more, which stand for phases
// without a limit.
type eagerClock struct{ *fakeClock }

func (c eagerClock) AfterFunc(d time.Duration, f func()) provider.Timer {
	t := c.fakeClock.AfterFunc(d, f)
	if d < time.Hour {
		go c.advance(d)
	}
	return t
}

// waits returns the durations of the waits.
func (c eagerClock) waits() (out []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.slept {
		if d < time.Hour {
			out = append(out, d)
		}
	}
	return out
}

// unboundedPhases has no phase timeouts, so that only waits between attempts use the clock.
var unboundedPhases = provider.Timeouts{Connect: -1, FirstByte: -1, Idle: -1, Total: -1}

// dialNever returns a dialer that blocks until its context ends.
func dialNever(meanwhile func()) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		for ctx.Err() == nil {
			meanwhile()
			runtime.Gosched()
		}
		return nil, ctx.Err()
	}
}
