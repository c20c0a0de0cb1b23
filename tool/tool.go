package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Tool is something a model may call and this program runs. Its spec must not
// change once it is in a toolbox. Call may be called by many goroutines at once; for a tool
// that is [Settings.Exclusive], only by turns that run at the same time.
//
// Most tools are made by [New]. A type of your own that also has a method
// Settings() [Settings] is run as that says; one with a method Err() error is
// refused by a toolbox with that error; one with a method Contribution()
// [dragoman.Contribution] brings its own formats, as [Contribute] does. Package tooltest checks that a tool does
// what this interface promises.
type Tool interface {
	// Spec is what models are told.
	Spec() *dragoman.ToolSpec
	// Call runs the tool. Its input is final: validated, allowed, approved. An
	// error becomes an error result with the error's text, so that must be fit
	// for a model to read.
	Call(ctx context.Context, in Input) (Output, error)
}

// Input is what a tool is called with.
type Input struct {
	// Arguments are the JSON object of a function's call, with the schema's
	// defaults filled in; nil for a freeform tool.
	Arguments json.RawMessage
	// Text is the input of a freeform tool.
	Text string

	// bound is the same, decoded into the tool's own type when it was checked.
	bound any
}

// storedInput is how an input is stored: the arguments as text, because JSON inside
// of JSON is compacted and escaped on its way, and these bytes are what approvals
// cover.
type storedInput struct {
	Arguments *string `json:"arguments,omitempty"`
	Text      string  `json:"text,omitempty"`
}

