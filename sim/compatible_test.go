package sim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// A server that is only compatible tells its reasoning, in the member that it is
// told to use, is asked for it in many ways, and counts unasked.
func TestX7_TheServerOfChatCanBeOneThatIsOnlyCompatible(t *testing.T) {
	ask := func(c sim.Config, model, more string) string {
		t.Helper()
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"Hello"}]` + more + `}`
		resp, err := http.Post(serve(t, c).URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		said, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %v %s", resp.StatusCode, err, said)
		}
		return string(said)
	}
	const own, told = `sim/planner`, `"reasoning_content":"No tool is needed for this."`
	named := own + "?reasoning_field=reasoning_content"
	for _, asks := range []string{
		`,"reasoning_effort":"high"`, `,"reasoning":{"effort":"low"}`, `,"reasoning":{"enabled":true}`, `,"thinking":{"type":"enabled"}`,
		`,"enable_thinking":true`, `,"chat_template_kwargs":{"enable_thinking":true}`,
	} {
		if said := ask(sim.Config{}, named, asks); !strings.Contains(said, told) {
			t.Errorf("%s: %s", asks, said)
		}
	}
	for _, asks := range []string{
		"", `,"reasoning_effort":"none"`, `,"reasoning":{"enabled":false}`, `,"reasoning":{"effort":"none"}`, `,"thinking":{"type":"disabled"}`, `,"enable_thinking":false`,
		`,"chat_template_kwargs":{"enable_thinking":false}`, `,"chat_template_kwargs":{"other":1}`,
	} {
		if said := ask(sim.Config{}, named, asks); strings.Contains(said, "No tool is needed") {
			t.Errorf("%s: %s", asks, said)
		}
	}
	if said := ask(sim.Config{ReasoningField: "reasoning"}, own, `,"reasoning_effort":"high"`); !strings.Contains(said, `"reasoning":"No tool`) {
		t.Errorf("as all are told to: %s", said)
	}
	if said := ask(sim.Config{}, own, `,"reasoning_effort":"high"`); strings.Contains(said, "No tool is needed") {
		t.Errorf("OpenAI tells none: %s", said)
	}
	const counted, stream = `"completion_tokens":`, `,"stream":true`
	if said := ask(sim.Config{}, named, stream); !strings.Contains(said, counted) {
		t.Errorf("nothing was counted: %s", said)
	}
	if said := ask(sim.Config{}, own, stream); strings.Contains(said, counted) {
		t.Errorf("OpenAI counts where it is asked to: %s", said)
	}
	for _, bad := range []string{"", "a b", `x"`} {
		if _, err := sim.Open("sim/planner?reasoning_field=" + bad); err == nil {
			t.Errorf("%q can be no member", bad)
		}
	}
}

// What a server cannot be told otherwise stands in the instructions, and the planner
// reads them.
func TestStructuredOutputIsAskedForInWordsToo(t *testing.T) {
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
