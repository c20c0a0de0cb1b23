package bench

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// growthRun is the cost of decoding one stream.
type growthRun struct {
	bytes float64 // allocated bytes
	time  time.Duration
	calls []call
}

// measureGrowth decodes body once. It empties the pools first: a buffer that an
// earlier run left there would make this run look smaller than the next.
func measureGrowth(t *testing.T, c dialect.Codec, body []byte) growthRun {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC() // moves pooled buffers to the victim cache
	runtime.GC() // drops them
	runtime.ReadMemStats(&before)
	start := threadTime()
	got, err := ours(c, body, lean)
	took := threadTime() - start
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return growthRun{float64(after.TotalAlloc - before.TotalAlloc), took, got.calls}
}

// TestBytesGrowLinearly uses sizes that are not powers of two. The sizes of TestRatios, 1, 2 and 4
// MB, are powers of two like the capacities of buffers, so the result could be a coincidence.
func TestBytesGrowLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes hundreds of megabytes")
	}
	for _, c := range contests {
		t.Run(c.name, func(t *testing.T) {
			allocated := func(size int) float64 {
				body := benchdata.Stream(c.codec.Dialect(), []string{benchdata.Arguments(size)}, 13)
				least := math.Inf(1)
				for range 3 {
					least = min(least, measureGrowth(t, c.codec, body).bytes)
				}
				return least
			}
			for _, size := range []int{700_000, 1<<20 + 5, 1_500_000} {
				ratio := allocated(2*size) / allocated(size)
				t.Logf("%d to %d bytes: %.3f", size, 2*size, ratio)
				if ratio > maxBytes {
					t.Errorf("%d to %d bytes: allocated bytes grow %.3f times, want at most %.1f", size, 2*size, ratio, maxBytes)
				}
			}
		})
	}
}
