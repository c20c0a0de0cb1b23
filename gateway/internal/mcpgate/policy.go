package mcpgate

import (
	"context"
	"maps"
	"strings"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// keyPolicy decides by the policy of the gate and that of a key, as they are now. Both must allow.
type keyPolicy struct {
	gate *Gate
	key  string
}

func (p *keyPolicy) policies() (out []*policy.Policy) {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	for _, one := range []*policy.Policy{p.gate.config.Policy, p.gate.config.KeyPolicies[p.key]} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// strength orders effects: the strictest decision counts.
func strength(d tool.Decision) int {
	switch {
	case d.Effect == tool.Deny:
		return 4
	case d.Effect == tool.AskInput:
		return 3
	case d.Effect == tool.Ask:
		return 2
	case d.Effect == tool.Allow && d.Rule != "":
		return 1
	case d.Effect == tool.Allow:
		return 0
	default:
		return 5
	}
}

// Decide implements [tool.Policy].
func (p *keyPolicy) Decide(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	decision := tool.Decision{Effect: tool.Allow}
	asked := *q
	asked.Metadata = maps.Clone(q.Metadata)
	if asked.Metadata == nil {
		asked.Metadata = map[string]string{}
	}
	asked.Metadata["key"] = p.key
	if q.Settings != nil {
		asked.Metadata["server"] = serverOf(q.Settings.Tags)
	}
	var edits []tool.Edit
	for _, one := range p.policies() {
		d, err := one.Decide(ctx, &asked)
		if err != nil {
			return tool.Decision{Effect: tool.Deny}, err
		}
		edits = append(edits, d.Edits...)
		if strength(d) > strength(decision) {
			decision = d
		}
	}
	decision.Edits = edits
	return decision, nil
}

// Version implements [tool.Policy].
func (p *keyPolicy) Version() string {
	var all []string
	for _, one := range p.policies() {
		all = append(all, one.Version())
	}
	return strings.Join(all, "+")
}
