package dragoman

import (
	"context"
	"iter"
)

// Model answers requests. It is safe for concurrent use.
//
// An error is an [*APIError] where the server, or who stands in for it, said it,
// and a typed error otherwise.
type Model interface {
	// Generate returns the whole answer.
	Generate(ctx context.Context, req *Request) (*Response, error)
	// Stream returns the answer as it comes. The sequence can be ranged over once;
	// it ends with a ResponseEnd, or its last pair has an error. Who leaves the
	// loop early cancels the request.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}