// MarshalJSON stores the input so that every byte of it comes back.
func (in Input) MarshalJSON() ([]byte, error) {
	s := storedInput{Text: in.Text}
	if in.Arguments != nil {
		s.Arguments = new(string(in.Arguments))
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON stored.
func (in *Input) UnmarshalJSON(b []byte) error {
	var s storedInput
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*in = Input{Text: s.Text}
	if s.Arguments != nil {
		in.Arguments = json.RawMessage(*s.Arguments)
	}
	return nil
}

// clone is a copy to hand out: whoever writes into it changes nothing else.
func (in Input) clone() Input {
	in.Arguments = slices.Clone(in.Arguments)
	return in
}

// same reports whether two inputs are byte for byte the same.
func (in Input) same(other Input) bool {
	return in.Text == other.Text && string(in.Arguments) == string(other.Arguments)
}

// Output is what a tool's run came to.
type Output struct {
	// Content is text, media and data, as the model gets it; empty is a run
	// without output.
	Content []dragoman.Part
	// Failed says that Content tells of a failure.
	Failed bool
	// Display is for humans and never sent to a model. It has the bounds of a text
	// that is, by itself.
	Display string
	// Envelope is a provider's own form of the result, for targets that know it;
	// others get Content. It is not fenced: never copy it from a server that you do not
	// trust. A tool of this program may return it as data, too: see [New].
	Envelope *dragoman.Native
	// Ticket says that the work goes on in the background, and Content, if there
	// is any, is what the model is told meanwhile.
	Ticket *Ticket
}

// Text is the input of a freeform tool made by [New], and an output that is text.
type Text string

// Settings say how a tool is run. The zero value is safe: whatever is zero is as
// the toolbox and the runner have it.
type Settings struct {
	// Tags group tools for policies and listings.
	Tags []string
	// Source says where the tool comes from: "mcp", "handoff", "agent" for a tool that an
	// agent adds by itself, such as its tool search, or empty for this program. It decides
	// which of two tools with one name wins: a handoff, then a tool of this program or an
	// agent, then one of MCP. A call of a handoff is a handoff to policies, not a tool call.
	Source string
	// HandoffTo is the agent that a tool with the source "handoff" hands over to.
	HandoffTo string
	// TraceName is the tool's name in traces; empty means the qualified name.
	TraceName string
	// Timeout bounds one call, its middleware apart; zero means the toolbox's.
	Timeout time.Duration
	// Limits bound the output; a zero field means the toolbox's.
	Limits Limits
	// Approval says when a human must agree: "always"; empty means never, unless a policy
	// asks. A policy rule that allows the call settles it: no human is asked. A
	// default that allows does not.
	Approval string
	// ApprovalFor decides by the arguments; with it, Approval is not looked at.
	// Where it fails, panics or takes too long, approval is needed.
	ApprovalFor func(ctx context.Context, in Input) (bool, error)
	// Preview describes what a call would do, for the human who approves it, such as the
	// diff of a write. Nil means that approvers show the input itself. Its text takes the
	// place of the arguments in the question, so it must show everything that matters about
	// them. It may hold any bytes: approvers escape what they show.
	//
	// It runs when an approver asks for the preview, on the validated input, before the call
	// has any effect. It must not have an effect of its own. If it fails, panics or takes
	// longer than [Runner.PolicyTimeout], approvers show the input instead.
	Preview func(ctx context.Context, in Input) (string, error)
	// Immediate tools return by themselves and at once, whatever they are given: they wait
	// for nothing and have little to compute, as one that looks into memory. They run in
	// place, where others are watched from another goroutine and abandoned when their time
	// is over, which costs more than such a tool does. The hooks after it, and middleware,
	// must be immediate too: see [Hooks].
	Immediate bool
	// Exclusive tools run alone: not beside any other call of their turn. Turns that run
	// at the same time do not wait for each other.
	Exclusive bool
	// Coerce takes numbers, booleans and null that a model wrote as text, and
	// text it wrote as a number or boolean, where the schema wants the other.
	Coerce bool
	// Trusted output is not fenced. Set it only where no part of the output
	// comes from outside.
	Trusted bool
	// Structured output is what OutputSchema declares: checked against it, and
	// not fenced.
	Structured bool
	// SelfParsing freeform tools check their text themselves, and say better what
	// is wrong with it: their grammar is told to models and not checked here.
	SelfParsing bool
	// Polling tools may be called again and again with the same arguments.
	Polling bool
	// Failure says what a failed call does to its turn; zero means as the run
	// has it.
	Failure string
	// Breaker stops calls after repeated failures; the zero value never does.
	Breaker Breaker
	Hooks   Hooks
	// CheckState reports whether the tool can continue from a state that it left in
	// [Suspended]. It is called when the turn is resumed, before any call of the turn runs:
	// an error refuses the whole turn. Nil accepts every state.
	CheckState func(ctx context.Context, state json.RawMessage) error
	// Unvalidated says that the arguments cannot be checked here, as those of a
	// tool that runs elsewhere and gave no schema. Such calls need approval
	// unless a rule of the policy allows them; its default does not count.
	Unvalidated bool
	// ReadsOutput marks a tool that reads stored outputs, as [ReadOutput] does. Shortened
	// outputs name it, and an agent does not add one of its own.
	ReadsOutput bool

	// remote marks tools that [Remote] made.
	remote bool
}

// nativeResults reports whether data of the tool may be a provider-native result.
// Such a result is not fenced, so only tools of this program and trusted ones may
// return it.
func (s *Settings) nativeResults() bool {
	return s.Trusted || !s.remote && s.Source != codes.FromMCP
}

// The settings of approval.
const (
	approvalNever  = ""
	approvalAlways = "always"
)

// checkFailure refuses unknown policies: a misspelled one must not mean "continue".
func checkFailure(f string) error {
	switch f {
	case codes.FailureDefault, codes.FailureContinue, codes.FailureDegrade, codes.FailureFail:
		return nil
	default:
		return fmt.Errorf("%w: unknown failure policy %q; use continue, degrade or fail", ErrDefinition, f)
	}
}

// settingsOf are those of a tool that has any.
func settingsOf(t Tool) Settings {
	if s, ok := t.(interface{ Settings() Settings }); ok {
		return s.Settings()
	}
	return Settings{}
}
