package anthropic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

var codec anthropic.Codec

// own is the origin of what a client of this dialect sends.
var own = &dragoman.Origin{Dialect: dragoman.Anthropic}

// foreign is the origin of what another dialect minted.
var foreign = &dragoman.Origin{Dialect: dragoman.OpenAIResponses, Provider: "openai"}

func ptr[T any](v T) *T { return &v }

// ask is a small valid request around messages.
func ask(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "claude-opus-5-5", MaxOutputTokens: ptr(int64(100)), Messages: ms}
}

func said(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

func call(id, name, args string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: name, Arguments: args}
}

func result(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

func tool(name string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
}

// encode encodes a request and checks that it is JSON.
func encode(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (map[string]any, dialect.Encoded) {
	t.Helper()
	enc, err := codec.EncodeRequest(req, o)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(enc.Body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, enc.Body)
	}
	return v, enc
}

// messagesOf gives the encoded elements of the conversation as text.
func messagesOf(t testing.TB, body []byte) []string {
	t.Helper()
	var v struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	out := make([]string, len(v.Messages))
	for i, m := range v.Messages {
		out[i] = string(m)
	}
	return out
}

func decode(t testing.TB, body string) *dragoman.Request {
	t.Helper()
	req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return req
}

func decodeResponse(t testing.TB, body string) *dragoman.Response {
	t.Helper()
	resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return resp
}

// collect decodes a stream and folds it.
func collect(t testing.TB, stream string) *dragoman.Response {
	t.Helper()
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(stream))
	if err != nil {
		t.Fatalf("stream: %v", err)
	}
	resp, err := codectest.Collect(evs)
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	return resp
}

// drain decodes a stream fed in pieces of the given sizes, then the rest.
func drain(o dialect.DecodeOptions, stream []byte, sizes ...int) ([]dragoman.Event, error) {
	evs, _, err := codectest.DecodeStream(codec, o, codectest.Cut(stream, sizes...)...)
	return evs, err
}

// play encodes events.
func play(t testing.TB, o dialect.EncodeOptions, evs ...dragoman.Event) (string, dragoman.Report) {
	t.Helper()
	out, rep := codectest.EncodeStream(t, codec, o, evs)
	return string(out), rep
}

// sseStream frames the JSON of events, one a line, as a server does.
func sseStream(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var v struct{ Type string }
		if json.Unmarshal([]byte(line), &v) == nil && v.Type != "" {
			b.WriteString("event: " + v.Type + "\n")
		}
		b.WriteString("data: " + line + "\n\n")
	}
	return b.String()
}

const (
	startLine = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`
	stopLine  = `{"type":"message_stop"}`
)

func endLines(word string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + word + `","stop_sequence":null},"usage":{"output_tokens":20}}` + "\n" + stopLine
}

// answerOf is a whole response with the given content.
func answerOf(word, content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":` + content +
		`,"stop_reason":"` + word + `","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":20}}`
}

// has fails unless a report holds a loss of this kind at this place.
func has(t testing.TB, rep dragoman.Report, kind dragoman.LossKind, path string) {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && l.Path == path {
			return
		}
	}
	t.Errorf("the report lacks %s at %s:\n%s", kind, path, rep)
}
