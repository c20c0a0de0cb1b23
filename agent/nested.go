package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// task is the input of an agent that runs as a tool.
type task struct {
	Task string `json:"task" doc:"what the agent should do, with everything it needs to know: it sees nothing of this conversation"`
}

// nestedTime limits an agent that runs as a tool and has no Limits.Time.
const nestedTime = time.Hour

// AsTool returns the agent as a tool for other agents. Each call is a separate run, which
// sees only its task and returns its output.
//   - The agent's own Runner checks its calls.
//   - Calls that wait for humans are pending in the outer run, which is interrupted and
//     resumed with the decisions as if the calls were its own (requirement A6). Sticky
//     decisions of the outer run do not apply to the nested one.
//   - If the process is killed while the agent works and the outer run is in a store, the
//     call is reported as uncertain: it does not restart by itself.
//   - Its usage counts toward its own Limits and Result only, not toward those of the outer
//     run: set Limits on both.
//   - Outcomes of background work that its tools began are delivered while the agent runs;
//     later outcomes are not delivered.
func (a Agent) AsTool(opts ...tool.Option) tool.Tool {
	limit := a.Limits.Time
	if limit <= 0 {
		limit = nestedTime
	}
	text := a.Description
	if text == "" {
		text = fmt.Sprintf("Asks the agent %s.", a.name())
	}
	all := append([]tool.Option{tool.Timeout(limit), tool.Set(func(s *tool.Settings) { s.Limits, s.CheckState = tool.Limits{}, a.checkState })}, opts...)
	return tool.New(a.name(), text, a.nested, all...)
}

// checkState reports whether the agent can continue a run that it left as a tool: an agent
// or a tool of the run may be gone, or the state may be of a newer version. The outer run
// asks before it runs any call (requirement L13).
func (a Agent) checkState(ctx context.Context, raw json.RawMessage) error {
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	var o options
	if r := runFrom(ctx); r != nil {
		o.spill, o.policies = r.active.spill, r.agents.policies
	}
	c, err := newAgentSet(&a, defaultStoresOf(&o, nil), o.policies)
	if err != nil {
		return err
	}
	if known := c.byName[s.s.Agent]; known != nil && known.ToolSource != nil {
		tools, err := known.ToolSource(ctx)
		if err != nil {
			return err
		}
		q, err := known.withSource(tools)
		if err != nil {
			return err
		}
		c.replace(known, q)
	}
	p, err := c.resumedAgent(&s.s)
	if err != nil {
		return err
	}
	for _, pend := range s.s.Pending {
		t, _ := p.box.Find(pend.Binding.Key)
		of, ok := t.(interface{ Settings() tool.Settings })
		if !ok || pend.State == nil || of.Settings().CheckState == nil {
			continue
		}
		if err := of.Settings().CheckState(ctx, pend.State); err != nil {
			return fmt.Errorf("%s cannot continue: %w", pend.Tool(), err)
		}
	}
	return nil
}

// nested runs the agent for a call.
func (a Agent) nested(ctx context.Context, in task) (string, error) {
	opts := nestedOptions(ctx)
	if _, err := newAgentSet(&a, defaultStores{}, optionsOf(opts).policies); err != nil {
		return "", err
	}
	var res *Result
	var err error
	if raw, ok := tool.Resumed(ctx); ok {
		var s State
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", err
		}
		if err := s.s.expand(ctx, mediaDetacherFrom(ctx)); err != nil {
			return "", err
		}
		res, err = a.Resume(ctx, &s, opts...)
	} else {
		res, err = a.Run(ctx, in.Task, opts...)
	}
	switch {
	case err == nil:
		return res.Output, nil
	case errors.Is(err, ErrInterrupted):
		s := res.State.s
		if err := s.detach(ctx, mediaDetacherFrom(ctx)); err != nil {
			return "", err
		}
		state, failed := s.encode()
		if failed != nil {
			return "", failed
		}
		return "", &tool.Suspended{Inner: res.Pending, State: state}
	default:
		return "", fmt.Errorf("the agent %s did not finish: %w", a.name(), err)
	}
}

// nestedOptions returns the options of a nested run. Its id is derived from the call, so that
// another attempt at the same call is the same run and finds its decisions. Its effects,
// outputs and tickets are in the stores of the outer run. It inherits nothing else.
func nestedOptions(ctx context.Context) []Option {
	info, ok := tool.InfoFrom(ctx)
	if !ok {
		return nil
	}
	opts := []Option{ID(info.IdempotencyKey), Metadata(info.Metadata), optionFunc(func(o *options) { o.path = info.Agent })}
	if r := runFrom(ctx); r != nil {
		journal := r.runJournal()
		if outer := r.active.Runner; outer != nil && outer.Journal != nil {
			journal = outer.Journal
		}
		opts = append(opts, optionFunc(func(o *options) {
			o.journal, o.outerLog, o.spill, o.media = journal, r.decided.log, r.active.spill, r.detacher()
			o.secrets, o.policies = r.secrets, r.agents.policies
			if r.active.background() {
				o.tickets = r.active.tickets.Store
			}
		}))
		for _, d := range r.decided.given {
			opts = append(opts, d)
		}
	}
	return opts
}
