package provider

import (
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

const anthropicVersion = "Anthropic-Version"

// Headers of who asks are sent on where they are in one of these lists, and no
// others are: not credentials, nor cookies, nor what belongs to a connection or to
// the proxies on the way, nor baggage, which tells of its owner (quirk J16).

// forwarded are the headers that every server may get: keys that make asking twice
// the same as asking once, and the trace that a request belongs to.
var forwarded = []string{"Idempotency-Key", "X-Idempotency-Key", "Traceparent", "Tracestate"}

// forwardedOf are those that mean something in a dialect. Where one names what a
// credential pays for, it holds only as long as the client does not say it.
func forwardedOf(d dragoman.Dialect) []string {
	switch d {
	case dragoman.Anthropic:
		return []string{"Anthropic-Beta", anthropicVersion}
	case dragoman.OpenAIChat, dragoman.OpenAIResponses:
		return []string{"Openai-Beta", "Openai-Organization", "Openai-Project"}
	case dragoman.Gemini:
		return []string{"X-Goog-Api-Client", "X-Goog-Fieldmask", "X-Goog-Request-Params", "X-Goog-Request-Reason", "X-Goog-User-Project", "X-Server-Timeout"}
	default:
		return nil
	}
}

// forward puts the headers of who asks on a request that has those of the client.
func (x *exchange) forward(h http.Header) {
	if len(x.passed) == 0 {
		return
	}
	for _, name := range slices.Concat(forwarded, forwardedOf(x.limits.Dialect)) {
		values := x.passed[name]
		if len(values) == 0 || slices.ContainsFunc(values, unprintable) {
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

// shownNames are the headers of an answer that are of use to who asked, and
// shownBeginnings how the names of others begin. What tells of the account that was
// asked is not among them.
var (
	shownNames = []string{
		"Content-Type", "Openai-Processing-Ms", "Openai-Version", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Amzn-Errortype", "X-Amzn-Requestid",
		"X-Request-Id", "X-Should-Retry",
		"Content-Encoding", // of what could not be unpacked
	}
	shownBeginnings = []string{"Anthropic-Ratelimit-", "Ratelimit-", "X-Amzn-Bedrock-", "X-Ratelimit-"}
)

// shown are the headers of an answer that are passed on. One that repeats a
// credential is not.
func (x *exchange) shown(h http.Header) http.Header {
	out := make(http.Header, 8)
	for name, values := range h {
		if !isShown(name) || slices.ContainsFunc(values, x.secrets.in) {
			continue
		}
		out[name] = values
	}
	return out
}

func isShown(name string) bool {
	return slices.Contains(shownNames, name) || slices.ContainsFunc(shownBeginnings, func(b string) bool { return strings.HasPrefix(name, b) })
}
