package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// anySubject among a rule's subjects makes it apply to all of them.
const anySubject string = "any"

// Rule decides on matching calls. The package comment describes each field.
type Rule struct {
	// ID identifies the rule in decisions, explanations and logs.
	ID     string
	Effect tool.Effect
	// Priority orders the rules: higher ones are tried first.
	Priority int
	// Disabled rules never match, and do not change the policy's version.
	Disabled bool
	// Subjects lists the subjects that the rule applies to. None, or "any", means every subject
	// that the effect and the conditions can apply to: an ask does not cover model calls, and
	// neither does a condition on the tool.
	Subjects []string
	// Reason is shown to the model if a call is denied, and to the human who is asked.
	Reason string
	// When is the condition; the zero value always holds.
	When When
	// Edits set arguments of calls that are not denied.
	Edits []tool.Edit
	// Input describes the value to ask for, with [tool.AskInput].
	Input *tool.InputRequest

	// at is the position of the rule in a file.
	at *place
}

// When is a condition. Every field that is set must hold.
type When struct {
	// Tools are globs, one of which must match the tool's qualified name.
	Tools []string
	// Namespaces lists namespaces, one of which must be the tool's.
	Namespaces []string
	// ReadOnly and the others are annotations that the tool must have, with these values.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	// Tags lists tags, one of which the tool must have.
	Tags []string
	// Agents are globs, one of which must match the calling agent, or, for a glob with a slash,
	// the path of agents.
	Agents []string
	// Models are globs, one of which must match the called model: a glob with a slash matches
	// the whole "provider/model", others the part after the provider.
	Models []string
	// Targets are globs, one of which must match the target agent of a handoff.
	Targets []string
	// Metadata lists metadata that the run must have, with these values.
	Metadata map[string]string
	// Expression is a condition in CEL.
	Expression string
}

// fallback decides if no rule matches.
type fallback string

// The values of [Config.Default].
const (
	defaultAllow          = ""
	defaultDeny           = "deny"
	defaultAsk            = "ask"
	defaultAskDestructive = "ask_destructive"
)

// Config is a whole policy.
type Config struct {
	Rules []Rule
	// Default decides if no rule matches: "deny", "ask", "ask_destructive", or empty to allow.
	// "ask_destructive" asks before tool calls that may destroy something: all calls except
	// those of tools of this program that are marked as read-only or not destructive. The
	// annotations of an MCP server on its own tools do not count. It is meant for the command
	// line.
	Default string
	// CostLimit limits each run of an expression, in CEL cost units; zero means 1000000.
	CostLimit uint64

	// defaultAt is the position of the default in a file.
	defaultAt *place
}

// defaultCostLimit limits an expression to about a tenth of a second.
const defaultCostLimit = 1_000_000

// Limits of a policy, far above practical use.
const (
	maxExpression = 16 << 10
	maxRules      = 100_000
)

// ErrRule is wrapped by every error about an invalid rule.
var ErrRule = errors.New("policy: invalid policy")

// RuleError reports an error in one field of a rule.
type RuleError struct {
	// File, Line and Column are the position in a policy file.
	File         string
	Line, Column int
	// Index is the index of the rule in Config.Rules, and Rule its id.
	Index int
	Rule  string
	// Field is the field's name in a file, such as when.expression.
	Field  string
	Reason string
}

func (e *RuleError) Error() string {
	where, rule, field := "policy", strconv.Quote(e.Rule), ""
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if e.Rule == "" {
		rule = strconv.Itoa(e.Index + 1)
	}
	if e.Field != "" {
		field = e.Field + ": "
	}
	return fmt.Sprintf("%s: rule %s: %s%s", where, rule, field, e.Reason)
}

// Unwrap lets errors.Is find [ErrRule].
func (e *RuleError) Unwrap() error { return ErrRule }

func (r *Rule) wrong(index int, field, format string, args ...any) *RuleError {
	e := &RuleError{Index: index, Rule: r.ID, Field: field, Reason: fmt.Sprintf(format, args...)}
	if r.at != nil {
		e.File, e.Line, e.Column = r.at.of(field)
	}
	return e
}

// check returns all errors of a rule, except in its expression.
func (r *Rule) check(index int) []error {
	var errs []error
	bad := func(field, format string, args ...any) { errs = append(errs, r.wrong(index, field, format, args...)) }
	switch {
	case r.ID == "":
		bad("id", "the id is missing")
	case strings.ContainsFunc(r.ID, func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }):
		bad("id", "an id must have only printable characters")
	}
	switch r.Effect {
	case tool.Allow, tool.Deny, tool.Ask, tool.AskInput:
	case "":
		bad("effect", "the effect is missing: want allow, deny, ask or input")
	default:
		bad("effect", "unknown effect %q: want allow, deny, ask or input", r.Effect)
	}
	for _, s := range r.Subjects {
		switch s {
		case codes.SubjectToolCall, codes.SubjectModelCall, codes.SubjectHandoff, anySubject:
		default:
			bad("subjects", "unknown subject %q: want tool_call, model_call, handoff or any", s)
		}
	}
	errs = append(errs, r.checkWhen(index)...)
	return append(errs, r.checkChanges(index)...)
}

func (r *Rule) checkWhen(index int) []error {
	var errs []error
	globs := func(field string, patterns []string) {
		for _, p := range patterns {
			if err := checkGlob(p); err != nil {
				errs = append(errs, r.wrong(index, field, "%v", err))
			}
		}
	}
	names := func(field string, list []string) {
		if slices.Contains(list, "") {
			errs = append(errs, r.wrong(index, field, "a name is empty"))
		}
	}
	globs("when.tool", r.When.Tools)
	globs("when.agent", r.When.Agents)
	globs("when.model", r.When.Models)
	globs("when.target", r.When.Targets)
	names("when.namespace", r.When.Namespaces)
	names("when.tags", r.When.Tags)
	if len(r.When.Expression) > maxExpression {
		errs = append(errs, r.wrong(index, "when.expression", "the expression is longer than %d bytes", maxExpression))
	}
	return errs
}

// checkChanges checks what the rule does to the arguments of a call.
func (r *Rule) checkChanges(index int) []error {
	var errs []error
	bad := func(field, format string, args ...any) { errs = append(errs, r.wrong(index, field, format, args...)) }
	if r.Effect == tool.Deny && len(r.Edits) > 0 {
		bad("edits", "a rule that denies cannot edit arguments")
	}
	seen := map[string]bool{}
	for _, e := range r.Edits {
		switch {
		case e.Argument == "":
			bad("edits", "an edit needs the name of an argument")
		case seen[e.Argument]:
			bad("edits", "%q has two edits", e.Argument)
		case !json.Valid(e.Value):
			bad("edits", "the value of %q is not JSON", e.Argument)
		}
		seen[e.Argument] = true
	}
	switch {
	case r.Effect == tool.AskInput && (r.Input == nil || r.Input.Argument == ""):
		bad("input", "the effect input needs the argument to ask for")
	case r.Effect != tool.AskInput && r.Input != nil:
		bad("input", "only the effect input asks for a value")
	}
	return errs
}
