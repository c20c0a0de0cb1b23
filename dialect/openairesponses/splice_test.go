package openairesponses_test

import (
	"bytes"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/emitcheck"
)

func TestAnItemThatAChunkSaidIsDoneIsNotDoneAgain(t *testing.T) {
	codec := openairesponses.Codec{}
	text, call := &dragoman.Text{Text: "x"}, &dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: `{}`}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "a", Model: "m"})
	var native []byte
	for _, ev := range []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m", Created: time.Unix(1, 0)}},
		&dragoman.PartStart{Index: 0, Part: &dragoman.Text{}}, &dragoman.PartDelta{Index: 0, Kind: dragoman.KindText, Text: "x"}, &dragoman.PartEnd{Index: 0, Part: text},
		&dragoman.PartStart{Index: 1, Part: &dragoman.ToolCall{ID: "call_1", Name: "f"}}, &dragoman.PartEnd{Index: 1, Part: call},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}},
	} {
		var err error
		if native, err = enc.Encode(native, ev); err != nil {
			t.Fatal(err)
		}
	}
	again := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "b", Model: "m"})
	var out []byte
	done := false
	for ev, err := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(native)) {
		if c, ok := ev.(*dragoman.Chunk); ok {
			if done { // no more of them are passed on
				c.Raw = nil
			}
			done = done || bytes.Contains(c.Raw, []byte("event: response.output_item.done"))
		}
		if err == nil {
			out, err = again.Encode(out, ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := again.Close(out)
	if err == nil {
		err = emitcheck.Stream(codec.Dialect(), nil, out)
	}
	if err != nil || !done {
		t.Errorf("%v: %s", err, out)
	}
}
