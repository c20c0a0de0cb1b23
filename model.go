package dragoman

import (
	"context"
	"iter"
)

// Model sends requests to a model. It is safe for concurrent use.
//
// An error reported by the server, or by a proxy in front of it, is an [*APIError]. Any other error
// has another type.
type Model interface {
	// Generate returns the complete response.
	Generate(ctx context.Context, req *Request) (*Response, error)
	// Stream returns the events of the response as they arrive. The sequence can be iterated
	// once. It ends with a ResponseEnd, or its last pair has an error. Breaking out of the loop
	// cancels the request.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}
