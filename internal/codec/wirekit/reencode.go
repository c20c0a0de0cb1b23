package wirekit

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
)

type reencodeKey struct{}

// WithReencode says that the response to the request of ctx will be re-encoded in dialect
// d. A provider whose model answers in another dialect then leaves native forms out. One
// whose model answers in d passes on opaque chunks.
func WithReencode(ctx context.Context, d dragoman.Dialect) context.Context {
	return context.WithValue(ctx, reencodeKey{}, d)
}

// ReencodedIn returns the dialect of [WithReencode], or "" if it is unknown.
func ReencodedIn(ctx context.Context) dragoman.Dialect {
	d, _ := ctx.Value(reencodeKey{}).(dragoman.Dialect)
	return d
}
