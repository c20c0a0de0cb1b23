package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicsse "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaisse "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	ouranthropic "github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

// result is what both sides must have decoded in the end.
type result struct {
	text  string
	calls []call
}

// call is one of the calls. Its arguments are text, or the value that the peer decoded.
type call struct {
	id, name  string
	arguments any
}

// equal compares results; arguments are compared as JSON.
func (s result) equal(o result) bool {
	return s.text == o.text && slices.EqualFunc(s.calls, o.calls, func(a, b call) bool {
		return a.id == b.id && a.name == b.name && sorted(a.arguments) == sorted(b.arguments)
	})
}

func sorted(arguments any) string {
	if text, ok := arguments.(string); ok {
		if json.Unmarshal([]byte(text), &arguments) != nil {
			return text
		}
	}
	out, err := json.Marshal(arguments)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// contest is one dialect: our codec and the vendor's SDK.
type contest struct {
	name  string
	codec dialect.Codec
	peer  string
	// collect decodes and accumulates a stream with the peer.
	collect func(body []byte) (result, error)
	// otherThread reports whether the peer decodes on another thread, so that only the wall
	// clock includes it.
	otherThread bool
}

var contests = []contest{
	{"OpenAI Chat", openaichat.Codec{}, "openai-go v3.90.0, ssestream + ChatCompletionAccumulator", openaiChat, false},
	{"OpenAI Responses", openairesponses.Codec{}, "openai-go v3.90.0, ssestream (no accumulator; the last event repeats all)", openaiResponses, false},
	{"Anthropic Messages", ouranthropic.Codec{}, "anthropic-sdk-go v1.84.0, ssestream + Message.Accumulate", anthropicMessages, false},
	{"Gemini", gemini.Codec{}, "genai v1.77.0, GenerateContentStream (text deltas; calls come whole)", geminiContent, false},
	{"Ollama", ollama.Codec{}, "ollama/api v0.17.4, Client.Chat (text deltas; calls come whole)", ollamaChat, false},
	{"Bedrock Converse", bedrock.Codec{}, "bedrockruntime v1.63.8, ConverseStream (by the wall clock: it decodes on another thread)", bedrockConverse, true},
}

// response returns the HTTP response that an SDK's transport would pass to its decoder, without the
// network.
func response(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

func openaiChat(body []byte) (result, error) {
	stream := openaisse.NewStream[openai.ChatCompletionChunk](openaisse.NewDecoder(response(body)), nil)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return result{}, fmt.Errorf("openai-go rejects a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		return result{}, err
	}
	var calls []call
	for _, c := range acc.Choices[0].Message.ToolCalls {
		calls = append(calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return result{calls: calls}, nil
}

// openaiResponses only decodes, because the SDK has no accumulator for this stream: its last event
// repeats the whole response.
func openaiResponses(body []byte) (result, error) {
	stream := openaisse.NewStream[responses.ResponseStreamEventUnion](openaisse.NewDecoder(response(body)), nil)
	var last responses.Response
	for stream.Next() {
		if ev := stream.Current(); ev.Type == "response.completed" {
			last = ev.Response
		}
	}
	if err := stream.Err(); err != nil {
		return result{}, err
	}
	var calls []call
	for _, item := range last.Output {
		if item.Type == "function_call" {
			c := item.AsFunctionCall()
			calls = append(calls, call{c.CallID, c.Name, c.Arguments})
		}
	}
	return result{calls: calls}, nil
}

func anthropicMessages(body []byte) (result, error) {
	stream := anthropicsse.NewStream[anthropic.MessageStreamEventUnion](anthropicsse.NewDecoder(response(body)), nil)
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return result{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return result{}, err
	}
	var calls []call
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			calls = append(calls, call{b.ID, b.Name, string(b.Input)})
		}
	}
	return result{calls: calls}, nil
}

func ours(c dialect.Codec, body []byte, o dialect.DecodeOptions) (result, error) {
	resp, err := benchdata.Collect(c, bytes.NewReader(body), o)
	if err != nil {
		return result{}, err
	}
	var s result
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				s.calls = append(s.calls, call{p.ID, p.Name, p.Arguments})
			case *dragoman.Text:
				s.text += p.Text
			}
		}
	}
	return s, nil
}

// compact measures one pass of the standard library over a body.
func compact(dst *bytes.Buffer, body []byte) error {
	dst.Reset()
	return json.Compact(dst, body)
}
