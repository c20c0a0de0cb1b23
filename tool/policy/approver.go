package policy

import (
	"context"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// ApproverFunc is a function that implements [tool.Approver].
type ApproverFunc func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error)

// Approve calls the function.
func (f ApproverFunc) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	return f(ctx, req)
}

// First returns an approver that asks the approvers in order until one decides. An error of one
// stops it: the call stays undecided. Put a [Ledger] first, so that humans are not asked again
// about earlier decisions.
func First(approvers ...tool.Approver) tool.Approver {
	return ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		for _, a := range approvers {
			if a == nil {
				continue
			}
			answer, err := a.Approve(ctx, req)
			if err != nil || answer.Verdict != tool.Undecided {
				return answer, err
			}
		}
		return tool.Answer{}, nil
	})
}

// Waiting configures [Ledger.Wait].
type Waiting struct {
	// Timeout limits how long a call waits; zero means no limit other than its context.
	Timeout time.Duration
	// Announce, if not nil, is called for each call that starts to wait.
	Announce func(ctx context.Context, req *tool.ApprovalRequest) error
	// Fallback decides after the timeout; nil leaves the call undecided, and the run stops.
	Fallback tool.Approver
}

// Wait returns an approver that waits until a decision is recorded in the ledger.
func (l *Ledger) Wait(w Waiting) tool.Approver {
	return ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		return l.wait(ctx, req, w)
	})
}

func (l *Ledger) wait(ctx context.Context, req *tool.ApprovalRequest, w Waiting) (tool.Answer, error) {
	answer, changed := l.lookup(req)
	if answer.Verdict != tool.Undecided {
		return answer, nil
	}
	if w.Announce != nil {
		if err := w.Announce(ctx, req); err != nil {
			return tool.Answer{}, err
		}
	}
	var over <-chan time.Time
	if w.Timeout > 0 {
		timer := time.NewTimer(w.Timeout)
		defer timer.Stop()
		over = timer.C
	}
	for answer.Verdict == tool.Undecided {
		select {
		case <-changed:
			answer, changed = l.lookup(req)
		case <-over:
			if w.Fallback != nil {
				return w.Fallback.Approve(ctx, req)
			}
			return tool.Answer{}, nil
		case <-ctx.Done():
			return tool.Answer{}, context.Cause(ctx)
		}
	}
	return answer, nil
}
