package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/sim"
)

// modelFileWorld is a gateway with a file of model facts, in front of a strict upstream.
// An empty file means none.
func modelFileWorld(t *testing.T, facts string) (url string, upstream *strictupstream.Server) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	upstream = strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/echo", Record: true})
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	config := configOf(s.URL) + `  groq: {base_url: "` + s.URL + `/v1", api_key_env: SIM_KEY, retries: 0}` + "\n"
	if facts != "" {
		file := filepath.Join(t.TempDir(), "models.yaml")
		if err := os.WriteFile(file, []byte(facts), 0o600); err != nil {
			t.Fatal(err)
		}
		config = strings.Replace(config, "providers:", "model_file: "+file+"\nproviders:", 1)
	}
	return newWorldOf(t, s, config).url, upstream
}

// gpt-oss on Groq refuses reasoning_format; Qwen does not.
func TestA2_ReasoningFormatDoesNotReachModelsThatRefuseIt(t *testing.T) {
	t.Setenv("SIM_KEY", "upstream-secret")
	upstream := strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/echo", Record: true})
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	config := `version: 1
providers:
  groq: {base_url: "` + s.URL + `/v1", api_key_env: SIM_KEY, retries: 0}
  set: {type: groq, base_url: "` + s.URL + `/v1", api_key_env: SIM_KEY, retries: 0, extensions: {groq: {reasoning_format: hidden}}}
`
	url := newWorldOf(t, s, config).url
	const field = `"reasoning_format"`
	for _, tc := range []struct {
		model, more string
		sent        bool
	}{
		{"groq/openai/gpt-oss-20b", `,"reasoning_format":"parsed"`, false},
		{"groq/qwen/qwen3-32b", `,"reasoning_format":"parsed"`, true},
		{"set/openai/gpt-oss-20b", "", false},
		{"set/qwen/qwen3-32b", "", true},
	} {
		before := len(upstream.Seen(""))
		status, losses, body := postJSON(t, url+"/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]%s}`, tc.model, tc.more))
		seen := upstream.Seen("")[before:]
		if status != http.StatusOK || len(seen) != 1 || strings.Contains(seen[0], field) != tc.sent || strings.Contains(losses, "/reasoning_format") == tc.sent {
			t.Errorf("%s: %d %s, losses %q, sent %s", tc.model, status, body, losses, seen)
		}
	}
}

// An entry of the model file replaces what the table knows, so that a capability can be
// taken back in every dialect.
func TestA2_ModelFileOverridesCapabilities(t *testing.T) {
	const (
		claudeTurn = `{"model":%q,"max_tokens":500,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"4"}]}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{},"additionalProperties":false}}]}`
		chatOutput = `{"model":%q,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],` +
			`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}}`
	)
	for _, tc := range []struct {
		name, path, body, model, id, facts string
		sent                               string // to the upstream with the file, and not without it
	}{
		{"call ids of Gemini", "/v1/messages", claudeTurn, "gemini/gemini-2.5-flash", "gemini/gemini-2.5-flash", "refuses: [prefill, thinkingLevel]", `"id":"toolu_1"`},
		{"call ids of a family", "/v1/messages", claudeTurn, "gemini/gemini-2.7-flash", "gemini/gemini-2.5-flash", "refuses: [prefill, thinkingLevel]", `"id":"toolu_1"`},
		{
			"budgets of Gemini", "/v1/chat/completions", `{"model":%q,"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"low"}`, "gemini/gemini-2.9-max", "gemini/gemini-2.9-max",
			"match: [gemini-2.9-max]\n    reasoning: {supported: true, efforts: [low, high]}", `"thinkingLevel":"LOW"`,
		},
		{"output with tools on Bedrock", "/v1/chat/completions", chatOutput, "bedrock/anthropic.claude-opus-4-8", "bedrock/anthropic.claude-opus-4-8", "refuses_together: []", `"textFormat"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := fmt.Sprintf("version: 1\nmodels:\n  - id: %s\n    %s\n", tc.id, tc.facts)
			for _, file := range []string{"", facts} {
				url, upstream := modelFileWorld(t, file)
				status, _, body := postJSON(t, url+tc.path, fmt.Sprintf(tc.body, tc.model))
				seen := upstream.Seen("")
				if status != http.StatusOK || len(seen) != 1 {
					t.Fatalf("%d %s, %d requests", status, body, len(seen))
				}
				if strings.Contains(seen[0], tc.sent) != (file != "") {
					t.Errorf("with the file %q the upstream got %s", file, seen[0])
				}
			}
		})
	}
}
