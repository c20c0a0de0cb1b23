package stream_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// Fields that no event can carry before the response ends are a reported loss.
func TestFieldsWaitingAtTheEndAreReported(t *testing.T) {
	rep := new(dragoman.Report)
	held := stream.Held{Dialect: dialectname.OpenAIChat, Rep: rep}
	for _, value := range []string{"1", "2", "3"} {
		held.Field("", []byte("zz"), []byte(value))
		if err := held.Release(nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	emit := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			got = append(got, string(ev.Extra.Fields[0].Value))
		case *dragoman.ResponseEnd:
			got = append(got, string(ev.Extra.Fields[0].Value))
		}
		return nil
	}
	_ = held.Hold(&dragoman.PartStart{Part: &dragoman.Text{}})
	_ = held.Hold(&dragoman.ResponseEnd{})
	if err := held.Release(nil, nil, emit); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "1" || got[1] != "2" || len(rep.Losses) != 1 {
		t.Errorf("events carry %q, losses %v; want 1, 2 and one loss", got, rep.Losses)
	}
}
