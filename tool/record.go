package tool

import (
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// ErrorKind says why a call has an error result.
type ErrorKind string

// The kinds of error. Empty means none.
const (
	// ErrorUnknownTool, ErrorArguments and ErrorNotRun are no executions: the
	// tool was never reached.
	ErrorUnknownTool ErrorKind = "unknown_tool"
	ErrorArguments   ErrorKind = "invalid_arguments"
	// ErrorNotRun is a call that must not run whatever its arguments: cut off,
	// ambiguous, from a stream that broke.
	ErrorNotRun ErrorKind = "not_run"
	// ErrorDenied is the word of a policy, or of a pre-hook that refused the call;
	// ErrorRejected is a human's.
	ErrorDenied   ErrorKind = "denied"
	ErrorRejected ErrorKind = "rejected"
	// ErrorUnavailable is a tool whose breaker is open or that was taken out of
	// the run.
	ErrorUnavailable ErrorKind = "unavailable"
	// ErrorHook is a hook that failed: one that panicked or took too long, and a
	// post-hook whose error is its word on the output.
	ErrorHook ErrorKind = "hook_failed"
	// ErrorMismatch is middleware that changed what was approved.
	ErrorMismatch ErrorKind = "approval_mismatch"
	// ErrorUncertain is a call that may have run before a crash and is not run
	// again; ErrorJournal one whose intent could not be written, so it did not.
	ErrorUncertain ErrorKind = "uncertain"
	ErrorJournal   ErrorKind = "journal_failed"
	// ErrorFailed is the tool's own error, or that of a result from another process,
	// where nobody knows its kind any more; ErrorPanic is its panic, ErrorTimeout
	// the end of its time, ErrorOutput an output that cannot be sent.
	ErrorFailed    ErrorKind = "failed"
	ErrorPanic     ErrorKind = "panicked"
	ErrorTimeout   ErrorKind = "timeout"
	ErrorOutput    ErrorKind = "invalid_output"
	ErrorCancelled ErrorKind = "cancelled"
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

// Record tells what became of one call. Its texts are redacted.
type Record struct {
	Tool   string   `json:"tool"`
	Key    Key      `json:"key"`
	Trace  string   `json:"trace,omitempty"`
	Run    string   `json:"run,omitempty"`
	Turn   int      `json:"turn"`
	CallID string   `json:"call_id"`
	Agent  []string `json:"agent,omitempty"`

	OK bool `json:"ok"`
	// Executed says that the tool was reached, by this attempt.
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
	// Cause is the error behind ErrorKind, for developers: the error that the tool
	// returned, or a [*PanicError] with its stack. It is nil for a record from another
	// process, as it is in memory only: no store, no event as JSON and no model gets it.
	// Its text is redacted; what it wraps is the tool's own error.
	Cause error `json:"-"`

	Started time.Time     `json:"started"`
	Latency time.Duration `json:"latency"`
	// Attempt counts from 1; Replayed says that the result is the journal's, and
	// the tool did not run again.
	Attempt  int  `json:"attempt"`
	Replayed bool `json:"replayed,omitempty"`
	Pending  bool `json:"pending,omitempty"`

	// Decision is the policy's last word; nil: no policy was asked.
	Decision *Decision `json:"decision,omitempty"`
	// Verdict is the human's; Undecided: none was asked, or the call is pending.
	Verdict Verdict `json:"verdict,omitempty"`
	// Arguments is the hash of the final input.
	Arguments Hash `json:"arguments"`
	// Raw is the payload as the model wrote it, and Steps what was done to it.
	Raw   string `json:"raw,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Event is something that happens while calls run. The set is sealed:
// [CallStarted], [Progress], [Decided], [Asked], [CallEnded] and [Late]. Events are
// values, not pointers, unlike those of package agent:
//
//	switch ev := ev.(type) {
//	case tool.CallEnded:
//		fmt.Println(ev.Record.Tool, ev.Record.OK)
//	}
type Event interface{ event() }

// CallRef names a call in events.
type CallRef struct {
	Run    string
	Turn   int
	CallID string
	Key    Key
}

// CallStarted says that a tool is about to run.
type CallStarted struct {
	CallRef
	Input Input
}

// Progress is what a tool tells of its work. It never enters the history.
type Progress struct {
	CallRef
	Parts []dragoman.Part
}

// Decided is a policy's decision, allow included. A decision on a model call has no CallID
// and no Key. The texts of Decision and Failed are redacted.
type Decided struct {
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
	// Failed is the policy's own error; the call is denied.
	Failed error
}

// Asked is a call that waits for a human. Pending.Reason is redacted; the [Pending] of the
// batch has the original.
type Asked struct {
	CallRef
	// Agent is the path of agents that made the call, outermost first.
	Agent   []string
	Pending Pending
}

// CallEnded is the record of a call that has its result.
type CallEnded struct {
	CallRef
	Record Record
}

// Late says that a tool or hook that was abandoned has returned after all. What
// it returned is discarded.
type Late struct {
	CallRef
	After time.Duration
}

func (CallStarted) event() {}
func (Progress) event()    {}
func (Decided) event()     {}
func (Asked) event()       {}
func (CallEnded) event()   {}
func (Late) event()        {}
