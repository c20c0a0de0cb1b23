package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The gateway refuses these requests itself: the error names the client's field and model,
// not the upstream's dialect.
func TestRefusedRequestNamesTheField(t *testing.T) {
	t.Setenv("TEST_KEY", "k")
	t.Setenv("NO_SUCH_KEY", "")
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("upstream called") }))
	defer up.Close()
	w := newWorldOf(t, up, "version: 1\nproviders:\n"+
		"  messages: {base_url: "+up.URL+", type: anthropic, api_key_env: TEST_KEY, capabilities: {no_tools: true}}\n"+
		"  keyless: {base_url: "+up.URL+", type: compatible, api_key_env: NO_SUCH_KEY}\n"+
		"aliases: {nothink: messages/x, keyless: keyless/x}\n")
	const tools = `"tools":[{"type":"function","name":"f","function":{"name":"f","parameters":{"type":"object"}},"parameters":{"type":"object"}}]`
	for _, tc := range []struct{ name, path, body, message, param string }{
		{"no messages, other dialect", "/v1/chat/completions", `{"model":"nothink","messages":[]}`, `messages: at least one message is required`, "messages"},
		{"no messages, same dialect", "/v1/chat/completions", `{"model":"keyless","messages":[]}`, `messages: at least one message is required`, "messages"},
		{"no input", "/v1/responses", `{"model":"keyless","input":[]}`, `input: at least one message is required`, "input"},
		{"no contents", "/v1beta/models/nothink:generateContent", `{"contents":[]}`, `contents: at least one message is required`, ""},
		{"tools", "/v1/chat/completions", `{"model":"nothink","messages":[{"role":"user","content":"hi"}],` + tools + `}`, `the model \"nothink\" does not take tools`, "tools"},
		{"tools of Responses", "/v1/responses", `{"model":"nothink","input":"hi",` + tools + `}`, `the model \"nothink\" does not take tools`, "tools"},
		{"wrong type", "/v1/responses", `{"model":"nothink","input":5}`, `want a string or a list of items, got a number`, "input"},
		{"wrong type in a list", "/v1/chat/completions", `{"model":"nothink","messages":[{"role":"user","content":"hi"},5]}`, `want an object`, "messages[1]"},
	} {
		status, text := get(t, http.MethodPost, w.url+tc.path, tc.body)
		if status != http.StatusBadRequest || !strings.Contains(text, tc.message) || strings.Contains(text, "dragoman:") {
			t.Errorf("%s: %d %s", tc.name, status, text)
		}
		if tc.param != "" && !strings.Contains(text, `"param":"`+tc.param+`"`) {
			t.Errorf("%s: no param %q: %s", tc.name, tc.param, text)
		}
	}
}
