package serving_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/serving"
)

func TestG2_RetryAfterIsInWholeSeconds(t *testing.T) {
	for wait, want := range map[time.Duration][2]string{
		time.Second: {"1", ""}, 1500 * time.Millisecond: {"2", "1500"}, time.Microsecond: {"1", "1"}, 0: {"", ""},
	} {
		h := http.Header{}
		serving.Error(h, openaichat.Codec{}, &dragoman.APIError{Class: dragoman.ErrorRateLimit, RetryAfter: wait})
		if got := [2]string{h.Get("Retry-After"), h.Get("Retry-After-Ms")}; got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
}

// In place of an array of chunks, an error is the only element of an array.
func TestQuirkC29_ErrorInPlaceOfArrayIsAList(t *testing.T) {
	const object = `{"error":{"code":429,"message":"busy","status":"RESOURCE_EXHAUSTED"}}`
	own := func(body string) *dragoman.APIError { return gemini.Codec{}.DecodeError(429, nil, []byte(body)) }
	mux := http.NewServeMux()
	var told *dragoman.APIError
	serving.Handle(mux, func(w http.ResponseWriter, _ *http.Request, c serving.Call) { serving.WriteError(w, c.Codec, told) }, serving.Gateway()...)
	for _, tc := range []struct {
		about, url string
		told       *dragoman.APIError
		want       string
	}{
		{"a stream that is an array", ":streamGenerateContent", &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "busy"}, "[" + object + "]"},
		{"an array stream, upstream error as an object", ":streamGenerateContent", own(object), "[" + object + "]"},
		{"an array stream, upstream error as a list", ":streamGenerateContent", own("[" + object + "]"), "[" + object + "]"},
		{"a stream of events", ":streamGenerateContent?alt=sse", &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "busy"}, object},
		{"a single response", ":generateContent", &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "busy"}, object},
		{"a count", ":countTokens", &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "busy"}, object},
	} {
		told = tc.told
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1beta/models/m"+tc.url, strings.NewReader("{}")))
		if w.Body.String() != tc.want || w.Code != 429 {
			t.Errorf("%s: %d %s", tc.about, w.Code, w.Body)
		}
		if e := own(w.Body.String()); e.Class != dragoman.ErrorRateLimit || e.Message != "busy" || e.Status != 429 {
			t.Errorf("%s is read as %+v", tc.about, e)
		}
	}
}
