// Package serving has what all servers of the dialects share: the paths of the vendors,
// reading a body, and writing a response, an error or a list of models.
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
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Call is the operation that a client requests with its URL.
type Call struct {
	wire.Call
	// Compact marks a request to compact a conversation.
	Compact bool
}

// IsVariant reports whether a call is for a secondary endpoint, which is never used to
// call an upstream.
func (c Call) IsVariant() bool {
	_, ok := c.Codec.(wire.Variant)
	return ok
}

// Handler serves a call.
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

// Roots returns the paths of the dialects below which calls are served, but not at
// them.
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
			WriteError(w, codec, notFound("no operation at "+r.URL.Path))
			return
		}
		if call.Codec == nil {
			call.Codec = codec
		}
		h(w, r, Call{Call: call})
	}
}

// NotFound returns a handler for requests that none of the muxes serves. It responds
// with 405 if they serve another method at the path, and with 404 otherwise.
func NotFound(muxes ...*http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		codec := CodecOf(r)
		if allowed := methods(r, muxes); len(allowed) > 0 {
			all := strings.Join(allowed, ", ")
			w.Header().Set("Allow", all)
			status, body := Error(w.Header(), codec, WithOpenAICode(codec, "method_not_supported", &dragoman.APIError{
				Class: dragoman.ErrorBadRequest, Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s accepts %s, not %s", r.URL.Path, all, r.Method),
			}))
			if !wire.Of(codec).Headers.StatusInBody {
				status = http.StatusMethodNotAllowed
			}
			w.WriteHeader(status)
			_, _ = w.Write(body) // the client may be gone
			return
		}
		hint := ""
		switch r.URL.Path {
		case "/chat/completions", "/responses", "/models":
			hint = "; the base URL for OpenAI clients ends in /v1"
		case "/v1/v1/messages", "/v1/v1/models", "/v1/api/chat", "/v1/v1beta/models":
			hint = "; only the base URL for OpenAI clients ends in /v1"
		case "/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete":
			hint = "; models are set in the server's configuration (see GET /api/tags)"
		}
		WriteError(w, codec, WithOpenAICode(codec, "unknown_url", notFound("nothing is served at "+r.Method+" "+r.URL.Path+hint)))
	}
}

// methods returns the methods that are served at the path of a request.
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

// WithOpenAICode returns an error with OpenAI's code for it, if the client is an OpenAI
// client. The code of the error's class would mean an unknown model.
func WithOpenAICode(codec dialect.Codec, code string, e *dragoman.APIError) *dragoman.APIError {
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

// CodecOf returns the dialect of a client at a path that several vendors serve, or at a
// path that none serves.
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

// isClient reports whether a request is from a client of the dialect, for dialects
// whose clients always send the version of the API.
func isClient(r *http.Request, codec dialect.Codec) bool {
	version := wire.Of(codec).Headers.Version
	return version != "" && r.Header.Get(version) != ""
}

// BodyTime is the default time limit for reading the body of a request, so that a slow
// client does not occupy a connection forever.
const BodyTime = time.Minute

// BodyLimits are limits for reading the body of a request.
type BodyLimits struct {
	// Bytes limits the size of the body, both compressed and decompressed.
	Bytes int
	// Time limits the time to read it; zero means [BodyTime].
	Time time.Duration
	// Hold is called with the size by which the buffer of the body is about to grow. If
	// it returns an [*dragoman.APIError], reading stops with that error. Nil means no
	// limit.
	Hold func(bytes int) error
}

// BoundBody limits the time to read the body of a request, even if the request is
// refused before its body is read: net/http reads some of the body before it responds.
// [ReadBody] removes the limit once the whole body has arrived. A server with a
// ReadTimeout keeps its own limit.
func BoundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.ContentLength != 0 && !boundByServer(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // the recorder of a test has no deadline
	}
}

func boundByServer(r *http.Request) bool {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return server != nil && server.ReadTimeout > 0
}

// Body reads the body of a request, up to most bytes.
func Body(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	return ReadBody(w, r, BodyLimits{Bytes: most})
}

