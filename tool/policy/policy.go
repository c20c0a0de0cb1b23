package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// Policy decides by rules. It is immutable and safe for concurrent use.
type Policy struct {
	rules    []*compiled // in the order of evaluation
	fallback fallback
	version  string
	index    *index
	// immediate reports that no rule has an expression.
	immediate bool
	// decidesModels makes the default cover model calls.
	decidesModels bool
	// defaultAt is the position of the default in a file; nil if there is none.
	defaultAt *place
}

var _ tool.Policy = (*Policy)(nil)

// compiled is a rule with its compiled expression.
type compiled struct {
	Rule
	program *program // nil if there is no expression
	// metadata holds the metadata of the condition, in a stable order.
	metadata []pair
	// index is the index of the rule in the config.
	index int
	// covered are the subjects that the rule applies to.
	covered subjectSet
	// reads are the variables of the expression, sorted.
	reads []string
}

type pair struct{ key, value string }

// New returns a policy with the given rules. The error lists every problem with them, each as a
// [*RuleError]. Do not change the rules of config afterwards.
func New(config Config) (*Policy, error) {
	p, errs := build(config)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// build makes a policy and returns all its errors.
func build(config Config) (*Policy, []error) {
	p := &Policy{fallback: fallback(config.Default), defaultAt: config.defaultAt}
	var errs []error
	switch config.Default {
	case defaultAllow, defaultDeny, defaultAsk, defaultAskDestructive:
	default:
		errs = append(errs, fmt.Errorf("%w: unknown default %q: use deny, ask or ask_destructive, or leave it empty to allow", ErrRule, config.Default))
	}
	if len(config.Rules) > maxRules {
		return nil, append(errs, fmt.Errorf("%w: more than %d rules", ErrRule, maxRules))
	}
	limit := cmp.Or(config.CostLimit, defaultCostLimit)
	c := compiler{limit: limit, first: map[string]int{}}
	for i := range config.Rules {
		rule, wrong := c.compile(i, &config.Rules[i])
		errs = append(errs, wrong...)
		p.rules = append(p.rules, rule)
	}
	if errs != nil {
		return nil, errs
	}
	slices.SortFunc(p.rules, func(a, b *compiled) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	p.decidesModels = slices.ContainsFunc(p.rules, func(r *compiled) bool {
		return !r.Disabled && slices.Contains(r.Subjects, codes.SubjectModelCall)
	})
	p.version = p.hash(limit)
	p.index = newIndex(p.rules)
	p.immediate = !slices.ContainsFunc(p.rules, func(r *compiled) bool { return r.program != nil && !r.Disabled })
	return p, nil
}

// Immediate reports that no rule has an expression: a decision only looks up and compares.
func (p *Policy) Immediate() bool { return p != nil && p.immediate }

// compiler prepares the rules of one policy. It creates the engine for the first expression.
type compiler struct {
	limit uint64
	first map[string]int // the index of the rule with an id
	exprs *expressions
}

func (c *compiler) compile(i int, r *Rule) (*compiled, []error) {
	errs := r.check(i)
	if before, twice := c.first[r.ID]; twice && r.ID != "" {
		errs = append(errs, r.wrong(i, "id", "rule %d already has this id", before+1))
	} else {
		c.first[r.ID] = i
	}
	out := &compiled{Rule: *r, index: i}
	for _, k := range slices.Sorted(maps.Keys(r.When.Metadata)) {
		out.metadata = append(out.metadata, pair{k, r.When.Metadata[k]})
	}
	out.Edits = slices.Clip(slices.Clone(r.Edits))
	errs = append(errs, c.expression(i, out)...)
	var wrong []error
	if out.covered, wrong = r.covers(i, out.reads); len(errs) == 0 {
		errs = wrong
	}
	return out, errs
}

// expression compiles the expression of a rule, if it has one.
func (c *compiler) expression(i int, r *compiled) (errs []error) {
	if r.When.Expression == "" || len(r.When.Expression) > maxExpression {
		return nil
	}
	var err error
	if c.exprs == nil {
		if c.exprs, err = newExpressions(c.limit); err != nil {
			return []error{err}
		}
	}
	if r.program, err = c.exprs.compile(r.When.Expression); err != nil {
		return []error{r.wrong(i, "when.expression", "%v", err)}
	}
	r.reads = r.program.reads
	return nil
}

// Version returns a hash of all enabled rules, the default and the cost limit. Equal rules have
// equal versions, in whatever order they are written.
func (p *Policy) Version() string { return p.version }

// formatVersion changes if the same rules get another meaning.
const formatVersion = "dragoman policy 2"

// hash writes everything that can change a decision in an injective form.
func (p *Policy) hash(limit uint64) string {
	var h versionHash
	h.str(formatVersion)
	h.str(string(p.fallback))
	h.num(int64(limit)) //nolint:gosec // only for comparison
	for _, r := range p.rules {
		if r.Disabled {
			continue
		}
		h.rule(r)
	}
	sum := sha256.Sum256(h.b)
	return hex.EncodeToString(sum[:16])
}

type versionHash struct{ b []byte }

func (h *versionHash) num(n int64)  { h.b = binary.AppendVarint(h.b, n) }
func (h *versionHash) str(s string) { h.num(int64(len(s))); h.b = append(h.b, s...) }

func (h *versionHash) set(list []string) {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	h.num(int64(len(list)))
	for _, s := range list {
		h.str(s)
	}
}

func (h *versionHash) flag(b *bool) {
	switch {
	case b == nil:
		h.num(0)
	case *b:
		h.num(1)
	default:
		h.num(2)
	}
}

func (h *versionHash) rule(r *compiled) {
	h.str(r.ID)
	h.str(string(r.Effect))
	h.num(int64(r.Priority))
	h.set(r.Subjects)
	h.str(r.Reason)
	h.set(r.When.Tools)
	h.set(r.When.Namespaces)
	for _, b := range [...]*bool{r.When.ReadOnly, r.When.Destructive, r.When.Idempotent, r.When.OpenWorld} {
		h.flag(b)
	}
	h.set(r.When.Tags)
	h.set(r.When.Agents)
	h.set(r.When.Models)
	h.set(r.When.Targets)
	h.num(int64(len(r.metadata)))
	for _, m := range r.metadata {
		h.str(m.key)
		h.str(m.value)
	}
	h.str(r.When.Expression)
	h.num(int64(len(r.Edits)))
	for _, e := range r.Edits {
		h.str(e.Argument)
		h.str(string(e.Value))
	}
	if r.Input == nil {
		h.num(0)
		return
	}
	h.num(1)
	h.str(r.Input.Argument)
	h.str(r.Input.Prompt)
}

// Decide returns the decision on a call. An expression that fails before a rule has decided
// fails the decision, which denies the call; so does a question that no human can answer.
func (p *Policy) Decide(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	if p == nil || q == nil {
		return tool.Decision{}, errors.New("policy: the policy or the question is nil")
	}
	var decision tool.Decision
	var f *facts // created for the first expression
	candidates := p.index.candidates(q)
	for i, r := range candidates {
		if !r.dynamic(q) {
			continue
		}
		if r.program != nil {
			if f == nil {
				f = &facts{q: q}
			}
			ok, err := evaluate(ctx, r.program, f)
			if err != nil && ctx.Err() != nil {
				return tool.Decision{}, fmt.Errorf("policy: rule %q: %w", r.ID, context.Cause(ctx))
			}
			if err != nil && decision.Effect == "" {
				return tool.Decision{}, &expressionError{Rule: r.ID, Err: err}
			}
			if err != nil || !ok {
				continue
			}
		}
		if decision.Effect == "" {
			decision = r.decision()
			decision.Matches = make([]string, 0, len(candidates)-i)
		}
		decision.Matches = append(decision.Matches, r.ID)
	}
	if decision.Effect == "" {
		return p.byDefault(q), nil
	}
	return decision, nil
}

// expressionError reports that the expression of a rule did not return true or false.
type expressionError struct {
	Rule string
	Err  error
}

func (e *expressionError) Error() string {
	return fmt.Sprintf("policy: rule %q: its expression failed: %v", e.Rule, e.Err)
}

// Unwrap returns the cause.
func (e *expressionError) Unwrap() error { return e.Err }

func (r *compiled) decision() tool.Decision {
	d := tool.Decision{Effect: r.Effect, Rule: r.ID, Reason: r.Reason, Edits: r.Edits}
	if r.Input != nil {
		wanted := *r.Input
		d.Input = &wanted
	}
	return d
}

// static reports whether the conditions that depend on the tool alone hold, and otherwise which
// one does not.
func (r *compiled) static(q *tool.Question) (ok bool, why field) {
	w := &r.When
	if len(w.Tools) > 0 && (q.Key.Name == "" || !matchAny(w.Tools, q.Key.QualifiedName())) {
		return false, fieldTool
	}
	if len(w.Namespaces) > 0 && !slices.Contains(w.Namespaces, q.Key.Namespace) {
		return false, fieldNamespace
	}
	a := annotationsOf(q)
	if !holds(w.ReadOnly, a.ReadOnly) || !holds(w.Destructive, a.Destructive) ||
		!holds(w.Idempotent, a.Idempotent) || !holds(w.OpenWorld, a.OpenWorld) {
		return false, fieldAnnotations
	}
	if len(w.Tags) > 0 && !slices.ContainsFunc(tagsOf(q), func(t string) bool { return slices.Contains(w.Tags, t) }) {
		return false, fieldTags
	}
	return true, ""
}

// dynamic reports whether the conditions that depend on the call hold, except for its
// expression.
func (r *compiled) dynamic(q *tool.Question) bool {
	return r.covered.has(q.Subject) && r.agent(q) && r.model(q) && r.target(q) && r.hasMetadata(q)
}

// model matches a pattern with a slash against the whole "provider/model", and one without
// a slash against the part after the provider.
func (r *compiled) model(q *tool.Question) bool {
	if len(r.When.Models) == 0 {
		return true
	}
	return slices.ContainsFunc(r.When.Models, func(pattern string) bool {
		name := q.Model
		if _, bare, ok := strings.Cut(name, "/"); ok && !strings.Contains(pattern, "/") {
			name = bare
		}
		return textkit.MatchGlob(pattern, name)
	})
}

func (r *compiled) target(q *tool.Question) bool {
	return len(r.When.Targets) == 0 || q.Target != "" && matchAny(r.When.Targets, q.Target)
}

func (r *compiled) hasMetadata(q *tool.Question) bool {
	for _, m := range r.metadata {
		if v, ok := q.Metadata[m.key]; !ok || v != m.value {
			return false
		}
	}
	return true
}

func (r *compiled) agent(q *tool.Question) bool {
	if len(r.When.Agents) == 0 {
		return true
	}
	if len(q.Agent) == 0 {
		return false
	}
	for _, pattern := range r.When.Agents {
		name := agentOf(q)
		if strings.Contains(pattern, "/") {
			name = agentPath(q.Agent)
		}
		if textkit.MatchGlob(pattern, name) {
			return true
		}
	}
	return false
}

// agentPath joins the names of agents so that different paths have different texts.
func agentPath(agents []string) string {
	escaped := make([]string, len(agents))
	for i, a := range agents {
		escaped[i] = strings.ReplaceAll(strings.ReplaceAll(a, "%", "%25"), "/", "%2F")
	}
	return strings.Join(escaped, "/")
}

func annotationsOf(q *tool.Question) dragoman.Annotations {
	if q.Spec == nil {
		return dragoman.Annotations{}
	}
	return q.Spec.Annotations
}

// holds compares a wanted hint with the hint of a tool. An unknown hint equals neither true nor
// false.
func holds(want, have *bool) bool {
	return want == nil || have != nil && *have == *want
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }

// byDefault decides if no rule matched. The default covers model calls only if the policy
// has rules on them, so that a policy that lists tools does not end every run.
func (p *Policy) byDefault(q *tool.Question) tool.Decision {
	if q.Subject == codes.SubjectModelCall && !(p.decidesModels && p.fallback == defaultDeny) {
		return tool.Decision{Effect: tool.Allow}
	}
	return p.fallback.decide(q)
}

// decide returns the decision on a call that the default covers.
func (d fallback) decide(q *tool.Question) tool.Decision {
	switch d {
	case defaultAllow:
		return tool.Decision{Effect: tool.Allow}
	case defaultAsk:
		return tool.Decision{Effect: tool.Ask, Reason: "no rule covers this call"}
	case defaultAskDestructive:
		if q.Subject == codes.SubjectToolCall && mayDestroy(q) {
			return tool.Decision{Effect: tool.Ask, Reason: "the tool may change or destroy something"}
		}
		return tool.Decision{Effect: tool.Allow}
	default:
		return tool.Decision{Effect: tool.Deny, Reason: "no rule allows this call"}
	}
}

// mayDestroy reports whether a tool is not known to be harmless.
func mayDestroy(q *tool.Question) bool {
	a := annotationsOf(q)
	switch {
	case sourceOf(q) == codes.FromMCP, isTrue(a.Destructive):
		return true
	default:
		return !isTrue(a.ReadOnly) && !isFalse(a.Destructive)
	}
}

// now returns the time of the clock, or of the system if it is nil.
func now(clock func() time.Time) time.Time {
	if clock != nil {
		return clock()
	}
	return time.Now()
}
