package anthropic_test

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

var codec anthropic.Codec

// checked wraps the codec; its errors fail the test.
var checked = codectest.Codec{Codec: codec}

var (
	encode         = checked.Values
	decodeResponse = checked.Response
	decode         = checked.Request
	tool           = codectest.Function
	drain          = checked.Drain
	result         = codectest.Result
	collect        = checked.CollectStream
	messagesOf     = codectest.Messages
	has            = codectest.HasLoss
	encodeEvents   = checked.Play
	newMessage     = codectest.Message
	call           = codectest.Call
)

// ownOrigin is the origin of messages of this dialect.
var ownOrigin = &dragoman.Origin{Dialect: dialectname.Anthropic}

// foreignOrigin is the origin of messages of another dialect.
var foreignOrigin = &dragoman.Origin{Dialect: dialectname.OpenAIResponses, Provider: "openai"}

func ptr[T any](v T) *T { return &v }

// requestOf returns a small valid request with the given messages.
func requestOf(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "claude-opus-5-5", MaxOutputTokens: ptr(int64(100)), Messages: ms}
}

// sseStream frames the JSON of events, one per line, as server-sent events.
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

// responseBody returns a complete response with the given content.
func responseBody(word, content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":` + content +
		`,"stop_reason":"` + word + `","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":20}}`
}
