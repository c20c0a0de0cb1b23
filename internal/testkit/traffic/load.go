package traffic

import (
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// Exchange is one recorded HTTP exchange.
type Exchange struct{ testkit.Exchange }

var loaded sync.Map // file name to []Exchange

// Recorded returns every exchange of an API, or skips the test.
func Recorded(t testing.TB, file string) []Exchange {
	t.Helper()
	if xs, ok := loaded.Load(file); ok {
		return xs.([]Exchange)
	}
	var xs []Exchange
	for _, x := range testkit.Recordings(t, file) {
		xs = append(xs, Exchange{x})
	}
	loaded.Store(file, xs)
	return xs
}
