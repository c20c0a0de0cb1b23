// Package serving is what every server of the wire languages shares: at which paths
// the vendors have them, how a body is read, and how an answer, an error or a list of
// models is told.
package serving

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
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
	"github.com/dragoman-go/dragoman/internal/bodies"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// Call is what a client asks for, as far as its URL says it.
type Call struct {
	Codec dialect.Codec
	// InURL says that Model and Stream are what the URL says; else the body does.
	InURL  bool
	Model  string
	Stream bool
	// Count asks how many tokens a request has, and for no answer.
	Count bool
	// Compact marks a request to compact a conversation.
	Compact bool
}

// Handler answers a call.
type Handler func(http.ResponseWriter, *http.Request, Call)

// Handle serves the calls of every dialect at the paths that its vendor has:
//
//	POST /v1/chat/completions                            OpenAI Chat Completions
//	POST /v1/responses                                   OpenAI Responses
//	POST /v1/messages                                    Anthropic
//	POST /v1/messages/count_tokens
//	POST /v1/responses/input_tokens
//	POST /v1beta/models/{model}:generateContent          Gemini, also below /v1 and
//	POST /v1beta/models/{model}:streamGenerateContent    /v1/projects/… as Vertex has it
//	POST /v1beta/models/{model}:countTokens
//	POST /v1beta/{model}:…                               of names with a slash, too
//	POST /api/chat, /api/generate                        Ollama
func Handle(mux *http.ServeMux, h Handler) {
	for path, codec := range map[string]dialect.Codec{
		"/v1/chat/completions": openaichat.Codec{}, "/v1/responses": openairesponses.Codec{}, "/v1/messages": anthropic.Codec{}, "/api/chat": ollama.Codec{},
		"/api/generate": generateCodec{},
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { h(w, r, Call{Codec: codec}) })
	}
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) { h(w, r, Call{Codec: anthropic.Codec{}, Count: true}) })
	mux.HandleFunc("POST /v1/responses/input_tokens", func(w http.ResponseWriter, r *http.Request) {
		h(w, r, Call{Codec: openairesponses.Codec{}, Count: true})
	})
	// The AI SDK takes a name with a slash for one that says what it is of ("tunedModels/mine").
	for _, root := range []string{"/v1beta/models/", "/v1beta/", "/v1/models/", "/v1/projects/", "/v1beta1/projects/"} {
		mux.HandleFunc("POST "+root+"{rest...}", h.gemini)
	}
}

// HandleBedrock serves Bedrock's calls:
//
//	POST /model/{model}/converse
//	POST /model/{model}/converse-stream
func HandleBedrock(mux *http.ServeMux, h Handler) {
	mux.HandleFunc("POST /model/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		rest := r.PathValue("rest")
		if model, ok := strings.CutSuffix(rest, "/converse"); ok {
			h(w, r, Call{Codec: bedrock.Codec{}, InURL: true, Model: model})
		} else if model, ok := strings.CutSuffix(rest, "/converse-stream"); ok {
			h(w, r, Call{Codec: bedrock.Codec{}, InURL: true, Model: model, Stream: true})
		} else {
			WriteError(w, bedrock.Codec{}, notFound("there is no operation at "+r.URL.Path))
		}
	})
}

// gemini serves /…/models/{model}:{method}.
func (h Handler) gemini(w http.ResponseWriter, r *http.Request) {
	rest := r.PathValue("rest")
	if i := strings.LastIndex(rest, "/models/"); i >= 0 && strings.Contains(r.URL.Path, "/projects/") {
		rest = rest[i+len("/models/"):]
	}
	i := strings.LastIndexByte(rest, ':')
	c := Call{Codec: gemini.Codec{}, InURL: true, Model: rest[:max(0, i)]}
	switch method := rest[i+1:]; {
	case i < 0:
	case method == "generateContent":
		h(w, r, c)
		return
	case method == "streamGenerateContent":
		c.Codec, c.Stream = gemini.Codec{Array: r.URL.Query().Get("alt") != "sse"}, true
		h(w, r, c)
		return
	case method == "countTokens":
		c.Count = true
		h(w, r, c)
		return
	}
	WriteError(w, gemini.Codec{}, notFound("there is no method at "+r.URL.Path))
}

// Nowhere answers what none of the muxes serves: with a 405 where they serve another method
// there, else with a 404.
func Nowhere(muxes ...*http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		codec := CodecOf(r)
		if allowed := methods(r, muxes); len(allowed) > 0 {
			all := strings.Join(allowed, ", ")
			w.Header().Set("Allow", all)
			status, body := Error(w.Header(), codec, OpenAIs(codec, "method_not_supported", &dragoman.APIError{
				Class: dragoman.ErrorBadRequest, Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s is served with %s, not with %s", r.URL.Path, all, r.Method),
			}))
			if codec.Dialect() != dragoman.Gemini { // whose errors repeat the status
				status = http.StatusMethodNotAllowed
			}
			w.WriteHeader(status)
			_, _ = w.Write(body) // who has gone away is told nothing
			return
		}
		hint := ""
		switch r.URL.Path {
		case "/chat/completions", "/responses", "/models":
			hint = "; the base URL of OpenAI's languages ends in /v1"
		case "/v1/v1/messages", "/v1/v1/models", "/v1/api/chat", "/v1/v1beta/models":
			hint = "; only the base URL of OpenAI's languages ends in /v1"
		case "/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete":
			hint = "; the models are those of the server's configuration (GET /api/tags)"
		}
		WriteError(w, codec, OpenAIs(codec, "unknown_url", notFound("nothing is served at "+r.Method+" "+r.URL.Path+hint)))
	}
}

