package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/sim"
)

// pipes is an in-process network without buffers: a write ends when it is read. In a synctest
// bubble it takes no time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	// open counts the open connections.
	open atomic.Int32
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// pipe is one end of a connection, which pipes counts.
type pipe struct {
	net.Conn
	closed func()
}

func (p *pipe) Close() error {
	p.closed()
	return p.Conn.Close()
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		p.open.Add(1)
		return &pipe{here, sync.OnceFunc(func() { p.open.Add(-1) })}, nil
	case <-p.closed:
		return nil, errors.New("no listener")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr  { return pipeAddr{} }
func (*pipes) Network() string { return "pipe" }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// rig is a served gateway with clients and an upstream of the test, over HTTP in a synctest
// bubble.
type rig struct {
	t       *testing.T
	gateway *gateway.Gateway
	clients *http.Client
	// front is the network between clients and gateway, back the one between gateway and upstream.
	front, back *pipes
	// shutdown stops the gateway; ended is closed when it has stopped.
	shutdown func()
	ended    chan error
	// transport sends the requests to models.
	transport *http.Transport
	// requests counts the requests of the upstream.
	requests atomic.Int32
	world
}

// rigConfig has the providers of a rig.
var rigConfig = configOf("http://127.0.0.1:1")

// routesWith returns routes to all providers of a rig, each with the same settings.
func routesWith(settings string) string {
	var all []string
	for _, name := range []string{"chat", "openai", "responses", "anthropic", "gemini", "ollama"} {
		all = append(all, fmt.Sprintf("%[1]s/*: {to: \"%[1]s/*\", %[2]s}", name, settings))
	}
	return "routes: {" + strings.Join(all, ", ") + "}"
}

// withRig runs a test with a rig in a bubble.
func withRig(t *testing.T, more string, handler http.HandlerFunc, test func(r *rig)) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	file := rigConfig + more
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, front: newPipes(), back: newPipes(), ended: make(chan error, 1)}
		r.transport = &http.Transport{DialContext: r.back.dial}
		config := r.config(file)
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			r.requests.Add(1)
			body, _ := io.ReadAll(req.Body) // net/http detects a disconnect only after the body is read
			req.Body = io.NopCloser(bytes.NewReader(body))
			handler(rw, req)
		}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
		go func() { _ = server.Serve(r.back) }()
		var err error
		if r.gateway, err = gateway.New(config, gateway.Options{Log: slog.New(slog.NewJSONHandler(&r.log, nil)), Random: rand.NewChaCha8([32]byte{1})}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		r.shutdown = stop
		go func() { r.ended <- r.gateway.Serve(ctx, r.front, time.Second) }()
		clients := &http.Transport{DialContext: r.front.dial}
		found := r.judgeResponses(clients)
		defer func() {
			stop()
			<-r.ended
			clients.CloseIdleConnections()
			r.transport.CloseIdleConnections()
			_ = server.Close()
			for _, v := range found() {
				switch {
				case v.Status == http.StatusRequestHeaderFieldsTooLarge: // a response of net/http; the gateway was not called
				case r.wasPassedThrough(v): // the bytes of the upstream
					t.Logf("passed on: %v", v)
				default:
					complain(t, v)
				}
			}
		}()
		test(r)
	})
}

