package agent

import (
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Result is what a run came to, or as far as it got.
type Result struct {
	// Run names the run, Agent the one that spoke last.
	Run   string
	Agent string
	// Output is the text of the final answer; empty where there is none yet.
	Output string
	// Messages are what the run added to the conversation, its input included.
	Messages []dragoman.Message
	// Model is the model of the last response: the name of the link for a chain, such as
	// "openai/gpt-5"; otherwise provider and model, if the response names them.
	Model string
	// Failovers are the models of a chain that failed, in order, over all turns since the
	// run began or was resumed.
	Failovers []FailedModel
	// Turns counts how often a model was asked, over all of the run's resumptions.
	Turns int
	Usage dragoman.Usage
	// Records describe the outcome of each call, over all resumptions of the run. After a
	// resumption, the records of earlier calls come from the store, the state and the
	// conversation, and their Cause is nil. With a store that has
	// no Records, see [Store], only the last 200 have times and decisions.
	Records []tool.Record
	// Degraded are the qualified names of the tools that the failure policy "degrade" removed
	// from the run, in the order in which they failed; nil means that the run had all of
	// its tools. It covers all of the run's resumptions.
	Degraded []string
	// Pending are the calls that wait for humans.
	Pending []tool.Pending
	// Stop is why the last answer ended.
	Stop dragoman.Stop
	// Losses are what conversions to and from the models' wires could not keep.
	Losses dragoman.Report
	// Partial is a response that broke off; nil if none did. It is not part of
	// Messages; [State.Partial] says what becomes of its text.
	Partial *dragoman.Response
	// State is what [Agent.Resume] needs to go on. A run that is over has it too:
	// there is nothing to resume then. Nil: no run began.
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
	// ErrAgent says that an agent cannot be used as it is. No model was asked.
	ErrAgent = errors.New("not usable as defined")
	// ErrInterrupted says that calls wait for humans: they are Result.Pending, and
	// the run goes on with [Agent.Resume]. If the context of the run was canceled, the
	// error also wraps its cause.
	ErrInterrupted = errors.New("agent: calls wait for approval")
	// ErrUnfinished says that new input came while calls of the run before wait for
	// their results: resume that run first, or [Abandon] it.
	ErrUnfinished = errors.New("agent: the run before is not finished")
	// ErrStopped says that the run was asked to stop after a turn.
	ErrStopped = errors.New("agent: stopped after the turn")
	// ErrGuardrail is wrapped by every [*GuardrailError].
	ErrGuardrail = errors.New("agent: stopped by a guardrail")
	// ErrState says that a stored run does not fit the agent that is to go on with
	// it, or that it is not where the store is. Nothing ran.
	ErrState = errors.New("agent: the stored run cannot be resumed")
	// ErrAnswer says that a model's last word cannot be used: it was cut off or
	// withheld. Result.Stop says why. A run that ended so says it again to who
	// resumes it.
	ErrAnswer = errors.New("agent: the model gave no usable answer")
)

// WaitingItemError reports that a response ended with items that wait for the client and
// that an agent cannot answer: calls of a computer or a shell, or requests to approve a
// tool that the provider runs. The items are in Result.Messages as [dragoman.Opaque] parts.
// Other calls of the response do not run; their results state the reason.
type WaitingItemError struct {
	// Types are the native types of the items, in order, such as "computer_call".
	Types []string
}

func (e *WaitingItemError) Error() string {
	return fmt.Sprintf("%v: it waits for the client to answer %s, which an agent does not do; answer it with a request of your own, or do not offer that tool", ErrAnswer, strings.Join(e.Types, ", "))
}

// Unwrap returns [ErrAnswer].
func (e *WaitingItemError) Unwrap() error { return ErrAnswer }

// LimitError says which limit ended a run.
type LimitError struct {
	// Limit is "turns", "tool_calls", "time", "tokens" or "cost".
	Limit string
	// Most is what was allowed, in the words of that limit.
	Most string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("agent: a limit of the run is reached: %s, %s; raise Agent.Limits and resume, or ask for less", e.Limit, e.Most)
}

// LoopError says what a run repeats.
type LoopError struct {
	// Tool is what was called again and again; empty: every call of several turns
	// failed.
	Tool string
	// Times is how often.
	Times int
}

func (e *LoopError) Error() string {
	if e.Tool == "" {
		return fmt.Sprintf("agent: the run goes round in circles: every call of %d turns failed", e.Times)
	}
	return fmt.Sprintf("agent: the run goes round in circles: %s was called %d times with the same arguments and the same result; mark it as Polling if that is what it is for", e.Tool, e.Times)
}
