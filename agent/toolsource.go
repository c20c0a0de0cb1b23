package agent

import (
	"context"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// refreshTools gets the tools of the current agent's ToolSource. If they changed, the agent has
// the new ones from now on.
func (r *run) refreshTools(ctx context.Context) error {
	p := r.active
	if p.ToolSource == nil {
		return nil
	}
	var tools []tool.Tool
	err := callback("ToolSource", func() (err error) { tools, err = p.ToolSource(ctx); return err })
	var q *preparedAgent
	switch {
	case err == nil && p.sourced && slices.EqualFunc(tools, p.fromSource, sameTool):
		return nil
	case err == nil:
		q, err = p.withSource(tools)
	}
	if err != nil && !p.sourced {
		return errorf("the tools of ToolSource: %w", err)
	}
	if err != nil {
		r.log().Warn("getting the tools failed; the run continues with the earlier ones", "run", r.state.Run, "error", err)
		r.emit(&Notice{r.state.Turn, "tools", "the tools could not be updated: " + tool.ModelText(err)})
		return nil
	}
	r.agents.replace(p, q)
	r.active = q
	if p.sourced {
		r.emit(&Notice{r.state.Turn, "tools", "the tools of the agent changed"})
	}
	return nil
}

// sameTool reports whether two tools are the same value. Values that cannot be compared differ.
func sameTool(a, b tool.Tool) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a == b
}

// replace puts q in the place of p.
func (c *agentSet) replace(p, q *preparedAgent) {
	c.byName[p.name()] = q
	if c.first == p {
		c.first = q
	}
}

// withSource returns the agent with other tools from its ToolSource. Tools that were there keep
// their places, and new ones come last, so that the prompt caches of providers stay valid.
func (p *preparedAgent) withSource(tools []tool.Tool) (*preparedAgent, error) {
	old := p.static
	if old == nil {
		old = p.Agent
	}
	ordered, removed, err := p.ordered(tools)
	if err != nil {
		return nil, err
	}
	a := *old
	a.Tools = append(slices.Clip(slices.Clone(old.Tools)), ordered...)
	q := &preparedAgent{
		Agent: &a, static: old, handoffs: map[tool.Key]*Handoff{}, needsReader: p.needsReader, target: p.target,
		spill: p.spill, tickets: p.tickets, storeTickets: p.storeTickets,
		sourced: true, fromSource: slices.Clone(tools), ordering: ordered, removed: removed,
	}
	if err := q.prepare(); err != nil {
		return nil, err
	}
	if p.sourced {
		q.visible = inOrderOf(p.visible, q.visible)
	}
	return q, nil
}

// ordered returns tools in the order of the earlier ones, then the new ones, and the names of
// those that are gone.
func (p *preparedAgent) ordered(tools []tool.Tool) (out []tool.Tool, removed map[string]bool, err error) {
	byKey := map[tool.Key]tool.Tool{}
	for i, t := range tools {
		if t == nil || t.Spec() == nil {
			return nil, nil, fmt.Errorf("tool %d is nil", i)
		}
		byKey[tool.KeyOf(t.Spec())] = t
	}
	removed = map[string]bool{}
	for name := range p.removed {
		removed[name] = true
	}
	earlier := map[tool.Key]bool{}
	for _, t := range p.ordering {
		k := tool.KeyOf(t.Spec())
		earlier[k] = true
		if now := byKey[k]; now != nil {
			out = append(out, now)
		} else {
			removed[t.Spec().QualifiedName()] = true
		}
	}
	for _, t := range tools {
		if !earlier[tool.KeyOf(t.Spec())] {
			out = append(out, t)
		}
		delete(removed, t.Spec().QualifiedName())
	}
	return out, removed, nil
}

// inOrderOf returns specs in the order of earlier ones, then the new ones.
func inOrderOf(earlier, specs []dragoman.ToolSpec) []dragoman.ToolSpec {
	place := make(map[string]int, len(earlier))
	for i := range earlier {
		place[earlier[i].QualifiedName()] = i
	}
	out := slices.Clone(specs)
	at := func(s *dragoman.ToolSpec) int {
		if i, ok := place[s.QualifiedName()]; ok {
			return i
		}
		return len(earlier)
	}
	slices.SortStableFunc(out, func(a, b dragoman.ToolSpec) int { return at(&a) - at(&b) })
	return out
}
