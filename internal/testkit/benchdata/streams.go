package benchdata

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
)

// streams holds the stream writer of each dialect.
var streams = map[dragoman.Dialect]func(args []string, fragment int) []byte{
	dialectname.OpenAIChat:      chatStream,
	dialectname.OpenAIResponses: responsesStream,
	dialectname.Anthropic:       anthropicStream,
	dialectname.Gemini:          geminiStream,
	dialectname.Ollama:          ollamaStream,
	dialectname.Bedrock:         bedrockStream,
}

// geminiStream writes the arguments as fragments of text, and then the whole call: by
// default the API does not stream arguments.
func geminiStream(args []string, fragment int) []byte {
	var out []byte
	chunk := func(part, finish string, output int) {
		out = sse.Append(out, "", fmt.Appendf(nil, `{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],`+
			`"usageMetadata":{"promptTokenCount":812,"candidatesTokenCount":%d,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":812}],"thoughtsTokenCount":64},`+
			`"modelVersion":"gemini-3.5-pro","responseId":"XvP3aHqZ8mN2kRt5Yw7"}`, part, finish, output, 876+output))
	}
	n := 0
	for i, a := range args {
		for _, f := range fragments(a, fragment) {
			n++
			chunk(`{"text":`+quote(f)+`}`, "", n)
		}
		chunk(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, CallID(dialectname.Gemini, i), CallName, a), "", n)
	}
	chunk(`{"text":""}`, `,"finishReason":"STOP"`, n)
	return out
}

// ollamaStream does the same, for the same reason.
func ollamaStream(args []string, fragment int) []byte {
	var out []byte
	line := func(rest string) {
		out = fmt.Appendf(out, `{"model":"qwen3.5:9b","created_at":"2026-11-12T09:14:21.482913Z","message":{"role":"assistant",%s}`+"\n", rest)
	}
	for i, a := range args {
		for _, f := range fragments(a, fragment) {
			line(`"content":` + quote(f) + `},"done":false`)
		}
		line(fmt.Sprintf(`"content":"","tool_calls":[{"id":%q,"function":{"index":%d,"name":%q,"arguments":%s}}]},"done":false`, CallID(dialectname.Ollama, i), i, CallName, a))
	}
	line(`"content":""},"done":true,"done_reason":"stop","total_duration":9123456789,"load_duration":81234567,` +
		`"prompt_eval_count":812,"prompt_eval_duration":312345678,"eval_count":2011,"eval_duration":8623456789`)
	return out
}

func bedrockStream(args []string, fragment int) []byte {
	var out []byte
	add := func(name, format string, a ...any) {
		var err error
		out, err = eventstream.Append(out, []eventstream.Header{
			{Name: ":event-type", Value: eventstream.Text(name)},
			{Name: ":content-type", Value: eventstream.Text("application/json")},
			{Name: ":message-type", Value: eventstream.Text("event")},
		}, fmt.Appendf(nil, `{`+format+`,"p":"abcdefghijkl"}`, a...))
		if err != nil {
			panic(err)
		}
	}
	add("messageStart", `"role":"assistant"`)
	for i, a := range args {
		add("contentBlockStart", `"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}`, i, CallID(dialectname.Bedrock, i), CallName)
		for _, f := range fragments(a, fragment) {
			add("contentBlockDelta", `"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}`, i, quote(f))
		}
		add("contentBlockStop", `"contentBlockIndex":%d`, i)
	}
	add("messageStop", `"stopReason":"tool_use"`)
	add("metadata", `"usage":{"inputTokens":44,"outputTokens":2011,"totalTokens":2823,"cacheReadInputTokens":768},"metrics":{"latencyMs":9123}`)
	return out
}
