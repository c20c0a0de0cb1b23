package bedrock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

var codec bedrock.Codec

// own is the origin of what a client of this dialect sends.
var own = &dragoman.Origin{Dialect: dragoman.Bedrock}

// foreign is the origin of what another dialect minted.
var foreign = &dragoman.Origin{Dialect: dragoman.Anthropic, Provider: "anthropic"}

var ignoreSidecars = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Native" }, cmp.Ignore())

func ptr[T any](v T) *T { return &v }

// ask is a small valid request around messages.
func ask(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "us.anthropic.claude-opus-5-5-v1:0", Messages: ms}
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
func collect(t testing.TB, stream []byte) *dragoman.Response {
	t.Helper()
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, stream)
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
func play(t testing.TB, o dialect.EncodeOptions, evs ...dragoman.Event) ([]byte, dragoman.Report) {
	t.Helper()
	return codectest.EncodeStream(t, codec, o, evs)
}

func message(key, typ, kind string, payload []byte) []byte {
	out, err := eventstream.Append(nil, []eventstream.Header{
		{Name: key, Value: eventstream.Text(typ)},
		{Name: ":content-type", Value: eventstream.Text("application/json")},
		{Name: ":message-type", Value: eventstream.Text(kind)},
	}, payload)
	if err != nil {
		panic(err)
	}
	return out
}

// binary frames events, one a line, each an object whose only member is the
// type of the event: a type that ends in Exception is one.
func binary(lines string) []byte {
	var out []byte
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		typ, payload, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `":`)
		payload = strings.TrimSuffix(payload, "}")
		if strings.HasSuffix(typ, "Exception") {
			out = append(out, message(":exception-type", typ, "exception", []byte(payload))...)
		} else {
			out = append(out, message(":event-type", typ, "event", []byte(payload))...)
		}
	}
	return out
}

// lines shows a binary stream as binary reads it.
func lines(t testing.TB, stream []byte) string {
	t.Helper()
	var out strings.Builder
	var p eventstream.Parser
	err := p.Feed(stream, func(f eventstream.Frame) error {
		typ := f.Text(":event-type")
		if typ == nil {
			typ = f.Text(":exception-type")
		}
		fmt.Fprintf(&out, "{%q:%s}\n", typ, f.Payload)
		return nil
	})
	if err != nil || p.Close() != nil {
		t.Fatalf("no event stream: %v %v\n%q", err, p.Close(), stream)
	}
	return out.String()
}

const startLine = `{"messageStart":{"role":"assistant"}}` + "\n"

func endLines(word string) string {
	return `{"messageStop":{"stopReason":"` + word + `"}}
{"metadata":{"usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29},"metrics":{"latencyMs":7}}}
`
}

// answerOf is a whole response with the given content.
func answerOf(word, content string) string {
	return `{"output":{"message":{"role":"assistant","content":` + content + `}},"stopReason":"` + word +
		`","usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29},"metrics":{"latencyMs":7}}`
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
