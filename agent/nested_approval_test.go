package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
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
		"approved always":       {decide: agent.Always, task: "t"},
		"a value":               {policy: asking, decide: func(p tool.Pending) agent.Option { return agent.Value(p, json.RawMessage(`"given"`)) }, task: "given"},
		"an immediate approver": {approver: true, task: "t"},
	} {
		for _, inStore := range []bool{false, true} {
			var did counted
			asked := 0
			clerk := agent.Agent{
				Name: "clerk", Model: model(calls(`i pay {"word":"x"}`), calls(`j pay {"word":"y"}`), textResponse("paid")),
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
					return agent.In(openSession(t, &mem, "s"))
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

// A new policy asks about a nested run again. Its work is not lost.
func TestA6_NestedRunKeepsWorkOverSecondApproval(t *testing.T) {
	var did counted
	clerk := agent.Agent{
		Name: "clerk", Model: model(calls("i look", `j pay {"word":"x"}`), textResponse("paid")),
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
func TestA6_MiddlewareDoesNotRepeatPendingNestedRun(t *testing.T) {
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
			Name: "clerk", Model: model(calls("i look", `j pay {"word":"x"}`), textResponse("paid")),
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

// A run is refused before any of its calls runs if an agent that runs as a tool cannot
// continue, however deep it is.
func TestL13_NestedConflictFailsBeforeAnyCallRuns(t *testing.T) {
	var did counted
	pay := did.tool("pay", tool.NeedsApproval())
	clerk := agent.Agent{Name: "clerk", Model: model(calls("c pay")), Tools: []tool.Tool{pay, did.tool("look")}}
	boss := func(clerk agent.Agent, deep bool) agent.Agent {
		inner := clerk.AsTool()
		task := `b clerk {"task":"t"}`
		if deep {
			manager := agent.Agent{Name: "manager", Model: model(calls(task), textResponse("managed")), Tools: []tool.Tool{inner}}
			inner, task = manager.AsTool(), `b manager {"task":"t"}`
		}
		return agent.Agent{Name: "boss", Model: model(calls("a pay", task)), Tools: []tool.Tool{pay, inner}}
	}
	without := clerk
	without.Tools = clerk.Tools[1:]
	for name, c := range map[string]struct {
		now    agent.Agent
		change func(string) string
	}{
		"the tool is gone": {now: without},
		"a newer version":  {clerk, func(s string) string { return strings.ReplaceAll(s, `"state":{"v":1,`, `"state":{"v":99,`) }},
		"the agent is gone": {clerk, func(s string) string {
			return strings.ReplaceAll(s, `"agent":"clerk","turn"`, `"agent":"other","turn"`)
		}},
		"not a valid state": {clerk, func(s string) string { return strings.ReplaceAll(s, `"phase":"calling"`, `"phase":"dancing"`) }},
	} {
		for _, deep := range []bool{false, true} {
			clerk.Model, c.now.Model = model(calls("c pay")), model()
			res, err := boss(clerk, deep).Run(t.Context(), "go")
			if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 2 {
				t.Fatalf("%d calls wait, %v", len(res.Pending), err)
			}
			stored := string(must[[]byte](t)(json.Marshal(res.State)))
			if c.change != nil {
				head, inner, _ := strings.Cut(stored, `"state":`)
				stored = head + c.change(`"state":`+inner)
			}
			var s agent.State
			if err := json.Unmarshal([]byte(stored), &s); err != nil {
				t.Fatal(err)
			}
			did.runs = nil
			_, err = boss(c.now, deep).Resume(t.Context(), &s, agent.ApproveAll(res.Pending))
			if !errors.Is(err, agent.ErrState) || did.String() != "" {
				t.Errorf("%s, deep %v: %v; ran %q", name, deep, err, &did)
			}
			if c.change != nil {
				continue
			}
			clerk.Model = model()
			again := boss(clerk, deep)
			again.Model = model()
			if _, err = again.Resume(t.Context(), &s, agent.ApproveAll(res.Pending)); err != nil || did.String() != "pay: pay:" {
				t.Errorf("%s, deep %v: with the tool again: %v; ran %q", name, deep, err, &did)
			}
		}
	}
}

// A nested call of a tool that the agent itself adds is not a conflict.
func TestL13_NestedRunMayWaitForGeneratedTool(t *testing.T) {
	asks := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		if q.Key.Name == "read_tool_output" {
			return tool.Decision{Effect: tool.Ask, Reason: "look"}, nil
		}
		return tool.Decision{Effect: tool.Allow}, nil
	})
	var did counted
	clerk := agent.Agent{
		Name: "clerk", Model: model(calls(`c read_tool_output {"name":"x"}`)), Tools: []tool.Tool{did.tool("look")},
		Runner: &tool.Runner{Policy: asks},
	}
	boss := agent.Agent{Model: model(calls(`b clerk {"task":"t"}`)), Tools: []tool.Tool{clerk.AsTool()}}
	res, err := boss.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	must[*agent.Result](t)(boss.Resume(t.Context(), res.State, agent.ApproveAll(res.Pending)))
}

// An agent that is a tool also continues where no agent runs the tools.
func TestL13_NestedStateIsCheckedOutsideOfAnAgent(t *testing.T) {
	var did counted
	pay := did.tool("pay", tool.NeedsApproval())
	for name, now := range map[string][]tool.Tool{"same tools": {pay}, "without the tool": nil} {
		clerk := agent.Agent{Name: "clerk", Model: model(calls("c pay"), textResponse("paid")), Tools: []tool.Tool{pay}}
		box := must[*tool.Box](t)(tool.NewBox(clerk.AsTool()))
		turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "a", Name: "clerk", Arguments: `{"task":"t"}`}}}
		batch := must[*tool.Batch](t)((&tool.Runner{}).Start("run").Do(t.Context(), box, turn))
		if len(batch.Pending) != 1 {
			t.Fatalf("%d calls wait", len(batch.Pending))
		}
		clerk.Tools = now
		box = must[*tool.Box](t)(tool.NewBox(clerk.AsTool()))
		turn.Resume = batch.Pending
		_, err := (&tool.Runner{}).Start("run").Do(t.Context(), box, turn)
		if (err == nil) != (now != nil) || err != nil && !strings.Contains(err.Error(), "pay") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
