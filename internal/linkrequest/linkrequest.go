// Package linkrequest carries, in a context, a function that builds the request for each
// model of a chain. The models of a chain may need different requests: each has its own
// native history, and not all accept an output schema.
package linkrequest

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
)

// Build returns the request for one model of a chain.
type Build func(ctx context.Context, model dragoman.Model) (*dragoman.Request, error)

type key struct{}

type builder struct {
	request *dragoman.Request
	build   Build
}

// With returns a context in which a chain that is called with req sends each model the
// request that build returns. Other requests with the context do not change.
func With(ctx context.Context, req *dragoman.Request, build Build) context.Context {
	return context.WithValue(ctx, key{}, builder{req, build})
}

// For returns the request for one model of a chain that was called with req.
func For(ctx context.Context, req *dragoman.Request, model dragoman.Model) (*dragoman.Request, error) {
	if b, ok := ctx.Value(key{}).(builder); ok && b.request == req {
		return b.build(ctx, model)
	}
	return req, nil
}
