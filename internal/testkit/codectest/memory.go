package codectest

import (
	"errors"
	"runtime"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// FeedEvents feeds a decoder up to n events, until one is refused. It returns the number of
// reported losses and the bytes that the decoder keeps.
func FeedEvents(dec dialect.StreamDecoder, n int, event func(i int) []byte) (losses int, kept int64, err error) {
	before := heap()
	for i := 0; i < n && err == nil; i++ {
		err = dec.Feed(event(i), func(dragoman.Event) error { return nil })
	}
	kept = int64(heap()) - int64(before)
	return len(dec.Report().Losses), kept, err
}

// CheckBounded feeds a decoder the start of a stream and then many generated events, many times
// the limit of what a stream may keep. If leaves is true, each event adds state, and the
// decoder must end with [dragoman.ErrTooLarge]. Otherwise neither its memory nor its
// report may grow.
func CheckBounded(t *testing.T, c dialect.Codec, opening []byte, event func(i int) []byte, leaves bool) {
	t.Helper()
	const limit, events, lines = 1 << 14, 30_000, 80
	dec := c.NewStreamDecoder(dialect.DecodeOptions{MaxBytes: limit})
	ignore := func(dragoman.Event) error { return nil }
	if err := dec.Feed(opening, ignore); err != nil {
		t.Fatal(err)
	}
	fed := 0
	lost, held, err := FeedEvents(dec, events, func(i int) []byte {
		ev := event(i)
		fed += len(ev)
		return ev
	})
	if err != nil && !errors.Is(err, dragoman.ErrTooLarge) || leaves != (err != nil) {
		t.Errorf("after %d bytes: %v", fed, err)
	}
	if held > 20*limit || lost > lines {
		t.Errorf("the decoder keeps %d bytes and %d losses of %d bytes", held, lost, fed)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
