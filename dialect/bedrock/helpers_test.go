package bedrock_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

var codec bedrock.Codec

// checked wraps the codec; its errors fail the test.
var checked = codectest.Codec{Codec: codec}

var (
	encode         = checked.Values
	decodeResponse = checked.Response
	decode         = checked.Request
	tool           = codectest.Function
	drain          = checked.Drain
	result         = codectest.Result
	messagesOf     = codectest.Messages
	has            = codectest.HasLoss
	newMessage     = codectest.Message
	call           = codectest.Call
)

// ownOrigin is the origin of messages of this dialect.
var ownOrigin = &dragoman.Origin{Dialect: dialectname.Bedrock}

// foreignOrigin is the origin of messages of another dialect.
var foreignOrigin = &dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic"}

var ignoreSidecars = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Native" }, cmp.Ignore())

func ptr[T any](v T) *T { return &v }

// requestOf returns a small valid request with the given messages.
func requestOf(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "us.anthropic.claude-opus-5-5-v1:0", Messages: ms}
}

// collect decodes a stream and collects its response.
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

func encodeEvents(t testing.TB, o dialect.EncodeOptions, evs ...dragoman.Event) ([]byte, dragoman.Report) {
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

// binary frames events, one per line. Each is an object whose only field is the
// event type; a type that ends in Exception is an exception.
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

// lines formats a binary stream in the input format of binary.
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
		t.Fatalf("not an event stream: %v %v\n%q", err, p.Close(), stream)
	}
	return out.String()
}

const startLine = `{"messageStart":{"role":"assistant"}}` + "\n"

func endLines(word string) string {
	return `{"messageStop":{"stopReason":"` + word + `"}}
{"metadata":{"usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29},"metrics":{"latencyMs":7}}}
`
}

// responseBody returns a complete response with the given content.
func responseBody(word, content string) string {
	return `{"output":{"message":{"role":"assistant","content":` + content + `}},"stopReason":"` + word +
		`","usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29},"metrics":{"latencyMs":7}}`
}
