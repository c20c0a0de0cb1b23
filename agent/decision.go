package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// decision is the decision of a human on a pending call.
type decision struct {
	pending tool.Pending
	answer  tool.Answer
	sticky  bool
	stored  bool // it is in the store already
}

func (d decision) apply(o *options) { o.decisions = append(o.decisions, d) }

// decisions owns the human decisions of one run. Every decision passes these steps:
//
//   - It is given: as an option of [Agent.Resume], by the approver of the Runner, or by
//     the store, for a process that ended before the decision took effect.
//   - It is written to the store, durably, if the store is a decisionStore.
//   - It is recorded in the ledger, which answers the runner. The state of the run holds
//     the ledger.
type decisions struct {
	given  []decision
	ledger *policy.Ledger
	// log stores decisions; nil: only the state does. A nested run has that of the outer
	// run, which stores the options of Resume: then logsGiven is false.
	log       decisionStore
	logsGiven bool
}

// newDecisions returns the decisions of a run that has these options.
func newDecisions(o *options) decisions {
	d := decisions{given: o.decisions, ledger: &policy.Ledger{}, log: o.outerLog}
	if s, ok := o.store.(decisionStore); ok {
		d.log, d.logsGiven = s, true
	}
	return d
}

// resume restores the ledger of a resumed run and records the decisions on its pending
// calls. A decision on a call that is not pending is an error.
func (d *decisions) resume(ctx context.Context, r *run) error {
	if r.state.Ledger != nil {
		d.ledger = r.state.Ledger
	}
	pending := leaves(r.state.Pending)
	if err := d.adopt(ctx, pending); err != nil {
		return err
	}
	isPending := func(b tool.Binding) bool {
		return slices.ContainsFunc(pending, func(p tool.Pending) bool { return p.Binding == b })
	}
	for _, g := range d.given {
		b := g.pending.Binding
		switch {
		case b.Run != r.state.Run && (len(r.path) > 0 || isPending(b)):
			continue // it belongs to a nested run, or to an outer one
		case !isPending(b):
			return fmt.Errorf("%w: the call %s of turn %d is not pending, so it cannot be decided", ErrState, b.Key.QualifiedName(), b.Turn)
		}
		if err := d.record(g); err != nil {
			return errorf("the decision on %s: %w", b.Key.QualifiedName(), err)
		}
	}
	return nil
}

// adopt adds the stored decisions on pending calls that have not taken effect, because the
// process that got them ended. A decision that is given now has precedence.
func (d *decisions) adopt(ctx context.Context, pending []tool.Pending) error {
	if !d.logsGiven {
		return nil
	}
	for _, p := range pending {
		if slices.ContainsFunc(d.given, func(g decision) bool { return g.pending.Binding == p.Binding }) {
			continue
		}
		stored, err := d.log.Decided(ctx, p.Binding)
		if err != nil {
			return errorf("loading the run: %w", err)
		}
		if stored != nil {
			d.given = append(d.given, decision{pending: p, answer: stored.Answer, sticky: stored.Sticky, stored: true})
		}
	}
	return nil
}

// record puts a decision into the ledger.
func (d *decisions) record(g decision) error {
	b := g.pending.Binding
	switch {
	case g.sticky && question(g.pending.Wanted): // it does not cover calls
	case g.sticky && g.answer.Verdict == tool.Approved:
		d.ledger.Always(b)
	case g.sticky:
		d.ledger.Never(b, g.answer.Message)
	}
	return d.ledger.Decide(b, g.answer)
}

// question reports whether a pending call is a question of a running tool.
func question(w *tool.InputRequest) bool { return w != nil && w.Name != "" }

// approve records the approval of a call whose tool is suspended.
func (d *decisions) approve(b tool.Binding) {
	_ = d.ledger.Decide(b, tool.Answer{Verdict: tool.Approved}) // an approval is always a valid answer
}

// save stores the given decisions before they take effect (requirement S1): in the log, or
// with the state of the run if there is none.
func (d *decisions) save(ctx context.Context, r *run) error {
	if len(d.given) == 0 {
		return nil
	}
	if !d.logsGiven {
		return r.save(ctx)
	}
	var rulings []tool.Ruling
	for _, g := range d.given {
		if !g.stored {
			rulings = append(rulings, tool.Ruling{Binding: g.pending.Binding, Input: g.pending.Input, Answer: g.answer, Sticky: g.sticky})
		}
	}
	if len(rulings) == 0 {
		return nil
	}
	return d.write(ctx, rulings...)
}

// write stores decisions in the log, also if the run is canceled.
func (d *decisions) write(ctx context.Context, rulings ...tool.Ruling) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := d.log.Decide(ctx, rulings...); err != nil {
		return errorf("storing decisions: %w", err)
	}
	return nil
}

// approver returns the approver of a runner: the ledger, then next, if it is not nil.
func (d *decisions) approver(next tool.Approver) tool.Approver {
	if next == nil {
		return policy.First(d.ledger)
	}
	return policy.First(d.ledger, d.logged(next))
}

// logged returns an approver that stores the decisions of a before they take effect. It
// does not ask again for a stored one: a process may have ended in between. Sticky
// decisions enter the ledger, so that they last for the run and its resumption
// (requirement A3).
func (d *decisions) logged(a tool.Approver) tool.Approver {
	return policy.ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		if d.log != nil {
			stored, err := d.log.Decided(ctx, req.Binding)
			if err != nil {
				return tool.Answer{}, err
			}
			if stored != nil && !req.Refused(stored.Answer) {
				return stored.Answer, d.recordSticky(stored)
			}
		}
		answer, err := a.Approve(ctx, req)
		if question(req.Wanted) { // an answer to a question of a tool does not cover calls
			answer.Sticky = false
		}
		if err != nil || answer.Verdict != tool.Approved && answer.Verdict != tool.Rejected {
			return answer, err
		}
		ruling := tool.Ruling{Binding: req.Binding, Input: req.Input, Answer: answer, Sticky: answer.Sticky}
		ruling.Answer.Sticky = false // Ruling.Sticky replaces it
		if d.log != nil {
			if err := d.write(ctx, ruling); err != nil {
				return tool.Answer{}, err
			}
		}
		return ruling.Answer, d.recordSticky(&ruling)
	})
}

// recordSticky records a sticky decision of an approver in the ledger.
func (d *decisions) recordSticky(r *tool.Ruling) error {
	if !r.Sticky {
		return nil
	}
	return d.record(decision{pending: tool.Pending{Binding: r.Binding}, answer: r.Answer, sticky: true})
}
