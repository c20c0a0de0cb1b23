package wirekit_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Data that was joined from several lines has no offset of its own, however the buffers
// lie: the offset is then the offset of the event.
func TestErrorInJoinedDataHasEventOffset(t *testing.T) {
	raw := []byte("data:x\ndata: \n\n")
	for spare := range 64 {
		data := append(make([]byte, 0, spare+1), 'x')
		for joined, want := range map[bool]int64{true: 0, false: 5 + 2} {
			ev := sse.Event{Data: data, Joined: joined, HasData: true, Raw: raw}
			if !joined {
				ev.Data = raw[5:6]
			}
			var p wirekit.StreamPlace
			p.Enter(ev)
			var at *dragoman.DecodeError
			if err := p.Error("d", ev, &jsonwire.Error{Offset: 2, Err: errors.New("x")}); !errors.As(err, &at) || at.Offset != want {
				t.Errorf("joined %v, spare %d: byte %d", joined, spare, at.Offset)
			}
		}
	}
}
