package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// Ollama clients ask for reasoning with true, false or a level, and name a model with or
// without the default tag. No upstream refuses what the gateway sends for that.
func TestA2_OllamaThinkIsNeverRefused(t *testing.T) {
	w, upstream, refused := strictWorld(t)
	bodies := map[string]string{
		"chat":     `{"model":%q,"think":%s,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`,
		"generate": `{"model":%q,"think":%s,"stream":%v,"prompt":"hi"}`,
		"tools": `{"model":%q,"think":%s,"stream":%v,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"4"}],` +
			`"tools":[{"type":"function","function":{"name":"f","description":"","parameters":{"type":"object","properties":{}}}}]}`,
	}
	for _, m := range strictModels {
		if m.dialect == dialectname.Ollama {
			continue // its own requests pass through
		}
		for kind, body := range bodies {
			path := "/api/chat"
			if kind == "generate" {
				path = "/api/generate"
			}
			for _, think := range []string{"true", "false", `"low"`, `"medium"`, `"high"`, `"max"`} {
				for _, stream := range []bool{false, true} {
					for _, name := range []string{m.name, m.name + ":latest"} {
						status, _, respBody := postJSON(t, w.url+path, fmt.Sprintf(body, name, think, stream))
						if status != http.StatusOK || !strings.Contains(respBody, fmt.Sprintf(`"model":%q`, name)) {
							t.Errorf("%s, think %s to %s: %d %s", kind, think, name, status, respBody)
						}
						for _, r := range refused() {
							t.Errorf("%s, think %s to %s: refused: %v", kind, think, name, r)
						}
					}
				}
			}
		}
	}
	if seen := upstream.Seen(":latest"); len(seen) > 0 {
		t.Errorf("an upstream got the default tag: %s", seen[0])
	}
}

func TestOllamaDefaultTagNamesTheSameModel(t *testing.T) {
	t.Setenv("TAG_KEY", "sk-0123456789abcdef")
	w := newWorld(t, `gateway:
  keys:
    k: {key_env: TAG_KEY, models: [fast, "tagged:latest"]}
  routes:
    fast: {to: chat/sim/echo}
    tagged: {to: chat/sim/none}
    "tagged:latest": {to: chat/sim/echo}
`)
	send := func(path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sk-0123456789abcdef")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		respBody, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(respBody)
	}
	const chat = `{"model":%q,"stream":false,"messages":[{"role":"user","content":"hi"}]}`
	for _, tc := range []struct {
		path, body string
		status     int
	}{
		{"/api/chat", fmt.Sprintf(chat, "fast"), http.StatusOK},
		{"/api/chat", fmt.Sprintf(chat, "fast:latest"), http.StatusOK},
		{"/api/show", `{"model":"fast:latest"}`, http.StatusOK},
		{"/api/chat", fmt.Sprintf(chat, "tagged:latest"), http.StatusOK}, // a route of its own
		{"/api/chat", fmt.Sprintf(chat, "fast:8b"), http.StatusForbidden},
		{"/v1/chat/completions", fmt.Sprintf(chat, "fast:latest"), http.StatusForbidden}, // not an Ollama client
	} {
		if status, got := send(tc.path, tc.body); status != tc.status {
			t.Errorf("%s %s: %d %s", tc.path, tc.body, status, got)
		}
	}
}
