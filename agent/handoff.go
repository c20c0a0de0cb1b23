package agent

import (
	"context"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// Handoff is an agent that may take over: its instructions, tools and rules apply
// from then on. To the model it is a tool without arguments. To the policy of the
// Runner its subject is "handoff", whose target is the agent's name.
type Handoff struct {
	// To is the agent.
	To *Agent
	// Name of the tool; empty makes one of the agent's name.
	Name string
	// Description tells the model when to hand over; empty means that of the agent.
	Description string
	// Filter returns what the agent sees of the conversation; nil shows all of it.
	// It may edit its argument, a copy; the stored conversation does not change.
	Filter func(messages []dragoman.Message) []dragoman.Message
	// NeedsApproval asks a human first.
	NeedsApproval bool
}

// handoffTool is the tool of a handoff. Its name gives way to those that are there.
func (p *player) handoffTool(i int, tools []tool.Tool) (tool.Tool, error) {
	h := &p.Handoffs[i]
	if h.To == nil {
		return nil, fmt.Errorf("it names no agent")
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

// handOver makes another agent speak, if one was asked for: the first that was, when
// all other calls of the turn are answered (requirement L5).
func (r *run) handOver(records []tool.Record) (to string, err error) {
	for i := range records {
		rec := &records[i]
		h := r.player.handoffs[rec.Key]
		if h == nil || !rec.OK {
			continue
		}
		next := r.cast.players[h.To.name()]
		if h.Filter != nil {
			err := callback("the filter of the handoff to "+next.name(), func() error { r.state.Seen = h.Filter(copied(r.visible())); return nil })
			if err != nil {
				return "", err
			}
			r.state.Offset = len(r.messages)
			if len(r.state.Seen) == 0 {
				return "", errorf("the handoff to %s leaves nothing of the conversation", next.name())
			}
		}
		r.player = next
		r.state.Agent, r.state.Chosen = next.name(), false
		return next.name(), nil
	}
	return "", nil
}
