package agent

import (
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Result is the outcome of a run, or what the run has done before it failed.
type Result struct {
	// Run is the id of the run, and Agent the name of the last active agent.
	Run   string
	Agent string
	// Output is the text of the final answer; empty if there is none yet.
	Output string
	// Messages are the messages that the run added to the conversation, including its input.
	Messages []dragoman.Message
	// Model is the model of the last response: the name of the link for a chain, such as
	// "openai/gpt-5"; otherwise provider and model, if the response names them.
	Model string
	// Failovers are the models of a chain that failed, in order, over all turns since the
	// run began or was resumed.
	Failovers []FailedModel
	// Turns counts the model calls over all resumptions of the run.
	Turns int
	Usage dragoman.Usage
	// Records describe the outcome of each call, over all resumptions of the run. After a
	// resumption, the records of earlier calls come from the store, the state and the
	// conversation, and their Cause is nil. If the store has no Records method (see
	// [Store]), only the last 200 have times and decisions.
	Records []tool.Record
	// Degraded are the qualified names of the tools that the failure policy "degrade" removed
	// from the run, in the order in which they failed; nil means that the run had all of
	// its tools. It covers all of the run's resumptions.
	Degraded []string
	// Pending are the calls that wait for a human decision.
	Pending []tool.Pending
	// Stop is the reason why the last response ended.
	Stop dragoman.Stop
	// Losses lists the losses of conversions to and from the wire formats of the models.
	Losses dragoman.Report
	// Partial is a response that broke off; nil if none did. It is not part of
	// Messages; [State.Partial] says what becomes of its text.
	Partial *dragoman.Response
	// State is the state that [Agent.Resume] continues from. A finished run has a state
	// too, with nothing left to do. It is nil if no run began.
	State *State
}

// FailedModel is a model of a chain that failed in a turn, so that the next one was called.
type FailedModel struct {
	Turn int
	// Model is the name of the link.
	Model string
	// Err is the reason why it failed or was skipped.
	Err error
}

// The errors of runs.
var (
	// ErrAgent means that the definition of an agent is invalid. No model was called.
	ErrAgent = errors.New("invalid definition")
	// ErrInterrupted means that the calls in Result.Pending wait for a human decision.
	// [Agent.Resume] continues the run. If the context of the run was canceled, the
	// error also wraps its cause.
	ErrInterrupted = errors.New("agent: calls wait for approval: decide on Result.Pending, and resume")
	// ErrUnfinished means that new input arrived while calls of the previous run still
	// wait for results: resume that run first, or [Abandon] it.
	ErrUnfinished = errors.New("agent: the previous run is not finished")
	// ErrStopped means that [StopAfterTurn] ended the run.
	ErrStopped = errors.New("agent: stopped after the turn, as requested")
	// ErrGuardrail is wrapped by every [*GuardrailError].
	ErrGuardrail = errors.New("agent: stopped by a guardrail")
	// ErrState means that a stored run does not match the agent that resumes it, or
	// that the state does not match the store. Nothing ran.
	ErrState = errors.New("agent: the stored run cannot be resumed")
	// ErrResponse means that the final response of the model cannot be used, because it was
	// cut off or withheld. Result.Stop holds the reason. Resuming such a run returns the
	// same error.
	ErrResponse = errors.New("agent: the response of the model cannot be used")
)

// PendingItemError reports that a response ended with items that wait for the client and
// that an agent cannot answer: calls of a computer or a shell, or requests to approve a
// tool that the provider runs. The items are in Result.Messages as [dragoman.Opaque] parts.
// Other calls of the response do not run; their results state the reason.
type PendingItemError struct {
	// Types are the native types of the items, in order, such as "computer_call".
	Types []string
}

func (e *PendingItemError) Error() string {
	return fmt.Sprintf("%v: it contains %s, which only a client can answer; answer it with your own request, or do not offer that tool", ErrResponse, strings.Join(e.Types, ", "))
}

// Unwrap returns [ErrResponse].
func (e *PendingItemError) Unwrap() error { return ErrResponse }

// LimitError reports the limit that ended a run.
type LimitError struct {
	// Limit is "turns", "tool_calls", "time", "tokens" or "cost".
	Limit string
	// Max describes the limit, such as "at most 20".
	Max string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("agent: the run reached a limit: %s, %s; raise Agent.Limits and resume, or give the agent a smaller task", e.Limit, e.Max)
}

// LoopError reports that a run repeats itself.
type LoopError struct {
	// Tool is the tool that was called repeatedly; empty means that every call of several
	// turns failed.
	Tool string
	// Times is the number of identical calls or failed turns.
	Times int
}

func (e *LoopError) Error() string {
	if e.Tool == "" {
		return fmt.Sprintf("agent: the run makes no progress: every call of the last %d turns failed; see Result.Records", e.Times)
	}
	return fmt.Sprintf("agent: the run makes no progress: %s was called %d times with the same arguments and the same result; mark the tool as Polling if this is intended", e.Tool, e.Times)
}
