package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicsse "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaisse "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	ouranthropic "github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/benchdata"
)

// call is what both sides must have understood in the end.
type call struct{ id, name, arguments string }

// contest is one dialect: our codec and the vendor's SDK.
type contest struct {
	name  string
	codec dialect.Codec
	peer  string
	// collect decodes and accumulates a stream with the peer.
	collect func(body []byte) ([]call, error)
}

var contests = []contest{
	{"OpenAI Chat", openaichat.Codec{}, "openai-go v3.90.0, ssestream + ChatCompletionAccumulator", openaiChat},
	{"OpenAI Responses", openairesponses.Codec{}, "openai-go v3.90.0, ssestream (no accumulator; the last event repeats all)", openaiResponses},
	{"Anthropic Messages", ouranthropic.Codec{}, "anthropic-sdk-go v1.84.0, ssestream + Message.Accumulate", anthropicMessages},
}

// answer is the response that an SDK's transport would have handed to its
// decoder, without the network.
func answer(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

func openaiChat(body []byte) ([]call, error) {
	stream := openaisse.NewStream[openai.ChatCompletionChunk](openaisse.NewDecoder(answer(body)), nil)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return nil, fmt.Errorf("openai-go refuses a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	var calls []call
	for _, c := range acc.Choices[0].Message.ToolCalls {
		calls = append(calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return calls, nil
}

// openaiResponses only decodes: the SDK has no accumulator for this stream,
// its last event repeats the whole response.
func openaiResponses(body []byte) ([]call, error) {
	stream := openaisse.NewStream[responses.ResponseStreamEventUnion](openaisse.NewDecoder(answer(body)), nil)
	var last responses.Response
	for stream.Next() {
		if ev := stream.Current(); ev.Type == "response.completed" {
			last = ev.Response
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	var calls []call
	for _, item := range last.Output {
		if item.Type == "function_call" {
			c := item.AsFunctionCall()
			calls = append(calls, call{c.CallID, c.Name, c.Arguments})
		}
	}
	return calls, nil
}

func anthropicMessages(body []byte) ([]call, error) {
	stream := anthropicsse.NewStream[anthropic.MessageStreamEventUnion](anthropicsse.NewDecoder(answer(body)), nil)
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	var calls []call
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			calls = append(calls, call{b.ID, b.Name, string(b.Input)})
		}
	}
	return calls, nil
}

func ours(c dialect.Codec, body []byte, o dialect.DecodeOptions) ([]call, error) {
	resp, err := benchdata.Collect(c, bytes.NewReader(body), o)
	if err != nil {
		return nil, err
	}
	var calls []call
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if c, ok := p.(*dragoman.ToolCall); ok {
				calls = append(calls, call{c.ID, c.Name, c.Arguments})
			}
		}
	}
	return calls, nil
}

// compact is what one walk over a body costs the standard library.
func compact(dst *bytes.Buffer, body []byte) error {
	dst.Reset()
	return json.Compact(dst, body)
}
