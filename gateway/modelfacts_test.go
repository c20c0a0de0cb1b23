package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
)

// refusingUpstream refuses what the real servers refuse, with a table and error
// texts of its own.
type refusingUpstream struct {
	mu     sync.Mutex
	bodies []string
}

// refusalOf says why a body is refused; empty means that it is not.
func refusalOf(path string, body map[string]any) string {
	model, _ := body["model"].(string)
	if model == "" { // Bedrock has it in the path
		model = path
	}
	reasons := !strings.Contains(model, "gpt-4") && !strings.Contains(model, "llama3.1") && !strings.Contains(model, "private")
	unsupported := func(param string) string {
		return fmt.Sprintf(`{"error":{"message":"Unsupported parameter: '%s' is not supported with this model.","type":"invalid_request_error","param":"%s","code":"unsupported_parameter"}}`, param, param)
	}
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		if _, has := body["top_k"]; has {
			return `{"error":{"message":"Unrecognized request argument supplied: top_k","type":"invalid_request_error","param":null,"code":null}}`
		}
		if _, has := body["reasoning_effort"]; has && !reasons {
			return unsupported("reasoning_effort")
		}
	case strings.HasSuffix(path, "/responses"):
		if _, has := body["reasoning"]; has && !reasons {
			return unsupported("reasoning.effort")
		}
		if include, _ := json.Marshal(body["include"]); !reasons && strings.Contains(string(include), "encrypted") {
			return `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`
		}
	case path == "/api/chat":
		think, has := body["think"]
		if _, text := think.(string); text && !strings.HasPrefix(model, "gpt-oss") {
			return `{"error":"invalid think value: \"` + fmt.Sprint(think) + `\" (must be \"high\", \"medium\", \"low\", true, or false)"}`
		}
		if has && think != false && !reasons {
			return `{"error":"\"` + model + `\" does not support thinking"}`
		}
	case path == "/v1/messages", strings.HasSuffix(path, "/converse"):
		thinking := body["thinking"]
		if more, ok := body["additionalModelRequestFields"].(map[string]any); ok {
			thinking = more["thinking"]
		}
		typ := ""
		if t, ok := thinking.(map[string]any); ok {
			typ, _ = t["type"].(string)
		}
		effort := ""
		for _, in := range []any{body, body["additionalModelRequestFields"]} {
			fields, _ := in.(map[string]any)
			for _, key := range []string{"output_config", "outputConfig"} {
				if config, ok := fields[key].(map[string]any); ok && config["effort"] != nil {
					effort, _ = config["effort"].(string)
				}
			}
		}
		if strings.Contains(model, "opus-5") && typ == "disabled" && (effort == "xhigh" || effort == "max") {
			return `{"type":"error","error":{"type":"invalid_request_error","message":"thinking cannot be disabled at this effort"},"message":"thinking cannot be disabled at this effort"}`
		}
		if strings.Contains(model, "haiku-4-5") {
			if typ == "adaptive" {
				return `{"type":"error","error":{"type":"invalid_request_error","message":"adaptive thinking is not available on this model"},"message":"adaptive thinking is not available on this model"}`
			}
			for _, key := range []string{"output_config", "outputConfig"} {
				if config, ok := body[key].(map[string]any); ok && config["effort"] != nil {
					return `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not accept an effort."},"message":"This model does not accept an effort."}`
				}
			}
			if t, ok := thinking.(map[string]any); ok && typ == "enabled" {
				budget, _ := t["budget_tokens"].(float64)
				if most, ok := body["max_tokens"].(float64); ok && (budget < 1024 || budget >= most) {
					return `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens must be greater than thinking.budget_tokens"}}`
				}
			}
			messages, _ := body["messages"].([]any)
			if last, _ := json.Marshal(messages[len(messages)-1]); typ == "enabled" && (strings.Contains(string(last), "tool_result") || strings.Contains(string(last), "toolResult")) {
				before, _ := json.Marshal(messages[len(messages)-2])
				if !strings.Contains(string(before), `"thinking"`) && !strings.Contains(string(before), "reasoningContent") {
					return `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.type: Expected thinking, but found tool_use."},"message":"messages.1.content.0.type: found tool_use first."}`
				}
			}
		}
	}
	return ""
}

