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

// Behind a chunk that says no more than the events so far, the events go on in order. Those
// that say the end of what has no event yet, as that is known later, are said again.
func TestAStreamGoesOnInOrderWhereItsChunksAreNoLongerPassedOn(t *testing.T) {
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
	for _, last := range []string{
		"response.created", "response.in_progress", "response.content_part.added", "response.output_text.delta", "response.output_item.done",
		`response.output_item.added","sequence_number":8`, "response.function_call_arguments.delta",
	} {
		again := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "b", Model: "m"})
		var out []byte
		stopped := false
		for ev, err := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(native)) {
			if c, ok := ev.(*dragoman.Chunk); ok {
				if stopped {
					c.Raw = nil
				}
				stopped = stopped || bytes.Contains(c.Raw, []byte(`"type":"`+last))
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
		if err != nil || !stopped {
			t.Errorf("behind %s: %v: %s", last, err, out)
		}
	}
}
