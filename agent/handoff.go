package agent

import (
	"context"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// Handoff lets another agent take over: from then on, the instructions, tools and rules of
// that agent apply. The model sees the handoff as a tool without arguments. The policy of
// the Runner sees the subject "handoff", whose target is the name of the agent.
type Handoff struct {
	// To is the agent that takes over.
	To *Agent
	// Name is the name of the tool; empty derives it from the name of the agent.
	Name string
	// Description tells the model when to hand over; empty means one that is derived from
	// the name and Description of the agent.
	Description string
	// Filter returns the part of the conversation that the agent sees; nil shows all of it.
	// It may edit its argument, a copy; the stored conversation does not change.
	Filter func(messages []dragoman.Message) []dragoman.Message
	// NeedsApproval requires a human decision before the handoff.
	NeedsApproval bool
}

// handoffTool returns the tool of a handoff. A derived name avoids the names of tools.
func (p *preparedAgent) handoffTool(i int, tools []tool.Tool) (tool.Tool, error) {
	h := &p.Handoffs[i]
	if h.To == nil {
		return nil, fmt.Errorf("the field To is not set")
	}
	name := h.Name
	if name == "" {
		name = toolname.Handoff(h.To.name(), func(n string) bool {
			return n == searchName || p.takenName(n) || anyNamed(tools, n)
		})
	}
	text := h.Description
	if text == "" {
		text = fmt.Sprintf("Hand the conversation over to the agent %s. %s", h.To.name(), h.To.Description)
	}
	to := h.To.name()
	opts := []tool.Option{tool.Set(func(s *tool.Settings) { s.Source, s.HandoffTo, s.Trusted = codes.FromHandoff, to, true }), tool.Idempotent()}
	if h.NeedsApproval {
		opts = append(opts, tool.NeedsApproval())
	}
	return tool.Make(name, text, func(context.Context, struct{}) (string, error) {
		return fmt.Sprintf("The conversation is handed over to %s.", to), nil
	}, opts...)
}

// handOver makes another agent current, if a call asked for it: the first such call counts,
// when all other calls of the turn are answered (requirement L5).
func (r *run) handOver(records []tool.Record) (to string, err error) {
	for i := range records {
		rec := &records[i]
		h := r.active.handoffs[rec.Key]
		if h == nil || !rec.OK {
			continue
		}
		next := r.agents.byName[h.To.name()]
		if h.Filter != nil {
			err := callback("the filter of the handoff to "+next.name(), func() error { r.state.Seen = h.Filter(copied(r.visible())); return nil })
			if err != nil {
				return "", err
			}
			r.state.Offset = len(r.messages)
			if len(r.state.Seen) == 0 {
				return "", errorf("the filter of the handoff to %s returned no messages", next.name())
			}
		}
		r.active = next
		r.state.Agent, r.state.Chosen = next.name(), false
		return next.name(), nil
	}
	return "", nil
}