// judgeResponses checks the responses that clients read. found returns the violations so far; call
// it when the log is complete.
func (r *rig) judgeResponses(clients http.RoundTripper) (found func() []*emitcheck.Violation) {
	var mu sync.Mutex
	var all []*emitcheck.Violation
	r.clients = &http.Client{Transport: emitcheck.Transport(clients, emitcheck.Options{Document: openResponses(r.t), Report: func(v *emitcheck.Violation) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, v)
	}})}
	return func() []*emitcheck.Violation {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func (r *rig) config(file string) *gateway.Config {
	r.t.Helper()
	config, err := gateway.Parse("gateway.yaml", []byte(file))
	if err != nil {
		r.t.Fatal(err)
	}
	config.Models.HTTP = &http.Client{Transport: r.transport}
	return config
}

// logLines returns the log lines of ended requests, after all goroutines of the bubble are idle.
func (r *rig) logLines() string {
	synctest.Wait()
	return r.logged()
}

// pair is the client dialect and the provider of a request.
type pair struct {
	client   dialect.Codec
	provider string
}

// passes reports whether responses are passed through.
func (w pair) passes(stream bool) bool {
	return w.provider == providerOf(w.client.Dialect()) && !(stream && isArray(w.client))
}

// beats reports whether pauses of streams get heartbeats.
func (w pair) beats() bool {
	d := w.client.Dialect()
	return d != dialectname.Gemini && d != dialectname.Ollama
}

// pairs returns every client with an upstream of its own dialect and with one of another.
func pairs() (out []pair) {
	for _, codec := range clientDialects {
		own := providerOf(codec.Dialect())
		out = append(out, pair{codec, own})
		other := "anthropic"
		if own == other {
			other = "openai"
		}
		out = append(out, pair{codec, other})
	}
	return append(out, pair{openaichat.Codec{}, "responses"}, pair{anthropic.Codec{}, "gemini"}, pair{openairesponses.Codec{}, "ollama"})
}

func isArray(codec dialect.Codec) bool {
	g, ok := codec.(gemini.Codec)
	return ok && g.Array
}

func (w pair) String() string {
	name := string(w.client.Dialect())
	if isArray(w.client) {
		name += "-array"
	}
	return name + " to " + w.provider
}

// streamed returns a subtest name: streamed or not.
func streamed(stream bool) string {
	if stream {
		return " streamed"
	}
	return " whole"
}

// request returns a request of a client, with the headers that its vendor requires.
func (r *rig) request(ctx context.Context, w pair, stream bool) *http.Request {
	r.t.Helper()
	return r.requestFor(ctx, w.client, w.provider+"/m", stream)
}

func (r *rig) requestFor(ctx context.Context, codec dialect.Codec, model string, stream bool) *http.Request {
	r.t.Helper()
	req := &dragoman.Request{Model: model, Stream: stream, StreamUsage: stream, MaxOutputTokens: new(int64(500)), Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("hi")}}
	if codec.Dialect() == dialectname.Gemini {
		req.Model, req.Stream = "", false
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path(codec, model, stream), bytes.NewReader(enc.Body))
	if err != nil {
		r.t.Fatal(err)
	}
	if codec.Dialect() == dialectname.Anthropic {
		hr.Header.Set("anthropic-version", "2023-06-01")
	}
	return hr
}

// reply is a response that was read to its end.
type reply struct {
	codec  dialect.Codec
	stream bool
	status int
	header http.Header
	body   []byte
}

// roundTrip sends a request and reads the whole response.
func (r *rig) roundTrip(w pair, stream bool) *reply {
	r.t.Helper()
	return r.read(r.send(r.request(r.t.Context(), w, stream)), w.client, stream) //nolint:bodyclose // read does
}

func (r *rig) send(hr *http.Request) *http.Response {
	r.t.Helper()
	resp, err := r.clients.Do(hr)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// read reads a response to its end.
func (r *rig) read(resp *http.Response, codec dialect.Codec, stream bool) *reply {
	r.t.Helper()
	a, err := readAll(resp, codec, stream)
	if err != nil {
		r.t.Fatalf("%v behind %s", err, a.body)
	}
	return a
}

func readAll(resp *http.Response, codec dialect.Codec, stream bool) (*reply, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &reply{codec: codec, stream: stream, status: resp.StatusCode, header: resp.Header, body: body}, err
}

// decode decodes the response as a client would.
func (a *reply) decode() (*dragoman.Response, error) {
	switch {
	case a.status != http.StatusOK:
		return nil, a.codec.DecodeError(a.status, a.header, a.body)
	case !a.stream:
		resp, _, err := a.codec.DecodeResponse(a.body, dialect.DecodeOptions{})
		if err == nil && resp.Error != nil {
			err = resp.Error
		}
		return resp, err
	default:
		return dragoman.Collect(dialect.Events(a.codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(a.body)))
	}
}

// check returns what the strictest clients would reject.
func (a *reply) check() error {
	switch {
	case a.status != http.StatusOK:
		return emitcheck.Error(a.codec.Dialect(), a.status, a.header, a.body)
	case a.stream:
		return emitcheck.Stream(a.codec.Dialect(), a.header, a.body)
	default:
		return emitcheck.Whole(a.codec.Dialect(), a.status, a.header, a.body)
	}
}

// apiError returns the error of the response; nil if it has none.
func (a *reply) apiError(t *testing.T) *dragoman.APIError {
	t.Helper()
	var api *dragoman.APIError
	resp, err := a.decode()
	if !errors.As(err, &api) {
		t.Fatalf("no error of an API: %T %v, %+v\n%d %s", err, err, resp, a.status, a.body)
	}
	return api
}

// dialectOf returns the dialect of a request to an upstream.
func dialectOf(r *http.Request) dialect.Codec {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		return openaichat.Codec{}
	case strings.HasSuffix(path, "/responses"):
		return openairesponses.Codec{}
	case strings.HasSuffix(path, "/messages"):
		return anthropic.Codec{}
	case strings.HasSuffix(path, "/api/chat"):
		return ollama.Codec{}
	default:
		return gemini.Codec{}
	}
}

