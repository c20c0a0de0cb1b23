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

// One conversation as clients of three dialects send it: one tool is strict and must be
// called, another has a name that no model's server takes, calls may not be parallel, and
// two were answered in another order than they were made in, one with an error.
const (
	oddName = "other.tool/with odd name"

	cityOnly = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`

	chatAsks = `{"model":"m","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"get_weather"}},
		"tools":[{"type":"function","function":{"name":"get_weather","description":"d","strict":true,"parameters":` + cityOnly + `}},
			{"type":"function","function":{"name":"` + oddName + `","description":"d","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},
			{"role":"tool","tool_call_id":"call_b","content":"ERROR: no such city"},{"role":"tool","tool_call_id":"call_a","content":"snow"}]}`

	responsesAsks = `{"model":"m","parallel_tool_calls":false,"tool_choice":{"type":"function","name":"get_weather"},
		"tools":[{"type":"function","name":"get_weather","description":"d","strict":true,"parameters":` + cityOnly + `},
			{"type":"function","name":"` + oddName + `","description":"d","strict":false,"parameters":{"type":"object","properties":{}}}],
		"input":[{"role":"user","content":"Weather?"},
			{"type":"function_call","call_id":"call_a","name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},{"type":"function_call","call_id":"call_b","name":"get_weather","arguments":"{\"city\":\"Rome\"}"},
			{"type":"function_call_output","call_id":"call_b","output":"ERROR: no such city"},{"type":"function_call_output","call_id":"call_a","output":"snow"}]}`

	anthropicAsks = `{"model":"m","max_tokens":100,"tool_choice":{"type":"tool","name":"get_weather","disable_parallel_tool_use":true},
		"tools":[{"name":"get_weather","description":"d","strict":true,"input_schema":` + cityOnly + `},{"name":"` + oddName + `","description":"d","input_schema":{"type":"object","properties":{}}}],
		"messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"call_a","name":"get_weather","input":{"city":"Oslo"}},{"type":"tool_use","id":"call_b","name":"get_weather","input":{"city":"Rome"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_b","content":"no such city","is_error":true},{"type":"tool_result","tool_use_id":"call_a","content":"snow"}]}]}`
)

// Answers that call the tool with the odd name, TOOL, as its model knows it; models that
// sign their reasoning do so.
const (
	anthropicCalls = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"Hm.","signature":"signature-of-the-thinking"},{"type":"tool_use","id":"toolu_1","name":"TOOL","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

	geminiCalls = `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"name":"TOOL","args":{"x":1}},"thoughtSignature":"c2lnbmF0dXJlLW9mLXRoZS1jYWxs"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"gemini-3","responseId":"r1"}`

	responsesCalls = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"encrypted-thinking"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"TOOL","arguments":"{\"x\":1}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"metadata":{},"temperature":1,"top_p":1,"instructions":null}`

	chatCalls = `{"id":"c1","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"TOOL","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
)

// wire is where a dialect has what peers lose.
type wire struct {
	// path is where, and value what stands there.
	feature string
	path    []any
	value   any
}

// at is a path into JSON.
func at(path ...any) []any { return path }

var (
	anthropicKeeps = []wire{
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
	geminiKeeps = []wire{
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
	responsesKeeps = []wire{
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
	chatKeeps = []wire{
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
		kept   []wire
		tools  []any // where the name of the second tool stands
		losses string
	}{
		{"Chat to Anthropic", openaichat.Codec{}, chatAsks, "anthropic/claude-sonnet-4-5", anthropicCalls, anthropicKeeps, at("tools", 1, "name"), ""},
		{"Responses to Anthropic", openairesponses.Codec{}, responsesAsks, "anthropic/claude-sonnet-4-5", anthropicCalls, anthropicKeeps, at("tools", 1, "name"), ""},
		// Gemini has no word for either, and a signature of its own is missing on the call that it never made.
		{"Chat to Gemini", openaichat.Codec{}, chatAsks, "gemini/gemini-3-pro", geminiCalls, geminiKeeps, at("tools", 0, "functionDeclarations", 1, "name"), "3; synthesized /messages/1/parts/0/signature; dropped /tools/0/strict; dropped /parallel_tool_calls"},
		{"Responses to Gemini", openairesponses.Codec{}, responsesAsks, "gemini/gemini-3-pro", geminiCalls, geminiKeeps, at("tools", 0, "functionDeclarations", 1, "name"), "3; synthesized /messages/1/parts/0/signature; dropped /tools/0/strict; dropped /parallel_tool_calls"},
		// Thinking that Anthropic signed means nothing to others; not all servers that are like OpenAI's know strict.
		{"Anthropic to Responses", anthropic.Codec{}, anthropicAsks, "responses/gpt-5", responsesCalls, responsesKeeps, at("tools", 1, "name"), "1; dropped /messages/1/parts/0"},
		{"Anthropic to Chat", anthropic.Codec{}, anthropicAsks, "chat/gpt-5", chatCalls, chatKeeps, at("tools", 1, "function", "name"), "2; dropped /messages/1/parts/0; dropped /tools/0/strict"},
	} {
		t.Run(way.name, func(t *testing.T) {
			var sent, alias string
			w := worldOf(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q, lift_errors: true}}\n", way.to), func(rw http.ResponseWriter, r *http.Request) {
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
			// Whatever the model knows the tool as, its client knows it by its own name.
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

// lookup is a value in JSON; nil where there is none.
func lookup(text string, path ...any) any {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // what is no JSON has no values
	return codectest.At(v, path...)
}
