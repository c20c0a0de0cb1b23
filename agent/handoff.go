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
	// It may edit its argument, a copy; the stored conversation does not change. The agent does
	// not see calls whose results the filter leaves out, nor results without their calls.
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
			var seen []dragoman.Message
			err := callback("the filter of the handoff to "+next.name(), func() error { seen = h.Filter(copied(r.visible())); return nil })
			if err != nil {
				return "", err
			}
			if seen = paired(seen); len(seen) == 0 {
				return "", errorf("the filter of the handoff to %s returned no messages, apart from calls without results and results without calls", next.name())
			}
			r.state.Seen, r.state.Offset = seen, len(r.messages)
		}
		r.active = next
		r.state.Agent, r.state.Chosen = next.name(), false
		return next.name(), nil
	}
	return "", nil
}

// paired returns messages without calls that have no result, and without results that have no
// call. If a turn of the model loses its last call and has no text, nothing of it remains: APIs
// refuse reasoning that leads to nothing.
func paired(ms []dragoman.Message) []dragoman.Message {
	out := make([]dragoman.Message, 0, len(ms))
	for len(ms) > 0 {
		called := runOf(ms, func(m *dragoman.Message) bool { return m.Role == dragoman.RoleAssistant })
		next := called + runOf(ms[called:], func(m *dragoman.Message) bool { return m.Role != dragoman.RoleAssistant })
		out = append(out, pairedTurn(ms[:called], ms[called:next])...)
		ms = ms[next:]
	}
	return out
}

// runOf returns the number of messages at the beginning that are of a kind.
func runOf(ms []dragoman.Message, is func(*dragoman.Message) bool) (n int) {
	for n < len(ms) && is(&ms[n]) {
		n++
	}
	return n
}

// pairedTurn is paired for the messages of one turn and those before the next.
func pairedTurn(turn, results []dragoman.Message) []dragoman.Message {
	called, answered := map[string]bool{}, map[string]bool{}
	for i := range turn {
		for _, c := range turn[i].ToolCalls() {
			called[c.ID] = true
		}
	}
	for i := range results {
		for _, p := range results[i].Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				answered[res.CallID] = true
			}
		}
	}
	open, content := false, false
	kept := keepParts(turn, func(p dragoman.Part) bool {
		switch p := p.(type) {
		case *dragoman.ToolCall:
			if !p.Hosted && !answered[p.ID] {
				open = true
				return false
			}
			content = true
		case *dragoman.Reasoning:
		default:
			content = true
		}
		return true
	})
	if open && !content {
		kept = nil
	}
	return append(kept, keepParts(results, func(p dragoman.Part) bool {
		res, ok := p.(*dragoman.ToolResult)
		return !ok || called[res.CallID]
	})...)
}

// keepParts returns messages with the parts for which keep reports true, and without the messages
// that lose all their parts.
func keepParts(ms []dragoman.Message, keep func(dragoman.Part) bool) []dragoman.Message {
	var out []dragoman.Message
	for i := range ms {
		m := ms[i]
		parts := make([]dragoman.Part, 0, len(m.Parts))
		for _, p := range m.Parts {
			if keep(p) {
				parts = append(parts, p)
			}
		}
		if len(parts) < len(m.Parts) {
			m.Parts = parts
		}
		if len(parts) > 0 || len(ms[i].Parts) == 0 {
			out = append(out, m)
		}
	}
	return out
}
