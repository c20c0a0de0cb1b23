package agent_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

func TestResultNamesRespondingModelOfChain(t *testing.T) {
	down := &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "no capacity"}
	chain := func() *provider.Chain {
		return &provider.Chain{Links: []provider.Link{{Name: "a/one", Model: model(down, down)}, {Name: "b/two", Model: model(calls("c1 look"), textResponse("seen"))}}}
	}
	did := new(counted)
	check := func(res *agent.Result, err error) {
		t.Helper()
		if err != nil || res.Output != "seen" || res.Model != "b/two" || len(res.Failovers) != 2 {
			t.Fatalf("%v %+v", err, res)
		}
		for i, f := range res.Failovers {
			if f.Turn != i+1 || f.Model != "a/one" || !errors.Is(f.Err, down) {
				t.Errorf("failover %d: %+v", i, f)
			}
		}
	}
	check((agent.Agent{Model: chain(), Tools: []tool.Tool{did.tool("look")}}).Run(t.Context(), "go"))

	var notices []string
	var end string
	var last *agent.Result
	for ev, err := range (agent.Agent{Model: chain(), Tools: []tool.Tool{did.tool("look")}}).Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *agent.Notice:
			notices = append(notices, ev.Code+": "+ev.Text)
		case *agent.RunEnd:
			last = ev.Result
			b, err := agent.MarshalEvent(ev, nil)
			if err != nil {
				t.Fatal(err)
			}
			end = string(b)
		}
	}
	check(last, nil)
	if len(notices) != 2 || !strings.HasPrefix(notices[0], "failover: a/one failed (") || !strings.HasSuffix(notices[0], "); b/two responded") {
		t.Errorf("%q", notices)
	}
	if !strings.Contains(end, `"model":"b/two","failovers":[{"turn":1,"model":"a/one","error":"`) {
		t.Errorf("%s", end)
	}
}

func TestApproveAllRunsEveryPendingCall(t *testing.T) {
	did := new(counted)
	a := agent.Agent{Model: model(calls("c1 pay", "c2 pay")), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 2 {
		t.Fatalf("%v %+v", err, res)
	}
	res, err = a.Resume(t.Context(), res.State, agent.ApproveAll(res.Pending))
	if err != nil || len(res.Pending) != 0 || len(res.Records) != 2 {
		t.Errorf("%v %+v", err, res)
	}
}
