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

// Tool is a function that a model may call and this program runs. Its spec must not change once
// it is in a toolbox. Call must be safe for concurrent use; calls of a tool that is
// [Settings.Exclusive] are concurrent only if several turns run at the same time.
//
// Most tools are made by [New]. A custom type may have these optional methods:
//   - Settings() [Settings] sets how the tool runs.
//   - Err() error makes a toolbox refuse the tool with that error.
//   - Contribution() [dragoman.Contribution] adds formats, as [Contribute] does.
//
// Package tooltest checks that a tool keeps the contract of this interface.
type Tool interface {
	// Spec returns the definition that models get.
	Spec() *dragoman.ToolSpec
	// Call runs the tool. Its input is final: validated, allowed and approved. An error becomes
	// an error result with the error's text, so the text must be fit for a model to read.
	Call(ctx context.Context, in Input) (Output, error)
}

// Input is the input of a tool call.
type Input struct {
	// Arguments is the JSON object of a function call, with the schema's defaults filled in. It
	// is nil for a freeform tool.
	Arguments json.RawMessage
	// Text is the input of a freeform tool.
	Text string

	// bound is the same input, decoded into the tool's own type during validation.
	bound any
}

// storedInput is the stored form of an input. The arguments are stored as text, because nested
// JSON is compacted and escaped on encoding, and approvals cover the exact bytes.
type storedInput struct {
	Arguments *string `json:"arguments,omitempty"`
	Text      string  `json:"text,omitempty"`
}

// MarshalJSON encodes the input so that UnmarshalJSON restores every byte.
func (in Input) MarshalJSON() ([]byte, error) {
	s := storedInput{Text: in.Text}
	if in.Arguments != nil {
		s.Arguments = new(string(in.Arguments))
	}
	return json.Marshal(s)
}

// UnmarshalJSON decodes the output of MarshalJSON.
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

// clone returns a copy that a caller may change.
func (in Input) clone() Input {
	in.Arguments = slices.Clone(in.Arguments)
	return in
}

// same reports whether two inputs are equal, byte for byte.
func (in Input) same(other Input) bool {
	return in.Text == other.Text && string(in.Arguments) == string(other.Arguments)
}

// Output is the output of a tool.
type Output struct {
	// Content holds the text, media and data for the model. Empty means a run without output.
	Content []dragoman.Part
	// Failed reports that Content describes a failure.
	Failed bool
	// Display is a text for humans. It is never sent to a model. The limits on text apply to it
	// separately.
	Display string
	// Envelope is a provider-native form of the result, for targets that know it; other targets
	// get Content. It is not fenced: never copy it from a server that you do not trust. A tool
	// of this program may also return it as data: see [New].
	Envelope *dragoman.Native
	// Ticket is set if the work continues in the background. Content, if any, is then the
	// interim text for the model.
	Ticket *Ticket
}

// Text is the input of a freeform tool made by [New], or a text output.
type Text string

// Settings configure how a tool runs. The zero value is safe: a zero field means the setting of
// the toolbox or the runner.
type Settings struct {
	// Tags group tools for policies and listings.
	Tags []string
	// Source is the origin of the tool: "mcp", "handoff", "agent" for a tool that an agent adds
	// itself, such as its tool search, or empty for a tool of this program. It decides which of
	// two tools with the same name wins: a handoff, then a tool of this program or an agent,
	// then an MCP tool. Policies see a call of a handoff tool as a handoff, not as a tool call.
	Source string
	// From names the provider of the tool for the human who approves a call, such as the MCP
	// server; empty means this program.
	From string
	// HandoffTo is the agent that a tool with the source "handoff" hands over to.
	HandoffTo string
	// TraceName is the tool's name in traces; empty means the qualified name.
	TraceName string
	// Timeout limits one call, without its middleware; zero means the toolbox's timeout.
	Timeout time.Duration
	// Limits bound the output; a zero field means the toolbox's limit.
	Limits Limits
	// Approval is "always" if a human must approve each call; empty means never, unless a
	// policy asks. A policy rule that allows the call waives the approval. A policy default
	// that allows it does not.
	Approval string
	// ApprovalFor decides from the arguments whether approval is needed; if set, Approval is
	// ignored. If it fails, panics or times out, approval is needed.
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
	// Immediate tools return at once for any input: they never block and compute little,
	// such as a lookup in memory. They run on the goroutine of the call. Other tools run on
	// their own goroutine and are abandoned at their timeout, which costs more than an
	// immediate tool does. Post-hooks and middleware must be immediate too: see [Hooks].
	Immediate bool
	// Exclusive tools run alone: no other call of their turn runs at the same time. Concurrent
	// turns do not wait for each other.
	Exclusive bool
	// Coerce accepts numbers, booleans and null that a model wrote as strings, and strings that
	// it wrote as a number or boolean, if the schema requires the other type.
	Coerce bool
	// Trusted output is not fenced. Set it only if no part of the output comes from outside.
	Trusted bool
	// Structured output conforms to OutputSchema: it is validated against it and not fenced.
	Structured bool
	// SelfParsing freeform tools check their text themselves and give better errors. Models get
	// the grammar, but this package does not check it.
	SelfParsing bool
	// Polling tools may be called again and again with the same arguments.
	Polling bool
	// Failure is the failure policy of the tool; empty means that of the run.
	Failure string
	// Breaker stops calls after repeated failures; the zero value never stops them.
	Breaker Breaker
	Hooks   Hooks
	// CheckState reports whether the tool can continue from a state that it left in
	// [Suspended]. It is called when the turn is resumed, before any call of the turn runs:
	// an error refuses the whole turn. Nil accepts every state.
	CheckState func(ctx context.Context, state json.RawMessage) error
	// Continue continues work in the background from [Ticket.Work], after the process that
	// began it has ended. It is called for each open ticket of the tool whenever outcomes are
	// delivered, such as before each turn of an agent, also in the process that works on it.
	// It must return at once. An error settles the ticket as failed. Nil continues nothing.
	Continue func(ctx context.Context, t *Ticket) error
	// Unvalidated means that the arguments cannot be validated here, such as those of a remote
	// tool without a schema. Such calls need approval unless a policy rule allows them; a
	// policy default does not count.
	Unvalidated bool
	// ReadsOutput marks a tool that reads stored outputs, as [ReadOutput] does. The note in a
	// shortened output names this tool, and an agent does not add its own.
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

// The values of Settings.Approval.
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

// settingsOf returns the settings of a tool, or the zero value.
func settingsOf(t Tool) Settings {
	if s, ok := t.(interface{ Settings() Settings }); ok {
		return s.Settings()
	}
	return Settings{}
}
