// Package sdktest holds what we decode and encode against the vendors' own Go
// SDKs: we decode every recorded answer that they decode, they decode what we
// encode, into the same text and calls, and their clients are served by the
// simulator, and by the gateway with the simulator behind it in every dialect.
//
//	cd sdktest && go test ./...
//
// It is a module of its own: building the SDKs takes minutes and gigabytes, and
// no user of the library should ever download them.
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

// said is what both sides must agree on.
type said struct {
	text      string // text, then refusal
	reasoning string
	calls     []call
	usage     *usage // nil where it was not read
}

// usage is what was counted, all of the input and all of the output.
type usage struct{ input, output int64 }

// vendor is one API with our codec and its official SDK.
type vendor struct {
	file  string // in shared/recorded
	codec dialect.Codec
	// whole and stream read an answer with the SDK.
	whole  func(body []byte) (said, error)
	stream func(body []byte) (said, error)
	// floats says that the SDK reads every number of arguments as a float64,
	// and so loses digits that we keep.
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

// answer is what an SDK's transport hands to its stream decoder.
func answer(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

func chatWhole(body []byte) (said, error) {
	var c openai.ChatCompletion
	if err := json.Unmarshal(body, &c); err != nil {
		return said{}, err
	}
	return chatSaid(&c), nil
}

func chatSaid(c *openai.ChatCompletion) (s said) {
	s.usage = &usage{c.Usage.PromptTokens, c.Usage.CompletionTokens}
	if len(c.Choices) == 0 {
		return s
	}
	m := c.Choices[0].Message
	s.text = m.Content + m.Refusal
	// The older form, which has no id; servers still send it.
	if f := m.FunctionCall; f.Name != "" { //nolint:staticcheck // deprecated, not gone
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

var errRefused = errors.New("the accumulator refuses a chunk")

func chatStream(body []byte) (said, error) {
	return chatFold(openaisse.NewStream[openai.ChatCompletionChunk](openaisse.NewDecoder(answer(body)), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func chatFold(stream *openaisse.Stream[openai.ChatCompletionChunk]) (said, error) {
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return said{}, errRefused
		}
	}
	return chatSaid(&acc.ChatCompletion), stream.Err()
}

func responsesWhole(body []byte) (said, error) {
	var r responses.Response
	if err := json.Unmarshal(body, &r); err != nil {
		return said{}, err
	}
	s := responsesSaid(r.Output)
	s.usage = responsesUsage(&r)
	return s, nil
}

func responsesUsage(r *responses.Response) *usage {
	return &usage{r.Usage.InputTokens, r.Usage.OutputTokens}
}

func responsesSaid(items []responses.ResponseOutputItemUnion) (s said) {
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

// responsesStream folds the items as they are done, because the SDK has no
// accumulator.
func responsesStream(body []byte) (said, error) {
	s, _, err := responsesFold(body)
	return s, err
}

// responsesFold also says in what the deltas of a stream differ from its items.
func responsesFold(body []byte) (s said, differ string, err error) {
	return responsesEvents(openaisse.NewStream[responses.ResponseStreamEventUnion](openaisse.NewDecoder(answer(body)), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func responsesEvents(stream *openaisse.Stream[responses.ResponseStreamEventUnion]) (s said, differ string, err error) {
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
			if ev.Type == "response.failed" { // which the SDK leaves to its user
				err = errors.New(ev.Response.Error.Message)
			}
		}
	}
	s = responsesSaid(items)
	s.usage = used
	if text.String() != s.text {
		differ = fmt.Sprintf("the deltas give %q, the items %q", text.String(), s.text)
	}
	return s, differ, errors.Join(err, stream.Err())
}

func anthropicWhole(body []byte) (said, error) {
	var m anthropic.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return said{}, err
	}
	return anthropicSaid(&m), nil
}

func anthropicSaid(m *anthropic.Message) (s said) {
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

func anthropicStream(body []byte) (said, error) {
	return anthropicFold(anthropicsse.NewStream[anthropic.MessageStreamEventUnion](anthropicsse.NewDecoder(answer(named(body))), nil)) //nolint:bodyclose // a buffer, there is nothing to close
}

func anthropicFold(stream *anthropicsse.Stream[anthropic.MessageStreamEventUnion]) (said, error) {
	var m anthropic.Message
	for stream.Next() {
		ev := stream.Current()
		if err := m.Accumulate(ev); err != nil {
			return said{}, err
		}
		if ev.Type == "message_stop" {
			break
		}
	}
	return anthropicSaid(&m), stream.Err()
}

// named gives events without a name that of their type: some recorders leave
// the event lines out, and the SDK goes by them.
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

// The same, read by us.

func (v vendor) ourWhole(body []byte) (said, error) {
	resp, _, err := v.codec.DecodeResponse(body, dialect.DecodeOptions{})
	return v.saidBy(resp), err
}

func (v vendor) ourStream(body []byte) (said, error) {
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
	return v.saidBy(resp), err
}

func (v vendor) saidBy(resp *dragoman.Response) (s said) {
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

// agrees says in what two readings differ; empty means in nothing. Arguments
// are compared as JSON, because SDKs write them anew.
func (s said) agrees(o said) string {
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

// floats reads arguments with every number as a float64 has it.
func floats(read func([]byte) (said, error)) func([]byte) (said, error) {
	return func(body []byte) (said, error) {
		s, err := read(body)
		for i := range s.calls {
			s.calls[i].arguments = inFloats(s.calls[i].arguments)
		}
		return s, err
	}
}

// inFloats is arguments with every number as a float64 has it.
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
