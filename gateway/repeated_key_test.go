package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Arguments with a repeated key go back to the API that they came from as received, also
// if the gateway rebuilds the request, and as {} to others.
func TestR7_RepeatedKeysPassToTheSameAPI(t *testing.T) {
	const body = `{"model":"MODEL","messages":[{"role":"user","content":"hi"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"q\":\"a\",\"q\":\"b\"}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"no"}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]}`
	var sent string
	w := newServerWorld(t, "gateway: {"+routesWith("repair: always")+"}\n", func(rw http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		sent = string(raw)
		http.Error(rw, "seen", http.StatusBadRequest)
	})
	for model, wantKept := range map[string]bool{"openai/m": true, "chat/m": true, "responses/m": false, "anthropic/m": false, "gemini/m": false, "ollama/m": false} {
		sent = ""
		_, _, respBody := postJSON(t, w.url+"/v1/chat/completions", strings.Replace(body, "MODEL", model, 1))
		if sent == "" || strings.Contains(sent, `{\"q\":\"a\",\"q\":\"b\"}`) != wantKept || !wantKept && strings.Contains(sent, `"q`) {
			t.Errorf("%s gets %s, %s", model, sent, respBody)
		}
	}
}
