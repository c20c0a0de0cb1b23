package tool

import (
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// ErrorKind is the reason for an error result.
type ErrorKind string

// The kinds of error. Empty means no error.
const (
	// ErrorUnknownTool, ErrorArguments and ErrorNotRun mean that the tool was never reached.
	ErrorUnknownTool ErrorKind = "unknown_tool"
	ErrorArguments   ErrorKind = "invalid_arguments"
	// ErrorNotRun is a call that must not run whatever its arguments are: it is truncated,
	// ambiguous, or from a broken stream.
	ErrorNotRun ErrorKind = "not_run"
	// ErrorDenied is a denial by a policy, or by a pre-hook that refused the call;
	// ErrorRejected is a rejection by a human.
	ErrorDenied   ErrorKind = "denied"
	ErrorRejected ErrorKind = "rejected"
	// ErrorUnavailable is a tool whose breaker is open, or that was removed from the run.
	ErrorUnavailable ErrorKind = "unavailable"
	// ErrorHook is a failed hook: one that panicked or timed out, or a post-hook that returned
	// an error.
	ErrorHook ErrorKind = "hook_failed"
	// ErrorMismatch means that middleware changed the approved input.
	ErrorMismatch ErrorKind = "approval_mismatch"
	// ErrorUncertain is a call that may have run before a crash and is not run again.
	// ErrorJournal is a call that did not run because its intent could not be recorded.
	ErrorUncertain ErrorKind = "uncertain"
	ErrorJournal   ErrorKind = "journal_failed"
	// ErrorFailed is an error of the tool, or of a result from another process whose kind is
	// unknown. ErrorPanic is a panic of the tool, ErrorTimeout its timeout, and ErrorOutput an
	// output that cannot be sent.
	ErrorFailed   ErrorKind = "failed"
	ErrorPanic    ErrorKind = "panicked"
	ErrorTimeout  ErrorKind = "timeout"
	ErrorOutput   ErrorKind = "invalid_output"
	ErrorCanceled ErrorKind = "cancelled"
)

// executed reports whether a call with this error reached its tool.
func (k ErrorKind) executed() bool {
	switch k {
	case "", ErrorFailed, ErrorPanic, ErrorTimeout, ErrorOutput:
		return true
	default:
		return false
	}
}

// Record describes one call and its outcome. Its texts are redacted.
type Record struct {
	Tool   string   `json:"tool"`
	Key    Key      `json:"key"`
	Trace  string   `json:"trace,omitempty"`
	Run    string   `json:"run,omitempty"`
	Turn   int      `json:"turn"`
	CallID string   `json:"call_id"`
	Agent  []string `json:"agent,omitempty"`

	OK bool `json:"ok"`
	// Executed reports that this attempt reached the tool.
	Executed bool `json:"executed"`
	// Output is the text that the model got.
	Output string `json:"output,omitempty"`
	// Plain is Output without the fence around it. It is not stored.
	Plain string `json:"-"`
	// Cut describes the content that was cut from a long output. It is nil if nothing was
	// cut, and for a result that was replayed from a journal.
	Cut       *Cut      `json:"cut,omitempty"`
	Error     string    `json:"error,omitempty"`
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	// Cause is the error behind ErrorKind, for developers: the error that the tool returned, or
	// a [*PanicError] with its stack. It exists only in memory, so it is nil for a record from
	// another process: stores, JSON events and models never get it. Its text is redacted; it
	// wraps the tool's own error.
	Cause error `json:"-"`

	Started time.Time     `json:"started"`
	Latency time.Duration `json:"latency"`
	// Attempt counts from 1. Replayed reports that the result is from the journal and the tool
	// did not run again.
	Attempt  int  `json:"attempt"`
	Replayed bool `json:"replayed,omitempty"`
	Pending  bool `json:"pending,omitempty"`

	// Decision is the final decision of the policy; nil if no policy was asked.
	Decision *Decision `json:"decision,omitempty"`
	// Verdict is the decision of the human; Undecided means that no human was asked or the call
	// is pending.
	Verdict Verdict `json:"verdict,omitempty"`
	// Arguments is the hash of the final input.
	Arguments Hash `json:"arguments"`
	// Raw is the payload from the model, and Steps lists the changes to it.
	Raw   string `json:"raw,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Event is an event of running calls. The set is sealed: [CallStarted], [Progress], [PolicyDecided],
// [ApprovalRequested], [CallEnded] and [LateReturn]. Events are values, not pointers, unlike those of package
// agent:
//
//	switch ev := ev.(type) {
//	case tool.CallEnded:
//		fmt.Println(ev.Record.Tool, ev.Record.OK)
//	}
type Event interface{ event() }

// CallRef identifies a call in events.
type CallRef struct {
	Run    string
	Turn   int
	CallID string
	Key    Key
}

// CallStarted reports that a tool is about to run.
type CallStarted struct {
	CallRef
	Input Input
}

// Progress is a progress report of a tool; see [Report]. It never enters the history.
type Progress struct {
	CallRef
	Parts []dragoman.Part
}

// PolicyDecided reports the decision of a policy, allow included. A decision on a model call has no
// CallID and no Key. The texts of Decision and Failed are redacted.
type PolicyDecided struct {
	CallRef
	// Subject is the kind of call.
	Subject string
	// Agent is the path of agents that made the call, outermost first.
	Agent []string
	// Model is the model of a model call, Target the agent of a handoff.
	Model, Target string
	// Input is the input that the policy saw.
	Input    Input
	Decision Decision
	// Failed is the error of a policy that failed; the call is denied.
	Failed error
}

// ApprovalRequested reports a call that waits for a human. Pending.Reason is redacted; the [Pending] of the
// batch has the original.
type ApprovalRequested struct {
	CallRef
	// Agent is the path of agents that made the call, outermost first.
	Agent   []string
	Pending Pending
}

// CallEnded reports a call that has its result.
type CallEnded struct {
	CallRef
	Record Record
}

// LateReturn reports that an abandoned tool or hook has returned. Its result is discarded.
type LateReturn struct {
	CallRef
	After time.Duration
}

func (CallStarted) event()       {}
func (Progress) event()          {}
func (PolicyDecided) event()     {}
func (ApprovalRequested) event() {}
func (CallEnded) event()         {}
func (LateReturn) event()        {}
