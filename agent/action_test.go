package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// chatServer answers Chat requests with "r" and the number of the request, and records the
// texts of the messages of each request. It refuses invalid conversations.
func chatServer(t *testing.T) (url string, sent *[]string) {
	t.Helper()
	sent = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 || req.Messages[len(req.Messages)-1].Role != "user" {
			http.Error(w, `{"error":{"message":"the last message must be the user's"}}`, http.StatusBadRequest)
			return
		}
		var texts []string
		for _, m := range req.Messages {
			texts = append(texts, m.Content)
		}
		*sent = append(*sent, strings.Join(texts, "|"))
		_, _ = io.WriteString(w, fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":"r%d"},"finish_reason":"stop"}]}`, len(*sent)))
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func TestX9_AgentRunsTriggersOfItsModelBeforeSaving(t *testing.T) {
	url, sent := chatServer(t)
	config := &provider.Config{Providers: map[string]provider.Settings{"work": {
		Type: "compatible", BaseURL: url,
		Extensions: map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"on_save":true,"keep":2}`)},
	}}}
	m, err := config.Open("work/m")
	if err != nil {
		t.Fatal(err)
	}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	for i := range 4 {
		must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), fmt.Sprint("q", i+1), agent.In(s)))
	}
	// Compaction begins with the fifth message: more than twice as many as it keeps.
	if want := []string{"q1", "q1|r1|q2", "q2|r2|q3", "q3|r3|q4"}; strings.Join(*sent, "\n") != strings.Join(want, "\n") {
		t.Errorf("the model was sent\n%s\nwant\n%s", strings.Join(*sent, "\n"), strings.Join(want, "\n"))
	}
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 8 {
		t.Errorf("%d messages are stored, %v", len(messages), err)
	}
}

func TestX9_FailedTriggerIsANotice(t *testing.T) {
	url, _ := chatServer(t)
	bad, err := extension.NewSet(extension.Compact{OnSave: true})
	if err != nil {
		t.Fatal(err)
	}
	m := &provider.Client{Name: "acme", BaseURL: url, Model: "m", Extensions: provider.Extensions{
		Set: bad, Config: map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"keep":"many"}`)},
	}}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	notices, done := 0, false
	for ev, err := range (agent.Agent{Model: m}).Stream(t.Context(), "q", agent.In(s)) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *agent.Notice:
			if ev.Code == "action" && strings.Contains(ev.Text, extension.CompactName) {
				notices++
			}
		case *agent.RunEnd:
			done = ev.Result.Output == "r1"
		}
	}
	if notices == 0 || !done {
		t.Errorf("%d notices, done %t", notices, done)
	}
}

// The tokens of a summary count for the usage and the cost of the run.
func TestX9_UsageOfTriggersIsCounted(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`)
	}))
	t.Cleanup(server.Close)
	config := &provider.Config{Providers: map[string]provider.Settings{"work": {
		Type: "compatible", BaseURL: server.URL,
		Extensions: map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"on_save":true,"keep":2,"summarize":true}`)},
	}}}
	m, err := config.Open("work/m")
	if err != nil {
		t.Fatal(err)
	}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	var used int64
	for i := range 4 {
		res := must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), fmt.Sprint("q", i+1), agent.In(s)))
		used += res.Usage.Input.N
	}
	if n <= 4 || used != int64(10*n) {
		t.Errorf("%d requests, %d input tokens were counted", n, used)
	}
}

// A summary is a model call, so the policy applies to it.
func TestP1_TriggersObeyThePolicy(t *testing.T) {
	url, sent := chatServer(t)
	config := &provider.Config{Providers: map[string]provider.Settings{"work": {
		Type: "compatible", BaseURL: url,
		Extensions: map[string]json.RawMessage{extension.CompactName: json.RawMessage(`{"on_save":true,"keep":2,"summarize":true}`)},
	}}}
	m, err := config.Open("work/m")
	if err != nil {
		t.Fatal(err)
	}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	for i := range 4 {
		must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), fmt.Sprint("q", i+1), agent.In(s)))
	}
	asked := len(*sent)
	if asked <= 4 {
		t.Fatalf("no summary was requested: %q", *sent)
	}
	denying := agent.Agent{Model: m, Runner: &tool.Runner{Policy: rules(t, `rules: [{id: no, effect: deny, subjects: model_call, when: {model: "work/*"}}]`)}}
	for range 3 {
		if _, err := denying.Run(t.Context(), "q", agent.In(s)); err == nil {
			t.Fatal("the run was not denied")
		}
	}
	got, _, err := decisions(t, &denying, agent.In(s))
	if want := []string{"model_call work/m deny no", "model_call work/m deny no"}; err == nil || !slices.Equal(got, want) {
		t.Errorf("decisions %q, want %q (of the summary and of the turn); %v", got, want, err)
	}
	if more := (*sent)[asked:]; len(more) > 0 {
		t.Errorf("the denied model was sent %q", more)
	}
}
