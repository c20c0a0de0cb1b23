package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/sim"
)

// A text-only model gets a note in place of an image, in a message and in a tool result,
// and the loss is reported. A model that reads images gets the image. A capability in
// the config overrides the model table.
func TestQuirkD14_TextOnlyModelGetsNoteForImage(t *testing.T) {
	const (
		image    = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
		question = `{"max_tokens":500,"model":"MODEL","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},` + image + `]}]}`
		result   = `{"max_tokens":500,"model":"MODEL","tools":[{"name":"look","input_schema":{"type":"object","properties":{}}}],"messages":[{"role":"user","content":"Look."},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[` + image + `]}]}]}`
	)
	t.Setenv("SIM_KEY", "upstream-secret")
	upstream := strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/echo", Record: true})
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	config := configOf(s.URL) + `  deepseek: {base_url: "` + s.URL + `/v1", api_key_env: SIM_KEY, retries: 0, models: {sees: {name: deepseek-chat, capabilities: {refuses_media: ""}}}}` + "\n"
	url := newWorldOf(t, s, config).url
	for _, tc := range []struct {
		model   string
		dropped bool
		refused bool
	}{
		{"deepseek/deepseek-chat", true, false},
		{"openai/o3-mini", true, false},
		{"responses/o3-mini", true, false},
		{"ollama/llama3.2", true, false},
		{"bedrock/us.amazon.nova-micro-v1:0", true, false},
		{"openai/gpt-4o", false, false},
		{"ollama/qwen3-vl", false, false}, // llama3.2-vision takes images and no tools
		{"bedrock/us.amazon.nova-lite-v1:0", false, false},
		{"deepseek/sees", false, true},
	} {
		for name, body := range map[string]string{"message": question, "result": result} {
			before := len(upstream.Seen(""))
			status, losses, respBody := postJSON(t, url+"/v1/messages", strings.Replace(body, "MODEL", tc.model, 1))
			seen := upstream.Seen("")[before:]
			if tc.refused {
				if status != http.StatusBadRequest || !strings.Contains(respBody, "image_url") {
					t.Errorf("%s, %s: %d %s, want the refusal of the upstream", tc.model, name, status, respBody)
				}
				continue
			}
			if status != http.StatusOK || len(seen) != 1 {
				t.Errorf("%s, %s: %d %s, %d requests", tc.model, name, status, respBody, len(seen))
				continue
			}
			if sent := strings.Contains(seen[0], "iVBORw0KGgo="); sent == tc.dropped || strings.Contains(seen[0], "[image not shown]") != tc.dropped {
				t.Errorf("%s, %s: sent %s", tc.model, name, seen[0])
			}
			if tc.dropped && !strings.Contains(losses, "dropped /messages/") {
				t.Errorf("%s, %s: losses %q", tc.model, name, losses)
			}
		}
	}
}