func (s *refusingUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(raw))
	s.mu.Unlock()
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if why := refusalOf(r.URL.Path, body); why != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, why)
		return
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		_, _ = io.WriteString(w, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	case strings.HasSuffix(path, "/responses"):
		_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	case path == "/api/chat":
		_, _ = io.WriteString(w, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Yes."},"done":true,"done_reason":"stop"}`)
	case strings.HasSuffix(path, "/converse"):
		_, _ = io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"Yes."}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`)
	default:
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	}
}

// strictGateway serves a gateway before a strict upstream. more is added to the
// config file, with the address of the upstream for BASE.
func strictGateway(t *testing.T, more string) (url string, upstream *refusingUpstream) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	upstream = &refusingUpstream{}
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	config, err := gateway.Parse("gateway.yaml", []byte(configOf(server.URL)+strings.ReplaceAll(more, "BASE", server.URL)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(config, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return front.URL, upstream
}

// postJSON sends a body to the gateway and returns the status, the losses and the body of
// the response.
func postJSON(t *testing.T, url, body string) (status int, losses, respBody string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("X-Dragoman-Losses"), string(out)
}

// Requests with the settings that Claude Code and Gemini CLI always send.
const (
	claudeCode = `{"model":%q,"max_tokens":32000,"temperature":1,"thinking":{"type":"adaptive"},"output_config":{"effort":%q},"messages":[{"role":"user","content":"Do I need a coat?"}]}`
	geminiCLI  = `{"contents":[{"role":"user","parts":[{"text":"Do I need a coat?"}]}],"generationConfig":{"temperature":1,"topP":0.95,"topK":64,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":%q}}}`
)

func TestA2_EffortDoesNotReachModelsThatRefuseIt(t *testing.T) {
	url, upstream := strictGateway(t, "")
	for _, model := range []string{
		"openai/gpt-4.1", "openai/gpt-4o-2024-11-20", "openai/gpt-4.9-new", "responses/gpt-4.1", "responses/gpt-4o",
		"ollama/llama3.1:8b", "ollama/qwen3:8b", "ollama/gpt-oss:20b", "ollama/unknown-one",
		"ollama/private-model", "openai/private-gpt-4-deployment", "responses/private-deployment", // unknown: repaired after the 400
	} {
		for _, effort := range []string{"low", "high", "max"} {
			for client, send := range map[string]func() (int, string, string){
				"Claude Code": func() (int, string, string) {
					return postJSON(t, url+"/v1/messages", fmt.Sprintf(claudeCode, model, effort))
				},
				"Gemini CLI": func() (int, string, string) {
					level := map[string]string{"low": "LOW", "high": "HIGH", "max": "MINIMAL"}[effort]
					return postJSON(t, url+"/v1beta/models/"+model+":generateContent", fmt.Sprintf(geminiCLI, level))
				},
			} {
				status, losses, body := send()
				if status != http.StatusOK {
					t.Errorf("%s to %s with %s: %d %s", client, model, effort, status, body)
				}
				if strings.Contains(model, "gpt-4") && !strings.Contains(losses, "/reasoning") {
					t.Errorf("%s to %s: the loss of the effort is not reported: %q", client, model, losses)
				}
			}
		}
	}
	sent := strings.Join(upstream.bodies, "\n")
	for _, want := range []string{`"think":true`, `"think":"high"`} { // qwen3 thinks, gpt-oss has levels
		if !strings.Contains(sent, want) {
			t.Errorf("no %s was sent", want)
		}
	}
}

func TestA2_ForeignEffortsAreMappedToTheModel(t *testing.T) {
	url, upstream := strictGateway(t, "")
	for _, tc := range []struct{ path, body, want, not string }{
		{"/v1/messages", fmt.Sprintf(claudeCode, "responses/gpt-5", "max"), `"effort":"high"`, `"max"`},
		{"/v1/messages", fmt.Sprintf(claudeCode, "responses/gpt-5.6-sol", "max"), `"effort":"max"`, ""},
		{"/v1/chat/completions", `{"model":"anthropic/claude-opus-4-7","reasoning_effort":"minimal","messages":[{"role":"user","content":"hi"}]}`, `"effort":"low"`, "minimal"},
		{"/v1/chat/completions", `{"model":"anthropic/claude-opus-4-7","reasoning_effort":"default","messages":[{"role":"user","content":"hi"}]}`, `"claude-opus-4-7"`, "default"},
		{"/v1/chat/completions", `{"model":"anthropic/claude-opus-5-5","reasoning_effort":"none","messages":[{"role":"user","content":"hi"}]}`, `"effort":"low"`, "disabled"},
		{"/v1/messages", `{"model":"responses/gpt-5-pro","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"hi"}]}`, `"effort":"high"`, `"low"`},
		{"/v1/messages", fmt.Sprintf(claudeCode, "chat/some-model", "max"), `"reasoning_effort":"high"`, `"max"`},
	} {
		status, losses, body := postJSON(t, url+tc.path, tc.body)
		last := upstream.bodies[len(upstream.bodies)-1]
		if status != http.StatusOK || !strings.Contains(last, tc.want) || tc.not != "" && strings.Contains(last, tc.not) {
			t.Errorf("%s: %d %s\nsent %s", tc.body, status, body, last)
		}
		if tc.not != "" && !strings.Contains(losses, "/reasoning") {
			t.Errorf("%s: the loss is not reported: %q", tc.body, losses)
		}
	}
}

// Claude up to 4.5 gets a budget in place of an effort, also from Anthropic clients. Their
// max_tokens may be less than that budget.
func TestA2_BudgetsForEffortsStayBelowMaxTokens(t *testing.T) {
	url, upstream := strictGateway(t, `  house: {type: anthropic, base_url: "BASE", api_key_env: SIM_KEY, retries: 0}
`)
	const body = `{"model":"house/claude-haiku-4-5","max_tokens":%d,%s,"messages":[{"role":"user","content":"hi"}]}`
	for _, requests := range []string{
		`"output_config":{"effort":"high"}`, `"thinking":{"type":"adaptive"}`,
		`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`,
	} {
		for maxTokens, want := range map[int]string{4000: `"budget_tokens":3999`, 512: `"max_tokens":512`} {
			status, losses, respBody := postJSON(t, url+"/v1/messages", fmt.Sprintf(body, maxTokens, requests))
			last := upstream.bodies[len(upstream.bodies)-1]
			if status != http.StatusOK || !strings.Contains(last, want) || !strings.Contains(losses, "/reasoning/budget_tokens") {
				t.Errorf("%s with max_tokens %d: %d %s, losses %q\nsent %s", requests, maxTokens, status, respBody, losses, last)
			}
		}
	}
	// A budget of the client is sent unchanged: with interleaved thinking it may exceed max_tokens.
	const own = `{"model":"house/claude-sonnet-4-5","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":9000},"messages":[{"role":"user","content":"hi"}]}`
	if status, _, respBody := postJSON(t, url+"/v1/messages", own); status != http.StatusOK || !strings.Contains(upstream.bodies[len(upstream.bodies)-1], `"budget_tokens":9000`) {
		t.Errorf("%d %s", status, respBody)
	}
}

// Claude Opus 5 refuses xhigh and max while thinking is disabled; Opus 4.8 does not.
func TestA2_EffortsAboveHighAreLoweredWhileThinkingIsOff(t *testing.T) {
	url, upstream := strictGateway(t, "")
	for _, tc := range []struct{ model, asked, sent string }{
		{"bedrock/anthropic.claude-opus-5", "max", "high"},
		{"bedrock/anthropic.claude-opus-5", "xhigh", "high"},
		{"bedrock/anthropic.claude-opus-5", "low", "low"},
		{"bedrock/anthropic.claude-opus-4-8", "max", "max"},
	} {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":9000,"thinking":{"type":"disabled"},"output_config":{"effort":%q},"messages":[{"role":"user","content":"hi"}]}`, tc.model, tc.asked)
		status, losses, respBody := postJSON(t, url+"/v1/messages", body)
		last := upstream.bodies[len(upstream.bodies)-1]
		if status != http.StatusOK || !strings.Contains(last, `"effort":"`+tc.sent+`"`) || !strings.Contains(last, `"disabled"`) {
			t.Errorf("%s with %s: %d %s\nsent %s", tc.model, tc.asked, status, respBody, last)
		}
		if lowered := strings.Contains(losses, "lowered /reasoning/effort"); lowered != (tc.asked != tc.sent) {
			t.Errorf("%s with %s: losses %q", tc.model, tc.asked, losses)
		}
	}
}

// The display name of a provider does not decide what its server accepts.
func TestA3_TopKDoesNotReachOpenAI(t *testing.T) {
	url, upstream := strictGateway(t, `
  work: {type: openai-chat, base_url: "BASE/v1", api_key_env: SIM_KEY, retries: 0}
  deepseek: {type: openai-chat, base_url: "BASE/v1", api_key_env: SIM_KEY, retries: 0}
`)
	for _, model := range []string{"openai/gpt-4.1", "work/gpt-4.1", "work/unknown-deployment", "deepseek/gpt-4.1"} {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":100,"top_k":40,"messages":[{"role":"user","content":"hi"}]}`, model)
		status, losses, respBody := postJSON(t, url+"/v1/messages", body)
		if status != http.StatusOK || !strings.Contains(losses, "/sampling/top_k") {
			t.Errorf("%s: %d %s, losses %q", model, status, respBody, losses)
		}
		if sent := upstream.bodies[len(upstream.bodies)-1]; strings.Contains(sent, "top_k") {
			t.Errorf("%s got %s", model, sent)
		}
	}
}

// A pending tool turn without thinking: another model made the call.
func TestQuirkD26_NoThinkingForCallsWithoutReasoning(t *testing.T) {
	url, upstream := strictGateway(t, "")
	const conversation = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"4"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	const own = `"max_tokens":9000,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"4"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	for _, tc := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"anthropic/claude-haiku-4-5","reasoning_effort":"high",` + conversation + `}`},
		{"/v1/chat/completions", `{"model":"bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0","reasoning_effort":"high",` + conversation + `}`},
		{"/v1/messages", `{"model":"bedrock/anthropic.claude-haiku-4-5-20251001-v1:0","thinking":{"type":"adaptive"},` + own + `}`},
		{"/v1/messages", `{"model":"bedrock/anthropic.claude-haiku-4-5-20251001-v1:0","thinking":{"type":"enabled","budget_tokens":2048},` + own + `}`},
	} {
		status, losses, body := postJSON(t, url+tc.path, tc.body)
		if status != http.StatusOK || !strings.Contains(losses, "/reasoning") {
			t.Errorf("%s: %d %s, losses %q\nsent %s", tc.body, status, body, losses, upstream.bodies[len(upstream.bodies)-1])
		}
	}
	before := len(upstream.bodies)
	status, _, body := postJSON(t, url+"/v1/chat/completions", `{"model":"anthropic/claude-haiku-4-5","reasoning_effort":"high","messages":[{"role":"user","content":"hi"}]}`)
	if sent := upstream.bodies[before]; status != http.StatusOK || !strings.Contains(sent, `"budget_tokens"`) {
		t.Errorf("without pending calls: %d %s\nsent %s", status, body, sent)
	}
}