// simulatedEvents returns the events of the simulator for a text.
func simulatedEvents(text string) (events []dragoman.Event) {
	model, err := sim.Open("sim/echo")
	if err != nil {
		return nil
	}
	req := &dragoman.Request{Model: "sim/echo", Messages: []dragoman.Message{userSays(text)}}
	for ev, err := range model.Stream(context.Background(), req) {
		if err == nil {
			events = append(events, ev)
		}
	}
	return events
}

// encodeEvents encodes events in a dialect: what each of them adds to a stream.
func encodeEvents(codec dialect.Codec, events []dragoman.Event) (out []string) {
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", Model: "m", StreamUsage: true})
	for _, ev := range events {
		if b, err := enc.Encode(nil, ev); err == nil && len(b) > 0 {
			out = append(out, string(b))
		}
	}
	if b, err := enc.Close(nil); err == nil && len(b) > 0 {
		out = append(out, string(b))
	}
	return out
}

// textStream and textResponse return a response with a text, streamed and complete.
func textStream(codec dialect.Codec, text string) string {
	return strings.Join(encodeEvents(codec, simulatedEvents(text)), "")
}

func textResponse(codec dialect.Codec, text string) string {
	events := simulatedEvents(text)
	var sum dragoman.Collector
	for _, ev := range events {
		sum.Add(ev)
	}
	resp, err := sum.Response()
	if err != nil {
		return err.Error()
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Model: "m"})
	if err != nil {
		return err.Error()
	}
	return string(enc.Body)
}

// failedStream returns a stream with the given number of events, followed by an error.
func failedStream(codec dialect.Codec, before int, e *dragoman.APIError) string {
	events := append(simulatedEvents("one two three four five")[:before:before], &dragoman.StreamError{Err: e})
	return strings.Join(encodeEvents(codec, events), "")
}

// errorBody returns an error in a dialect.
func errorBody(codec dialect.Codec, e *dragoman.APIError) string {
	_, body, _ := codec.EncodeError(e)
	return string(body)
}

// writeError writes an error as an upstream of the request's dialect. An error without a class
// gets the class of its status.
func writeError(rw http.ResponseWriter, r *http.Request, e dragoman.APIError) {
	codec := dialectOf(r)
	if e.Class == "" {
		e.Class = codec.DecodeError(e.Status, nil, nil).Class
	}
	status, body, _ := codec.EncodeError(&e)
	rw.Header().Set("content-type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(body)
}

// writeResponse writes a response of an upstream.
func writeResponse(rw http.ResponseWriter, r *http.Request, stream bool, pieces ...string) {
	rw.Header().Set("content-type", "application/json")
	if stream {
		rw.Header().Set("content-type", serving.StreamType(dialectOf(r)))
	}
	flush := http.NewResponseController(rw).Flush
	if len(pieces) == 0 {
		_ = flush()
	}
	for _, p := range pieces {
		if _, err := io.WriteString(rw, p); err != nil {
			return
		}
		_ = flush()
	}
}

// isStream reports whether a request asks for a stream, in its URL or its body.
func isStream(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch dialectOf(r).Dialect() {
	case dialectname.Gemini:
		return strings.Contains(r.URL.Path, ":stream")
	case dialectname.Ollama:
		return !bytes.Contains(body, []byte(`"stream":false`))
	default:
		return bytes.Contains(body, []byte(`"stream":true`))
	}
}

// sleepSeconds sleeps, in the time of the bubble.
func sleepSeconds(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) }
