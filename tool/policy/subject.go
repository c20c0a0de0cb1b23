package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// subjects lists every subject, in the order of messages.
var subjects = [...]string{codes.SubjectToolCall, codes.SubjectHandoff, codes.SubjectModelCall}

// subjectSet holds the subjects that a rule covers, one bit for each.
type subjectSet uint8

func bitOf(s string) subjectSet {
	if i := slices.Index(subjects[:], s); i >= 0 {
		return 1 << i
	}
	return 0
}

func (s subjectSet) has(about string) bool { return s&bitOf(about) != 0 }

// obstacle is a field of a rule that keeps it from applying to a subject.
type obstacle struct {
	field  string
	reason string
}

// covers returns the subjects that a rule covers: those it names or, if it names none,
// all that its effect, conditions and expression can apply to. reads are the variables of
// the expression. The errors report named subjects that the rule can never apply to, and
// a rule that can apply to none.
func (r *Rule) covers(index int, reads []string) (set subjectSet, errs []error) {
	open := r.infersSubjects()
	var first *obstacle
	for _, s := range subjects {
		if !open && !slices.Contains(r.Subjects, s) {
			continue
		}
		found := r.obstacle(s, reads, open)
		if found == nil {
			set |= bitOf(s)
			continue
		}
		if !open {
			errs = append(errs, r.wrong(index, found.field, "%s; the rule names this subject", found.reason))
		}
		if first == nil {
			first = found
		}
	}
	if set == 0 && errs == nil && first != nil {
		errs = append(errs, r.wrong(index, first.field, "the rule can never apply: no subject has everything that its conditions refer to: %s", first.reason))
	}
	return set, errs
}

// infersSubjects reports whether the subjects of a rule follow from its effect and conditions.
func (r *Rule) infersSubjects() bool {
	return len(r.Subjects) == 0 || slices.Contains(r.Subjects, anySubject)
}

// toolVariables are the variables that only calls of tools have, handoffs included.
var toolVariables = []string{"args", "text", "tool", "ns", "source", "tags"}

// obstacle returns what keeps the rule from applying to a subject, or nil. A rule
// without subjects whose expression reads the variable subject distinguishes them
// itself.
func (r *Rule) obstacle(s string, reads []string, open bool) *obstacle {
	w := &r.When
	lacks := func(field, what string) *obstacle { return &obstacle{field, fmt.Sprintf("a %s has no %s", s, what)} }
	if s != codes.SubjectModelCall && len(w.Models) > 0 {
		return lacks("when.model", "model")
	}
	if s != codes.SubjectHandoff && len(w.Targets) > 0 {
		return lacks("when.target", "target")
	}
	var found *obstacle
	switch s {
	case codes.SubjectModelCall:
		found = r.modelObstacle()
	case codes.SubjectHandoff:
		if len(r.Subjects) == 1 && !open {
			found = r.handoffObstacle()
		}
	}
	if found != nil || open && slices.Contains(reads, "subject") {
		return found
	}
	for _, name := range reads {
		switch {
		case name == "model" && s != codes.SubjectModelCall,
			name == "target" && s != codes.SubjectHandoff,
			s == codes.SubjectModelCall && slices.Contains(toolVariables, name),
			s == codes.SubjectHandoff && !open && len(r.Subjects) == 1 && slices.Contains([]string{"args", "text", "ns", "tags"}, name):
			return &obstacle{"when.expression", fmt.Sprintf("a %s has no %s", s, name)}
		}
	}
	return nil
}

// modelObstacle returns what keeps the rule from applying to model calls.
func (r *Rule) modelObstacle() *obstacle {
	const no = "a model_call has no "
	switch w := &r.When; {
	case r.Effect == tool.Ask || r.Effect == tool.AskInput:
		return &obstacle{"effect", "a model_call cannot wait for a human; want allow or deny"}
	case len(r.Edits) > 0:
		return &obstacle{"edits", no + "arguments"}
	case len(w.Tools) > 0:
		return &obstacle{"when.tool", no + "tool"}
	case len(w.Namespaces) > 0:
		return &obstacle{"when.namespace", no + "tool"}
	case len(w.Tags) > 0:
		return &obstacle{"when.tags", no + "tool"}
	case w.annotated():
		return &obstacle{"when.annotations", no + "tool"}
	default:
		return nil
	}
}

// handoffObstacle returns what keeps a rule on handoffs alone from applying.
func (r *Rule) handoffObstacle() *obstacle {
	const no = "a handoff has no "
	switch w := &r.When; {
	case r.Effect == tool.AskInput:
		return &obstacle{"effect", no + "arguments"}
	case len(r.Edits) > 0:
		return &obstacle{"edits", no + "arguments"}
	case len(w.Namespaces) > 0:
		return &obstacle{"when.namespace", no + "namespace"}
	case len(w.Tags) > 0:
		return &obstacle{"when.tags", no + "tags"}
	case w.annotated():
		return &obstacle{"when.annotations", no + "annotations"}
	default:
		return nil
	}
}

func (w *When) annotated() bool {
	return w.ReadOnly != nil || w.Destructive != nil || w.Idempotent != nil || w.OpenWorld != nil
}

// Host describes the program that a policy runs in, for [Policy.For].
type Host struct {
	// Name is the host's name in error messages, such as "the gateway".
	Name string
	// Subjects are those it decides on; nil means all.
	Subjects []string
	// Tools are the qualified names of all tools that it may call, without those of
	// handoffs; nil means that they are not known.
	Tools []string
	// Namespaces and Tags are the namespaces and tags of all tools that it may call. Nil
	// means unknown; empty means that the tools have no namespaces or tags.
	Namespaces, Tags []string
	// Handoffs are the names of tools that hand over to other agents. A rule on tool
	// calls alone that names one does not apply to it.
	Handoffs []string
	// Targets are the names of the agents that Handoffs hand over to. Nil means that there
	// may be other handoffs; empty means that there are no handoffs.
	Targets []string
	// Agents are the names of all agents. Nil means that they are not known, empty
	// that there are none.
	Agents []string
	// Unattended says that no human can be asked.
	Unattended bool
}