func TestRouteCapabilitiesOverrideModelFacts(t *testing.T) {
	url, upstream := strictGateway(t, `gateway:
  routes:
    quiet: {to: responses/gpt-5.6-sol, capabilities: {no_thinking: true}}
    "own": {to: openai/gpt-4.1, capabilities: {no_sampling: true}}
`)
	if status, losses, body := postJSON(t, url+"/v1/messages", fmt.Sprintf(claudeCode, "quiet", "high")); status != http.StatusOK || !strings.Contains(losses, "/reasoning") || strings.Contains(upstream.bodies[0], `"effort"`) {
		t.Errorf("%d %s, losses %q\nsent %s", status, body, losses, upstream.bodies)
	}
	// A route with capabilities encodes also what could pass through.
	status, _, body := postJSON(t, url+"/v1/chat/completions", `{"model":"own","temperature":0.5,"messages":[{"role":"user","content":"hi"}]}`)
	if sent := upstream.bodies[len(upstream.bodies)-1]; status != http.StatusOK || strings.Contains(sent, "temperature") {
		t.Errorf("%d %s\nsent %s", status, body, sent)
	}
	if _, err := gateway.Parse("g.yaml", []byte("version: 1\ngateway:\n  routes:\n    a: {to: sim/echo, capabilities: {no_thinkin: true}}\n")); err == nil || !strings.Contains(err.Error(), "g.yaml:4:") || !strings.Contains(err.Error(), "no_thinking") {
		t.Errorf("%v", err)
	}
}

