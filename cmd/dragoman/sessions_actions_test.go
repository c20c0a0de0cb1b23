package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/provider/extension"
)

// chatConfig starts a Chat server and a config that names it "work"; more holds further
// settings of the provider. The result holds the texts of the messages of each request.
func chatConfig(t *testing.T, more string) *[]string {
	t.Helper()
	sent := new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Role, Content string }
			Stream   bool
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
		answer := fmt.Sprintf("r%d", len(*sent))
		if strings.Contains(texts[0], "summarize") {
			answer = "they agreed"
		}
		if req.Stream {
			_, _ = io.WriteString(w, fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", answer))
			return
		}
		_, _ = io.WriteString(w, fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, answer))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "c.yaml", "version: 1\nproviders:\n  work:\n    type: compatible\n    base_url: "+server.URL+"\n"+more)
	t.Setenv("DRAGOMAN_CONFIG", filepath.Join(dir, "c.yaml"))
	return sent
}

func TestX9_SessionsActionsAndRunAction(t *testing.T) {
	_, do := runs(t)
	sent := chatConfig(t, "")
	for _, prompt := range []string{"q1", "q2", "q3"} {
		if r := do(nil, "--session", "trip", "--model", "work/m", prompt); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
	}
	if r := sessionsOf(nil, "actions", "trip"); r.code != exitOK || !strings.Contains(r.out, extension.CompactID) || !strings.Contains(r.out, "keep, summarize, instructions") {
		t.Errorf("%+v", r)
	}
	list := decodeOutput[[]actionReport](t, sessionsOf(nil, "actions", "trip", "--json"))
	if len(list) != 1 || list[0].ID != extension.CompactID || list[0].Extension != extension.CompactName || len(list[0].Inputs) == 0 || len(list[0].Triggers) != 0 {
		t.Errorf("%+v", list)
	}

	ran := decodeOutput[actionRunReport](t, sessionsOf(nil, "run-action", "trip", extension.CompactID, "--param", "keep=4", "--json"))
	if ran.Before != 6 || ran.After != 4 || ran.Extension != extension.CompactName || ran.Model != "work/m" || !strings.Contains(string(ran.Metadata[extension.CompactName]), `"dropped":2`) {
		t.Errorf("%+v", ran)
	}
	r := sessionsOf(nil, "run-action", "trip", extension.CompactName+"/"+extension.CompactID, "--params", `{"keep":2}`, "--param", "instructions=Keep the prices.")
	if r.code != exitOK || !strings.Contains(r.err, "now gets 3 messages, before it was 4") {
		t.Errorf("%+v", r)
	}
	if asked := (*sent)[len(*sent)-1]; !strings.Contains(asked, "Keep the prices.") || !strings.Contains(asked, "user: q2") {
		t.Errorf("the model was asked for a summary with %q", asked)
	}
	if r := do(nil, "--session", "trip", "--model", "work/m", "q4"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if got, want := (*sent)[len(*sent)-1], "Summary of the conversation before this message:\n\n"+"they agreed|q3|r3|q4"; got != want {
		t.Errorf("the next run sent %q, want %q", got, want)
	}
	if r := sessionsOf(nil, "show", "trip"); !strings.Contains(r.out, "q1") {
		t.Errorf("the conversation lost its first prompt: %+v", r)
	}
}

func TestX9_RunActionExplainsMistakes(t *testing.T) {
	_, do := runs(t)
	chatConfig(t, "")
	if r := do(nil, "--session", "trip", "--model", "work/m", "q1"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run-action", "trip", "compact_native_histori"}, exitFailed, "did you mean compact_native_history?"},
		{[]string{"run-action", "trip", extension.CompactID, "--param", "keep"}, exitUsage, "NAME=VALUE"},
		{[]string{"run-action", "trip", extension.CompactID, "--params", "[]"}, exitUsage, "JSON object"},
		{[]string{"run-action", "trip", extension.CompactID, "--param", "keep=many"}, exitFailed, "keep"},
		{[]string{"run-action", "trip", extension.CompactID, "--param", "kep=1"}, exitFailed, "kep"},
		{[]string{"run-action", "nope", extension.CompactID}, exitFailed, `"nope"`},
		{[]string{"actions", "trip", "--model", "sim/planner"}, exitFailed, "--model"},
		{[]string{"actions", "trip", "--model", "sim/planner,sim/planner"}, exitFailed, "--model"},
	} {
		if r := sessionsOf(nil, c.args...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: %+v, want code %d and %s", c.args, r, c.code, c.want)
		}
	}
}

func TestX9_RunActionWithListOfModels(t *testing.T) {
	_, do := runs(t)
	sent := chatConfig(t, "  gone:\n    type: ollama\n    base_url: http://127.0.0.1:1\n    retries: 0\n")
	const models = "gone/x,work/m"
	ask := func(prompt string) string {
		t.Helper()
		if r := do(nil, "--session", "trip", "--model", models, prompt); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
		return (*sent)[len(*sent)-1]
	}
	for _, prompt := range []string{"q1", "q2", "q3"} {
		ask(prompt)
	}
	list := decodeOutput[[]actionReport](t, sessionsOf(nil, "actions", "trip", "--json"))
	if len(list) != 1 || list[0].ID != extension.CompactID {
		t.Errorf("%+v", list)
	}
	ran := decodeOutput[actionRunReport](t, sessionsOf(nil, "run-action", "trip", extension.CompactID, "--param", "keep=2", "--json"))
	if ran.Before != 6 || ran.After != 2 || ran.Model != "work/m" {
		t.Errorf("%+v", ran)
	}
	if got := ask("q4"); got != "q3|r3|q4" {
		t.Errorf("the next run sent %q", got)
	}
	other := decodeOutput[actionRunReport](t, sessionsOf(nil, "run-action", "trip", extension.CompactID, "--param", "keep=4", "--model", "gone/x", "--json"))
	if other.Before != 8 || other.After != 4 || other.Model != "gone/x" {
		t.Errorf("%+v", other)
	}
	if got := ask("q5"); got != "q3|r3|q4|r4|q5" {
		t.Errorf("an action for another model changed this model's history: %q", got)
	}
}

func TestX9_RunFiresConfiguredTriggers(t *testing.T) {
	_, do := runs(t)
	sent := chatConfig(t, "    extensions: {dragoman.compact: {on_save: true, keep: 2}}\n")
	for _, prompt := range []string{"q1", "q2", "q3"} {
		if r := do(nil, "--session", "trip", "--model", "work/m", prompt); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
	}
	if got := (*sent)[2]; got != "q2|r2|q3" {
		t.Errorf("the third request has %q", got)
	}
	list := decodeOutput[[]actionReport](t, sessionsOf(nil, "actions", "trip", "--json"))
	if len(list) != 1 || len(list[0].Triggers) != 1 || list[0].Triggers[0] != extension.BeforeSave {
		t.Errorf("%+v", list)
	}
}