// For returns the policy for one host. It reports every enabled rule that can never
// apply there, each as a [*RuleError]: rules on subjects, tools, namespaces, tags, agents
// or handoff targets that the host does not have, and rules that ask if the host is
// unattended. If the host decides only on model calls, the default covers them.
func (p *Policy) For(h Host) (*Policy, error) {
	var errs []string
	var all []error
	bad := func(err error) {
		if text := err.Error(); !slices.Contains(errs, text) {
			errs, all = append(errs, text), append(all, err)
		}
	}
	name := h.Name
	if name == "" {
		name = "this program"
	}
	for _, r := range p.rules {
		if !r.Disabled {
			if field, why := r.unusable(&h, name); why != "" {
				bad(r.wrong(r.index, field, "the rule can never apply: %s", why))
			}
		}
	}
	if h.Unattended && (p.fallback == defaultAsk || p.fallback == defaultAskDestructive) {
		bad(p.defaultError("default: %s asks a human, and %s cannot; want allow or deny", p.fallback, name))
	}
	if all != nil {
		return nil, joinInOrder(all)
	}
	out := *p
	if len(h.Subjects) == 1 && h.Subjects[0] == codes.SubjectModelCall {
		out.decidesModels = true
	}
	return &out, nil
}

// unusable returns why a rule can never apply in a host, and the field that is the reason.
func (r *compiled) unusable(h *Host, name string) (field, why string) {
	covered := r.covered
	if h.Subjects != nil {
		covered = 0
		for _, s := range h.Subjects {
			covered |= r.covered & bitOf(s)
		}
	}
	w := &r.When
	switch {
	case covered == 0:
		return "subjects", fmt.Sprintf("%s decides on %s only", name, strings.Join(h.Subjects, " and "))
	case h.Unattended && (r.Effect == tool.Ask || r.Effect == tool.AskInput):
		return "effect", fmt.Sprintf("%s cannot ask a human; want allow or deny", name)
	case r.covered == bitOf(codes.SubjectToolCall) && slices.ContainsFunc(w.Tools, func(name string) bool { return slices.Contains(h.Handoffs, name) }):
		return "subjects", fmt.Sprintf("%s is a handoff of %s; name handoff among the subjects", oneOf(w.Tools), name)
	case h.Tools != nil && len(w.Tools) > 0 && covered == bitOf(codes.SubjectToolCall) &&
		!slices.ContainsFunc(h.Tools, func(t string) bool { return matchAny(w.Tools, t) }):
		return "when.tool", fmt.Sprintf("%s matches no tool of %s; the tools are %s", oneOf(w.Tools), name, strings.Join(h.Tools, ", "))
	case h.Targets != nil && len(w.Tools) > 0 && covered == bitOf(codes.SubjectHandoff) &&
		!slices.ContainsFunc(h.Handoffs, func(t string) bool { return matchAny(w.Tools, t) }):
		if len(h.Handoffs) == 0 {
			return "when.tool", name + " has no handoffs"
		}
		return "when.tool", fmt.Sprintf("%s matches no handoff of %s; the handoffs are %s", oneOf(w.Tools), name, strings.Join(h.Handoffs, ", "))
	case h.Namespaces != nil && len(w.Namespaces) > 0 && !slices.ContainsFunc(w.Namespaces, func(n string) bool { return slices.Contains(h.Namespaces, n) }):
		return "when.namespace", fmt.Sprintf("no tool of %s is in the namespace %s", name, oneOf(w.Namespaces))
	case h.Tags != nil && len(w.Tags) > 0 && !slices.ContainsFunc(w.Tags, func(t string) bool { return slices.Contains(h.Tags, t) }):
		return "when.tags", fmt.Sprintf("no tool of %s is tagged %s", name, oneOf(w.Tags))
	case h.Agents != nil && len(h.Agents) == 0 && (len(w.Agents) > 0 || slices.ContainsFunc(r.reads, func(v string) bool { return v == "agent" || v == "agents" })):
		if len(w.Agents) == 0 {
			return "when.expression", name + " has no agents"
		}
		return "when.agent", name + " has no agents"
	case len(h.Agents) > 0 && len(w.Agents) > 0 && !slices.ContainsFunc(h.Agents, func(a string) bool { return r.agent(&tool.Question{Agent: []string{a}}) }):
		return "when.agent", fmt.Sprintf("%s matches no agent of %s; the agents are %s", oneOf(w.Agents), name, strings.Join(h.Agents, ", "))
	case len(h.Agents) > 0 && len(w.Targets) > 0 && !slices.ContainsFunc(h.Agents, func(a string) bool { return matchAny(w.Targets, a) }):
		return "when.target", fmt.Sprintf("%s matches no agent of %s; the agents are %s", oneOf(w.Targets), name, strings.Join(h.Agents, ", "))
	case h.Targets != nil && len(w.Targets) > 0 && !slices.ContainsFunc(h.Targets, func(a string) bool { return matchAny(w.Targets, a) }):
		if len(h.Targets) == 0 {
			return "when.target", name + " has no handoffs"
		}
		return "when.target", fmt.Sprintf("%s matches no handoff target of %s; the targets are %s", oneOf(w.Targets), name, strings.Join(h.Targets, ", "))
	default:
		return "", ""
	}
}
