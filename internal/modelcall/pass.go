package modelcall

import (
	"io"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
)

// PassRequest is a request in the dialect of the provider's client.
type PassRequest struct {
	// Model is the model to call if the client has none of its own: some dialects name it in the
	// URL. The model in Body must be the right one already.
	Model string
	// Body is sent unchanged. It must not be changed before the body of the response is closed.
	Body []byte
	// Stream reports that Body requests a stream.
	Stream bool
	// StoredPath is set for a request about a stored object, which calls no model: the id, or a
	// path below it ("resp_1/cancel"), of letters, digits, - and _. Method is its HTTP method;
	// empty means POST.
	StoredPath, Method string
	// Count requests the number of input tokens of Body instead of a response. The Anthropic,
	// Gemini and OpenAI Responses dialects support it.
	Count bool
	// Header has the headers of the caller's request, by canonical name. Those that the dialect
	// defines and that are not credentials are sent. Headers that the client sets itself take
	// precedence; beta headers of both are joined (quirk J16).
	Header http.Header
	// Query is the raw query of the caller's URL. Parameters are sent unless their name suggests a
	// credential, they choose the form of the response (alt, fields), or the client's own URL has
	// them.
	Query string
}

// PassResponse is the response to a [Request].
type PassResponse struct {
	Status int
	// Header has the response headers that are useful to the caller: content type, limits, waits
	// and ids. The body is already decompressed.
	Header http.Header
	// Body must be read and closed by one goroutine; to interrupt a read, cancel the context. Read
	// returns an error if the server pauses for too long or the connection breaks, like the events
	// of Stream.
	//
	// The body of a successful response has the bytes of the server. The body of an error is
	// complete, with [redacted] in place of credentials that the server repeats. An error that is
	// too long or incomplete is re-encoded in the dialect.
	Body io.ReadCloser
	// Err is the decoded error of a response whose Status is not 2xx; otherwise nil.
	Err *dragoman.APIError

	// Redactor replaces credentials in a part of the body of a successful response. It is nil for
	// an error.
	Redactor func(text []byte) []byte
}

// Redact returns a part of Body with [redacted] in place of credentials that the server repeats.
// Use it on errors within a successful response. It returns text itself if there are none.
func (r *PassResponse) Redact(text []byte) []byte {
	if r.Redactor == nil {
		return text
	}
	return r.Redactor(text)
}
