package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// A nested run is approved once. While its own calls wait, it needs no second approval, and
// it is not started a second time.
func TestA6_ApprovedNestedRunIsAskedAboutOnce(t *testing.T) {
	approve := func(p tool.Pending) agent.Option { return agent.Approve(p) }
	asking, err := policy.New(policy.Config{Rules: []policy.Rule{{
		ID: "task", Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "task"}, When: policy.When{Tools: []string{"clerk"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		approver bool
		policy   tool.Policy
		decide   func(tool.Pending) agent.Option
		task     string
	}{
		"approved":              {decide: approve, task: "t"},
		"edited":                {decide: func(p tool.Pending) agent.Option { return agent.Edit(p, taskInput("other")) }, task: "other"},
		"approved for good":     {decide: agent.Always, task: "t"},
		"a value":               {policy: asking, decide: func(p tool.Pending) agent.Option { return agent.Value(p, json.RawMessage(`"given"`)) }, task: "given"},
		"an immediate approver": {approver: true, task: "t"},
	} {
		for _, inStore := range []bool{false, true} {
			var did counted
			asked := 0
			clerk := agent.Agent{
				Name: "clerk", Model: model(calls(`i pay {"word":"x"}`), calls(`j pay {"word":"y"}`), says("paid")),
				Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
			}
			boss := agent.Agent{
				Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{clerk.AsTool(tool.NeedsApproval())},
				Runner: &tool.Runner{Policy: tc.policy},
			}
			if tc.approver {
				boss.Runner.Approver = policy.ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
					asked++
					return tool.Answer{Verdict: tool.Approved}, nil
				})
			}
			var mem session.Memory
			in := func() agent.Option {
				if inStore {
					return agent.In(opened(t, &mem, "s"))
				}
				return nil
			}
			var waited []string
			res, err := boss.Run(t.Context(), "go", in())
			for errors.Is(err, agent.ErrInterrupted) && len(waited) < 6 {
				p := res.Pending[0]
				waited = append(waited, p.Tool())
				decision := agent.Approve(p)
				if p.Tool() == "clerk" {
					asked++
					decision = tc.decide(p)
				}
				var state *agent.State
				if !inStore {
					state = stored(t, res.State)
				}
				res, err = boss.Resume(t.Context(), state, in(), decision)
			}
			if err != nil || asked != 1 || did.String() != "pay:x pay:y" || res.Output != "done" {
				t.Errorf("%s, in a store %v: %v, asked about the nested run %d times, waited for %q, ran %q", name, inStore, err, asked, waited, did.String())
				continue
			}
			if got := script(clerk.Model.(*scripted).asked[0].Messages); got != "user: \""+tc.task+"\"\n" || len(clerk.Model.(*scripted).asked) != 3 {
				t.Errorf("%s: the nested model was asked %d times, first with %s", name, len(clerk.Model.(*scripted).asked), got)
			}
		}
	}
}

func taskInput(task string) tool.Input {
	return tool.Input{Arguments: json.RawMessage(`{"task":"` + task + `"}`)}
}

// A new policy asks about a nested run again. Its work is kept meanwhile.
func TestA6_NestedRunThatIsAskedAboutAgainKeepsItsWork(t *testing.T) {
	var did counted
	clerk := agent.Agent{
		Name: "clerk", Model: model(calls("i look", `j pay {"word":"x"}`), says("paid")),
		Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
	}
	boss := agent.Agent{Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{clerk.AsTool()}}
	res, err := boss.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	asks, err := policy.New(policy.Config{Default: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	boss.Runner = &tool.Runner{Policy: asks}
	for _, want := range []string{"clerk", "pay"} {
		res, err = boss.Resume(t.Context(), stored(t, res.State))
		if !errors.Is(err, agent.ErrInterrupted) || res.Pending[0].Tool() != want {
			t.Fatalf("%v, waits for %v, want %s", err, res.Pending, want)
		}
		res, err = boss.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
	}
	if err != nil || res.Output != "done" || did.String() != "look: pay:x" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// Middleware that retries or hides errors neither begins a nested run that waits again
// nor loses it.
func TestA6_MiddlewareDoesNotRepeatANestedRunThatWaits(t *testing.T) {
	for name, use := range map[string]tool.Middleware{
		"retries": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (out tool.Output, err error) {
				for range 3 {
					if out, err = next(ctx, in); err == nil {
						break
					}
				}
				return out, err
			}
		},
		"hides errors": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				out, err := next(ctx, in)
				if err != nil {
					return tool.Output{Failed: true}, nil //nolint:nilerr // it hides the error
				}
				return out, nil
			}
		},
		"replaces errors": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				out, err := next(ctx, in)
				if err != nil {
					err = errors.New("it failed")
				}
				return out, err
			}
		},
	} {
		var did counted
		clerk := agent.Agent{
			Name: "clerk", Model: model(calls("i look", `j pay {"word":"x"}`), says("paid")),
			Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
		}
		boss := agent.Agent{
			Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{clerk.AsTool()}, Toolbox: tool.Config{Hooks: tool.Hooks{Use: []tool.Middleware{use}}},
		}
		res, err := boss.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || did.String() != "look:" {
			t.Errorf("%s: %v, %d calls wait, ran %q", name, err, len(res.Pending), did.String())
			continue
		}
		res, err = boss.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
		if err != nil || res.Output != "done" || did.String() != "look: pay:x" {
			t.Errorf("%s: %v, ran %q", name, err, did.String())
		}
	}
}
