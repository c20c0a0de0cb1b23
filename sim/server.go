package sim

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/targets"
)

// Handler returns a handler that serves the models in every dialect, at the paths of the
// vendors' APIs:
//
//	POST /v1/chat/completions                            OpenAI Chat Completions
//	POST /v1/responses                                   OpenAI Responses
//	POST /v1/responses/input_tokens, /v1/responses/compact
//	GET, DELETE /v1/responses/{id}
//	GET  /v1/responses/{id}/input_items
//	POST /v1/responses/{id}/cancel
//	POST /v1/conversations, and the paths below it
//	POST /v1/messages                                    Anthropic
//	POST /v1/messages/count_tokens
//	POST /v1beta/models/{model}:generateContent          Gemini, also below /v1 and
//	POST /v1beta/models/{model}:streamGenerateContent    /v1/projects/… like Vertex
//	POST /v1beta/models/{model}:countTokens
//	POST /api/chat                                       Ollama
//	GET  /api/tags, POST /api/show, GET /api/version
//	POST /v2/chat                                        Cohere
//	POST /model/{model}/converse                         Bedrock
//	POST /model/{model}/converse-stream
//	GET  /v1/models, /v1/models/{model}, /v1beta/models
//
// The handler accepts any credential, and requests without one. [Config.Open] describes the
// model names. Errors have the format of the client's dialect: before the first byte with a
// status, after it as an event in the stream. Each event is flushed separately. If the client
// disconnects, the response ends. A fault that drops the connection panics with
// [http.ErrAbortHandler], which net/http servers expect. The handler refuses Anthropic
// threads with an error that Anthropic clients recognize.
//
// The handler stores conversations, and responses unless "store" is false, in memory. Clients
// can retrieve, list and delete them, continue them by "previous_response_id" and
// "conversation", and refer to their items. Any other id is an OpenAI error that names it.
// The handler stores up to 256 of them and 32 MiB. It drops the oldest first, but never the
// newest. A conversation has at most 8 MiB. Equal requests in equal contexts have equal ids,
// so a later response replaces an earlier one. There are no background responses: each is
// complete when the client receives it.
func Handler(c Config) http.Handler {
	s := &server{Config: c, store: responseStore{seed: c.Seed}}
	mux := http.NewServeMux()
	serving.Handle(mux, s.serve, dialects.All()...)
	s.handleStored(mux)
	serving.Models{
		MaxBytes: s.maxBytes(),
		List:     func(*http.Request) ([]serving.Model, error) { return modelList(), nil },
		Find:     func(_ *http.Request, name string) (serving.Model, error) { return find(name) },
	}.Handle(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("The simulator is running.\n"))
	})
	mux.HandleFunc("/", serving.NotFound(mux))
	return mux
}

// server serves the models over HTTP.
type server struct {
	Config
	store responseStore
}

// serve reads a request, passes it to a model, and writes the response.
func (s *server) serve(w http.ResponseWriter, r *http.Request, call serving.Call) {
	req, t, err := s.read(w, r, call)
	switch {
	case err != nil:
		serving.WriteError(w, call.Codec, err)
	case call.Count:
		s.count(w, call.Codec, req)
	case call.Compact:
		s.compact(w, call.Codec, req, t)
	default:
		s.respond(w, r, call.Codec, req, t)
	}
}

// count writes the number of tokens of a request (quirk J5).
func (s *server) count(w http.ResponseWriter, codec dialect.Codec, req *dragoman.Request) {
	if _, err := parseName(req.Model); err != nil {
		serving.WriteError(w, codec, err)
		return
	}
	w.Header().Set("content-type", "application/json")
	_, _ = w.Write(serving.CountBody(codec, serving.CountTokens(req)))
}

// read decodes the body of a request, up to the maximum size. For a Responses request, it also
// returns the resolved references; for others, nil.
func (s *server) read(w http.ResponseWriter, r *http.Request, call serving.Call) (*dragoman.Request, *resolved, error) {
	body, err := serving.Body(w, r, s.maxBytes())
	if err != nil {
		return nil, nil, err
	}
	o := dialect.DecodeOptions{MaxBytes: s.maxBytes()}
	state := &wire.Of(call.Codec).State
	req, _, err := call.Decode(body, o)
	switch {
	case err != nil:
		return nil, nil, err
	case state.Threads != nil && hasThread(req, call.Codec.Dialect(), state.Threads.Field):
		return nil, nil, state.Threads.Unsupported()
	case !state.Responses:
		return req, nil, nil
	}
	t, err := s.store.resolve(body)
	if err == nil && !bytes.Equal(t.body, body) {
		req, _, err = call.Decode(t.body, o)
	}
	return req, t, err
}

// hasThread reports whether a request asks the server to store its conversation, or continues
// a stored one and so contains only part of it.
func hasThread(req *dragoman.Request, d dragoman.Dialect, field string) bool {
	return slices.ContainsFunc(req.Extra.For(d), func(f dragoman.Field) bool { return f.Path == "/"+field && string(f.Value) != "null" })
}

