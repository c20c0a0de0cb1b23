package wirekit

import "context"

type chunksKey struct{}

// WithChunks returns a context whose streams carry the native bytes of their events,
// like the streams of a provider.Client with Chunks set.
func WithChunks(ctx context.Context) context.Context {
	return context.WithValue(ctx, chunksKey{}, true)
}

// ChunksIn reports whether [WithChunks] made the context.
func ChunksIn(ctx context.Context) bool {
	on, _ := ctx.Value(chunksKey{}).(bool)
	return on
}
