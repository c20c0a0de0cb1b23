package codectest

import (
	"errors"
	"runtime"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Bounded feeds a decoder the opening of a stream and then the i-th event again
// and again, many times the bound of what a stream may keep. An event that leaves
// something behind must end in [dragoman.ErrTooLarge]; any other must leave
// neither memory nor lines of the report.
func Bounded(t *testing.T, c dialect.Codec, opening []byte, event func(i int) []byte, leaves bool) {
	t.Helper()
	const limit, events, lines = 1 << 14, 30_000, 80
	dec := c.NewStreamDecoder(dialect.DecodeOptions{MaxBytes: limit})
	ignore := func(dragoman.Event) error { return nil }
	if err := dec.Feed(opening, ignore); err != nil {
		t.Fatal(err)
	}
	before := heap()
	var err error
	fed := 0
	for i := 0; i < events && err == nil; i++ {
		ev := event(i)
		fed += len(ev)
		err = dec.Feed(ev, ignore)
	}
	held := int64(heap()) - int64(before)
	rep := dec.Report()
	runtime.KeepAlive(dec)
	if err != nil && !errors.Is(err, dragoman.ErrTooLarge) || leaves != (err != nil) {
		t.Errorf("after %d bytes: %v", fed, err)
	}
	if held > 20*limit || len(rep.Losses) > lines {
		t.Errorf("%d bytes and %d lines are held of %d bytes", held, len(rep.Losses), fed)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
