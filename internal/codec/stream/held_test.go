package stream_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

func TestHeldEventsFollowTheirChunk(t *testing.T) {
	var h stream.Held
	a, b := &dragoman.ResponseStart{}, &dragoman.ResponseEnd{}
	chunk := &dragoman.Chunk{Raw: []byte("x")}
	var got []dragoman.Event
	emit := func(ev dragoman.Event) error { got = append(got, ev); return nil }
	_, _ = h.Hold(a), h.Hold(b)
	if err := h.Release(chunk, nil, emit); err != nil || len(got) != 3 || got[0] != dragoman.Event(chunk) || got[1] != dragoman.Event(a) || got[2] != dragoman.Event(b) {
		t.Errorf("%v %v", err, got)
	}
	if err := h.Release(nil, nil, emit); err != nil || len(got) != 3 {
		t.Errorf("handed out twice: %v", got)
	}
}

func TestReleaseStopsAtFirstError(t *testing.T) {
	full := errors.New("full")
	for refused := range 3 {
		var h stream.Held
		_, _ = h.Hold(&dragoman.ResponseStart{}), h.Hold(&dragoman.ResponseEnd{})
		n := 0
		err := h.Release(&dragoman.Chunk{}, nil, func(dragoman.Event) error {
			if n++; n > refused {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || n != refused+1 {
			t.Errorf("%v after %d events, want %d", err, n, refused+1)
		}
		if err := h.Release(nil, nil, func(dragoman.Event) error { return full }); err != nil {
			t.Error("events are left")
		}
	}
}
