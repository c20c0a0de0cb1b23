package dialect_test

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A call id that is not a string is not converted to one. The call gets a new id, which is
// reported as a loss.
func TestI8_NonStringIDsAreReplacedInEveryDialect(t *testing.T) {
	whole := map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":ID,"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		dialectname.OpenAIResponses: `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc_1","call_id":ID,"name":"f","arguments":"{}","status":"completed"}]}`,
		dialectname.Anthropic:       `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":ID,"name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
		dialectname.Gemini:          `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":ID,"name":"f","args":{}}}]},"finishReason":"STOP"}]}`,
		"cohere.chat":               `{"id":"x","message":{"role":"assistant","tool_calls":[{"id":ID,"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"TOOL_CALL"}`,
		dialectname.Ollama:          `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"id":ID,"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}`,
		dialectname.Bedrock:         `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":ID,"name":"f","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
	}
	synthesized := func(l dragoman.Loss) bool { return l.Kind == dragoman.Synthesized }
	for _, codec := range crosstest.Codecs {
		for _, id := range []string{"5", "1.5", "true", "null", `["a"]`, `{"a":1}`} {
			resp, rep, err := codec.DecodeResponse([]byte(strings.Replace(whole[codec.Dialect()], "ID", id, 1)), dialect.DecodeOptions{})
			if err != nil || len(resp.ToolCalls()) != 1 {
				t.Errorf("%s, id %s: %v", codec.Dialect(), id, err)
				continue
			}
			if got := resp.ToolCalls()[0].ID; len(got) < 20 || !slices.ContainsFunc(rep.Losses, synthesized) {
				t.Errorf("%s, id %s: read as %q, %v", codec.Dialect(), id, got, rep.Losses)
			}
		}
	}
}