// respond passes a request to a model and writes the response.
func (s *server) respond(w http.ResponseWriter, r *http.Request, codec dialect.Codec, req *dragoman.Request, t *resolved) {
	spec, err := parseName(req.Model)
	if err != nil {
		serving.WriteError(w, codec, err)
		return
	}
	if wire.Of(codec).Relayed && s.reasoningField(spec) != "" {
		asCompatible(req, codec.Dialect())
	}
	own := s.Config
	own.Settings = own.forDialect(codec.Dialect(), req.Model)
	if t != nil {
		own.request = t.fingerprint()
	}
	model, err := own.model(spec)
	if err != nil {
		serving.WriteError(w, codec, err)
		return
	}
	x := exchangeHTTP{w: w, codec: codec, opts: own.options(codec, req, spec), save: func([]byte) {}}
	if t != nil {
		model = echoing{model, t.extra()}
		x.save = func(response []byte) { s.store.save(t, response) }
	}
	fault, err := s.fault(r, spec, codec.Dialect(), req.Stream)
	switch {
	case err != nil:
		serving.WriteError(w, codec, err)
	case fault != nil:
		x.hostile(r.Context(), model, req, fault, s.Pace)
	case req.Stream:
		x.stream(r.Context(), model, req)
	default:
		x.serveWhole(r.Context(), model, req)
	}
}

// options returns the encode options for the response to a request.
func (c Config) options(codec dialect.Codec, req *dragoman.Request, spec modelSpec) dialect.EncodeOptions {
	return dialect.EncodeOptions{
		Seed: c.mint(req).id("seed", 0), Model: req.Model, StreamUsage: req.StreamUsage, LegacyFunctions: legacyFunctions(codec, req),
		Target: targets.Target{Caps: targets.Capabilities{ReasoningField: c.reasoningField(spec)}},
	}
}

// legacyFunctions reports whether the client expects a single call as function_call.
func legacyFunctions(codec dialect.Codec, req *dragoman.Request) bool {
	legacy := wire.Of(codec).LegacyFunctions
	return legacy != nil && legacy(req)
}

// faultHeader is the header with which a client requests a fault.
const faultHeader = "X-Dragoman-Fault"

// fault returns the fault that a request asks for in the model name, a header or the URL, or
// the configured one. It returns nil if there is none.
func (s *server) fault(r *http.Request, spec modelSpec, d dragoman.Dialect, stream bool) (*Fault, error) {
	id := cmp.Or(spec.fault, r.Header.Get(faultHeader), r.URL.Query().Get("fault"), s.Fault)
	if id == "" {
		return nil, nil
	}
	f, err := faultNamed(id)
	if err == nil {
		err = f.fits(d, stream)
	}
	return f, err
}

// exchangeHTTP is one HTTP request with its response.
type exchangeHTTP struct {
	w     http.ResponseWriter
	codec dialect.Codec
	opts  dialect.EncodeOptions
	// save stores the response object of a Responses request, before the client has all of
	// it. For other requests it does nothing.
	save func(response []byte)
}

func (x *exchangeHTTP) serveWhole(ctx context.Context, model dragoman.Model, req *dragoman.Request) {
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
	x.save(enc.Body)
	x.begin("application/json", resp.ID)
	_, _ = x.w.Write(enc.Body)
}

// hostile plays the response with a fault in it.
func (x *exchangeHTTP) hostile(ctx context.Context, model dragoman.Model, req *dragoman.Request, f *Fault, pace Pace) {
	s, err := hostileScript(ctx, x.codec, x.opts, model, req, f)
	if err != nil {
		x.fail(ctx, err)
		return
	}
	if all := slices.Concat(s.chunks...); req.Stream {
		x.saveFinal(all)
	} else {
		x.save(all)
	}
	s.play(ctx, x.w, pace)
}

// stream writes each event as it arrives. An error before the first event is a response with
// an error status; later errors are events of the stream.
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
			continue // the previous event reported it
		case err != nil:
			ev = &dragoman.StreamError{Err: serving.AsAPIError(err)}
		}
		if start, ok := ev.(*dragoman.ResponseStart); ok {
			begun = true
			x.begin(serving.StreamType(x.codec), start.Response.ID)
		}
		_, broke := ev.(*dragoman.StreamError)
		failed = failed || broke
		if buf, err = enc.Encode(buf, ev); err != nil {
			return
		}
		if _, ended := ev.(*dragoman.ResponseEnd); ended || broke {
			x.saveFinal(buf)
		}
		if !send() {
			return
		}
	}
	if buf, _ = enc.Close(buf); ctx.Err() == nil {
		x.saveFinal(buf)
		send()
	}
}

// saveFinal stores the response object in the last event of a stream, if events contains it.
func (x *exchangeHTTP) saveFinal(events []byte) {
	if wire.Of(x.codec).State.Responses {
		x.save(final(events))
	}
}

// begin writes the status and the headers.
func (x *exchangeHTTP) begin(contentType, id string) {
	serving.SetHeader(x.w.Header(), x.codec, contentType, requestID(id))
	x.w.WriteHeader(http.StatusOK)
}

// requestID derives the id of a request from the id of its response.
func requestID(response string) string { return "req_" + response[strings.IndexByte(response, '_')+1:] }

// fail writes an error that occurred before the first byte. If the client disconnected, it
// writes nothing.
func (x *exchangeHTTP) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		serving.WriteError(x.w, x.codec, err)
	}
}
