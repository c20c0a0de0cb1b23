package quirks_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// Some proxies start a stream with empty chunks and end it there. A gateway can wait for the first
// part before it responds, and retry: only ResponseStart precedes the first part, and the stream is
// incomplete.
func TestQuirkC41_EmptyFirstChunksAreNotContent(t *testing.T) {
	for d, empty := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat: "data: {\"choices\":[]}\n\ndata: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n" +
			"data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":null}]}\n\n",
		dialectname.OpenAIResponses: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
			"event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
		dialectname.Anthropic: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[],\"usage\":{}}}\n\n" +
			"event: ping\ndata: {\"type\":\"ping\"}\n\n",
		dialectname.Gemini: "data: {\"candidates\":[],\"modelVersion\":\"m\"}\n\ndata: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[]}}]}\n\n",
		"cohere.chat":      "event: message-start\ndata: {\"id\":\"x\",\"type\":\"message-start\"}\n\n",
		dialectname.Ollama: "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n",
	} {
		meaningful := 0
		dec := crosstest.CodecOf(d).NewStreamDecoder(dialect.DecodeOptions{})
		emit := func(ev dragoman.Event) error {
			switch ev.(type) {
			case *dragoman.ResponseStart, *dragoman.Chunk, *dragoman.StreamError:
			default:
				meaningful++
			}
			return nil
		}
		if err := dec.Feed([]byte(empty), emit); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if meaningful != 0 {
			t.Errorf("%s: %d events with content", d, meaningful)
		}
		if err := dec.Close(emit); !errors.Is(err, dragoman.ErrIncompleteStream) || meaningful != 0 {
			t.Errorf("%s: ends with %v", d, err)
		}
	}
}
