package wirekit

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
)

type reencodeKey struct{}

// WithReencode returns a context which announces that the response to its request will
// be re-encoded in dialect d. A provider whose model uses another dialect then leaves
// out native forms. A provider whose model uses d passes through opaque chunks.
func WithReencode(ctx context.Context, d dragoman.Dialect) context.Context {
	return context.WithValue(ctx, reencodeKey{}, d)
}

// ReencodedIn returns the dialect of [WithReencode], or "" if it is unknown.
func ReencodedIn(ctx context.Context) dragoman.Dialect {
	d, _ := ctx.Value(reencodeKey{}).(dragoman.Dialect)
	return d
}
