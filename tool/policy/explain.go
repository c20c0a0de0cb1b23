package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/dragoman-go/dragoman/tool"
)

// Explanation describes how a policy reaches a decision.
type Explanation struct {
	Tool    string `json:"tool,omitempty"`
	Subject string `json:"subject"`
	// Model is the model of a model call, Target the agent of a handoff.
	Model  string `json:"model,omitempty"`
	Target string `json:"target,omitempty"`
	// Decision is the decision on the call. A policy that fails denies.
	Decision tool.Decision `json:"decision"`
	// Failed is the reason if the policy failed, or empty.
	Failed string `json:"failed,omitempty"`
	// Default is the decision if no rule matches.
	Default string `json:"default"`
	Version string `json:"version"`
	// Rules lists all rules, in the order of evaluation.
	Rules []Considered `json:"rules"`
}

// Considered is the evaluation of one rule.
type Considered struct {
	Rule     string      `json:"rule"`
	Effect   tool.Effect `json:"effect"`
	Priority int         `json:"priority"`
	Matched  bool        `json:"matched"`
	// Decided reports that this rule decided.
	Decided bool `json:"decided,omitempty"`
	// Field is the condition that did not hold, and Why the details.
	Field string `json:"field,omitempty"`
	Why   string `json:"why,omitempty"`
}

// field is the name of a condition in a file.
type field string

const (
	fieldTool        field = "when.tool"
	fieldNamespace   field = "when.namespace"
	fieldAnnotations field = "when.annotations"
	fieldTags        field = "when.tags"
	fieldAgent       field = "when.agent"
	fieldModel       field = "when.model"
	fieldTarget      field = "when.target"
	fieldMetadata    field = "when.metadata"
	fieldExpression  field = "when.expression"
	fieldSubjects    field = "subjects"
	fieldEnabled     field = "enabled"
)

// Explain decides like Decide, and reports for every rule whether it matched, and if not, why.
// It evaluates all of them.
func (p *Policy) Explain(ctx context.Context, q *tool.Question) Explanation {
	if p == nil || q == nil {
		return Explanation{Decision: tool.Decision{Effect: tool.Deny}, Failed: "the policy or the question is nil"}
	}
	out := Explanation{
		Tool: q.Key.QualifiedName(), Subject: q.Subject, Model: q.Model, Target: q.Target, Default: p.fallback.String(), Version: p.version,
		Rules: make([]Considered, 0, len(p.rules)),
	}
	f := &facts{q: q}
	for _, r := range p.rules {
		c, err := r.consider(ctx, f)
		open := out.Decision.Effect == "" && out.Failed == ""
		switch {
		case err != nil && open:
			out.Failed = (&expressionError{Rule: r.ID, Err: err}).Error()
		case c.Matched && open:
			c.Decided = true
			out.Decision = r.decision()
		}
		if c.Matched && out.Failed == "" {
			out.Decision.Matches = append(out.Decision.Matches, r.ID)
		}
		out.Rules = append(out.Rules, c)
	}
	switch {
	case out.Failed != "":
		out.Decision = tool.Decision{Effect: tool.Deny, Reason: "the policy failed"}
	case out.Decision.Effect == "":
		out.Decision = p.byDefault(q)
	}
	return out
}

// consider evaluates one rule.
func (r *compiled) consider(ctx context.Context, f *facts) (Considered, error) {
	q := f.q
	c := Considered{Rule: r.ID, Effect: r.Effect, Priority: r.Priority}
	not := func(at field, format string, args ...any) (Considered, error) {
		c.Field, c.Why = string(at), fmt.Sprintf(format, args...)
		return c, nil
	}
	if r.Disabled {
		return not(fieldEnabled, "the rule is turned off")
	}
	if !r.covered.has(q.Subject) {
		return not(fieldSubjects, "the rule does not cover a %s", q.Subject)
	}
	if ok, at := r.static(q); !ok {
		return not(at, "%s", r.mismatch(at, q))
	}
	if !r.agent(q) {
		return not(fieldAgent, "the agent is %q", agentPath(q.Agent))
	}
	if !r.model(q) {
		return not(fieldModel, "%q is not %s", q.Model, oneOf(r.When.Models))
	}
	if !r.target(q) {
		return not(fieldTarget, "%q is not %s", q.Target, oneOf(r.When.Targets))
	}
	for _, m := range r.metadata {
		if v, ok := q.Metadata[m.key]; !ok {
			return not(fieldMetadata, "there is no %q", m.key)
		} else if v != m.value {
			return not(fieldMetadata, "%q has another value", m.key)
		}
	}
	if r.program != nil {
		ok, err := evaluate(ctx, r.program, f)
		if err != nil {
			c.Field, c.Why = string(fieldExpression), "it failed: "+err.Error()
			return c, err
		}
		if !ok {
			return not(fieldExpression, "it is false")
		}
	}
	c.Matched = true
	return c, nil
}

// mismatch describes the actual value of a condition that does not hold.
func (r *compiled) mismatch(at field, q *tool.Question) string {
	switch at {
	case fieldTool:
		return fmt.Sprintf("%q is not %s", q.Key.QualifiedName(), oneOf(r.When.Tools))
	case fieldNamespace:
		return fmt.Sprintf("%q is not %s", q.Key.Namespace, oneOf(r.When.Namespaces))
	case fieldTags:
		return fmt.Sprintf("the tool is not tagged %s", oneOf(r.When.Tags))
	default:
		a := annotationsOf(q)
		for _, h := range [...]struct {
			name       string
			want, have *bool
		}{
			{"read_only", r.When.ReadOnly, a.ReadOnly},
			{"destructive", r.When.Destructive, a.Destructive},
			{"idempotent", r.When.Idempotent, a.Idempotent},
			{"open_world", r.When.OpenWorld, a.OpenWorld},
		} {
			if !holds(h.want, h.have) {
				if h.have == nil {
					return "the tool does not say whether it is " + h.name
				}
				return fmt.Sprintf("the tool's %s is %t", h.name, *h.have)
			}
		}
		return "an annotation differs"
	}
}

func oneOf(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(quoted, " or ")
}

// String returns the name of the default in a file.
func (d fallback) String() string {
	if d == defaultAllow {
		return "allow"
	}
	return string(d)
}

// String formats the explanation for a human, one line per rule.
func (e Explanation) String() string {
	var b strings.Builder
	what := e.Tool
	if what == "" {
		what = strings.TrimSpace(e.Subject + " " + e.Model + e.Target)
	}
	fmt.Fprintf(&b, "%s: %s", what, e.Decision.Effect)
	switch {
	case e.Failed != "":
		fmt.Fprintf(&b, ", because the policy failed: %s", e.Failed)
	case e.Decision.Rule != "":
		fmt.Fprintf(&b, ", by rule %s", e.Decision.Rule)
	default:
		fmt.Fprintf(&b, ", by the default (%s)", e.Default)
	}
	if e.Decision.Reason != "" && e.Failed == "" {
		fmt.Fprintf(&b, ": %s", e.Decision.Reason)
	}
	b.WriteByte('\n')
	for _, r := range e.Rules {
		fmt.Fprintf(&b, "  %6d  %-24s %-6s ", r.Priority, r.Rule, r.Effect)
		switch {
		case r.Decided:
			b.WriteString("matched, and decided")
		case r.Matched:
			b.WriteString("matched")
		default:
			fmt.Fprintf(&b, "no: %s: %s", r.Field, r.Why)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "  default %s, policy %s\n", e.Default, e.Version)
	return b.String()
}
