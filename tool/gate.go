package tool

import (
	"bytes"
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
	// Run, Turn and CallID identify the call; Agent is the path of agents that leads to it,
	// outermost first.
	Run    string
	Turn   int
	CallID string
	Agent  []string
	// Metadata is data of the host about the run.
	Metadata map[string]string
}

// Effect is the effect of a policy decision.
type Effect string

// The effects. A decision with the zero value denies.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	// Ask requires the approval of a human.
	Ask Effect = "ask"
	// AskInput requires a value from a human.
	AskInput Effect = "input"
)

// Decision is the decision of a policy on a call.
type Decision struct {
	Effect Effect `json:"effect"`
	// Rule is the id of the rule that decided; empty means the default. An [Allow]
	// with a rule approves the call: a tool that needs approval by itself runs
	// without asking a human.
	Rule string `json:"rule,omitempty"`
	// Reason is shown to the model if the call is denied, and to the human who is asked.
	Reason string `json:"reason,omitempty"`
	// Edits set arguments before the call runs. The result is validated again.
	Edits []Edit `json:"edits,omitempty"`
	// Input describes the value to ask for, with AskInput.
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

// InputRequest asks a human for the value of an argument, or, with a Name, is a question of a
// running tool: see [Suspended].
type InputRequest struct {
	// Argument is the name of the top-level argument that gets the value.
	Argument string `json:"argument"`
	Prompt   string `json:"prompt,omitempty"`

	// Name identifies a question of a tool among those of its call; the fields below belong to
	// such questions. Its answer is [Answer.Value] of an approval.
	Name string `json:"name,omitempty"`
	// From says who asks, such as the label of a server. It comes from the host.
	From string `json:"from,omitempty"`
	// Schema is the JSON schema of the value. If it is nil, the question is only whether to
	// approve, and no value is wanted.
	Schema json.RawMessage `json:"schema,omitempty"`
	// URL is a page that the human is asked to open. Show all of it, and open it only after
	// the approval, which is the consent to that. This module never opens it.
	URL string `json:"url,omitempty"`
	// Secrets names the fields of the value that appear to ask for a secret, such as a
	// password. Warn about them.
	Secrets []string `json:"secrets,omitempty"`
	// Request is the question in the protocol of the server that asks, for approvers that pass
	// it on instead of showing it: in the format "mcp", an object with method and params. The
	// value of the answer is then the result of the protocol. Nil means that there is none.
	Request *dragoman.Native `json:"request,omitempty"`
}

// wantsValue reports whether an approval needs a value.
func (w *InputRequest) wantsValue() bool { return w != nil && (w.Name == "" || w.Schema != nil) }

// Policy decides on tool calls, handoffs and, in an agent, on each model call. A model call
// cannot wait for a human: any effect but [Allow] denies it. If a policy fails, panics or times
// out, the call is denied.
type Policy interface {
	Decide(ctx context.Context, q *Question) (Decision, error)
	// Version changes if the policy changes. An approval covers one version.
	Version() string
}

// immediatePolicy is an optional interface of a [Policy]. If Immediate reports true, Decide
// returns at once for any question: it never blocks and computes little. It is then called
// directly. Other policies run on their own goroutine and are abandoned after
// [Runner.PolicyTimeout].
type immediatePolicy interface {
	Immediate() bool
}

// Hash is the SHA-256 of a call's final input.
type Hash [sha256.Size]byte

// Hash returns the hash of the exact bytes of the input.
func (in Input) Hash() Hash {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(in.Arguments))))
	h.Write(in.Arguments)
	h.Write([]byte(in.Text))
	var out Hash
	h.Sum(out[:0])
	return out
}

// String returns the hash in hexadecimal.
func (h Hash) String() string {
	var b [2 * len(h)]byte
	hex.Encode(b[:], h[:])
	return string(b[:])
}

// MarshalText writes the hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText decodes the output of MarshalText.
func (h *Hash) UnmarshalText(b []byte) error {
	_, err := hex.Decode(h[:], b)
	if err == nil && len(b) != 2*len(h) {
		err = hex.ErrLength
	}
	return err
}

