package gateway

import (
	"net/http"
	"strings"
)

const (
	// UpstreamHeader is the response header that names the upstream which answered, as the
	// config has it: "openai/gpt-5". It is missing if no upstream was asked.
	UpstreamHeader = "X-Dragoman-Upstream"
	// FailedOverHeader is the response header that names the upstreams which were asked
	// before that one and failed, in their order, with commas between them.
	FailedOverHeader = "X-Dragoman-Failed-Over"
)

// upstreamHeader names the upstream that answers and those that failed before it, unless the
// key hides them. The prefix is empty, or http.TrailerPrefix for trailers.
func (x *exchange) upstreamHeader(h http.Header, prefix string) {
	if x.hideUpstream || x.entry.upstream == "" {
		return
	}
	h.Set(prefix+UpstreamHeader, headerName(x.entry.upstream))
	var failed []string
	size := 0
	for _, f := range x.entry.failures {
		if name := headerName(f.upstream); f.upstream != x.entry.upstream && size+len(name) <= maxSummary {
			failed = append(failed, name)
			size += len(name)
		}
	}
	if len(failed) > 0 {
		h.Set(prefix+FailedOverHeader, strings.Join(failed, ", "))
	}
}

// headerName is the name of an upstream as a header can carry it. A client may have made
// up a part of it.
func headerName(name string) string { return strings.ReplaceAll(printable(bounded(name)), ",", "_") }
