// Package passthrough has the requests and responses of provider.Client.Pass, which forwards
// a request that is in the dialect of its model already. Only the gateway calls it.
package passthrough

import (
	"io"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
)

// Request is a request that is in the client's dialect already.
type Request struct {
	// Model is the one that is asked, where the client has none of its own: some
	// dialects name it in the URL. The Body is left to name the right one.
	Model string
	// Body is sent as it is. It must not be changed before that of the answer is
	// closed.
	Body []byte
	// Stream says that the Body asks for a stream.
	Stream bool
	// Kept is what the server keeps that the request is about, where it asks no model: an id,
	// or what is below one ("resp_1/cancel"), of letters, digits, - and _. Method is how it
	// is asked for; empty means POST.
	Kept, Method string
	// Count asks how many tokens the Body has, and for no answer, where the dialect has a way
	// to: Anthropic, Gemini and OpenAI's Responses do.
	Count bool
	// Header is that of who asks, with names as net/http writes them. Of it is sent
	// what means something to the dialect and is no credential; what the client sets
	// itself stays, and betas of both are sent (quirk J16).
	Header http.Header
	// Query is that of the URL of who asks, as it stands there. Of it is sent what is no
	// credential by its name, does not choose the form of the answer (alt, fields), and is
	// not in the client's own URL.
	Query string
}

// Response is the answer to a [Request].
type Response struct {
	Status int
	// Header is what of the server's is of use to who asked: of what type the body
	// is, limits, waits and ids. How the body came is not, as it is unpacked.
	Header http.Header
	// Body must be read by one goroutine and closed by the same; to interrupt it,
	// cancel the context. A pause that is too long, and a connection that breaks,
	// are errors of its Read as they are of Stream.
	//
	// A good answer comes through as the server sends it. Another one is there as a
	// whole, with [redacted] where the server repeats a credential; one that is too
	// long or did not come whole is told anew in the dialect's words.
	Body io.ReadCloser
	// Err is what an answer means whose Status is not 2xx; nil for one that is.
	Err *dragoman.APIError

	// Redactor replaces the credentials in a part of a good Body; nil for another one.
	Redactor func(text []byte) []byte
}

// Redact is a part of the Body with [redacted] where the server repeats a credential,
// for who finds an error in a good answer. What has none is returned itself.
func (r *Response) Redact(text []byte) []byte {
	if r.Redactor == nil {
		return text
	}
	return r.Redactor(text)
}
