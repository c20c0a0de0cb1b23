package provider

import (
	"context"
	"net/http"
	"strings"
)

type betasKey struct{}

// WithBetas returns a context whose requests carry the beta headers in h (Anthropic-Beta,
// OpenAI-Beta) in addition to those of the client. Each header goes only to servers of its
// dialect. Proxies that re-encode requests need it, because servers refuse beta fields
// without the header.
func WithBetas(ctx context.Context, h http.Header) context.Context {
	betas := http.Header{}
	for name, values := range h {
		if strings.HasSuffix(name, "-Beta") {
			betas[name] = values
		}
	}
	return context.WithValue(ctx, betasKey{}, betas)
}

// betasOf returns the headers of WithBetas, or nil.
func betasOf(ctx context.Context) http.Header {
	betas, _ := ctx.Value(betasKey{}).(http.Header)
	return betas
}
