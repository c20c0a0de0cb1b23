package wirekit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

func TestRetryAfterDoesNotOverflow(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "2", 2 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After", "10000000000", year},
		{"Retry-After", "1e400", 0},
		{"Retry-After", "+Inf", year},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "soon", 0},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := wirekit.RetryAfter(h); got != c.want {
			t.Errorf("%s: %s gives %v, want %v", c.name, c.value, got, c.want)
		}
	}
}
