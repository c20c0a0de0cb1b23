package sim

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// Handler serves the models in every dialect, at the paths that the vendors have:
//
//	POST /v1/chat/completions                            OpenAI Chat Completions
//	POST /v1/responses                                   OpenAI Responses
//	POST /v1/messages                                    Anthropic
//	POST /v1/messages/count_tokens
//	POST /v1beta/models/{model}:generateContent          Gemini, also below /v1 and
//	POST /v1beta/models/{model}:streamGenerateContent    /v1/projects/… as Vertex has it
//	POST /v1beta/models/{model}:countTokens
//	POST /api/chat                                       Ollama
//	GET  /api/tags, POST /api/show, GET /api/version
//	POST /model/{model}/converse                         Bedrock
//	POST /model/{model}/converse-stream
//	GET  /v1/models, /v1/models/{model}, /v1beta/models
//
// Any credential will do, and none. Models are named as [Config.Open] takes them.
// What goes wrong is told as the caller's dialect tells it, before the first byte
// with its status and behind it in the stream. Each event is flushed by itself,
// and a client that goes away ends its answer. A fault that drops the connection
// does so by panicking with [http.ErrAbortHandler], which servers of net/http
// expect. The last responses of /v1/responses are kept in memory, unless "store" is
// false, so that "previous_response_id" goes on with one.
func Handler(c Config) http.Handler {
	s := &server{Config: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat(openaichat.Codec{}))
	mux.HandleFunc("POST /v1/responses", s.chat(openairesponses.Codec{}))
	mux.HandleFunc("POST /v1/messages", s.chat(anthropic.Codec{}))
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countMessages)
	mux.HandleFunc("POST /api/chat", s.chat(ollama.Codec{}))
	mux.HandleFunc("POST /model/{rest...}", s.bedrock)
	for _, root := range []string{"/v1beta/models/", "/v1/models/", "/v1/projects/", "/v1beta1/projects/"} {
		mux.HandleFunc("POST "+root+"{rest...}", s.gemini)
	}
	s.listings(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, openaichat.Codec{}, &dragoman.APIError{
			Class: dragoman.ErrorNotFound, Message: "nothing is served at " + r.Method + " " + r.URL.Path + missing(r.URL.Path),
		})
	})
	return mux
}

// missing is a hint for who left the version out of a base URL.
func missing(path string) string {
	switch path {
	case "/chat/completions", "/responses", "/models":
		return "; the base URL of OpenAI's languages ends in /v1"
	default:
		return ""
	}
}

// server answers over HTTP.
type server struct {
	Config
	// memory has the responses that clients of Responses can go on with.
	memory memory
}

// chat serves a dialect whose requests say all in their bodies.
func (s *server) chat(codec dialect.Codec) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, codec, urlSays{}) }
}

// urlSays is what a URL says of a request that its body does not.
type urlSays struct {
	model string
	known bool
	// stream says whether the answer is streamed.
	stream bool
}

// gemini serves /…/models/{model}:{method}.
func (s *server) gemini(w http.ResponseWriter, r *http.Request) {
	rest := r.PathValue("rest")
	if i := strings.LastIndex(rest, "/models/"); i >= 0 && strings.Contains(r.URL.Path, "/projects/") {
		rest = rest[i+len("/models/"):]
	}
	i := strings.LastIndexByte(rest, ':')
	model, method := rest[:max(0, i)], rest[i+1:]
	codec := gemini.Codec{Array: r.URL.Query().Get("alt") != "sse"}
	switch {
	case i < 0:
	case method == "generateContent":
		s.answer(w, r, codec, urlSays{model: model, known: true})
		return
	case method == "streamGenerateContent":
		s.answer(w, r, codec, urlSays{model: model, known: true, stream: true})
		return
	case method == "countTokens":
		s.countContents(w, r, model)
		return
	}
	writeError(w, gemini.Codec{}, &dragoman.APIError{Class: dragoman.ErrorNotFound, Message: "there is no method at " + r.URL.Path})
}

