package sim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// A compatible server sends reasoning in the configured field, accepts several ways to ask
// for it, and always sends usage in streams.
func TestX7_CompatibleChatServer(t *testing.T) {
	ask := func(c sim.Config, model, more string) string {
		t.Helper()
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"Hello"}]` + more + `}`
		resp, err := http.Post(serve(t, c).URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %v %s", resp.StatusCode, err, raw)
		}
		return string(raw)
	}
	const own, want = `sim/planner`, `"reasoning_content":"No tool is needed for this."`
	named := own + "?reasoning_field=reasoning_content"
	for _, asks := range []string{
		`,"reasoning_effort":"high"`, `,"reasoning":{"effort":"low"}`, `,"reasoning":{"enabled":true}`, `,"thinking":{"type":"enabled"}`,
		`,"enable_thinking":true`, `,"chat_template_kwargs":{"enable_thinking":true}`,
	} {
		if body := ask(sim.Config{}, named, asks); !strings.Contains(body, want) {
			t.Errorf("%s: %s", asks, body)
		}
	}
	for _, asks := range []string{
		"", `,"reasoning_effort":"none"`, `,"reasoning":{"enabled":false}`, `,"reasoning":{"effort":"none"}`, `,"thinking":{"type":"disabled"}`, `,"enable_thinking":false`,
		`,"chat_template_kwargs":{"enable_thinking":false}`, `,"chat_template_kwargs":{"other":1}`,
	} {
		if body := ask(sim.Config{}, named, asks); strings.Contains(body, "No tool is needed") {
			t.Errorf("%s: %s", asks, body)
		}
	}
	if body := ask(sim.Config{ReasoningField: "reasoning"}, own, `,"reasoning_effort":"high"`); !strings.Contains(body, `"reasoning":"No tool`) {
		t.Errorf("with Config.ReasoningField: %s", body)
	}
	if body := ask(sim.Config{}, own, `,"reasoning_effort":"high"`); strings.Contains(body, "No tool is needed") {
		t.Errorf("OpenAI must not send reasoning: %s", body)
	}
	const counted, stream = `"completion_tokens":`, `,"stream":true`
	if body := ask(sim.Config{}, named, stream); !strings.Contains(body, counted) {
		t.Errorf("no usage in the stream: %s", body)
	}
	if body := ask(sim.Config{}, own, stream); strings.Contains(body, counted) {
		t.Errorf("OpenAI must send usage only on request: %s", body)
	}
	for _, bad := range []string{"", "a b", `x"`} {
		if _, err := sim.Open("sim/planner?reasoning_field=" + bad); err == nil {
			t.Errorf("%q was accepted as a field name", bad)
		}
	}
}

// Clients of servers without a schema field write the schema into the instructions. The
// planner reads it there.
func TestSchemaInInstructions(t *testing.T) {
	req := &dragoman.Request{
		Instructions: []dragoman.Part{&dragoman.Text{Text: "It must be valid against this JSON Schema:\n" + `{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]} Thank you.`}},
		Messages:     []dragoman.Message{dragoman.UserText("Ann is 42")},
	}
	if resp, err := (sim.Planner{}).Generate(t.Context(), req); err != nil || resp.Text() != `{"age":42}` {
		t.Errorf("%v %q", err, resp.Text())
	}
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "What is a JSON Schema:\nthat is the question."}}
	if resp, err := (sim.Planner{}).Generate(t.Context(), req); err != nil || resp.Text() != "You said: Ann is 42" {
		t.Errorf("%v %q", err, resp.Text())
	}
}
