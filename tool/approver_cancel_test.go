package tool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

func TestCanceledApprovalIsNotLogged(t *testing.T) {
	for name, cancels := range map[string]bool{"the run is canceled": true, "the approver fails": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var log bytes.Buffer
			approver := policy.ApproverFunc(func(ctx context.Context, _ *tool.ApprovalRequest) (tool.Answer, error) {
				if !cancels {
					return tool.Answer{}, errors.New("the ledger is gone")
				}
				cancel(errors.New("interrupt signal received"))
				<-ctx.Done()
				return tool.Answer{}, context.Cause(ctx)
			})
			runner := &tool.Runner{Approver: approver, Log: slog.New(slog.NewTextHandler(&log, nil))}
			box, err := tool.NewBox(echo("a", tool.NeedsApproval()))
			if err != nil {
				t.Fatal(err)
			}
			batch, err := runner.Start("run").Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "1", Name: "a", Arguments: "{}"}}})
			if err == nil && len(batch.Pending) != 1 {
				t.Errorf("%+v", batch)
			}
			if logged := strings.Contains(log.String(), "an approver failed"); logged == cancels {
				t.Errorf("logged: %q", log.String())
			}
		})
	}
}
