package codectest

import (
	"testing"
	"time"
)

// Linear checks that work takes time in proportion to n. Quadratic work takes sixteen
// times as long for four times as much. It measures processor time, and takes the best
// of several runs, because other work on the machine only adds.
func Linear(t testing.TB, name string, n int, work func(n int) error) {
	t.Helper()
	took := func(n int) time.Duration {
		start := CPUTime()
		if err := work(n); err != nil {
			t.Fatalf("%s: %.300v", name, err)
		}
		return CPUTime() - start
	}
	quarter, whole := took(n/4), took(n)
	for range 4 {
		if whole <= 12*quarter || whole <= time.Second {
			return
		}
		quarter, whole = min(quarter, took(n/4)), min(whole, took(n))
	}
	if whole > 12*quarter {
		t.Errorf("%s is not linear: %v, but %v for four times the input", name, quarter, whole)
	}
}
