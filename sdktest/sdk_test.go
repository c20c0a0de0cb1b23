// Package sdktest tests this module against the vendors' Go SDKs:
//
//   - we decode every recorded response that the SDKs decode;
//   - the SDKs decode what we encode, into the same text and calls;
//   - their clients work with the simulator, and with the gateway in front of the simulator in every
//     dialect.
//
// Run it with
//
//	cd sdktest && go test ./...
//
// It is a separate module, because building the SDKs takes minutes and gigabytes, and users of the
// library should not download them.
package sdktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

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
)

// call is one tool call as both sides see it.
type call struct{ id, name, arguments string }

// content holds the parts of a response on which both sides must agree.
type content struct {
	text      string // text, then refusal
	reasoning string
	calls     []call
	usage     *usage // nil if it was not read
}

// usage holds the total input and output tokens.
type usage struct{ input, output int64 }

// vendor is one API with our codec and its official SDK.
type vendor struct {
	file  string // file name in shared/recorded
	codec dialect.Codec
	// whole and stream decode a response with the SDK.
	whole  func(body []byte) (content, error)
	stream func(body []byte) (content, error)
	// floats reports whether the SDK reads every number in arguments as a float64, and so
	// loses digits that we keep.
	floats bool
}

func vendors() []vendor {
	return []vendor{
		{"openai_chat", openaichat.Codec{}, chatWhole, chatStream, false},
		{"openai_responses", openairesponses.Codec{}, responsesWhole, responsesStream, false},
		{"anthropic_messages", ouranthropic.Codec{}, anthropicWhole, anthropicStream, false},
		{"gemini_generateContent", gemini.Codec{}, floats(geminiWhole), floats(geminiStream), true},
		{"ollama_chat", ollama.Codec{}, floats(ollamaRead), floats(ollamaRead), true},
		{"bedrock_converse", bedrock.Codec{}, floats(bedrockWhole), floats(bedrockStream), true},
	}
}

