// Package serving is what every server of the wire languages shares: at which paths
// the vendors have them, how a body is read, and how an answer, an error or a list of
// models is told.
package serving

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Call is what a client asks for, as far as its URL says it.
type Call struct {
	wire.Call
	// Compact marks a request to compact a conversation.
	Compact bool
}

// IsVariant reports whether a call is for a secondary endpoint, which no upstream is called
// with.
func (c Call) IsVariant() bool {
	_, ok := c.Codec.(wire.Variant)
	return ok
}

// Handler answers a call.
type Handler func(http.ResponseWriter, *http.Request, Call)

// Handle serves the calls of some dialects at the paths of their vendors.
func Handle(mux *http.ServeMux, h Handler, codecs ...dialect.Codec) {
	for _, codec := range codecs {
		for _, route := range wire.Of(codec).Serving.Routes {
			mux.HandleFunc("POST "+route.Path, h.route(codec, route))
		}
	}
}

// Gateway returns the dialects that a gateway serves.
func Gateway() []dialect.Codec {
	return slices.DeleteFunc(dialects.All(), func(c dialect.Codec) bool { return wire.Of(c).Serving.SimulatorOnly })
}

// Roots returns the paths of some dialects that have calls only below them.
func Roots(codecs ...dialect.Codec) (paths []string) {
	for _, codec := range codecs {
		for _, route := range wire.Of(codec).Serving.Routes {
			if root, ok := strings.CutSuffix(route.Path, "/{rest...}"); ok {
				paths = append(paths, root)
			}
		}
	}
	return paths
}

func (h Handler) route(codec dialect.Codec, route wire.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		call, ok := route.Call, true
		if route.Read != nil {
			call, ok = route.Read(r.URL.Path, r.PathValue("rest"), r.URL.Query())
		}
		if !ok {
			WriteError(w, codec, notFound("there is no operation at "+r.URL.Path))
			return
		}
		if call.Codec == nil {
			call.Codec = codec
		}
		h(w, r, Call{Call: call})
	}
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
			if !wire.Of(codec).Headers.StatusInBody {
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
	if !wire.Of(codec).Headers.Codes {
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

// CodecOf returns the dialect of a client at a path that several vendors serve, or none.
func CodecOf(r *http.Request) dialect.Codec {
	all := dialects.All()
	if i := slices.IndexFunc(all, func(c dialect.Codec) bool { return isClient(r, c) }); i >= 0 {
		return all[i]
	}
	i := slices.IndexFunc(all, func(c dialect.Codec) bool {
		owns := wire.Of(c).Serving.Owns
		return owns != nil && owns(r.Method, r.URL.Path)
	})
	if i < 0 {
		return dialects.Default()
	}
	return all[i]
}

// isClient reports whether a request is from a client that always names the version of its
// API.
func isClient(r *http.Request, codec dialect.Codec) bool {
	version := wire.Of(codec).Headers.Version
	return version != "" && r.Header.Get(version) != ""
}

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
	if counted := wire.Of(c.Codec).Endpoint.Counted; c.Count && counted != nil {
		body = counted(body)
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
func StreamType(codec dialect.Codec) string { return wire.Of(codec).Stream.Framing.ContentType() }

// isArray reports whether a dialect's stream is one JSON array.
func isArray(codec dialect.Codec) bool { return wire.Of(codec).Stream.Framing == framing.JSONArray }

// RequestIDHeader is the header in which a vendor names a request.
func RequestIDHeader(codec dialect.Codec) string {
	return cmp.Or(wire.Of(codec).Headers.RequestID, "X-Request-Id")
}

// SetHeader sets the headers of an answer. No proxy on the way gathers a stream
// (quirk J2).
func SetHeader(h http.Header, codec dialect.Codec, contentType, id string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	h.Set(RequestIDHeader(codec), id)
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
	if name := wire.Of(codec).Headers.ErrorType; name != "" {
		h.Set(name, codec.DecodeError(status, nil, body).Type)
	}
	if name := RequestIDHeader(codec); e.RequestID != "" {
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
