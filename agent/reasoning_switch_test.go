package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
)

// OpenAI refuses reasoning items for a model that does not reason. A session that switches to
// such a model does not send them, and one that switches back sends them again.
func TestS5_ReasoningIsNotSentToModelsThatDoNotReason(t *testing.T) {
	refused := 0
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string            `json:"model"`
			Input []json.RawMessage `json:"input"`
		}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &body)
		asked = append(asked, string(b))
		w.Header().Set("Content-Type", "application/json")
		if body.Model != "gpt-5" && strings.Contains(string(b), `"type":"reasoning"`) {
			refused++
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from your input and try again.","type":"invalid_request_error","param":"input","code":null}}`)
			return
		}
		thoughts := ""
		if body.Model == "gpt-5" {
			thoughts = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"},`
		}
		_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[`+thoughts+
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"yes","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	}))
	defer server.Close()
	config := &provider.Config{Providers: map[string]provider.Settings{"openai": {BaseURL: server.URL + "/v1"}}, Getenv: func(string) string { return "x" }}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{ID: "s"}))
	for _, tc := range []struct {
		model   string
		refused int // refused requests: one for a model that is not in the table
		sealed  int
	}{
		{"gpt-5", 0, 0},
		{"gpt-4.1", 0, 0},
		{"gpt-4o-mini", 0, 0},
		{"quite-unknown", 1, 0},
		{"gpt-5", 1, 1},
	} {
		m, err := config.Open("openai/" + tc.model)
		if err != nil {
			t.Fatal(err)
		}
		res, err := agent.Agent{Model: m}.Run(t.Context(), "go", agent.In(s))
		if err != nil || res.Output != "yes" {
			t.Fatalf("%s: %v", tc.model, err)
		}
		if got := strings.Count(asked[len(asked)-1], `"sealed"`); refused != tc.refused || got != tc.sealed {
			t.Errorf("%s: %d requests were refused, the last has %d items of reasoning", tc.model, refused, got)
		}
	}
}