// bedrock serves /model/{model}/converse and …/converse-stream.
func (s *server) bedrock(w http.ResponseWriter, r *http.Request) {
	rest := r.PathValue("rest")
	if model, ok := strings.CutSuffix(rest, "/converse"); ok {
		s.answer(w, r, bedrock.Codec{}, urlSays{model: model, known: true})
	} else if model, ok := strings.CutSuffix(rest, "/converse-stream"); ok {
		s.answer(w, r, bedrock.Codec{}, urlSays{model: model, known: true, stream: true})
	} else {
		writeError(w, bedrock.Codec{}, &dragoman.APIError{Class: dragoman.ErrorNotFound, Message: "there is no operation at " + r.URL.Path})
	}
}

// answer reads a request, has a model answer it, and writes what it says.
func (s *server) answer(w http.ResponseWriter, r *http.Request, codec dialect.Codec, url urlSays) {
	req, err := s.read(w, r, codec)
	if err != nil {
		writeError(w, codec, err)
		return
	}
	if url.known {
		req.Model, req.Stream = url.model, url.stream
	}
	if err := s.memory.recall(req); err != nil {
		writeError(w, codec, err)
		return
	}
	spec, err := parseName(req.Model)
	if err != nil {
		writeError(w, codec, err)
		return
	}
	if codec.Dialect() == dragoman.OpenAIChat && s.reasoningField(spec) != "" {
		asCompatible(req)
	}
	own := s.Config
	own.Settings = own.on(codec.Dialect(), req.Model)
	model, err := own.model(spec)
	if err != nil {
		writeError(w, codec, err)
		return
	}
	if codec.Dialect() == dragoman.OpenAIResponses && (req.Store == nil || *req.Store) {
		model = remembered{model, &s.memory}
	}
	x := exchangeHTTP{w: w, codec: codec, opts: s.options(req, spec)}
	fault, err := s.fault(r, spec, codec.Dialect(), req.Stream)
	switch {
	case err != nil:
		writeError(w, codec, err)
	case fault != nil:
		x.hostile(r.Context(), model, req, fault, s.Pace)
	case req.Stream:
		x.stream(r.Context(), model, req)
	default:
		x.whole(r.Context(), model, req)
	}
}

// options are those of the answer to a request.
func (c Config) options(req *dragoman.Request, spec modelSpec) dialect.EncodeOptions {
	return dialect.EncodeOptions{
		Seed: c.mint(req).id("seed", 0), Model: req.Model, StreamUsage: req.StreamUsage,
		Target: dragoman.Target{Caps: dragoman.Capabilities{ReasoningField: c.reasoningField(spec)}},
	}
}

// FaultHeader is the header in which a client can ask a [Handler] for a fault.
const FaultHeader = "X-Dragoman-Fault"

// fault is the one that a request asks for, by the name of its model, a header or
// its URL, or that all requests get; nil for none.
func (s *server) fault(r *http.Request, spec modelSpec, d dragoman.Dialect, stream bool) (*Fault, error) {
	id := cmp.Or(spec.fault, r.Header.Get(FaultHeader), r.URL.Query().Get("fault"), s.Fault)
	if id == "" {
		return nil, nil
	}
	f, err := faultNamed(id)
	if err == nil {
		err = f.fits(d, stream)
	}
	return f, err
}

// read decodes the body of a request, within the bound.
func (s *server) read(w http.ResponseWriter, r *http.Request, codec dialect.Codec) (*dragoman.Request, error) {
	body, err := s.body(w, r)
	if err != nil {
		return nil, err
	}
	req, _, err := codec.DecodeRequest(body, dialect.DecodeOptions{MaxBytes: s.maxBytes()})
	switch {
	case errors.Is(err, dragoman.ErrTooLarge):
		return nil, &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: err.Error(), Err: err}
	case err != nil:
		return nil, refuse(err)
	}
	return req, nil
}

// bodyTime is how long the body of a request may take: a client that sends a byte
// now and then does not hold a connection for ever.
const bodyTime = time.Minute

func (s *server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	conn := http.NewResponseController(w)
	if server != nil && server.ReadTimeout > 0 {
		// It has a bound of its own.
	} else if conn.SetReadDeadline(time.Now().Add(bodyTime)) == nil { // a test's recorder has none
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.maxBytes())))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: "the body has more than " + strconv.FormatInt(large.Limit, 10) + " bytes", Err: err}
	case err != nil:
		return nil, refuse(err)
	}
	return body, nil
}

