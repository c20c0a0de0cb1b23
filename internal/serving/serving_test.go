package serving_test

import (
	"net/http"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/serving"
)

func TestG2_AWaitIsToldInWholeSecondsWhichEveryClientReads(t *testing.T) {
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