// methods are those that are served where a request leads.
func methods(r *http.Request, muxes []*http.ServeMux) (allowed []string) {
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPost} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		for _, mux := range muxes {
			if _, pattern := mux.Handler(other); strings.HasPrefix(pattern, method+" ") && method != r.Method {
				allowed = append(allowed, method)
				break
			}
		}
	}
	return allowed
}

// OpenAIs is an error with the code that OpenAI has for it, where one of its clients asks:
// that of the class would say that there is no such model.
func OpenAIs(codec dialect.Codec, code string, e *dragoman.APIError) *dragoman.APIError {
	if d := codec.Dialect(); d != dragoman.OpenAIChat && d != dragoman.OpenAIResponses {
		return e
	}
	typ, _ := wirekit.OpenAIErrorWords(e.Class)
	var w jsonwire.Writer
	w.BeginObject()
	w.Key("error")
	wirekit.WriteOpenAIError(&w, e, typ, code)
	w.EndObject()
	status, _, _ := codec.EncodeError(e)
	return codec.DecodeError(status, nil, w.Buf)
}

func notFound(message string) *dragoman.APIError {
	return &dragoman.APIError{Class: dragoman.ErrorNotFound, Message: message}
}

// CodecOf is the dialect of a client at a path that several vendors have, or none.
func CodecOf(r *http.Request) dialect.Codec {
	switch {
	case isAnthropic(r), strings.HasPrefix(r.URL.Path, "/v1/messages"):
		return anthropic.Codec{}
	case strings.HasPrefix(r.URL.Path, "/v1/responses"), strings.HasPrefix(r.URL.Path, "/v1/conversations"):
		return openairesponses.Codec{}
	case strings.HasPrefix(r.URL.Path, "/v1beta"), strings.HasPrefix(r.URL.Path, "/v1/projects/"), strings.HasPrefix(r.URL.Path, "/v1/models/") && strings.Contains(r.URL.Path, ":") && r.Method == http.MethodPost:
		return gemini.Codec{}
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return ollama.Codec{}
	default:
		return openaichat.Codec{}
	}
}

// isAnthropic reports whether a client of a path that two vendors have speaks
// Anthropic's dialect: its clients always name the version.
func isAnthropic(r *http.Request) bool { return r.Header.Get("anthropic-version") != "" }

// BodyTime is the default bound on the time to read the body of a request, so that a slow
// client does not occupy a connection forever.
const BodyTime = time.Minute

// BodyLimits bound how the body of a request is read.
type BodyLimits struct {
	// Bytes bounds the size of the body, compressed and decompressed.
	Bytes int
	// Time bounds the time to read it; zero means [BodyTime].
	Time time.Duration
	// Hold is called with the size by which the buffer of the body is about to grow. An
	// [*dragoman.APIError] ends the reading and is returned. Nil bounds nothing.
	Hold func(bytes int) error
}

// BoundBody bounds the time in which the body of a request is read, also of one that is
// refused unread: net/http reads some of it before it answers. [ReadBody] lifts the bound
// when the whole body is there. A server with a ReadTimeout keeps its own bound.
func BoundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.ContentLength != 0 && !boundByServer(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // a test's recorder has none
	}
}

func boundByServer(r *http.Request) bool {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return server != nil && server.ReadTimeout > 0
}

// Body reads the body of a request, of at most so many bytes.
func Body(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	return ReadBody(w, r, BodyLimits{Bytes: most})
}

// ReadBody reads the body of a request.
func ReadBody(w http.ResponseWriter, r *http.Request, l BodyLimits) ([]byte, error) {
	if l.Time == 0 {
		l.Time = BodyTime
	}
	BoundBody(w, r, l.Time)
	if r.ContentLength > int64(l.Bytes) { // nothing of it is asked for
		return nil, tooLarge(int64(l.Bytes), nil)
	}
	from, err := unpacked(w, r, l.Bytes)
	if err != nil {
		return nil, err
	}
	if l.Hold == nil {
		l.Hold = func(int) error { return nil }
	}
	body, err := bodies.ReadHeld(from, r.ContentLength, l.Bytes, l.Hold)
	var large *http.MaxBytesError
	var known *dragoman.APIError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(large.Limit, err)
	case errors.As(err, &known): // of Hold
		return nil, err
	case errors.As(err, &slow) && slow.Timeout():
		return nil, &dragoman.APIError{
			Class: dragoman.ErrorTimeout, Status: http.StatusRequestTimeout, Err: err,
			Message: fmt.Sprintf("the body of the request did not arrive within %v", l.Time),
		}
	case err != nil:
		return nil, Refuse(err)
	}
	if !boundByServer(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return body, nil
}

