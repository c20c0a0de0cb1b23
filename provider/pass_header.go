package provider

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// Client headers are forwarded only if they are in one of these lists. Not forwarded are
// credentials, cookies, headers of the connection or of proxies, and baggage, which identifies
// its owner (quirk J16).

// forwardedHeaders lists the headers that every server may get: idempotency keys and trace headers.
var forwardedHeaders = []string{"Idempotency-Key", "X-Idempotency-Key", "Traceparent", "Tracestate"}

// forwardHeaders adds the headers of the request that is passed through, unless the client sets them
// itself. The dialect adds more names to the list above.
func (x *exchange) forwardHeaders(h http.Header) {
	if len(x.clientHeader) == 0 {
		return
	}
	for _, name := range slices.Concat(forwardedHeaders, x.wire.Headers.Forwarded) {
		values := x.clientHeader[name]
		if len(values) == 0 || slices.ContainsFunc(values, hasControlChars) {
			continue
		}
		switch own, set := h[name]; {
		case !set:
			h[name] = slices.Clone(values)
		case strings.HasSuffix(name, "-Beta"):
			h[name] = []string{strings.Join(slices.Concat(own, values), ",")}
		}
	}
}

// responseHeaders returns the response headers that clients get, and prefixes of more. They
// are those of all vendors: a server may relay the response of another one. Headers about
// the account are not among them.
var responseHeaders = sync.OnceValues(func() (names, prefixes []string) {
	names = []string{
		"Content-Type", "Retry-After", "Retry-After-Ms", "X-Request-Id", "X-Should-Retry",
		"Content-Encoding", // for a body that could not be unpacked
	}
	prefixes = []string{"Ratelimit-", "X-Ratelimit-"}
	for _, codec := range dialects.All() {
		h := &wire.Of(codec).Headers
		names, prefixes = append(names, h.Shown...), append(prefixes, h.ShownPrefixes...)
	}
	return names, prefixes
})

// passedHeaders returns the response headers to pass through. It removes a header that repeats a
// credential.
func (x *exchange) passedHeaders(h http.Header) http.Header {
	out := make(http.Header, 8)
	for name, values := range h {
		if !isPassedHeader(name) || slices.ContainsFunc(values, x.secrets.contains) {
			continue
		}
		out[name] = values
	}
	return out
}

func isPassedHeader(name string) bool {
	names, prefixes := responseHeaders()
	return slices.Contains(names, name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