// exchangeHTTP is the answer to one request.
type exchangeHTTP struct {
	w     http.ResponseWriter
	codec dialect.Codec
	opts  dialect.EncodeOptions
}

func (x *exchangeHTTP) whole(ctx context.Context, model dragoman.Model, req *dragoman.Request) {
	resp, err := model.Generate(ctx, req)
	if err != nil {
		x.fail(ctx, err)
		return
	}
	enc, err := x.codec.EncodeResponse(resp, x.opts)
	if err != nil {
		x.fail(ctx, err)
		return
	}
	x.begin("application/json", resp.ID)
	_, _ = x.w.Write(enc.Body)
}

// hostile plays the answer with a fault in it.
func (x *exchangeHTTP) hostile(ctx context.Context, model dragoman.Model, req *dragoman.Request, f *Fault, pace Pace) {
	s, err := hostileScript(ctx, x.codec, x.opts, model, req, f)
	if err != nil {
		x.fail(ctx, err)
		return
	}
	s.play(ctx, x.w, pace)
}

// stream writes each event as it comes. The first one settles whether the answer
// is a stream at all: what fails before it is an answer with a status.
func (x *exchangeHTTP) stream(ctx context.Context, model dragoman.Model, req *dragoman.Request) {
	enc := x.codec.NewStreamEncoder(x.opts)
	begun, failed := false, false
	var buf []byte
	send := func() bool {
		if len(buf) == 0 {
			return true
		}
		_, err := x.w.Write(buf)
		buf = buf[:0]
		return err == nil && http.NewResponseController(x.w).Flush() == nil
	}
	for ev, err := range model.Stream(ctx, req) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !begun:
			x.fail(ctx, err)
			return
		case err != nil && failed:
			continue // the event before it said so
		case err != nil:
			ev = &dragoman.StreamError{Err: asAPIError(err)}
		}
		if start, ok := ev.(*dragoman.ResponseStart); ok {
			begun = true
			x.begin(streamType(x.codec), start.Response.ID)
		}
		_, broke := ev.(*dragoman.StreamError)
		failed = failed || broke
		if buf, err = enc.Encode(buf, ev); err != nil || !send() {
			return
		}
	}
	if buf, _ = enc.Close(buf); ctx.Err() == nil {
		send()
	}
}

// streamType is the content type of a dialect's streams.
func streamType(codec dialect.Codec) string {
	switch codec.Dialect() {
	case dragoman.Ollama:
		return "application/x-ndjson"
	case dragoman.Bedrock:
		return "application/vnd.amazon.eventstream"
	case dragoman.Gemini:
		if g, ok := codec.(gemini.Codec); ok && g.Array {
			return "application/json"
		}
	}
	return "text/event-stream"
}

// requestIDs are the headers in which the vendors name a request.
func requestIDs(d dragoman.Dialect) string {
	switch d {
	case dragoman.Anthropic:
		return "request-id"
	case dragoman.Bedrock:
		return "x-amzn-requestid"
	default:
		return "x-request-id"
	}
}

// begin writes the status and the headers.
func (x *exchangeHTTP) begin(contentType, id string) {
	setHeader(x.w.Header(), x.codec.Dialect(), contentType, id)
	x.w.WriteHeader(http.StatusOK)
}

func setHeader(h http.Header, d dragoman.Dialect, contentType, id string) {
	h.Set("content-type", contentType)
	h.Set("cache-control", "no-cache")
	h.Set("x-accel-buffering", "no") // quirk J2
	h.Set(requestIDs(d), strings.Replace(id, "sim_", "req_", 1))
}

// fail tells an error that came before the first byte. Who has gone away is told
// nothing.
func (x *exchangeHTTP) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		writeError(x.w, x.codec, err)
	}
}

// writeError answers with an error as the dialect tells it.
func writeError(w http.ResponseWriter, codec dialect.Codec, err error) {
	s := errorScript(codec, asAPIError(err))
	s.play(context.Background(), w, Pace{})
}
