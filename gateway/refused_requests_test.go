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
		{"a result without its call", "/v1/responses", `{"model":"nothink","input":[{"type":"function_call_output","call_id":"call_gone","output":"x"}]}`, `input: at least one message is required; dropped: a result of unknown call \"call_gone\"`, "input"},
		{"a result without its call, Chat", "/v1/chat/completions", `{"model":"nothink","messages":[{"role":"tool","tool_call_id":"call_gone","content":"x"}]}`, `dropped: a result of unknown call \"call_gone\"`, "messages"},
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

// The vendors' servers refuse a message with an unknown role. A translated route does so in
// their place; roles that clients send are accepted.
func TestUnknownRoleIsRefused(t *testing.T) {
	w := newWorld(t, "")
	const chat, messages, responses, generate = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/MODEL:generateContent"
	for _, tc := range []struct{ path, model, body, want string }{
		{messages, "chat/sim/echo", `"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"usr","content":"hi"}]`, "messages[1].role"},
		{messages, "chat/sim/echo", `"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"hi"},{"role":"user","content":"b"}]`, ""},
		{chat, "anthropic/sim/echo", `"messages":[{"role":"system","content":"s"},{"role":"usr","content":"hi"}]`, "messages[1].role"},
		{chat, "anthropic/sim/echo", `"messages":[{"role":"developer","content":"s"},{"role":"user","content":"hi"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"x"}]`, ""},
		{responses, "anthropic/sim/echo", `"input":[{"type":"message","role":"usr","content":"hi"}]`, "input[0].role"},
		{responses, "anthropic/sim/echo", `"input":[{"role":"developer","content":"s"},{"role":"user","content":"hi"}]`, ""},
		{generate, "anthropic/sim/echo", `"contents":[{"role":"usr","parts":[{"text":"hi"}]}]`, "contents[0].role"},
		{generate, "anthropic/sim/echo", `"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"hi"}]},{"role":"user","parts":[{"text":"hi"}]}]`, ""},
		{"/api/chat", "anthropic/sim/echo", `"stream":false,"messages":[{"role":"User","content":"hi"},{"role":"control","content":"thinking"}]`, ""},
	} {
		path := strings.Replace(tc.path, "MODEL", tc.model, 1)
		status, text := get(t, http.MethodPost, w.url+path, `{"model":"`+tc.model+`",`+tc.body+`}`, "anthropic-version", "2023-06-01")
		if tc.want == "" && status != http.StatusOK || tc.want != "" && (status != http.StatusBadRequest || !strings.Contains(text, tc.want+`: unknown role \"usr\"`)) {
			t.Errorf("%s %s: %d %s", path, tc.body, status, text)
		}
	}
}

func TestUnknownModelErrorListsPatterns(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	w := newWorld(t, `gateway: {routes: {claude: {to: "sim/echo"}, "any-*": {to: "sim/*"}, "other-*": {to: "sim/*"}}, keys: {team: {key_env: TEAM_KEY, models: [claude, "any-*", zzz]}}}`+"\n")
	status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"zzz","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer "+teamKey)
	if status != http.StatusNotFound || !strings.Contains(text, "known models are claude, any-*") || strings.Contains(text, "other-*") {
		t.Errorf("%d %s", status, text)
	}
}