// In its own dialect a request passes through, and the client gets the server's own
// error.
func TestOwnDialectPassesThroughUnchanged(t *testing.T) {
	url, upstream := strictGateway(t, "")
	const body = `{"messages": [{"role":"user","content":"hi"}], "model": "gpt-4.1",  "reasoning_effort": "high"}`
	status, _, respBody := postJSON(t, url+"/v1/chat/completions", strings.Replace(body, "gpt-4.1", "openai/gpt-4.1", 1))
	if status != http.StatusBadRequest || !strings.Contains(respBody, `"param":"reasoning_effort"`) || len(upstream.bodies) != 1 || upstream.bodies[0] != body {
		t.Errorf("%d %s\nsent %q", status, respBody, upstream.bodies)
	}
}

func TestR11_StrictProviderRefusesWhatWouldBeLost(t *testing.T) {
	url, upstream := strictGateway(t, `  careful: {type: anthropic, base_url: "BASE", api_key_env: SIM_KEY, retries: 0, strict: serious}
`)
	const body = `{"model":"%s/claude-opus-4-7","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_object"}}`
	if status, losses, respBody := postJSON(t, url+"/v1/chat/completions", fmt.Sprintf(body, "anthropic")); status != http.StatusOK || !strings.Contains(losses, "/output") {
		t.Errorf("not strict: %d %s, losses %q", status, respBody, losses)
	}
	sent := len(upstream.bodies)
	status, _, respBody := postJSON(t, url+"/v1/chat/completions", fmt.Sprintf(body, "careful"))
	if status != http.StatusBadRequest || !strings.Contains(respBody, "/output") || !strings.Contains(respBody, `"invalid_request_error"`) || len(upstream.bodies) != sent {
		t.Errorf("strict: %d %s, %d requests sent", status, respBody, len(upstream.bodies)-sent)
	}
}

