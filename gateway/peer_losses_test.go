package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// One conversation in three dialects. One tool is strict and must be called. Another has a name
// that no upstream accepts. Calls may not be parallel. Two calls have results in another order,
// one of them an error.
const (
	oddName = "other.tool/with odd name"

	cityOnly = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`

	chatRequest = `{"model":"m","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"get_weather"}},
		"tools":[{"type":"function","function":{"name":"get_weather","description":"d","strict":true,"parameters":` + cityOnly + `}},
			{"type":"function","function":{"name":"` + oddName + `","description":"d","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},
			{"role":"tool","tool_call_id":"call_b","content":"ERROR: no such city"},{"role":"tool","tool_call_id":"call_a","content":"snow"}]}`

	responsesRequest = `{"model":"m","parallel_tool_calls":false,"tool_choice":{"type":"function","name":"get_weather"},
		"tools":[{"type":"function","name":"get_weather","description":"d","strict":true,"parameters":` + cityOnly + `},
			{"type":"function","name":"` + oddName + `","description":"d","strict":false,"parameters":{"type":"object","properties":{}}}],
		"input":[{"role":"user","content":"Weather?"},
			{"type":"function_call","call_id":"call_a","name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},{"type":"function_call","call_id":"call_b","name":"get_weather","arguments":"{\"city\":\"Rome\"}"},
			{"type":"function_call_output","call_id":"call_b","output":"ERROR: no such city"},{"type":"function_call_output","call_id":"call_a","output":"snow"}]}`

	anthropicToolRequest = `{"model":"m","max_tokens":100,"tool_choice":{"type":"tool","name":"get_weather","disable_parallel_tool_use":true},
		"tools":[{"name":"get_weather","description":"d","strict":true,"input_schema":` + cityOnly + `},{"name":"` + oddName + `","description":"d","input_schema":{"type":"object","properties":{}}}],
		"messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"call_a","name":"get_weather","input":{"city":"Oslo"}},{"type":"tool_use","id":"call_b","name":"get_weather","input":{"city":"Rome"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_b","content":"no such city","is_error":true},{"type":"tool_result","tool_use_id":"call_a","content":"snow"}]}]}`
)

// Responses that call the tool with the odd name, TOOL, under the name that the model knows;
// reasoning models sign them.
const (
	anthropicCallResponse = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"Hm.","signature":"signature-of-the-thinking"},{"type":"tool_use","id":"toolu_1","name":"TOOL","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

	geminiCallResponse = `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"name":"TOOL","args":{"x":1}},"thoughtSignature":"c2lnbmF0dXJlLW9mLXRoZS1jYWxs"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"gemini-3","responseId":"r1"}`

	responsesCallResponse = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"encrypted-thinking"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"TOOL","arguments":"{\"x\":1}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"metadata":{},"temperature":1,"top_p":1,"instructions":null}`

	chatCallResponse = `{"id":"c1","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"TOOL","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
)

// fieldCase is a feature that peers lose, and its place in a dialect.
type fieldCase struct {
	// path is the path of the field, and value its expected value.
	feature string
	path    []any
	value   any
}

// at returns a path into JSON.
func at(path ...any) []any { return path }

var (
	anthropicFields = []fieldCase{
		{"parallel_tool_calls", at("tool_choice", "disable_parallel_tool_use"), true},
		{"tool choice", at("tool_choice", "type"), "tool"},
		{"tool choice", at("tool_choice", "name"), "get_weather"},
		{"strict", at("tools", 0, "strict"), true},
		{"pairing", at("messages", 1, "content", 0, "id"), "call_a"},
		{"pairing", at("messages", 1, "content", 1, "id"), "call_b"},
		{"pairing", at("messages", 2, "content", 0, "tool_use_id"), "call_a"},
		{"pairing", at("messages", 2, "content", 1, "tool_use_id"), "call_b"},
		{"results", at("messages", 2, "content", 0, "content", 0, "text"), "snow"},
		{"error flags", at("messages", 2, "content", 0, "is_error"), nil},
		{"error flags", at("messages", 2, "content", 1, "is_error"), true},
		{"error flags", at("messages", 2, "content", 1, "content", 0, "text"), "no such city"},
	}
	geminiFields = []fieldCase{
		{"tool choice", at("toolConfig", "functionCallingConfig", "mode"), "ANY"},
		{"tool choice", at("toolConfig", "functionCallingConfig", "allowedFunctionNames", 0), "get_weather"},
		{"tool choice", at("toolConfig", "functionCallingConfig", "allowedFunctionNames", 1), nil},
		{"pairing", at("contents", 1, "parts", 0, "functionCall", "args", "city"), "Oslo"},
		{"pairing", at("contents", 1, "parts", 1, "functionCall", "args", "city"), "Rome"},
		{"results", at("contents", 2, "parts", 0, "functionResponse", "response", "output"), "snow"},
		{"error flags", at("contents", 2, "parts", 0, "functionResponse", "response", "error"), nil},
		{"error flags", at("contents", 2, "parts", 1, "functionResponse", "response", "error"), "no such city"},
		{"names", at("contents", 2, "parts", 1, "functionResponse", "name"), "get_weather"},
	}
	responsesFields = []fieldCase{
		{"parallel_tool_calls", at("parallel_tool_calls"), false},
		{"tool choice", at("tool_choice", "name"), "get_weather"},
		{"strict", at("tools", 0, "strict"), true},
		{"pairing", at("input", 1, "call_id"), "call_a"},
		{"pairing", at("input", 2, "call_id"), "call_b"},
		{"pairing", at("input", 3, "call_id"), "call_b"},
		{"pairing", at("input", 4, "call_id"), "call_a"},
		{"error flags", at("input", 3, "output"), "ERROR: no such city"},
		{"results", at("input", 4, "output"), "snow"},
	}
	chatFields = []fieldCase{
		{"parallel_tool_calls", at("parallel_tool_calls"), false},
		{"tool choice", at("tool_choice", "function", "name"), "get_weather"},
		{"pairing", at("messages", 1, "tool_calls", 0, "id"), "call_a"},
		{"pairing", at("messages", 1, "tool_calls", 1, "id"), "call_b"},
		{"pairing", at("messages", 2, "tool_call_id"), "call_b"},
		{"pairing", at("messages", 3, "tool_call_id"), "call_a"},
		{"error flags", at("messages", 2, "content"), "ERROR: no such city"},
		{"results", at("messages", 3, "content"), "snow"},
	}
)

func TestFieldsThatPeersLoseAreConvertedOrReported(t *testing.T) {
	for _, way := range []struct {
		name   string
		codec  dialect.Codec
		asks   string
		to     string
		calls  string
		kept   []fieldCase
		tools  []any // the path of the second tool's name
		losses string
	}{
		{"Chat to Anthropic", openaichat.Codec{}, chatRequest, "anthropic/claude-sonnet-4-5", anthropicCallResponse, anthropicFields, at("tools", 1, "name"), ""},
		{"Responses to Anthropic", openairesponses.Codec{}, responsesRequest, "anthropic/claude-sonnet-4-5", anthropicCallResponse, anthropicFields, at("tools", 1, "name"), ""},
		// Gemini has no field for either, and the call lacks a Gemini signature because another
		// model made it.
		{"Chat to Gemini", openaichat.Codec{}, chatRequest, "gemini/gemini-3-pro", geminiCallResponse, geminiFields, at("tools", 0, "functionDeclarations", 1, "name"), "3; synthesized /messages/1/parts/0/signature; dropped /tools/0/strict; dropped /parallel_tool_calls"},
		{"Responses to Gemini", openairesponses.Codec{}, responsesRequest, "gemini/gemini-3-pro", geminiCallResponse, geminiFields, at("tools", 0, "functionDeclarations", 1, "name"), "3; synthesized /messages/1/parts/0/signature; dropped /tools/0/strict; dropped /parallel_tool_calls"},
		// Anthropic signatures are useless to other vendors; not all compatible servers support
		// strict.
		{"Anthropic to Responses", anthropic.Codec{}, anthropicToolRequest, "responses/gpt-5", responsesCallResponse, responsesFields, at("tools", 1, "name"), "1; dropped /messages/1/parts/0"},
		{"Anthropic to Chat", anthropic.Codec{}, anthropicToolRequest, "chat/gpt-5", chatCallResponse, chatFields, at("tools", 1, "function", "name"), "2; dropped /messages/1/parts/0; dropped /tools/0/strict"},
	} {
		t.Run(way.name, func(t *testing.T) {
			var sent, alias string
			w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q, lift_errors: true}}\n", way.to), func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = string(body)
				alias, _ = lookup(sent, way.tools...).(string)
				rw.Header().Set("content-type", "application/json")
				_, _ = io.WriteString(rw, strings.Replace(way.calls, "TOOL", alias, 1))
			})
			c := &client{t: t, codec: way.codec, url: w.url}
			hr := c.postBody(t.Context(), "m", false, []byte(way.asks)) //nolint:bodyclose // the test's end does
			body, _ := io.ReadAll(hr.Body)
			if hr.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", hr.StatusCode, body)
			}
			for _, k := range way.kept {
				if got := lookup(sent, k.path...); got != k.value {
					t.Errorf("%s: %v is %v, not %v", k.feature, k.path, got, k.value)
				}
			}
			// The client gets its own name of the tool, whatever name the model got.
			if alias == "" || alias == oddName {
				t.Errorf("the odd name is %q", alias)
			}
			resp, _, err := way.codec.DecodeResponse(body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if calls := callsOf(resp); len(calls) != 1 || calls[0].Name != oddName || calls[0].Arguments != `{"x":1}` {
				t.Errorf("called back: %s", body)
			}
			if losses := hr.Header.Get("X-Dragoman-Losses"); losses != way.losses {
				t.Errorf("losses %q, not %q", losses, way.losses)
			}
			if w.wantLog(t, `"msg":"request"`); way.losses == "" {
				if log := w.logged(); strings.Contains(log, `"losses"`) {
					t.Errorf("%s", log)
				}
				return
			}
			w.wantLog(t, `"losses":"`+way.losses+`"`)
		})
	}
}

// lookup returns a value in JSON; nil if there is none.
func lookup(text string, path ...any) any {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // invalid JSON has no values
	return codectest.At(v, path...)
}
