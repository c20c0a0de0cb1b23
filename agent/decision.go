package agent

import (
	"context"
	"slices"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// decisionStore is where the decisions on the run's calls are kept; nil: nowhere but
// in its state.
func (r *run) decisionStore() decisionStore {
	if s, ok := r.store.(decisionStore); ok {
		return s
	}
	return r.decided
}

// adopt takes the decisions that are kept on calls that wait, and were not acted upon:
// the process that got them has ended. What is decided now goes before.
func (r *run) adopt(ctx context.Context) error {
	s, ok := r.store.(decisionStore)
	if !ok {
		return nil // a run inside of another has those of that one
	}
	for _, p := range leaves(r.state.Pending) {
		if slices.ContainsFunc(r.decisions, func(d decision) bool { return d.pending.Binding == p.Binding }) {
			continue
		}
		kept, err := s.Decided(ctx, p.Binding)
		if err != nil {
			return errorf("loading the run: %w", err)
		}
		if kept != nil {
			r.decisions = append(r.decisions, decision{pending: p, answer: kept.Answer, sticky: kept.Sticky, kept: true})
		}
	}
	return nil
}

// keepDecisions stores what humans said: by itself where that can be kept, and with
// the state elsewhere.
func (r *run) keepDecisions(ctx context.Context) error {
	s, ok := r.store.(decisionStore)
	if !ok {
		return r.save(ctx)
	}
	var said []tool.Ruling
	for _, d := range r.decisions {
		if !d.kept {
			said = append(said, tool.Ruling{Binding: d.pending.Binding, Input: d.pending.Input, Answer: d.answer, Sticky: d.sticky})
		}
	}
	if len(said) == 0 {
		return nil
	}
	return r.rule(ctx, s, said...)
}

// rule stores decisions. One that was made is stored also where the run is cancelled.
func (r *run) rule(ctx context.Context, s decisionStore, said ...tool.Ruling) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := s.Decide(ctx, said...); err != nil {
		return errorf("storing what was decided: %w", err)
	}
	return nil
}

// recording is an approver whose decisions are stored before they are acted upon. It is
// not asked again what it has decided: a process may have ended in between.
func (r *run) recording(a tool.Approver) tool.Approver {
	s := r.decisionStore()
	if s == nil {
		return a
	}
	return policy.ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		kept, err := s.Decided(ctx, req.Binding)
		if err != nil {
			return tool.Answer{}, err
		}
		if kept != nil {
			return kept.Answer, nil
		}
		answer, err := a.Approve(ctx, req)
		if err != nil || answer.Verdict != tool.Approved && answer.Verdict != tool.Rejected {
			return answer, err
		}
		if err := r.rule(ctx, s, tool.Ruling{Binding: req.Binding, Input: req.Input, Answer: answer}); err != nil {
			return tool.Answer{}, err
		}
		return answer, nil
	})
}
