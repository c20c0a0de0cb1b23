package tool_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// A decision that arrives after the deadline is discarded. Code that ignores the error of its
// context must not allow a call this way (requirements A1, A7, P5).
func TestP5_LateDecisionIsDiscarded(t *testing.T) {
	allow := policyFunc(func(ctx context.Context, _ *tool.Question) (tool.Decision, error) {
		<-ctx.Done()
		return tool.Decision{Effect: tool.Allow}, nil
	})
	approve := approverFunc(func(ctx context.Context, _ *tool.ApprovalRequest) (tool.Answer, error) {
		<-ctx.Done()
		return tool.Answer{Verdict: tool.Approved}, nil
	})
	waive := toolopt.NeedsApprovalFor(func(ctx context.Context, _ tool.Input) (bool, error) {
		<-ctx.Done()
		return false, nil
	})
	quiet := slog.New(slog.DiscardHandler)
	for name, tc := range map[string]struct {
		runner *tool.Runner
		opts   []tool.Option
		kind   tool.ErrorKind // empty if the call is pending
	}{
		"a policy":             {runner: &tool.Runner{Policy: allow}, kind: tool.ErrorDenied},
		"an approver":          {runner: &tool.Runner{Approver: approve}, opts: []tool.Option{tool.NeedsApproval()}},
		"an approval function": {runner: &tool.Runner{}, opts: []tool.Option{waive}},
	} {
		tc.runner.PolicyTimeout, tc.runner.ApproverTimeout, tc.runner.Log = time.Millisecond, time.Millisecond, quiet
		box := mustBox(t, echo("a", tc.opts...))
		for range 50 { // either timer may fire first
			batch, err := tc.runner.Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "a", "")}})
			if err != nil {
				t.Fatal(err)
			}
			if rec := &batch.Records[0]; rec.Executed || rec.ErrorKind != tc.kind || rec.Pending != (tc.kind == "") {
				t.Errorf("%s: executed %v, pending %v, %q", name, rec.Executed, rec.Pending, rec.ErrorKind)
				break
			}
		}
	}
}
