package losses_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// countedStreams are streams that report usage and then break off.
var countedStreams = map[dragoman.Dialect][]string{
	dialectname.OpenAIChat: {
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}`,
	},
	dialectname.Anthropic: {
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}`,
	},
	dialectname.Gemini: {
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8},"modelVersion":"m","responseId":"r"}`,
	},
	dialectname.Ollama: {
		`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},"done":false,"prompt_eval_count":7,"eval_count":1}`,
	},
	dialectname.Bedrock: {
		`messageStart {"role":"assistant"}`,
		`metadata {"usage":{"inputTokens":7,"outputTokens":1,"totalTokens":8}}`,
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hi"}}`,
	},
}

// The error of a broken stream carries the usage reported so far, and the first part of its
// message has the header that [dragoman.PartStart] promises, in every dialect.
func TestBrokenStreamReportsUsage(t *testing.T) {
	for d, events := range countedStreams {
		wire := crosstest.OnWire(t, d, events)
		if d == dialectname.OpenAIChat {
			wire = bytes.TrimSuffix(wire, []byte("data: [DONE]\n\n"))
		}
		evs, err := errorEventsOf(d, wire)
		if !errors.Is(err, dragoman.ErrIncompleteStream) {
			t.Errorf("%s: %v", d, err)
		}
		last, ok := evs[len(evs)-1].(*dragoman.StreamError)
		if !ok || last.Usage.Input != (dragoman.Count{N: 7, Known: true}) {
			t.Errorf("%s: ends with %+v", d, evs[len(evs)-1])
		}
		first := slices.IndexFunc(evs, func(ev dragoman.Event) bool { return ev.Type() == "part_start" })
		if first < 0 || evs[first].(*dragoman.PartStart).Header == nil {
			t.Errorf("%s: the first part has no header", d)
		}
	}
}

// The offset of an error counts from the start of the stream, so that it can be found in the bytes.
func TestStreamErrorHasOffset(t *testing.T) {
	for d, events := range crosstest.OneCallStreams {
		if d == dialectname.Bedrock {
			continue // binary frames; tested in its own package
		}
		wire := crosstest.OnWire(t, d, []string{events[0], `{"mark":@,` + events[1][1:]}) // not JSON
		_, err := errorEventsOf(d, wire)
		var at *dragoman.DecodeError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", d, err)
			continue
		}
		if want := int64(bytes.IndexByte(wire, '@')); at.Offset != want {
			t.Errorf("%s: offset %d, want %d: %v", d, at.Offset, want, err)
		}
	}
}

// errorEventsOf decodes a stream to its end.
func errorEventsOf(d dragoman.Dialect, wire []byte) (evs []dragoman.Event, err error) {
	for ev, e := range dialect.Events(crosstest.CodecOf(d).NewStreamDecoder(dialect.DecodeOptions{NoNative: true}), bytes.NewReader(wire)) {
		if err = e; e == nil {
			evs = append(evs, ev)
		}
	}
	return evs, err
}
