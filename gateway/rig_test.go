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

// pipes is a network of this process alone, whose connections hold no byte back: a write
// ends when it is read. Within a bubble of synctest nothing on it takes any time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	// open counts the connections that are.
	open atomic.Int32
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// pipe is one end that is counted.
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
		return nil, errors.New("nobody listens")
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

// rig is a gateway that is served, with clients before it and a server of the test's own
// behind it, all of it over HTTP in a bubble with a time of its own.
type rig struct {
	t       *testing.T
	gateway *gateway.Gateway
	clients *http.Client
	// front and back are the networks before and behind the gateway.
	front, back *pipes
	// shutdown ends the gateway; ended is when it has.
	shutdown func()
	ended    chan error
	// sender is what models are asked by.
	sender *http.Transport
	// asked counts what the server was asked.
	asked atomic.Int32
	world
}

// rigConfig are the providers of a rig.
var rigConfig = configOf("http://127.0.0.1:1")

// routesWith are the routes of all providers of a rig, each with some settings.
func routesWith(settings string) string {
	var all []string
	for _, name := range []string{"chat", "openai", "responses", "anthropic", "gemini", "ollama"} {
		all = append(all, fmt.Sprintf("%[1]s/*: {to: \"%[1]s/*\", %[2]s}", name, settings))
	}
	return "routes: {" + strings.Join(all, ", ") + "}"
}

// rigged runs a test in a bubble with a rig.
func rigged(t *testing.T, more string, handler http.HandlerFunc, test func(r *rig)) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	file := rigConfig + more
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, front: newPipes(), back: newPipes(), ended: make(chan error, 1)}
		r.sender = &http.Transport{DialContext: r.back.dial}
		config := r.config(file)
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			r.asked.Add(1)
			body, _ := io.ReadAll(req.Body) // only then it is seen that who asks has gone
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
		found := r.judgedBy(clients)
		defer func() {
			stop()
			<-r.ended
			clients.CloseIdleConnections()
			r.sender.CloseIdleConnections()
			_ = server.Close()
			for _, v := range found() {
				switch {
				case v.Status == http.StatusRequestHeaderFieldsTooLarge: // net/http's own words: the gateway has not been asked
				case r.passedOn(v): // the server's own words, whatever they are
					t.Logf("passed on: %v", v)
				default:
					complain(t, v)
				}
			}
		}()
		test(r)
	})
}

// judgedBy has the clients' answers judged. The result is what was found by then: who has
// said it is known when the log is complete.
func (r *rig) judgedBy(clients http.RoundTripper) (found func() []*emitcheck.Violation) {
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
	config.Models.HTTP = &http.Client{Transport: r.sender}
	return config
}

// line is the log of the requests that have ended, once all that can happen has.
func (r *rig) line() string {
	synctest.Wait()
	return r.logged()
}

// way is that of a request: who asks, who is asked.
type way struct {
	client   dialect.Codec
	provider string
}

// passes reports whether answers are passed on byte for byte.
func (w way) passes(stream bool) bool {
	return w.provider == ownProvider(w.client.Dialect()) && !(stream && isArray(w.client))
}

// beats reports whether pauses of streams are filled.
func (w way) beats() bool {
	d := w.client.Dialect()
	return d != dialectname.Gemini && d != dialectname.Ollama
}

// ways are those of every client, to a server of its own dialect and to one of another.
func ways() (out []way) {
	for _, codec := range clientDialects {
		own := ownProvider(codec.Dialect())
		out = append(out, way{codec, own})
		other := "anthropic"
		if own == other {
			other = "openai"
		}
		out = append(out, way{codec, other})
	}
	return append(out, way{openaichat.Codec{}, "responses"}, way{anthropic.Codec{}, "gemini"}, way{openairesponses.Codec{}, "ollama"})
}

func isArray(codec dialect.Codec) bool {
	g, ok := codec.(gemini.Codec)
	return ok && g.Array
}

func (w way) String() string {
	name := string(w.client.Dialect())
	if isArray(w.client) {
		name += "-array"
	}
	return name + " to " + w.provider
}

// streamed names how an answer is asked for.
func streamed(stream bool) string {
	if stream {
		return " streamed"
	}
	return " whole"
}

// request is one of a client's, with what the client's vendor wants in it.
func (r *rig) request(ctx context.Context, w way, stream bool) *http.Request {
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

// reply is an answer that was read to its end.
type reply struct {
	codec  dialect.Codec
	stream bool
	status int
	header http.Header
	body   []byte
}

// ask asks, and reads all of the answer.
func (r *rig) ask(w way, stream bool) *reply {
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

// read reads an answer to its end.
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

// answer is what a client understands.
func (a *reply) answer() (*dragoman.Response, error) {
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

// check is what the strictest clients have against it.
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

// apiError is the error of an answer; nil where it is none.
func (a *reply) apiError(t *testing.T) *dragoman.APIError {
	t.Helper()
	var api *dragoman.APIError
	resp, err := a.answer()
	if !errors.As(err, &api) {
		t.Fatalf("no error of an API: %T %v, %+v\n%d %s", err, err, resp, a.status, a.body)
	}
	return api
}

// spoken is the dialect in which a server is asked.
func spoken(r *http.Request) dialect.Codec {
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

// asModel are the events of the simulator's answer to a text.
func asModel(text string) (events []dragoman.Event) {
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

// tellings are events as a dialect tells them: what each adds to a stream.
func tellings(codec dialect.Codec, events []dragoman.Event) (out []string) {
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

// streamed and whole are what a server answers with a text.
func streamOf(codec dialect.Codec, text string) string {
	return strings.Join(tellings(codec, asModel(text)), "")
}

func wholeOf(codec dialect.Codec, text string) string {
	events := asModel(text)
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

// failedStream is a stream with so many events of an answer, and an error behind them.
func failedStream(codec dialect.Codec, before int, e *dragoman.APIError) string {
	events := append(asModel("one two three four five")[:before:before], &dragoman.StreamError{Err: e})
	return strings.Join(tellings(codec, events), "")
}

// errorOf is an error as a server tells it.
func errorOf(codec dialect.Codec, e *dragoman.APIError) string {
	_, body, _ := codec.EncodeError(e)
	return string(body)
}

// refuses writes an error of a server, with a status of its dialect's: of what class it is
// follows from the status that the error has, unless it says so.
func refuses(rw http.ResponseWriter, r *http.Request, e dragoman.APIError) {
	codec := spoken(r)
	if e.Class == "" {
		e.Class = codec.DecodeError(e.Status, nil, nil).Class
	}
	status, body, _ := codec.EncodeError(&e)
	rw.Header().Set("content-type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(body)
}

// answers writes an answer of a server.
func answers(rw http.ResponseWriter, r *http.Request, stream bool, pieces ...string) {
	rw.Header().Set("content-type", "application/json")
	if stream {
		rw.Header().Set("content-type", serving.StreamType(spoken(r)))
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

// isStream reports whether a request is for a stream, as far as its URL or the test's body
// says it.
func isStream(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch spoken(r).Dialect() {
	case dialectname.Gemini:
		return strings.Contains(r.URL.Path, ":stream")
	case dialectname.Ollama:
		return !bytes.Contains(body, []byte(`"stream":false`))
	default:
		return bytes.Contains(body, []byte(`"stream":true`))
	}
}

// pause lets so many seconds pass, of a bubble's time.
func pause(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) }
