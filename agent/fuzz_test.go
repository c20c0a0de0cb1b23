package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// A stored run that was tampered with may be refused or resumed; it must not panic or hang,
// and must not run a call that waits for approval.
func FuzzState(f *testing.F) {
	pay := tool.New("pay", "Pays.", func(context.Context, word) (string, error) { panic("it ran without approval") }, tool.NeedsApproval())
	var did counted
	tools := []tool.Tool{pay, did.tool("look")}
	a := agent.Agent{Model: model(calls("a look", `b pay {"word":"x"}`)), Tools: tools, NewID: func() string { return "r" }}
	res, _ := a.Run(context.Background(), "go")
	b, err := json.Marshal(res.State)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"v":1,"run":"r","agent":"agent","turn":1,"phase":"asking","usage":{}}`))
	f.Add([]byte(`{"v":1,"run":"r","agent":"agent","turn":1,"phase":"calling","usage":{},"messages":[{"v":1,"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"look","arguments":"{}"}]}]}`))
	f.Add([]byte(`{"v":1,"run":"r","agent":"agent","phase":"finished","usage":{},"offset":9,"begun":7,"recent":["x"],"pending":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s agent.State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		a := agent.Agent{Model: model(), Tools: tools}
		res, err := a.Resume(t.Context(), &s)
		if err == nil && res == nil {
			t.Fatal("neither a result nor an error")
		}
		if res != nil {
			for _, r := range res.Records {
				if r.Key == toolopt.Bare("pay") && r.Executed {
					t.Fatalf("%+v", r)
				}
			}
			if _, err := json.Marshal(res.State); err != nil {
				t.Fatal(err)
			}
		}
	})
}
