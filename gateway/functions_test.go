package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// A client that tells functions was written before there were tools, and looks for no list
// of calls. The judge before the gateway says so too.
func TestAClientThatTellsFunctionsIsAnsweredWithAFunctionCall(t *testing.T) {
	w := newWorld(t, "")
	for _, stream := range []string{`false`, `true`} {
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"anthropic/sim/planner","stream":`+stream+`,"messages":[{"role":"user","content":"What's the weather in Oslo?"}],`+
			`"functions":[{"name":"get_weather","description":"Weather.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}`)
		if status != http.StatusOK || !strings.Contains(text, `"function_call":{"name":"get_weather"`) || !strings.Contains(text, `"finish_reason":"function_call"`) {
			t.Errorf("stream %s: %d %s", stream, status, text)
		}
	}
}