// Losses from decoding a request count, too.
func TestR11_StrictProviderRefusesDecodingLosses(t *testing.T) {
	url, upstream := strictGateway(t, `  careful: {type: anthropic, base_url: "BASE", api_key_env: SIM_KEY, retries: 0, strict: warn}
gateway: {routes: {"anthropic/*": {to: "anthropic/*"}, "careful/*": {to: "careful/*"}, either: {to: "careful/claude-opus-4-7, anthropic/claude-opus-4-7"}}}
`)
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"%%s","stream":%t,"messages":[{"role":"user","content":"first","content":"second"}]}`, stream)
		for model, refused := range map[string]bool{"anthropic/claude-opus-4-7": false, "careful/claude-opus-4-7": true, "either": false} {
			sent := len(upstream.bodies)
			status, losses, respBody := postJSON(t, url+"/v1/chat/completions", fmt.Sprintf(body, model))
			switch {
			case refused && (status != http.StatusBadRequest || !strings.Contains(respBody, "/messages/0/content") || !strings.Contains(respBody, `"invalid_request_error"`) || len(upstream.bodies) != sent):
				t.Errorf("%s, stream %t: %d %s, %d requests sent", model, stream, status, respBody, len(upstream.bodies)-sent)
			case !refused && (status != http.StatusOK || !strings.Contains(losses, "/messages/0/content") || len(upstream.bodies) != sent+1):
				t.Errorf("%s, stream %t: %d %s, losses %q", model, stream, status, respBody, losses)
			}
		}
	}
}
