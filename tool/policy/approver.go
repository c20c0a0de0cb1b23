package policy

import (
	"context"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// ApproverFunc is a function that answers for humans.
type ApproverFunc func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error)

// Approve calls the function.
func (f ApproverFunc) Approve(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	return f(ctx, req)
}

// First asks one approver after the other, until one decides. One that fails ends
// it: the call stays undecided. Put a [Ledger] first, so that nobody is asked what
// was decided before.
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

// Waiting says how [Ledger.Wait] waits.
type Waiting struct {
	// Timeout is how long a call waits; zero means as long as its context.
	Timeout time.Duration
	// Announce is told of each call that waits; nil: nobody is.
	Announce func(ctx context.Context, req *tool.ApprovalRequest) error
	// Fallback answers when the time is over; nil leaves the call undecided, so
	// that the run stops with it.
	Fallback tool.Approver
}

// Wait is an approver that waits until somebody records a decision in the ledger.
func (l *Ledger) Wait(w Waiting) tool.Approver {
	return ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		return l.wait(ctx, req, w)
	})
}

func (l *Ledger) wait(ctx context.Context, req *tool.ApprovalRequest, w Waiting) (tool.Answer, error) {
	answer, changed := l.look(req)
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
			answer, changed = l.look(req)
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
