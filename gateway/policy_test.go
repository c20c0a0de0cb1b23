package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/tool"
)

// policyWorld is a gateway with policies, before two servers of OpenAI Chat.
type policyWorld struct {
	*httptest.Server
	gateway *gateway.Gateway
	config  string
	// calls counts the requests to the two servers; failing makes the first one fail.
	calls   [2]atomic.Int32
	failing atomic.Bool

	mu      sync.Mutex
	decided []string
	log     bytes.Buffer
}

// policyFile writes a policy and returns its name.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte("version: 1\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// newPolicyWorld serves a gateway whose section of the config is text.
func newPolicyWorld(t *testing.T, text string) *policyWorld {
	t.Helper()
	p := &policyWorld{}
	config := "version: 1\nproviders:\n"
	for i, name := range []string{"first", "second"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.calls[i].Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			if i == 0 && p.failing.Load() {
				http.Error(w, `{"error":{"message":"overloaded","type":"server_error"}}`, http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"from %s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, name)
		}))
		t.Cleanup(server.Close)
		config += fmt.Sprintf("  %s: {type: compatible, base_url: %q, retries: 0}\n", name, server.URL+"/v1")
	}
	p.config = config + text
	c, err := gateway.Parse("config.yaml", []byte(p.config))
	if err != nil {
		t.Fatal(err)
	}
	p.gateway, err = gateway.New(c, gateway.Options{
		Log: slog.New(slog.NewTextHandler(&p.log, nil)),
		OnDecision: func(d tool.PolicyDecided) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.decided = append(p.decided, fmt.Sprintf("%s %s %s %s", d.Subject, d.Model, d.Decision.Effect, d.Decision.Rule))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewServer(p.gateway)
	t.Cleanup(p.Close)
	return p
}

// post sends a request and returns the response.
func (p *policyWorld) post(t *testing.T, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

const chatBody = `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`

func TestP1_TheGatewayDeniesInEveryDialect(t *testing.T) {
	file := policyFile(t, `rules: [{id: no-first, effect: deny, reason: Not here., subjects: model_call, when: {model: "first/*"}}]`)
	p := newPolicyWorld(t, fmt.Sprintf("gateway:\n  policy: %q\n  routes: {closed: {to: first/m}, open: {to: second/m}}\n", file))
	const want = `the gateway's policy denies the model "closed" by rule "no-first": Not here.`
	for _, tc := range []struct{ name, path, body string }{
		{"chat", "/v1/chat/completions", `{"model":"closed","messages":[{"role":"user","content":"hi"}]}`},
		{"chat stream", "/v1/chat/completions", `{"model":"closed","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		{"responses", "/v1/responses", `{"model":"closed","input":"hi"}`},
		{"responses stream", "/v1/responses", `{"model":"closed","input":"hi","stream":true}`},
		{"responses compact", "/v1/responses/compact", `{"model":"closed","input":"hi"}`},
		{"anthropic", "/v1/messages", `{"model":"closed","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		{"anthropic count", "/v1/messages/count_tokens", `{"model":"closed","messages":[{"role":"user","content":"hi"}]}`},
		{"gemini", "/v1beta/models/closed:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
		{"gemini stream", "/v1beta/models/closed:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
		{"ollama", "/api/chat", `{"model":"closed","messages":[{"role":"user","content":"hi"}]}`},
	} {
		status, body := p.post(t, tc.path, tc.body)
		var parsed struct {
			Type  string          `json:"type"`
			Error json.RawMessage `json:"error"`
		}
		err := json.Unmarshal([]byte(body), &parsed)
		var text string // Ollama has a plain text, the others an object
		if json.Unmarshal(parsed.Error, &text) != nil {
			var object struct {
				Message string `json:"message"`
			}
			_ = json.Unmarshal(parsed.Error, &object)
			text = object.Message
		}
		if status != http.StatusForbidden || err != nil || text != want {
			t.Errorf("%s: %d %s", tc.name, status, body)
		}
		if strings.HasPrefix(tc.name, "anthropic") && (parsed.Type != "error" || !strings.Contains(body, `"permission_error"`)) {
			t.Errorf("%s: %s", tc.name, body)
		}
		if strings.Contains(body, "first/") {
			t.Errorf("%s names the upstream: %s", tc.name, body)
		}
	}
	if n := p.calls[0].Load(); n != 0 {
		t.Errorf("the denied server was called %d times", n)
	}
	if status, body := p.post(t, "/v1/chat/completions", fmt.Sprintf(chatBody, "open")); status != http.StatusOK || !strings.Contains(body, "from second") {
		t.Errorf("%d %s", status, body)
	}
	if last := p.decided[len(p.decided)-1]; len(p.decided) != 11 || last != "model_call second/m allow " { // requirement P3, allow included
		t.Errorf("%d decisions, the last %q", len(p.decided), last)
	}
	if log := p.log.String(); !strings.Contains(log, `policy="first/m: deny by no-first"`) || !strings.Contains(log, `policy="second/m: allow by default"`) {
		t.Errorf("log:\n%s", log)
	}
	resp, err := http.Get(p.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), `dragoman_policy_decisions_total{effect="deny"} 10`) {
		t.Errorf("metrics:\n%s", b)
	}
}

func TestP1_PoliciesOfGatewayKeyAndRouteMustAllAllow(t *testing.T) {
	t.Setenv("KEY_A", "key-a-0123456789abcdef")
	t.Setenv("KEY_B", "key-b-0123456789abcdef")
	all := policyFile(t, `rules: [{id: no-x, effect: deny, when: {metadata: {requested: x}}}]`)
	key := policyFile(t, "default: deny\nrules: [{id: y-only, effect: allow, when: {metadata: {route: y}}}]")
	route := policyFile(t, `rules: [{id: chat-only, effect: deny, when: {expression: 'metadata.dialect != "openai.chat_completions"'}}]`)
	p := newPolicyWorld(t, fmt.Sprintf(`gateway:
  policy: %q
  keys:
    a: {key_env: KEY_A}
    b: {key_env: KEY_B, policy: %q}
  routes: {x: {to: first/m}, y: {to: first/m}, z: {to: first/m, policy: %q}}
`, all, key, route))
	for _, tc := range []struct {
		key, model, path string
		status           int
		rule             string
	}{
		{"a", "x", "/v1/chat/completions", http.StatusForbidden, "no-x"},
		{"a", "y", "/v1/chat/completions", http.StatusOK, ""},
		{"a", "z", "/v1/chat/completions", http.StatusOK, ""},
		{"a", "z", "/api/chat", http.StatusForbidden, "chat-only"},
		{"b", "x", "/v1/chat/completions", http.StatusForbidden, "no-x"},
		{"b", "y", "/v1/chat/completions", http.StatusOK, ""},
		{"b", "z", "/v1/chat/completions", http.StatusForbidden, "no rule allows this call"}, // the key's default
	} {
		before := p.calls[0].Load()
		status, body := p.post(t, tc.path, fmt.Sprintf(`{"model":%q,"stream":false,"messages":[{"role":"user","content":"hi"}]}`, tc.model), "Authorization", "Bearer key-"+tc.key+"-0123456789abcdef")
		if status != tc.status || !strings.Contains(body, tc.rule) {
			t.Errorf("%+v: %d %s", tc, status, body)
		}
		if called := p.calls[0].Load() != before; called != (tc.status == http.StatusOK) {
			t.Errorf("%+v: called %t", tc, called)
		}
	}
}

func TestP1_TheGatewaySkipsADeniedModelOfARoute(t *testing.T) {
	file := policyFile(t, `rules: [{id: no-second, effect: deny, when: {model: "second/*"}}]`)
	p := newPolicyWorld(t, fmt.Sprintf("gateway:\n  policy: %q\n  routes: {down: {to: \"second/m, first/m\"}, up: {to: \"first/m, second/m\"}}\n", file))
	if status, body := p.post(t, "/v1/chat/completions", fmt.Sprintf(chatBody, "down")); status != http.StatusOK || !strings.Contains(body, "from first") {
		t.Errorf("%d %s", status, body)
	}
	for path, body := range map[string]string{ // tokens are counted for the model that would be called
		"/v1/messages/count_tokens": `{"model":"down","messages":[{"role":"user","content":"hi"}]}`, "/v1/responses/input_tokens": `{"model":"down","input":"hi"}`,
		"/v1beta/models/down:countTokens": `{"contents":[{"parts":[{"text":"hi"}]}]}`,
	} {
		if status, text := p.post(t, path, body); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	p.failing.Store(true) // the failure of a called model takes precedence over the denial of another
	if status, body := p.post(t, "/v1/chat/completions", fmt.Sprintf(chatBody, "up")); status != http.StatusServiceUnavailable || !strings.Contains(body, "overloaded") {
		t.Errorf("%d %s", status, body)
	}
	if n := p.calls[1].Load(); n != 0 {
		t.Errorf("the denied server was called %d times", n)
	}
}

func TestP1_TheGatewayRefusesPoliciesThatCannotApply(t *testing.T) {
	for text, want := range map[string]string{
		"rules:\n  - {id: a, effect: deny, when: {tool: x}}":     `policy.yaml:3:6: rule "a": subjects: the rule can never apply: the gateway decides on model_call only`,
		"rules:\n  - {id: a, effect: ask}":                       "the gateway decides on model_call only",
		"rules:\n  - {id: a, effect: ask, subjects: model_call}": "a model_call cannot wait for a human",
		"rules:\n  - {id: a, effect: deny, subjects: handoff}":   "the gateway decides on model_call only",
		"rules:\n  - {id: a, effect: deny, when: {agent: x}}":    "when.agent: the rule can never apply: the gateway has no agents",
		"default: ask":                       "policy.yaml:2:10: default: ask asks a human",
		"rules:\n  - {id: a, effect: maybe}": `policy.yaml:3:21: rule "a": effect: unknown effect "maybe"`,
		"rules:\n  - {id: a, effect: deny, subjects: model_call, when: {target: x}}": "when.target: a model_call has no target",
	} {
		file := policyFile(t, text)
		for _, section := range []string{
			fmt.Sprintf("gateway:\n  policy: %q\n", file),
			fmt.Sprintf("gateway:\n  routes: {x: {to: sim/echo, policy: %q}}\n", file),
			fmt.Sprintf("gateway:\n  keys: {k: {key_sha256: %s, policy: %q}}\n", strings.Repeat("ab", 32), file),
		} {
			_, err := gateway.Parse("config.yaml", []byte("version: 1\n"+section))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "config.yaml:3:") {
				t.Errorf("%s: %v\nwant %s", section, err, want)
			}
		}
	}
	if _, err := gateway.Parse("config.yaml", []byte("version: 1\ngateway:\n  policy: missing.yaml\n")); err == nil || !strings.Contains(err.Error(), "config.yaml:3:11: policy: ") {
		t.Errorf("%v", err)
	}
}

func TestP1_ChangedPolicyIsReloaded(t *testing.T) {
	file := policyFile(t, "default: allow")
	p := newPolicyWorld(t, fmt.Sprintf("gateway:\n  policy: %q\n  routes: {x: {to: first/m}}\n", file))
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(p.config), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed []string
	w := &gateway.Watcher{File: name, OnChange: p.gateway.Reload, OnError: func(err error) { failed = append(failed, err.Error()) }}
	if _, err := w.Load(); err != nil {
		t.Fatal(err)
	}
	ask := func() int {
		status, _ := p.post(t, "/v1/chat/completions", fmt.Sprintf(chatBody, "x"))
		return status
	}
	var got []int
	for _, text := range []string{"default: allow", "default: deny", "default: maybe", "default: allow"} {
		if err := os.WriteFile(file, []byte("version: 1\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Poll()
		got = append(got, ask())
	}
	if want := []int{200, 403, 403, 200}; !slices.Equal(got, want) || len(failed) != 1 {
		t.Errorf("%v, want %v; %q", got, want, failed)
	}
}

// A rule whose expression fails denies the request, and no model is called.
func TestP5_PolicyThatFailsDeniesInTheGateway(t *testing.T) {
	file := policyFile(t, `rules: [{id: team, effect: allow, when: {expression: 'metadata.team == "blue"'}}]`)
	p := newPolicyWorld(t, fmt.Sprintf("gateway:\n  policy: %q\n  routes: {x: {to: \"first/m, second/m\"}}\n", file))
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"x","stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
		status, text := get(t, http.MethodPost, p.URL+"/v1/chat/completions", body)
		if status != http.StatusForbidden || !strings.Contains(text, "the policy failed") {
			t.Errorf("stream %v: %d %s", stream, status, text)
		}
	}
	if n := p.calls[0].Load() + p.calls[1].Load(); n != 0 {
		t.Errorf("the models were called %d times", n)
	}
}

func TestP1_ARuleDeniesEveryNameOfAModel(t *testing.T) {
	file := policyFile(t, "default: allow\nrules:\n  - {id: no, effect: deny, when: {model: ['gemini/m', 'ollama/m', 'ollama/n:latest']}}")
	w := newServerWorld(t, fmt.Sprintf("gateway:\n  policy: %q\n  routes: {g-*: {to: gemini/*}, o-*: {to: ollama/*}}\n", file), hello)
	for model, want := range map[string]int{
		"g-m": 403, "g-models/m": 403, "g-other": 200, "o-m": 403, "o-m:latest": 403, "o-M": 403, "o-n": 403, "o-n:latest": 403, "o-m:7b": 200,
	} {
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`)
		if status != want {
			t.Errorf("%s: %d %s", model, status, text)
		}
	}
}