func tooLarge(most int64, err error) error {
	return &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: "the body has more than " + strconv.FormatInt(most, 10) + " bytes", Err: err}
}

// unpacked is the body of a request, of at most so many bytes in both forms. Some clients
// pack what is long.
func unpacked(w http.ResponseWriter, r *http.Request, most int) (io.Reader, error) {
	packed := http.MaxBytesReader(w, r.Body, int64(most))
	switch how := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); how {
	case "", "identity":
		return packed, nil
	case "gzip":
		body, err := gzip.NewReader(packed)
		if err != nil {
			return nil, Refuse(err)
		}
		return http.MaxBytesReader(w, body, int64(most)), nil
	default:
		return nil, &dragoman.APIError{
			Class: dragoman.ErrorBadRequest, Status: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("a body that is packed with %.40q cannot be read here; gzip can, or send it as it is", how),
		}
	}
}

// Refuse returns err as an error of the client's request. If err is a
// [dragoman.DecodeError], its path becomes the parameter.
func Refuse(err error) *dragoman.APIError {
	e := &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: err.Error(), Err: err}
	var decode *dragoman.DecodeError
	if errors.As(err, &decode) {
		e.Param = paramOf(decode.Pointer)
	}
	return e
}

// paramOf converts a JSON pointer to the notation of OpenAI errors: "/messages/1/role"
// becomes "messages[1].role".
func paramOf(pointer string) string {
	var b strings.Builder
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if _, err := strconv.Atoi(name); err == nil && b.Len() > 0 {
			b.WriteString("[" + name + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return b.String()
}

// Decode reads the request of a call. What the URL says stands in it.
func (c Call) Decode(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	if c.Count && c.Codec.Dialect() == dragoman.Gemini {
		body = innerRequest(body)
	}
	req, rep, err := c.Codec.DecodeRequest(body, o)
	switch {
	case errors.Is(err, dragoman.ErrTooLarge):
		return nil, rep, &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: err.Error(), Err: err}
	case err != nil:
		return nil, rep, Refuse(err)
	}
	if c.InURL {
		req.Model, req.Stream = c.Model, c.Stream
	}
	return req, rep, nil
}

// StreamType is the content type of a dialect's streams.
func StreamType(codec dialect.Codec) string {
	switch codec.Dialect() {
	case dragoman.Ollama:
		return "application/x-ndjson"
	case dragoman.Bedrock:
		return "application/vnd.amazon.eventstream"
	case dragoman.Gemini:
		if isArray(codec) {
			return "application/json"
		}
	}
	return "text/event-stream"
}

// isArray reports whether a dialect's stream is one JSON array.
func isArray(codec dialect.Codec) bool {
	g, ok := codec.(gemini.Codec)
	return ok && g.Array
}

// RequestIDHeader is the header in which a vendor names a request.
func RequestIDHeader(d dragoman.Dialect) string {
	switch d {
	case dragoman.Anthropic:
		return "Request-Id"
	case dragoman.Bedrock:
		return "X-Amzn-Requestid"
	default:
		return "X-Request-Id"
	}
}

// SetHeader sets the headers of an answer. No proxy on the way gathers a stream
// (quirk J2).
func SetHeader(h http.Header, d dragoman.Dialect, contentType, id string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	h.Set(RequestIDHeader(d), id)
}

// AsAPIError is an error as an API tells it.
func AsAPIError(err error) *dragoman.APIError {
	var e *dragoman.APIError
	if errors.As(err, &e) {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// Error is an error as a dialect's servers answer with it: the status and the body,
// and the headers, which are added to h. In place of a stream that is an array it is the
// one element of a list, as Gemini's servers write it, unless it came as one.
func Error(h http.Header, codec dialect.Codec, e *dragoman.APIError) (status int, body []byte) {
	status, body, _ = codec.EncodeError(e)
	if isArray(codec) && jsonwire.NewReader(body).Kind() != '[' {
		body = append(append([]byte{'['}, body...), ']')
	}
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		// Whole seconds are all that HTTP has, and some clients fail on others; those that
		// wait for less know the second one.
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
		if e.RetryAfter%time.Second != 0 {
			h.Set("Retry-After-Ms", strconv.FormatInt(int64((e.RetryAfter+time.Millisecond-1)/time.Millisecond), 10))
		}
	}
	if e.Class == dragoman.ErrorQuota { // clients of OpenAI and Anthropic would ask again and again
		h.Set("X-Should-Retry", "false")
	}
	if codec.Dialect() == dragoman.Bedrock {
		h.Set("X-Amzn-Errortype", codec.DecodeError(status, nil, body).Type)
	}
	if name := RequestIDHeader(codec.Dialect()); e.RequestID != "" {
		h.Set(name, e.RequestID)
	} else if h.Get(name) == "" {
		h.Set(name, "req_error")
	}
	return status, body
}

// WriteError answers with an error as the dialect tells it.
func WriteError(w http.ResponseWriter, codec dialect.Codec, err error) {
	status, body := Error(w.Header(), codec, AsAPIError(err))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone away is told nothing
}
