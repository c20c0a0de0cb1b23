package gateway

import (
	"net/http"
	"strings"
)

const (
	// setUpstreamHeader is the response header with the name of the upstream that responded,
	// as in the config: "openai/gpt-5". It is missing if no upstream was called.
	upstreamHeader = "X-Dragoman-Upstream"
	// failedOverHeader is the response header with the names of the upstreams that failed
	// before that one, in order, separated by commas.
	failedOverHeader = "X-Dragoman-Failed-Over"
)

// noteCall records that a request is sent to the current upstream.
func (x *exchange) noteCall() {
	x.calledUpstream, x.failedBefore = x.entry.upstream, len(x.entry.failures)
}

// noteModelCall records a call of a model that is not a [provider.Client]. A Client reports
// its calls itself.
func (x *exchange) noteModelCall() {
	if x.up.client == nil {
		x.noteCall()
	}
}

// setUpstreamHeader sets headers with the last upstream that was called and the upstreams that
// failed before it, unless the key hides them. The prefix is empty, or http.TrailerPrefix
// for trailers.
func (x *exchange) setUpstreamHeader(h http.Header, prefix string) {
	if x.hideUpstream || x.calledUpstream == "" {
		return
	}
	h.Set(prefix+upstreamHeader, headerName(x.calledUpstream))
	var failed []string
	size := 0
	for _, f := range x.entry.failures[:x.failedBefore] {
		if name := headerName(f.upstream); f.upstream != x.calledUpstream && size+len(name) <= maxSummary {
			failed = append(failed, name)
			size += len(name)
		}
	}
	if len(failed) > 0 {
		h.Set(prefix+failedOverHeader, strings.Join(failed, ", "))
	}
}

// headerName makes the name of an upstream safe for a header: a part of it may come from
// the client.
func headerName(name string) string { return strings.ReplaceAll(headerText(truncate(name)), ",", "_") }
