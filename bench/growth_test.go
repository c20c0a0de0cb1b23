package bench

import (
	"runtime"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// allocated is how many bytes decoding a stream allocates.
func allocated(t *testing.T, c dialect.Codec, size, fragment int) float64 {
	t.Helper()
	body := benchdata.Stream(c.Dialect(), []string{benchdata.Arguments(size)}, fragment)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := ours(c, body, lean); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// TestBytesGrowLinearly: 1, 2 and 4 MB are powers of two, as capacities of
// buffers are; the promise about them must not be an accident of that.
func TestBytesGrowLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes hundreds of megabytes")
	}
	for _, c := range contests {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{700_000, 1<<20 + 5, 1_500_000} {
				const fragment = 13
				ratio := allocated(t, c.codec, 2*size, fragment) / allocated(t, c.codec, size, fragment)
				t.Logf("%d to %d bytes: %.3f", size, 2*size, ratio)
				if ratio > maxBytes {
					t.Errorf("%d to %d bytes: allocated bytes grow %.3f times, want at most %.1f", size, 2*size, ratio, maxBytes)
				}
			}
		})
	}
}
