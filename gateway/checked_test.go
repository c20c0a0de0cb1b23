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

// Every gateway of these tests stands behind a judge, who holds all that it emits
// against what the strictest clients of each dialect want.

// option is how a world differs from others.
type option func(*world)

// passesOn says why what a server emits, and what is passed on byte for byte, is not
// what a server of the dialect emits. What the gateway says itself is judged all the
// same.
func passesOn(why string) option {
	return func(w *world) { w.passes = why }
}

// judged is a gateway with the judge before it.
func judged(t testing.TB, g http.Handler) http.Handler {
	t.Helper()
	return emitcheck.Handler(g, emitcheck.Options{Report: func(v *emitcheck.Violation) { complain(t, v) }, Document: openResponses(t)})
}

func complain(t testing.TB, v *emitcheck.Violation) { t.Errorf("%v\n%s", v, v.Body) }

// judge is that of a world.
func (w *world) judge(t testing.TB) emitcheck.Options {
	t.Helper()
	return emitcheck.Options{Document: openResponses(t), Report: func(v *emitcheck.Violation) {
		if w.passes != "" && w.passedOn(v) {
			t.Logf("passed on, because %s: %v", w.passes, v)
			return
		}
		complain(t, v)
	}}
}

// forwardedHeader reports whether an answer was passed on byte for byte, as the log says.
func (w *world) passedOn(v *emitcheck.Violation) bool {
	codec, _ := dialects.Named(v.Dialect)
	id := `"id":"` + v.Header.Get(serving.RequestIDHeader(codec)) + `"`
	for line := range strings.Lines(w.logged()) {
		if strings.Contains(line, id) && strings.Contains(line, `"msg":"request"`) {
			return strings.Contains(line, `"transparent":true`)
		}
	}
	return false
}

// behindJudge is where a gateway is reached that serves a listener itself.
func (w *world) behindJudge(t testing.TB, address string) string {
	t.Helper()
	s := httptest.NewServer(emitcheck.Proxy(&url.URL{Scheme: "http", Host: address}, w.judge(t)))
	t.Cleanup(s.Close)
	return s.URL
}

var document struct {
	once sync.Once
	doc  *emitcheck.Document
}

// openResponses is the document that responses are held against, where it is there.
func openResponses(t testing.TB) *emitcheck.Document {
	document.once.Do(func() { document.doc = emitcheck.OpenResponses(t) })
	return document.doc
}

func TestChatStreamUsageOnlyOnRequest(t *testing.T) {
	w := newWorld(t, "")
	for more, told := range map[string]bool{``: false, `,"stream_options":{"include_usage":false}`: false, `,"stream_options":{"include_usage":true}`: true} {
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"chat/sim/echo","stream":true,"messages":[{"role":"user","content":"hi"}]`+more+`}`)
		if status != http.StatusOK || strings.Contains(text, `"choices":[]`) != told || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("%q: %d %s", more, status, text)
		}
		w.wantLog(t, `"output_tokens":`) // which is counted all the same
	}
}

func TestQuirkC23_PassedResponsesStreamKeepsItsMarker(t *testing.T) {
	w := newWorld(t, "gateway:\n  routes: {m: {to: responses/sim/echo, repair: always}}\n")
	status, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"m","stream":true,"input":"hi"}`)
	if status != http.StatusOK || strings.Count(text, "data: [DONE]\n\n") != 1 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d %s", status, text)
	}
}
