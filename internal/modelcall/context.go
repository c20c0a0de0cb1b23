package modelcall

import (
	"context"
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/provider/extension"
)

type betasKey struct{}

// WithBetas returns a context whose requests carry the beta headers in h
// (Anthropic-Beta, OpenAI-Beta) in addition to those of the client. Each header is sent
// only to servers of its dialect. Proxies that re-encode requests need it, because
// servers refuse beta fields without the header.
func WithBetas(ctx context.Context, h http.Header) context.Context {
	betas := http.Header{}
	for name, values := range h {
		if strings.HasSuffix(name, "-Beta") {
			betas[name] = values
		}
	}
	return context.WithValue(ctx, betasKey{}, betas)
}

// Betas returns the headers of WithBetas, or nil.
func Betas(ctx context.Context) http.Header {
	betas, _ := ctx.Value(betasKey{}).(http.Header)
	return betas
}

type relayKey struct{}

// Relay configures streams whose events are relayed to a client. A relayed stream that
// fails before it has content yields no events, only the error, because the first event
// begins the response.
type Relay struct {
	// Waiting is called, on the goroutine that consumes the events, each time before
	// the stream reads on and may wait for its server. Events that arrived together can
	// then be sent together.
	Waiting func()
	// RefuseEmpty makes a response without content an error, unless the response
	// explains why. It is for callers that can call another model.
	RefuseEmpty bool
}

// WithRelay returns a context for streams that are relayed.
func WithRelay(ctx context.Context, r *Relay) context.Context {
	return context.WithValue(ctx, relayKey{}, r)
}

// RelayOf returns the value of [WithRelay], or nil.
func RelayOf(ctx context.Context) *Relay {
	r, _ := ctx.Value(relayKey{}).(*Relay)
	return r
}

type positionKey struct{}

type patchesKey struct{}

// WithPosition returns a context whose requests have the position p.
func WithPosition(ctx context.Context, p extension.Position) context.Context {
	return context.WithValue(ctx, positionKey{}, p)
}

// Position returns the position of the requests under ctx.
func Position(ctx context.Context) extension.Position {
	p, _ := ctx.Value(positionKey{}).(extension.Position)
	return p
}

// WithPatches returns a context in which f is called with the patches of requests, in
// addition to the provider's own receiver. f runs on the goroutine that reads the
// response. A stream sends an empty dragoman.Chunk after the patches of a chunk, so
// that the caller can show them before the next event.
func WithPatches(ctx context.Context, f func(extension.Patch)) context.Context {
	return context.WithValue(ctx, patchesKey{}, f)
}

// Patches returns the receiver of [WithPatches], or nil.
func Patches(ctx context.Context) func(extension.Patch) {
	f, _ := ctx.Value(patchesKey{}).(func(extension.Patch))
	return f
}
