package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A model that does not accept an output schema gets it in the instructions.
func TestA2_OutputSchemaDoesNotReachModelsThatRefuseIt(t *testing.T) {
	const (
		schema  = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
		claude  = `{"model":"MODEL","max_tokens":500,"messages":[{"role":"user","content":"hi"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`
		chat    = `{"model":"MODEL","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + schema + `}}}`
		inWords = `It must be valid against this JSON Schema:`
	)
	w, upstream, refused := strictWorld(t)
	for _, tc := range []struct {
		path, body, model string
		words             bool
	}{
		{"/v1/messages", claude, "openai/gpt-4-turbo", true},
		{"/v1/messages", claude, "responses/gpt-4-turbo", true},
		{"/v1/chat/completions", chat, "anthropic/claude-sonnet-4-20250514", true},
		{"/v1/chat/completions", chat, "bedrock/minimax.minimax-m2", true},
		{"/v1/messages", claude, "openai/gpt-4o", false},
		{"/v1/chat/completions", chat, "anthropic/claude-sonnet-4-5", false},
	} {
		before := len(upstream.Seen(""))
		status, losses, body := postJSON(t, w.url+tc.path, strings.Replace(tc.body, "MODEL", tc.model, 1))
		seen := upstream.Seen("")[before:]
		if status != http.StatusOK || len(seen) != 1 {
			t.Errorf("%s: %d %s, refused %v", tc.model, status, body, refused())
			continue
		}
		if strings.Contains(seen[0], inWords) != tc.words || strings.Contains(seen[0], `"additionalProperties":false`) == tc.words || strings.Contains(losses, "lowered /output") != tc.words {
			t.Errorf("%s: losses %q, sent %s", tc.model, losses, seen[0])
		}
	}
}

// Claude up to 4.5 continues the text at the end of a request, but not while it thinks.
func TestA2_ThinkingIsOffWhereAnAssistantTextIsContinued(t *testing.T) {
	const (
		chat = `{"model":"MODEL","reasoning_effort":"high","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hel"}]}`
		next = `{"model":"MODEL","reasoning_effort":"high","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"more"}]}`
	)
	w, upstream, refused := strictWorld(t)
	for _, model := range []string{"anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-1", "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"} {
		for body, thinks := range map[string]bool{chat: false, next: true} {
			before := len(upstream.Seen(""))
			status, losses, respBody := postJSON(t, w.url+"/v1/chat/completions", strings.Replace(body, "MODEL", model, 1))
			seen := upstream.Seen("")[before:]
			if r := refused(); status != http.StatusOK || len(seen) != 1 || len(r) > 0 {
				t.Errorf("%s: %d %s, refused %v", model, status, respBody, r)
				continue
			}
			if strings.Contains(seen[0], `"budget_tokens"`) != thinks || strings.Contains(losses, "dropped /reasoning") == thinks {
				t.Errorf("%s: losses %q, sent %s", model, losses, seen[0])
			}
		}
	}
}

// Dropping tools would change the meaning of a request. If the model has no tool calls, the
// gateway returns an error and does not call the upstream.
func TestA2_ToolsForAModelWithoutToolsAreAnError(t *testing.T) {
	const body = `{"model":"MODEL","max_tokens":500,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]}`
	w, upstream, refused := strictWorld(t)
	for _, model := range []string{"openai/gpt-5-chat-latest", "openai/gpt-5-search-api", "bedrock/google.gemma-3-12b-it", "bedrock/us.deepseek.r1-v1:0"} {
		status, _, respBody := postJSON(t, w.url+"/v1/messages", strings.Replace(body, "MODEL", model, 1))
		if status != http.StatusBadRequest || !strings.Contains(respBody, "tools") || len(refused()) > 0 || len(upstream.Seen("")) > 0 {
			t.Errorf("%s: %d %s", model, status, respBody)
		}
	}
}

// A model that makes one call at a time refuses the parallel flag.
func TestA2_ParallelFlagDoesNotReachModelsWithoutIt(t *testing.T) {
	const body = `{"model":"MODEL","max_tokens":500,"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]}`
	w, upstream, _ := strictWorld(t)
	for model, sent := range map[string]bool{"deepseek/deepseek-reasoner": false, "openai/gpt-5.1-chat-latest": false, "deepseek/deepseek-v4-pro": true} {
		before := len(upstream.Seen(""))
		status, _, respBody := postJSON(t, w.url+"/v1/messages", strings.Replace(body, "MODEL", model, 1))
		seen := upstream.Seen("")[before:]
		if status != http.StatusOK || len(seen) != 1 || strings.Contains(seen[0], `"parallel_tool_calls"`) != sent {
			t.Errorf("%s: %d %s, sent %s", model, status, respBody, seen)
		}
	}
}