// ReadBody reads the body of a request.
func ReadBody(w http.ResponseWriter, r *http.Request, l BodyLimits) ([]byte, error) {
	if l.Time == 0 {
		l.Time = BodyTime
	}
	BoundBody(w, r, l.Time)
	if r.ContentLength > int64(l.Bytes) { // refuse it unread
		return nil, tooLarge(int64(l.Bytes), nil)
	}
	from, err := unpacked(w, r, l.Bytes)
	if err != nil {
		return nil, err
	}
	if l.Hold == nil {
		l.Hold = func(int) error { return nil }
	}
	body, err := framing.ReadHeld(from, r.ContentLength, l.Bytes, l.Hold)
	var large *http.MaxBytesError
	var known *dragoman.APIError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(large.Limit, err)
	case errors.As(err, &known): // Hold returned it
		return nil, err
	case errors.As(err, &slow) && slow.Timeout():
		return nil, &dragoman.APIError{
			Class: dragoman.ErrorTimeout, Status: http.StatusRequestTimeout, Err: err,
			Message: fmt.Sprintf("the body of the request did not arrive within %v", l.Time),
		}
	case err != nil:
		return nil, AsRequestError(err)
	}
	if !boundByServer(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return body, nil
}

func tooLarge(most int64, err error) error {
	return &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: "the body has more than " + strconv.FormatInt(most, 10) + " bytes", Err: err}
}

// unpacked returns the body of a request, limited to most bytes both compressed and
// decompressed. Some clients compress long bodies.
func unpacked(w http.ResponseWriter, r *http.Request, most int) (io.Reader, error) {
	packed := http.MaxBytesReader(w, r.Body, int64(most))
	switch how := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); how {
	case "", "identity":
		return packed, nil
	case "gzip":
		body, err := gzip.NewReader(packed)
		if err != nil {
			return nil, AsRequestError(err)
		}
		return http.MaxBytesReader(w, body, int64(most)), nil
	default:
		return nil, &dragoman.APIError{
			Class: dragoman.ErrorBadRequest, Status: http.StatusUnsupportedMediaType, Message: fmt.Sprintf("unsupported Content-Encoding %.40q: use gzip or no encoding", how),
		}
	}
}

// AsRequestError returns err as an error of the client's request. If err is a
// [dragoman.DecodeError], its path becomes the parameter.
func AsRequestError(err error) *dragoman.APIError {
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

// Decode decodes the request of a call. The model and the stream flag of the URL take
// precedence over the body.
func (c Call) Decode(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	if counted := wire.Of(c.Codec).Endpoint.Counted; c.Count && counted != nil {
		body = counted(body)
	}
	req, rep, err := c.Codec.DecodeRequest(body, o)
	switch {
	case errors.Is(err, dragoman.ErrTooLarge):
		return nil, rep, &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: err.Error(), Err: err}
	case err != nil:
		return nil, rep, AsRequestError(err)
	}
	if c.InURL {
		req.Model, req.Stream = c.Model, c.Stream
	}
	return req, rep, nil
}

// StreamType returns the content type of a dialect's streams.
func StreamType(codec dialect.Codec) string { return wire.Of(codec).Stream.Framing.ContentType() }

// isArray reports whether a stream of the dialect is one JSON array.
func isArray(codec dialect.Codec) bool { return wire.Of(codec).Stream.Framing == framing.JSONArray }

// RequestIDHeader returns the header in which a vendor sends the request id.
func RequestIDHeader(codec dialect.Codec) string {
	return cmp.Or(wire.Of(codec).Headers.RequestID, "X-Request-Id")
}

// SetHeader sets the headers of a response. They keep proxies from buffering a stream
// (quirk J2).
func SetHeader(h http.Header, codec dialect.Codec, contentType, id string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	h.Set(RequestIDHeader(codec), id)
}

// AsAPIError returns err as an API error.
func AsAPIError(err error) *dragoman.APIError {
	var e *dragoman.APIError
	if errors.As(err, &e) {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// Error returns the status and the body of an error in the form of a dialect, and adds
// its headers to h. In place of a stream that is a JSON array, the error is the only
// element of a list, as in Gemini responses, unless it already is a list.
func Error(h http.Header, codec dialect.Codec, e *dragoman.APIError) (status int, body []byte) {
	status, body, _ = codec.EncodeError(e)
	if isArray(codec) && jsonwire.NewReader(body).Kind() != '[' {
		body = append(append([]byte{'['}, body...), ']')
	}
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		// HTTP allows only whole seconds, and some clients fail on anything else.
		// Clients that support shorter waits read the second header.
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
		if e.RetryAfter%time.Second != 0 {
			h.Set("Retry-After-Ms", strconv.FormatInt(int64((e.RetryAfter+time.Millisecond-1)/time.Millisecond), 10))
		}
	}
	if e.Class == dragoman.ErrorQuota { // otherwise OpenAI and Anthropic clients would retry repeatedly
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

// WriteError writes an error response in the form of the dialect.
func WriteError(w http.ResponseWriter, codec dialect.Codec, err error) {
	status, body := Error(w.Header(), codec, AsAPIError(err))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
