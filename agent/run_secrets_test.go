package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

// A secret that a tool of one agent was given is hidden from every model of the run, in
// whichever order the agents take over.
func TestT14_SecretsAreHiddenFromAllAgentsOfARun(t *testing.T) {
	const secret = "hunter2-correct-horse"
	secrets := func(context.Context, string) (string, error) { return secret, nil }
	login := tool.New("login", "Logs in.", func(ctx context.Context, _ word) (string, error) {
		_, err := tool.Secret(ctx, "password")
		return "logged in", err
	})
	leak := tool.New("leak", "Shows the log.", func(context.Context, word) (string, error) { return "the log has " + secret, nil })
	clerk := agent.Agent{Name: "clerk", Model: model(calls("k leak"), textResponse("nested")), Tools: []tool.Tool{leak}}
	second := &agent.Agent{Name: "second", Model: model(calls("d leak"), calls("e transfer_to_first"))}
	first := &agent.Agent{
		Name: "first", Model: model(calls("x leak"), calls("a login"), calls("b leak"), calls("c transfer_to_second"), calls("f leak"), calls(`g clerk {"task":"t"}`)),
		Tools: []tool.Tool{login, leak, clerk.AsTool()}, Runner: &tool.Runner{Secrets: secrets},
	}
	second.Tools, second.Handoffs, first.Handoffs = []tool.Tool{leak}, []agent.Handoff{{To: first}}, []agent.Handoff{{To: second}}
	var res *agent.Result
	front := agent.Agent{Name: "front", Model: model(calls("z transfer_to_first")), Handoffs: []agent.Handoff{{To: first}}}
	for ev, err := range front.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := ev.(*agent.RunEnd); ok {
			res = end.Result
		}
	}
	seen := func(what string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(raw), secret); n > 0 {
			t.Errorf("%s: %d times in %s", what, n, raw)
		}
	}
	seen("the second agent", second.Model.(*scripted).asked[1].Messages[9:]) // the earlier messages precede the login
	seen("the nested agent", clerk.Model.(*scripted).asked[1].Messages)
	seen("the records", res.Records[3:])
	if len(res.Records) < 7 || !strings.Contains(script(res.Messages), "result f ok") {
		t.Errorf("%s", script(res.Messages))
	}
}