// response returns the HTTP response that an SDK's transport passes to its stream decoder.
func response(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

func chatWhole(body []byte) (content, error) {
	var c openai.ChatCompletion
	if err := json.Unmarshal(body, &c); err != nil {
		return content{}, err
	}
	return chatContent(&c), nil
}

func chatContent(c *openai.ChatCompletion) (s content) {
	s.usage = &usage{c.Usage.PromptTokens, c.Usage.CompletionTokens}
	if len(c.Choices) == 0 {
		return s
	}
	m := c.Choices[0].Message
	s.text = m.Content + m.Refusal
	// The older format without an id; servers still send it.
	if f := m.FunctionCall; f.Name != "" { //nolint:staticcheck // deprecated, but still in use
		s.calls = append(s.calls, call{"", f.Name, f.Arguments})
	}
	for _, k := range m.ToolCalls {
		if k.Type == "custom" {
			s.calls = append(s.calls, call{k.ID, k.Custom.Name, k.Custom.Input})
			continue
		}
		s.calls = append(s.calls, call{k.ID, k.Function.Name, k.Function.Arguments})
	}
	return s
}

var errRefused = errors.New("the accumulator rejects a chunk")

func chatStream(body []byte) (content, error) {
	return chatFold(openaisse.NewStream[openai.ChatCompletionChunk](openaisse.NewDecoder(response(body)), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func chatFold(stream *openaisse.Stream[openai.ChatCompletionChunk]) (content, error) {
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return content{}, errRefused
		}
	}
	return chatContent(&acc.ChatCompletion), stream.Err()
}

func responsesWhole(body []byte) (content, error) {
	var r responses.Response
	if err := json.Unmarshal(body, &r); err != nil {
		return content{}, err
	}
	s := responsesContent(r.Output)
	s.usage = responsesUsage(&r)
	return s, nil
}

func responsesUsage(r *responses.Response) *usage {
	return &usage{r.Usage.InputTokens, r.Usage.OutputTokens}
}

func responsesContent(items []responses.ResponseOutputItemUnion) (s content) {
	for _, item := range items {
		switch item.Type {
		case "message":
			for _, p := range item.AsMessage().Content {
				s.text += p.Text + p.Refusal
			}
		case "reasoning":
			r := item.AsReasoning()
			for _, p := range r.Content {
				s.reasoning += p.Text
			}
			for _, p := range r.Summary {
				s.reasoning += p.Text
			}
		case "function_call":
			c := item.AsFunctionCall()
			s.calls = append(s.calls, call{c.CallID, c.Name, c.Arguments})
		case "custom_tool_call":
			c := item.AsCustomToolCall()
			s.calls = append(s.calls, call{c.CallID, c.Name, c.Input})
		}
	}
	return s
}

// responsesStream collects the done items, because the SDK has no accumulator.
func responsesStream(body []byte) (content, error) {
	s, _, err := responsesFold(body)
	return s, err
}

// responsesFold also describes how the deltas of a stream differ from its items.
func responsesFold(body []byte) (s content, differ string, err error) {
	return responsesEvents(openaisse.NewStream[responses.ResponseStreamEventUnion](openaisse.NewDecoder(response(body)), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func responsesEvents(stream *openaisse.Stream[responses.ResponseStreamEventUnion]) (s content, differ string, err error) {
	var items []responses.ResponseOutputItemUnion
	var text strings.Builder
	arguments := map[int64]string{}
	ended := false
	var used *usage
	for stream.Next() {
		if ended {
			break
		}
		switch ev := stream.Current(); ev.Type {
		case "response.output_text.delta", "response.refusal.delta":
			text.WriteString(ev.Delta)
		case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
			arguments[ev.OutputIndex] += ev.Delta
		case "response.output_item.done":
			items = append(items, ev.Item)
			if given, ok := arguments[ev.OutputIndex]; ok && given != ev.Item.Arguments.OfString+ev.Item.Input {
				differ = fmt.Sprintf("the deltas give %q, the item %q", given, ev.Item.Arguments.OfString+ev.Item.Input)
			}
		case "response.completed", "response.incomplete", "response.failed":
			ended = true
			used = responsesUsage(&ev.Response)
			if ev.Type == "response.failed" { // the SDK does not return an error for it
				err = errors.New(ev.Response.Error.Message)
			}
		}
	}
	s = responsesContent(items)
	s.usage = used
	if text.String() != s.text {
		differ = fmt.Sprintf("the deltas give %q, the items %q", text.String(), s.text)
	}
	return s, differ, errors.Join(err, stream.Err())
}

func anthropicWhole(body []byte) (content, error) {
	var m anthropic.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return content{}, err
	}
	return anthropicContent(&m), nil
}

func anthropicContent(m *anthropic.Message) (s content) {
	u := m.Usage
	s.usage = &usage{u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, u.OutputTokens}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			s.text += b.Text
		case "thinking":
			s.reasoning += b.Thinking
		case "tool_use":
			s.calls = append(s.calls, call{b.ID, b.Name, string(b.Input)})
		}
	}
	return s
}

func anthropicStream(body []byte) (content, error) {
	return anthropicFold(anthropicsse.NewStream[anthropic.MessageStreamEventUnion](anthropicsse.NewDecoder(response(named(body))), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func anthropicFold(stream *anthropicsse.Stream[anthropic.MessageStreamEventUnion]) (content, error) {
	var m anthropic.Message
	for stream.Next() {
		ev := stream.Current()
		if err := m.Accumulate(ev); err != nil {
			return content{}, err
		}
		if ev.Type == "message_stop" {
			break
		}
	}
	return anthropicContent(&m), stream.Err()
}

// named adds the event name, which is the type, to events without one. Some recorders omit event lines,
// but the SDK needs them.
func named(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("data:")) {
		return body
	}
	var out bytes.Buffer
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			var typed struct{ Type string }
			if json.Unmarshal(data, &typed) == nil {
				fmt.Fprintf(&out, "event: %s\n", typed.Type)
			}
		}
		out.Write(line)
	}
	return out.Bytes()
}

// The same, decoded by us.

func (v vendor) ourWhole(body []byte) (content, error) {
	resp, _, err := v.codec.DecodeResponse(body, dialect.DecodeOptions{})
	return v.contentOf(resp), err
}

func (v vendor) ourStream(body []byte) (content, error) {
	d := v.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
	var col dragoman.Collector
	emit := func(ev dragoman.Event) error {
		col.Add(ev)
		return nil
	}
	err := d.Feed(body, emit)
	if closed := d.Close(emit); err == nil {
		err = closed
	}
	resp, failed := col.Response()
	var api *dragoman.APIError
	if err == nil && errors.As(failed, &api) {
		err = failed
	}
	return v.contentOf(resp), err
}

func (v vendor) contentOf(resp *dragoman.Response) (s content) {
	refusal := ""
	if resp.Usage.Input.Known || resp.Usage.Output.Known {
		s.usage = &usage{resp.Usage.Input.N, resp.Usage.Output.N}
	}
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				s.text += p.Text
			case *dragoman.Refusal:
				refusal += p.Text
			case *dragoman.Reasoning:
				s.reasoning += p.Text + strings.Join(p.Summary, "")
			case *dragoman.ToolCall:
				k := call{p.ID, p.Name, p.Arguments}
				if p.Synthetic {
					k.id = ""
				}
				if v.floats {
					k.arguments = inFloats(k.arguments)
				}
				s.calls = append(s.calls, k)
			}
		}
	}
	s.text += refusal
	return s
}

// agrees describes how two results differ, or returns "". Arguments are compared as JSON, because SDKs
// encode them again.
func (s content) agrees(o content) string {
	switch {
	case s.text != o.text:
		return fmt.Sprintf("text %.120q against %.120q", s.text, o.text)
	case len(s.calls) != len(o.calls):
		return fmt.Sprintf("calls %v against %v", s.calls, o.calls)
	case s.usage != nil && o.usage != nil && *s.usage != *o.usage:
		return fmt.Sprintf("usage %v against %v", *s.usage, *o.usage)
	}
	for i, a := range s.calls {
		b := o.calls[i]
		if a.id != b.id || a.name != b.name || sorted(a.arguments) != sorted(b.arguments) {
			return fmt.Sprintf("call %v against %v", a, b)
		}
	}
	return ""
}

// floats converts every number in the arguments to a float64.
func floats(read func([]byte) (content, error)) func([]byte) (content, error) {
	return func(body []byte) (content, error) {
		s, err := read(body)
		for i := range s.calls {
			s.calls[i].arguments = inFloats(s.calls[i].arguments)
		}
		return s, err
	}
}

// inFloats returns arguments with every number converted to a float64.
func inFloats(arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	out, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(out)
}

func sorted(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	var v any
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return arguments
	}
	out, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(out)
}
