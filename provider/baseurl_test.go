package provider_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
)

func TestWithBaseURLSendsToAnotherServer(t *testing.T) {
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`))
	}))
	defer server.Close()
	t.Setenv("ANTHROPIC_API_KEY", "k")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/nowhere")
	t.Setenv("DRAGOMAN_CONFIG", "")
	m, err := provider.Open("anthropic/m", provider.WithBaseURL(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := m.Generate(t.Context(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}})
	if err != nil || resp.Text() != "hi" || path != "/v1/messages" {
		t.Errorf("%v %+v at %s", err, resp, path)
	}
	for _, spec := range []string{"sim/planner", "anthropic/m,openai/m"} {
		if _, err := provider.Open(spec, provider.WithBaseURL(server.URL)); !badSpec(err) {
			t.Errorf("%s: the option is ignored: %v", spec, err)
		}
	}
	if _, err := provider.Open("anthropic/m", provider.WithBaseURL("no URL")); err == nil {
		t.Error("a base URL that is not one")
	}
}