// Anthropic bounds the strict tools of a request, their optional properties and their
// unions, and counts the output schema with them. Tools that do not fit are sent without
// the strict flag.
func TestStrictToolsStayWithinTheLimitsOfAnthropic(t *testing.T) {
	tools := func(n int, schema string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","strict":true,"parameters":%s}}`, i, schema))
		}
		return `"tools":[` + strings.Join(all, ",") + `]`
	}
	const (
		closed   = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
		nullable = `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]},"c":{"type":["string","null"]},"d":{"type":["string","null"]},` +
			`"e":{"type":["string","null"]},"f":{"type":["string","null"]}},"required":["a","b","c","d","e","f"],"additionalProperties":false}`
		output = `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + nullable + `}}`
	)
	w, upstream, refused := strictWorld(t)
	for _, tc := range []struct {
		name, body string
		strict     int
	}{
		{"few", tools(3, closed), 3},
		{"many tools", tools(23, closed), 20},
		{"many unions", tools(4, nullable), 2},
		{"with an output schema", tools(4, nullable) + output, 1},
	} {
		before := len(upstream.Seen(""))
		body := `{"model":"anthropic/claude-sonnet-4-5","messages":[{"role":"user","content":"hi"}],` + tc.body + `}`
		status, losses, respBody := postJSON(t, w.url+"/v1/chat/completions", body)
		seen := upstream.Seen("")[before:]
		if r := refused(); status != http.StatusOK || len(seen) != 1 || len(r) > 0 {
			t.Errorf("%s: %d %s, refused %v", tc.name, status, respBody, r)
			continue
		}
		if n := strings.Count(seen[0], `"strict":true`); n != tc.strict || strings.Contains(losses, "/strict") != (tc.name != "few") {
			t.Errorf("%s: %d strict tools, losses %q", tc.name, n, losses)
		}
	}
}

// Compatible servers refuse a function without parameters; Gemini and OpenAI accept it.
func TestQuirkA20_FunctionWithoutParametersHasAnObject(t *testing.T) {
	w, upstream, refused := strictWorld(t)
	for _, model := range []string{"deepseek/deepseek-v4-pro", "moonshot/kimi-k2.6", "xai/grok-4.6"} {
		before := len(upstream.Seen(""))
		for path, body := range map[string]string{
			"/v1/chat/completions":                         `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
			"/v1beta/models/" + model + ":generateContent": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}]}`,
		} {
			status, _, respBody := postJSON(t, w.url+path, body)
			if status != http.StatusOK || len(refused()) > 0 {
				t.Errorf("%s, %s: %d %s", model, path, status, respBody)
			}
		}
		for _, sent := range upstream.Seen("")[before:] {
			if !strings.Contains(sent, `"parameters":{"type":"object","properties":{}}`) {
				t.Errorf("%s: sent %s", model, sent)
			}
		}
	}
}

// The history of a Chat client may have ids of another server.
func TestQuirkB13_IDsOfChatClientsFitTheServer(t *testing.T) {
	const body = `{"model":"MODEL","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"ID","content":"1"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`
	w, upstream, _ := strictWorld(t)
	for _, tc := range []struct{ model, id, want string }{
		{"mistral/mistral-large-latest", "aB3dE6gH9", `"id":"aB3dE6gH9"`},
		{"mistral/mistral-large-latest", "call_abc", ""},
		{"moonshot/kimi-k2-thinking", "functions.f:4", `"id":"functions.f:4"`},
		{"moonshot/kimi-k2-thinking", "f_4", `"id":"f_4"`},
		{"moonshot/kimi-k2-thinking", "call_abc", `"id":"functions.f:0"`},
		{"deepseek/deepseek-chat", "call_00_abc", `"id":"call_00_abc"`},
	} {
		before := len(upstream.Seen(""))
		status, _, respBody := postJSON(t, w.url+"/v1/chat/completions", strings.NewReplacer("MODEL", tc.model, "ID", tc.id).Replace(body))
		seen := upstream.Seen("")[before:]
		if status != http.StatusOK || len(seen) != 1 || !strings.Contains(seen[0], tc.want) {
			t.Errorf("%s, %s: %d %s, sent %s", tc.model, tc.id, status, respBody, seen)
		}
	}
}
