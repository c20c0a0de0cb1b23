package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Clients that declare functions predate tools and do not read the list of calls. The judge checks
// that too.
func TestG1_LegacyFunctionClientsGetFunctionCalls(t *testing.T) {
	w := newWorld(t, "")
	for _, model := range []string{"chat/sim/planner", "anthropic/sim/planner", "gemini/sim/planner"} {
		t.Run(model, func(t *testing.T) { functionCallsOf(t, w.url, model) })
	}
}

func functionCallsOf(t *testing.T, url, model string) {
	t.Helper()
	head := `{"model":"` + model + `","functions":[{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],`
	const asked = `{"role":"user","content":"What is the weather in Oslo?"}`
	ask := func(messages, more string) string {
		status, text := get(t, http.MethodPost, url+"/v1/chat/completions", head+more+`"messages":[`+messages+`]}`)
		if status != http.StatusOK || strings.Contains(text, "tool_calls") {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	text := ask(asked, "")
	var body struct {
		Choices []struct {
			Message json.RawMessage
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || len(body.Choices) != 1 || body.Choices[0].Finish != "function_call" ||
		!strings.Contains(text, `"function_call":{"name":"get_weather","arguments":"{\"city\":`) {
		t.Fatalf("%v %s", err, text)
	}
	streamed := ask(asked, `"stream":true,`)
	if name, args := strings.Index(streamed, `"function_call":{"name":"get_weather","arguments":""}`), strings.Index(streamed, `"function_call":{"arguments":"`); name < 0 || args < name ||
		!strings.Contains(streamed, `"finish_reason":"function_call"`) {
		t.Errorf("%s", streamed)
	}
	if text := ask(asked+","+string(body.Choices[0].Message)+`,{"role":"function","name":"get_weather","content":"4 degrees"}`, ""); !strings.Contains(text, "4 degrees") || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("%s", text)
	}
}

func TestG1_LegacyFunctionClientGetsOneCall(t *testing.T) {
	for more, want := range map[string]string{``: `"disable_parallel_tool_use":true`, `,"parallel_tool_calls":true`: ""} {
		sent := ""
		w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			rw.Header().Set("content-type", "application/json")
			_, _ = io.WriteString(rw, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":4}}`)
		})
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"anthropic/m","messages":[{"role":"user","content":"hi"}],"functions":[{"name":"f","parameters":{"type":"object","properties":{}}}]`+more+`}`)
		if status != http.StatusOK || (want != "") != strings.Contains(sent, `"disable_parallel_tool_use":true`) || !strings.Contains(sent, want) {
			t.Errorf("%q: %d %s, sent %s", more, status, text, sent)
		}
	}
}
