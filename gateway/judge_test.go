package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// A judge checks every response of the gateways in these tests against the strictest clients of
// each dialect.

// option changes the settings of a world.
type option func(*world)

// unjudgedPassThrough exempts responses that are passed through from the judge, for the given
// reason: the upstream of the test does not follow its dialect. Responses of the gateway itself
// are still judged.
func unjudgedPassThrough(why string) option {
	return func(w *world) { w.passes = why }
}

// withJudge wraps a gateway with the judge.
func withJudge(t testing.TB, g http.Handler) http.Handler {
	t.Helper()
	return emitcheck.Handler(g, emitcheck.Options{Report: func(v *emitcheck.Violation) { complain(t, v) }, Document: openResponses(t)})
}

func complain(t testing.TB, v *emitcheck.Violation) { t.Errorf("%v\n%s", v, v.Body) }

// judgeOptions returns the options of the judge for a world.
func (w *world) judgeOptions(t testing.TB) emitcheck.Options {
	t.Helper()
	return emitcheck.Options{Document: openResponses(t), Report: func(v *emitcheck.Violation) {
		if w.passes != "" && w.wasPassedThrough(v) {
			t.Logf("passed on, because %s: %v", w.passes, v)
			return
		}
		complain(t, v)
	}}
}

// wasPassedThrough reports whether, according to the log, a response was passed through.
func (w *world) wasPassedThrough(v *emitcheck.Violation) bool {
	codec, _ := dialects.Named(v.Dialect)
	id := `"id":"` + v.Header.Get(serving.RequestIDHeader(codec)) + `"`
	for line := range strings.Lines(w.logged()) {
		if strings.Contains(line, id) && strings.Contains(line, `"msg":"request"`) {
			return strings.Contains(line, `"transparent":true`)
		}
	}
	return false
}

// judgedURL returns the URL of a judge in front of a gateway that listens at address.
func (w *world) judgedURL(t testing.TB, address string) string {
	t.Helper()
	s := httptest.NewServer(emitcheck.Proxy(&url.URL{Scheme: "http", Host: address}, w.judgeOptions(t)))
	t.Cleanup(s.Close)
	return s.URL
}

var document struct {
	once sync.Once
	doc  *emitcheck.Document
}

// openResponses returns the document that responses are checked against; nil if it is not
// available.
func openResponses(t testing.TB) *emitcheck.Document {
	document.once.Do(func() { document.doc = emitcheck.OpenResponses(t) })
	return document.doc
}

func TestChatStreamUsageOnlyOnRequest(t *testing.T) {
	w := newWorld(t, "")
	for more, body := range map[string]bool{``: false, `,"stream_options":{"include_usage":false}`: false, `,"stream_options":{"include_usage":true}`: true} {
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"chat/sim/echo","stream":true,"messages":[{"role":"user","content":"hi"}]`+more+`}`)
		if status != http.StatusOK || strings.Contains(text, `"choices":[]`) != body || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("%q: %d %s", more, status, text)
		}
		w.wantLog(t, `"output_tokens":`) // counted nevertheless
	}
}

func TestQuirkC23_PassedResponsesStreamKeepsItsMarker(t *testing.T) {
	w := newWorld(t, "gateway:\n  routes: {m: {to: responses/sim/echo, repair: always}}\n")
	status, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"m","stream":true,"input":"hi"}`)
	if status != http.StatusOK || strings.Count(text, "data: [DONE]\n\n") != 1 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d %s", status, text)
	}
}
