package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
	"pgregory.net/rapid"
)

// behavior is the behavior of code of the host or of a tool.
type behavior int

const (
	behaves behavior = iota
	errs
	panics
	hangs
	exits
	manners
)

func (m behavior) do(release <-chan struct{}) error {
	switch m {
	case errs:
		return errors.New("an error")
	case panics:
		panic("a panic")
	case hangs:
		<-release
	case exits:
		runtime.Goexit()
	}
	return nil
}

// No input, handler, hook or policy makes execution panic, hang past its deadline, return
// results out of order, or skip a gate.
func TestExecutionInvariantsHoldForAnyHostCode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(what string) behavior {
			if rapid.IntRange(0, 2).Draw(rt, what+"?") > 0 {
				return behaves // or no call would ever run
			}
			return behavior(rapid.IntRange(0, int(manners)-1).Draw(rt, what))
		}
		handler, pre, post, middle, policy, approver, approval := draw("handler"), draw("pre"), draw("post"), draw("middle"), draw("policy"), draw("approver"), draw("approval")
		effect := rapid.SampledFrom([]tool.Effect{tool.Allow, tool.Allow, tool.Deny, tool.Ask, tool.AskInput, ""}).Draw(rt, "effect")
		verdict := rapid.SampledFrom([]tool.Verdict{tool.Approved, tool.Rejected, tool.Undecided}).Draw(rt, "verdict")
		args := rapid.SampledFrom([]string{`{}`, ``, `{"n":1}`, `{"n":1,}`, `{"n":"x"}`, `{"n":`, `[]`, `{"n":1,"n":2}`, "\xff"})
		change := rapid.Bool().Draw(rt, "the hook changes the arguments")
		names := rapid.SampledFrom([]string{"f", "x", "none"})
		count := rapid.IntRange(0, 12).Draw(rt, "calls")
		var calls []*dragoman.ToolCall
		for i := range count {
			calls = append(calls, call(fmt.Sprint("c", i), names.Draw(rt, "name"), args.Draw(rt, "args")))
		}
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			var mu sync.Mutex
			judged, asked, ran := map[string]string{}, map[string]bool{}, map[string]bool{}
			id := func(ctx context.Context) string { info, _ := tool.InfoFrom(ctx); return info.CallID }
			body := func(ctx context.Context, in json.RawMessage) (any, error) {
				mu.Lock()
				if judged[id(ctx)] != string(in) {
					rt.Errorf("%s runs with %s, and the policy allowed %q", id(ctx), in, judged[id(ctx)])
				}
				if effect == tool.Ask && !asked[id(ctx)] {
					rt.Errorf("%s runs without being asked about", id(ctx))
				}
				if ran[id(ctx)] {
					rt.Errorf("%s runs twice", id(ctx))
				}
				ran[id(ctx)] = true
				mu.Unlock()
				return id(ctx), handler.do(release)
			}
			const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`
			hooks := tool.Hooks{
				Timeout: time.Second,
				Pre: []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) {
					if change {
						in.Arguments = json.RawMessage(`{"n":7}`)
					}
					return in, pre.do(release)
				}},
				Use: []tool.Middleware{func(next tool.Handler) tool.Handler {
					return func(ctx context.Context, in tool.Input) (tool.Output, error) {
						out, err := next(ctx, in)
						return out, errors.Join(err, middle.do(release))
					}
				}},
				Post: []tool.PostHook{func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
					return out, post.do(release)
				}},
			}
			box, err := tool.Config{Hooks: hooks, Timeout: 2 * time.Second}.Box(
				tool.Raw("f", "", json.RawMessage(schema), body, toolopt.NeedsApprovalFor(func(context.Context, tool.Input) (bool, error) { return false, approval.do(release) })),
				tool.Raw("x", "", json.RawMessage(schema), body, tool.Set(func(s *tool.Settings) { s.Exclusive = true })))
			if err != nil {
				t.Fatal(err)
			}
			r := &tool.Runner{
				PolicyTimeout: time.Second, ApproverTimeout: time.Second, Parallel: 3,
				Policy: policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
					mu.Lock()
					delete(judged, q.CallID)
					if effect == tool.Allow || effect == tool.Ask {
						judged[q.CallID] = string(q.Input.Arguments)
					}
					mu.Unlock()
					return tool.Decision{Effect: effect}, policy.do(release)
				}),
				Approver: approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
					mu.Lock()
					asked[req.Binding.CallID] = verdict == tool.Approved
					mu.Unlock()
					return tool.Answer{Verdict: verdict}, approver.do(release)
				}),
			}
			began := time.Now()
			b, err := r.Start("r").Do(t.Context(), box, tool.Turn{Calls: calls})
			if err != nil {
				rt.Fatalf("%v", err)
			}
			// The order is: policy, hook, policy and approval function, approver, tool and
			// middleware, hook.
			if took, most := time.Since(began), time.Duration(count)*10*time.Second; took > most {
				rt.Errorf("%d calls took %v", count, took)
			}
			pending := 0
			for i, c := range calls {
				if b.Records[i].CallID != c.ID {
					rt.Errorf("record %d is of %s", i, b.Records[i].CallID)
				}
				switch res := b.Results[i]; {
				case res == nil && pending < len(b.Pending) && b.Pending[pending].Binding.CallID == c.ID:
					pending++
				case res == nil:
					rt.Errorf("%s has no result and is not pending", c.ID)
				case res.CallID != c.ID:
					rt.Errorf("result %d is of %s", i, res.CallID)
				}
			}
			if pending != len(b.Pending) {
				rt.Errorf("%d pending of %d", pending, len(b.Pending))
			}
			close(release)
			synctest.Wait()
		})
	})
}
