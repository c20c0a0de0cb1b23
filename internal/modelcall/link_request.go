package modelcall

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
)

// LinkRequest returns the request for one model of a chain.
type LinkRequest func(ctx context.Context, model dragoman.Model) (*dragoman.Request, error)

type linkRequestKey struct{}

type linkRequestBuilder struct {
	request *dragoman.Request
	build   LinkRequest
}

// WithLinkRequest returns a context in which a chain that is called with req sends each model the
// request that build returns. Other requests with the context do not change.
func WithLinkRequest(ctx context.Context, req *dragoman.Request, build LinkRequest) context.Context {
	return context.WithValue(ctx, linkRequestKey{}, linkRequestBuilder{req, build})
}

// RequestFor returns the request for one model of a chain that was called with req.
func RequestFor(ctx context.Context, req *dragoman.Request, model dragoman.Model) (*dragoman.Request, error) {
	if b, ok := ctx.Value(linkRequestKey{}).(linkRequestBuilder); ok && b.request == req {
		return b.build(ctx, model)
	}
	return req, nil
}
