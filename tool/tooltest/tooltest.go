// Package tooltest checks that a [tool.Tool] keeps the contract of package tool. Call
// it in a test of your own tool:
//
//	func TestWeather(t *testing.T) {
//		tooltest.Run(t, tooltest.Suite{Tool: weather, Cases: []tooltest.Case{
//			{Arguments: `{"city":"Oslo"}`, Want: "degrees"},
//			{Arguments: `{"city":""}`, Fails: true},
//		}})
//	}
//
// The suite makes every call through a [tool.Box] and a [tool.Runner], as an agent does,
// and approves calls that need approval. Each rule is one subtest. A rule that nothing
// in the suite can check is skipped, and the subtest says what to add: a case that
// blocks, or a State function. Run the test with -race: data races are found then, too.
//
// [Check] returns the findings instead of failing a test.
package tooltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// Suite is a tool and how to check it. Only Tool is required.
type Suite struct {
	// Tool is the tool to check. The suite calls it many times, also concurrently unless
	// it is exclusive. Leave out its circuit breaker: cases that fail would open it.
	Tool tool.Tool
	// Cases are calls and their expected outcome.
	Cases []Case
	// Invalid lists arguments that must not reach the tool. The suite adds its own to
	// these, made from the first case: without a field, with a value of another type,
	// with an unknown field. Those that the schema accepts are not used.
	Invalid []string
	// Reset restores the state that the cases start from. The suite calls it before
	// every case and every check; nil means that there is nothing to restore.
	Reset func(ctx context.Context) error
	// State describes what the tool could change, such as the content of files: two
	// equal strings are the same state. It is needed to check that a read-only tool
	// changes nothing; nil skips that.
	State func(ctx context.Context) (string, error)
	// Runner runs the calls, for tools that need secrets, tickets or other settings; nil
	// means the zero Runner. Without an Approver the suite approves all calls, and
	// without a Log nothing is logged. RaiseOnError is ignored.
	Runner *tool.Runner
	// Within bounds a call, and the time that a tool may take to return after its
	// context ended; zero means 10 s.
	Within time.Duration
	// Without leaves rules out, by name: "spec", "targets", "examples", "arguments",
	// "cases", "panic", "output", "limits", "read-only", "idempotent", "concurrent",
	// "cancel", "timeout", "stable". The value is the reason, which is printed.
	Without map[string]string
}

// Case is a call of the tool and its expected outcome.
type Case struct {
	// Name identifies the case in findings; empty means its arguments.
	Name string
	// Arguments are the JSON object of a function, or the text of a freeform tool.
	Arguments string
	// Want is text that the output contains; empty accepts any.
	Want string
	// Fails says that the tool reports an error. Arguments that do not fit the schema
	// belong in [Suite.Invalid]: no tool is called with them.
	Fails bool
	// Varies says that two calls may have different outputs, such as the current time.
	Varies bool
	// Long says that the output is longer than its limits, and is cut.
	Long bool
	// Blocks says that the call does not return before its context ends. Such a case
	// checks cancellation and the time limit, and nothing else.
	Blocks bool
}

func (c *Case) name() string {
	name := c.Name
	if name == "" {
		name = c.Arguments
	}
	if most := 60; len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// The rules, in the order in which they are checked.
const (
	// ruleSpec: a toolbox accepts the definition: its names, texts and schemas. Without
	// that nothing else is checked.
	ruleSpec = "spec"
	// ruleTargets: every dialect, and every server with a schema profile, is sent the tool.
	ruleTargets = "targets"
	// ruleExamples: the examples of the definition are valid arguments.
	ruleExamples = "examples"
	// ruleArguments: invalid arguments do not reach the tool.
	ruleArguments = "arguments"
	// ruleCases: every case ends as it says.
	ruleCases = "cases"
	// rulePanic: no call panics.
	rulePanic = "panic"
	// ruleOutput: the output can be sent, and fits the declared output schema.
	ruleOutput = "output"
	// ruleLimits: the output is within its limits, so that models read all of it.
	ruleLimits = "limits"
	// ruleReadOnly: a tool that is annotated as read-only does not change the state, and
	// is not annotated as destructive.
	ruleReadOnly = "read-only"
	// ruleIdempotent: a second call of a tool that is annotated as idempotent has the
	// same output, and leaves the same state.
	ruleIdempotent = "idempotent"
	// ruleConcurrent: concurrent calls end like single ones. It does not apply to
	// exclusive tools.
	ruleConcurrent = "concurrent"
	// ruleCancel: a call returns soon after its context is canceled.
	ruleCancel = "cancel"
	// ruleTimeout: a call past its time limit has an error result, and the tool returns
	// soon after.
	ruleTimeout = "timeout"
	// ruleStable: Spec returns the same definition every time, also concurrently and
	// after calls.
	ruleStable = "stable"
)

// Finding is a rule that a tool does not keep.
type Finding struct {
	// Rule is the name of the rule, see [Suite.Without]; empty if the suite itself is wrong.
	Rule string
	// Tool is the qualified name of the tool; empty if it has no valid definition.
	Tool string
	// Case is the name of the case; empty if the finding concerns the tool as a whole.
	Case string
	// Text says what is wrong.
	Text string
}

// Error returns the finding as one text.
func (f *Finding) Error() string {
	var b strings.Builder
	b.WriteString("tooltest: ")
	if f.Tool != "" {
		b.WriteString(f.Tool + ": ")
	}
	if f.Rule != "" {
		b.WriteString(f.Rule + ": ")
	}
	if f.Case != "" {
		fmt.Fprintf(&b, "case %s: ", f.Case)
	}
	return b.String() + f.Text
}

// Run checks the tool. Each rule is a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	c := newChecker(t.Context(), s)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			found, skip := c.check(r)
			for _, f := range found {
				t.Error(f)
			}
			if skip != "" && len(found) == 0 {
				t.Skip(skip)
			}
		})
	}
	if f := s.unknownRules(); f != nil {
		t.Error(f)
	}
}

// Check checks the tool and returns its findings, each of which is an error; none means
// that the tool conforms. If ctx ends, a finding names the rule that was not checked.
func Check(ctx context.Context, s Suite) []*Finding {
	c := newChecker(ctx, s)
	var all []*Finding
	for _, r := range rules() {
		found, _ := c.check(r)
		all = append(all, found...)
	}
	if f := s.unknownRules(); f != nil {
		all = append(all, f)
	}
	return all
}

// unknownRules returns a finding if Without has a name that is not a rule.
func (s *Suite) unknownRules() *Finding {
	var known, unknown []string
	for _, r := range rules() {
		known = append(known, r.name)
	}
	for name := range s.Without {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return &Finding{Text: fmt.Sprintf("Without has unknown rules %q: the rules are %s", unknown, strings.Join(known, ", "))}
}
