package tool

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
)

// Question describes the call that a policy decides on. A policy must not change it.
//
// A tool call has Key, Spec, Settings and Input. A handoff has these too, and
// Target. A model call has Model and none of them.
type Question struct {
	// Subject is "tool_call", "model_call" or "handoff".
	Subject string
	// Key and Spec identify the tool; Settings say how it runs.
	Key      Key
	Spec     *dragoman.ToolSpec
	Settings *Settings
	// Input is validated.
	Input Input
	// Model is the model to call, as "provider/model" where the provider is known.
	Model string
	// Target is the agent that a handoff hands the conversation to.
	Target string
	// Run, Turn and CallID identify the call; Agent is the path of agents that
	// leads to it, the outermost first.
	Run    string
	Turn   int
	CallID string
	Agent  []string
	// Metadata is what the host says of the run.
	Metadata map[string]string
}

// Effect is what a policy decides.
type Effect string

// The effects. The zero value is none: a decision without one denies.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	// Ask needs a human's approval.
	Ask Effect = "ask"
	// AskInput needs a value from a human.
	AskInput Effect = "input"
)

// Decision is a policy's answer.
type Decision struct {
	Effect Effect `json:"effect"`
	// Rule is the id of the rule that decided; empty means the default. An [Allow]
	// with a rule approves the call: a tool that needs approval by itself runs
	// without asking a human.
	Rule string `json:"rule,omitempty"`
	// Reason is told to the model when a call is denied, and to the human who is
	// asked.
	Reason string `json:"reason,omitempty"`
	// Edits set arguments before the call runs. The result is validated again.
	Edits []Edit `json:"edits,omitempty"`
	// Input says what to ask for, with AskInput.
	Input *InputRequest `json:"input,omitempty"`
	// Matches are the ids of all rules that matched, the deciding one first.
	Matches []string `json:"matches,omitempty"`
}

// Edit sets one argument.
type Edit struct {
	// Argument is the name of a top-level argument.
	Argument string          `json:"argument"`
	Value    json.RawMessage `json:"value"`
}

// InputRequest asks a human for the value of an argument.
type InputRequest struct {
	// Argument is the name of the top-level argument that gets the value.
	Argument string `json:"argument"`
	Prompt   string `json:"prompt,omitempty"`
}

// Policy decides on calls of tools, handoffs and, in an agent, on each call of a
// model. A model call cannot wait for a human: anything but [Allow] denies it. A policy
// that fails, panics or takes too long has denied.
type Policy interface {
	Decide(ctx context.Context, q *Question) (Decision, error)
	// Version changes when the policy does. Approvals cover one version.
	Version() string
}

// immediatePolicy is what a [Policy] may also be. Where Immediate reports true, Decide
// returns by itself and at once, whatever it is asked: it waits for nothing and has
// little to compute. It is asked in place then, where others are watched from
// another goroutine and given up after [Runner.PolicyTimeout].
type immediatePolicy interface {
	Immediate() bool
}

// Hash is the SHA-256 of a call's final input.
type Hash [sha256.Size]byte

// Hash identifies exactly this input: the same bytes, nothing else.
func (in Input) Hash() Hash {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(in.Arguments))))
	h.Write(in.Arguments)
	h.Write([]byte(in.Text))
	var out Hash
	h.Sum(out[:0])
	return out
}

// String is the hash in hexadecimal.
func (h Hash) String() string {
	var b [2 * len(h)]byte
	hex.Encode(b[:], h[:])
	return string(b[:])
}

// MarshalText writes the hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) error {
	_, err := hex.Decode(h[:], b)
	if err == nil && len(b) != 2*len(h) {
		err = hex.ErrLength
	}
	return err
}

// Binding is what an approval covers, and all that it covers: another call,
// another tool under the same name, other arguments or another policy need one of
// their own.
type Binding struct {
	Run       string               `json:"run"`
	Turn      int                  `json:"turn"`
	CallID    string               `json:"call_id"`
	Key       Key                  `json:"key"`
	Tool      dragoman.Fingerprint `json:"tool"`
	Arguments Hash                 `json:"arguments"`
	Policy    string               `json:"policy"`
}

