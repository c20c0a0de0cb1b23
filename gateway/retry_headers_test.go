package gateway_test

import (
	"net/http"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// allPairs returns every client with every upstream of a rig.
func allPairs() (out []pair) {
	for _, codec := range clientDialects {
		for _, provider := range []string{"openai", "chat", "responses", "anthropic", "gemini", "ollama", "bedrock"} {
			out = append(out, pair{codec, provider})
		}
	}
	return out
}

// Every client gets the wait of an upstream in the header that its SDK reads; Gemini clients get
// it in the body too.
func TestG2_WaitOfAnUpstreamReachesTheClient(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the start time of every bubble
	for name, tc := range map[string]struct {
		status int
		header map[string]string
		body   time.Duration
		want   string
	}{
		"seconds":                {429, map[string]string{"Retry-After": "7"}, 0, "7"},
		"seconds when too busy":  {503, map[string]string{"Retry-After": "7"}, 0, "7"},
		"milliseconds":           {429, map[string]string{"Retry-After-Ms": "6500"}, 0, "7"},
		"a date":                 {429, map[string]string{"Retry-After": begin.Add(7 * time.Second).Format(http.TimeFormat)}, 0, "7"},
		"the reset of a limit":   {429, map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "7s"}, 0, "7"},
		"the body, where it can": {429, nil, 7 * time.Second, "7"},
	} {
		for _, w := range allPairs() {
			if tc.body > 0 && (w.provider != "gemini" || w.client.Dialect() == dialectname.Gemini) { // whose clients read the body
				continue
			}
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				for k, v := range tc.header {
					rw.Header().Set(k, v)
				}
				writeError(rw, r, dragoman.APIError{Status: tc.status, Message: "later", RetryAfter: tc.body})
			}, func(r *rig) {
				for _, stream := range []bool{false, true} {
					before := r.requests.Load()
					a := r.roundTrip(w, stream)
					if r.requests.Load() != before+1 {
						r.t.Errorf("%s: the upstream was called %d times: %s", w, r.requests.Load()-before, a.body)
					}
					got := a.header.Get("Retry-After")
					if got != tc.want && !w.passes(stream) || !isStatus(a.status, tc.status) && a.status != 529 { // the Anthropic status for an overloaded server
						r.t.Errorf("%s, %s%s: %d, Retry-After %q: %s", name, w, streamed(stream), a.status, got, a.body)
					}
					for k, v := range tc.header {
						if w.passes(stream) && a.header.Get(k) != v { // the upstream's own
							r.t.Errorf("%s, %s%s: %s is %q", name, w, streamed(stream), k, a.header.Get(k))
						}
					}
					if w.client.Dialect() == dialectname.Gemini && w.provider != "gemini" {
						if e := dialect.Codec(gemini.Codec{}).DecodeError(a.status, nil, a.body); e.RetryAfter == 0 {
							r.t.Errorf("%s, %s: the body does not say how long: %s", name, w, a.body)
						}
					}
				}
			})
		}
	}
}
