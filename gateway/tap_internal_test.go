package gateway

import (
	"bytes"
	"context"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/sim"
)

var tapped = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}}

// streamOf is an answer of the simulator's as a dialect tells it.
func streamOf(t testing.TB, codec dialect.Codec, says string) []byte {
	t.Helper()
	model, err := sim.Open("sim/echo")
	if err != nil {
		t.Fatal(err)
	}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", StreamUsage: true})
	var out []byte
	req := &dragoman.Request{Model: "sim/echo", Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: says}}}}}
	for ev, err := range model.Stream(context.Background(), req) {
		if err == nil {
			out, err = enc.Encode(out, ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err = enc.Close(out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tappedBy runs a stream through a tap in pieces of whole events, as it is read in pieces
// of a size.
func tappedBy(codec dialect.Codec, stream []byte, size int) *tap {
	t := newTap(codec)
	var held []byte
	for len(stream) > 0 {
		n := min(size, len(stream))
		held, stream = append(held, stream[:n]...), stream[n:]
		whole := t.whole(held)
		if whole > 0 {
			t.see(held[:whole])
		}
		held = bytes.Clone(held[whole:])
	}
	if t.complete(held) && len(held) > 0 {
		t.see(held)
	}
	return t
}

func TestATapKnowsTheEndAndTheCountsOfAStreamHoweverItIsCut(t *testing.T) {
	for _, codec := range tapped {
		for name, says := range map[string]string{
			"short": "hello", "long": string(bytes.Repeat([]byte("many words "), 1000)), "confusing": `"usage":{"x":1} message_stop [DONE] "finish_reason":"stop" event: message_stop`,
		} {
			t.Run(string(codec.Dialect())+" "+name, func(t *testing.T) {
				stream := streamOf(t, codec, says)
				want := dragoman.Usage{}
				for ev, err := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(stream)) {
					if err != nil {
						t.Fatal(err)
					}
					if end, ok := ev.(*dragoman.ResponseEnd); ok {
						want = end.Usage
					}
				}
				for _, size := range []int{1, 2, 3, 7, 64, 1000, 4096, len(stream)} {
					if size < 1000 && name == "long" {
						continue // it would take long, and say the same
					}
					ended, usage := tappedBy(codec, stream, size).end()
					if !ended || usage.Input != want.Input || usage.Output != want.Output {
						t.Fatalf("pieces of %d: ended %v, %v, want %v", size, ended, usage, want)
					}
				}
			})
		}
	}
}

func TestATapKnowsThatAStreamWasCutOff(t *testing.T) {
	for _, codec := range tapped {
		stream := streamOf(t, codec, `it says message_stop, response.completed, [DONE] and "finish_reason":"stop", "done":true, "finishReason":"STOP"`)
		sep := []byte("\n\n")
		if codec.Dialect() == dragoman.Ollama {
			sep = sep[:1]
		}
		events := bytes.SplitAfter(bytes.TrimSuffix(stream, sep), sep)
		for n := range events {
			part := bytes.Join(events[:n], nil)
			// The decoder of the whole has the last word on what is an end.
			ends := false
			for ev := range dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(part)) {
				if _, ok := ev.(*dragoman.ResponseEnd); ok {
					ends = true
				}
			}
			if ended, _ := tappedBy(codec, part, 100).end(); ended != ends {
				t.Errorf("%s: %d of %d events: ended %v, want %v", codec.Dialect(), n, len(events), ended, ends)
			}
		}
	}
}

// FuzzTap: whatever a server sends, a tap neither panics nor loses a byte of what is
// whole.
func FuzzTap(f *testing.F) {
	for i, codec := range tapped {
		f.Add(uint8(i), streamOf(f, codec, "hello"), uint8(5))
	}
	f.Add(uint8(0), []byte("data: {\"usage\":{\"prompt_tokens\":1}}\r\n\r\ndata: [DONE]\r\n\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, which uint8, stream []byte, size uint8) {
		codec := tapped[int(which)%len(tapped)]
		tap := tappedBy(codec, stream, int(size)+1)
		tap.end()
		tap.broken("s", &dragoman.APIError{Class: dragoman.ErrorServer, Message: "broken"})
		if n := tap.whole(stream); n < 0 || n > len(stream) {
			t.Fatalf("%d of %d bytes are whole", n, len(stream))
		}
	})
}