// Binding is the exact scope of an approval. A different call, a different tool with the same
// name, different arguments or a different policy need their own approval.
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
	// From names the provider of the tool: see From of [Settings].
	From string
	// Input is the input that will run, byte for byte.
	Input Input
	Agent []string
	// Reason says why approval is needed.
	Reason string
	// Decision is the decision of the policy, or nil if no policy was asked.
	Decision *Decision
	// Changed describes how the tool differs from its pin in [Runner.Pins] or, for a call
	// that was pending, from the tool that approval was requested for. Nil means that it
	// does not.
	Changed *PinChange
	// Wanted describes the value to ask for; nil means a yes-or-no question.
	Wanted *InputRequest
	// Problem says why the previous answer could not be used, such as an edited input that
	// does not fit the schema. It is empty if there was none.
	Problem string
	// Preview returns the tool's own description of what the call would do: see
	// Preview of [Settings]. It is nil if the tool does not have one. Call it while Approve runs.
	// If it fails, show Input.
	Preview func(ctx context.Context) (string, error)

	// refused is the answer that Problem is about.
	refused *Answer
}

// Refused reports whether a is the previous answer, which could not be used: see Problem. An
// approver that stores answers must not return it again.
func (r *ApprovalRequest) Refused(a Answer) bool { return r.refused != nil && r.refused.equal(a) }

// Verdict is the decision of a human on a call.
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
	// Message explains a rejection to the model.
	Message string `json:"message,omitempty"`
	// Edited replaces the input: it is validated and judged by the policy again, and runs only
	// if the policy does not deny it. Nil keeps the input.
	Edited *Input `json:"edited,omitempty"`
	// Value is the value that ApprovalRequest.Wanted asked for. If it or Edited is invalid, the
	// approver is asked again, up to three times in all, and then the call stays pending.
	Value json.RawMessage `json:"value,omitempty"`
	// NoApprover marks a rejection that no human made, because none could be asked. The
	// message to the model then does not blame the user.
	NoApprover bool `json:"no_approver,omitempty"`
	// Sticky makes the verdict of an [Approver] cover the later calls of the same tool in the
	// run, too, also after the run is resumed: package agent stores it with the run. A
	// Runner without an agent ignores it: put a ledger of package policy before the approver.
	Sticky bool `json:"sticky,omitempty"`
}

// equal reports whether two answers are the same.
func (a Answer) equal(b Answer) bool {
	return a.Verdict == b.Verdict && a.Message == b.Message && bytes.Equal(a.Value, b.Value) &&
		(a.Edited == nil) == (b.Edited == nil) && (a.Edited == nil || a.Edited.same(*b.Edited))
}

// Ruling is the stored decision on a call that needed approval: what was shown, and what was
// decided. It documents later what was allowed.
type Ruling struct {
	// Binding is the scope of the decision, and Input the input that the human was asked about.
	Binding Binding `json:"binding"`
	Input   Input   `json:"input"`
	Answer  Answer  `json:"answer"`
	// Sticky decisions also cover the later calls of the same tool in the run.
	Sticky bool `json:"sticky,omitempty"`
}

// Approver answers approval requests: at once, such as a prompt, or later, by returning
// Undecided until a human has decided. If an approver fails, panics or times out, the call
// stays undecided.
type Approver interface {
	Approve(ctx context.Context, req *ApprovalRequest) (Answer, error)
}

// Pending is a call that waits for a human: the question and the final input, byte for byte.
// Store it as JSON and pass it in [Turn.Resume], also in another process; the package comment
// lists what else must be stored.
type Pending struct {
	Binding Binding `json:"binding"`
	// Input is the final input. To show it, print string(Input.Arguments), or Input.Text
	// for a freeform tool.
	Input Input `json:"input"`
	// Reason says why approval is needed. Wanted is set if the call needs a value rather
	// than a verdict.
	Reason string        `json:"reason,omitempty"`
	Wanted *InputRequest `json:"wanted,omitempty"`
	// Problem says why the last answer could not be used, such as an edited input that does not
	// fit the schema. The next answer replaces it.
	Problem string `json:"problem,omitempty"`
	// Changed has the meaning of the field of [ApprovalRequest].
	Changed *PinChange `json:"changed,omitempty"`
	// Definition is the definition of the tool when approval was requested, by the fields of
	// [FieldChange].
	Definition map[string]json.RawMessage `json:"definition,omitempty"`
	// Inner holds the calls that the tool itself waits for, and State the data that it needs to
	// continue: see [Suspended]. Nil means that the call has not begun.
	Inner []Pending       `json:"inner,omitempty"`
	State json.RawMessage `json:"state,omitempty"`
	// Attempt is the attempt that left State.
	Attempt int `json:"attempt,omitempty"`
}

// Tool returns the qualified name of the tool.
func (p Pending) Tool() string { return p.Binding.Key.QualifiedName() }