// ApprovalRequest asks a human about one call.
type ApprovalRequest struct {
	Binding Binding
	Spec    *dragoman.ToolSpec
	// Input is what will run, byte for byte.
	Input Input
	Agent []string
	// Reason says why the human is asked.
	Reason string
	// Decision is the policy's; nil where none was asked or there is none.
	Decision *Decision
	// Changed describes how the tool differs from its pin in [Runner.Pins] or, for a call
	// that was pending, from the tool that approval was requested for. Nil means that it
	// does not.
	Changed *PinChange
	// Wanted is the value that is asked for; nil: a yes or no.
	Wanted *InputRequest
	// Preview returns the tool's own description of what the call would do: see
	// Preview of [Settings]. It is nil if the tool does not have one. Call it while Approve runs.
	// If it fails, show Input.
	Preview func(ctx context.Context) (string, error)
}

// Verdict is a human's word on a call.
type Verdict string

// The verdicts. The zero value leaves the call pending.
const (
	Undecided Verdict = ""
	Approved  Verdict = "approved"
	Rejected  Verdict = "rejected"
)

// Answer answers an [ApprovalRequest].
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Message of a rejection is shown to the model.
	Message string `json:"message,omitempty"`
	// Edited replaces the input: it is validated and judged by the policy again,
	// and runs only if the policy would not deny it. Nil: as asked.
	Edited *Input `json:"edited,omitempty"`
	// Value is what was asked for with ApprovalRequest.Wanted.
	Value json.RawMessage `json:"value,omitempty"`
	// NoApprover marks a rejection that no human made, because none could be asked. The
	// message to the model then does not blame the user.
	NoApprover bool `json:"no_approver,omitempty"`
	// Sticky makes the verdict of an [Approver] cover the later calls of the same tool in the
	// run, too, also after the run is resumed: package agent stores it with the run. A
	// Runner without an agent ignores it: put a ledger of package policy before the approver.
	Sticky bool `json:"sticky,omitempty"`
}

// Ruling is what was decided on one call that needed approval, as it is kept for
// those who ask later what was let happen: what was shown, and what was said.
type Ruling struct {
	// Binding is what the decision covers, Input what will run, as it was asked about.
	Binding Binding `json:"binding"`
	Input   Input   `json:"input"`
	Answer  Answer  `json:"answer"`
	// Sticky decisions cover the later calls of the same tool in the run too.
	Sticky bool `json:"sticky,omitempty"`
}

// Approver answers for humans: at once, as a prompt does, or later, by leaving
// calls Undecided until someone has spoken. An approver that fails, panics or
// takes too long has left the call undecided.
type Approver interface {
	Approve(ctx context.Context, req *ApprovalRequest) (Answer, error)
}

// Pending is a call that waits for a human: what was asked, and the final input,
// byte for byte. It is stored as JSON and given back in [Turn.Resume], also in
// another process; the package comment says what else that takes.
type Pending struct {
	Binding Binding `json:"binding"`
	// Input is the final input. To show it, print string(Input.Arguments), or Input.Text
	// for a freeform tool.
	Input Input `json:"input"`
	// Reason says why approval is needed. Wanted is set if the call needs a value rather
	// than a verdict.
	Reason string        `json:"reason,omitempty"`
	Wanted *InputRequest `json:"wanted,omitempty"`
	// Changed is that of the [ApprovalRequest].
	Changed *PinChange `json:"changed,omitempty"`
	// Definition is the tool as the human was asked about it, by the fields of
	// [FieldChange].
	Definition map[string]json.RawMessage `json:"definition,omitempty"`
	// Inner are the calls that the tool itself waits for, and State what it needs
	// to go on: see [Suspended]. Nil: the call has not begun.
	Inner []Pending       `json:"inner,omitempty"`
	State json.RawMessage `json:"state,omitempty"`
	// Attempt is the one that left State.
	Attempt int `json:"attempt,omitempty"`
}

// Tool is the qualified name of the tool.
func (p Pending) Tool() string { return p.Binding.Key.QualifiedName() }
