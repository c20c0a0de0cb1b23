package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Agent is a model with tools and rules. A Model is all that it needs; every other
// field says what its zero value means. What it points to must not change while
// runs go on. A function that panics fails the run with a [tool.PanicError].
type Agent struct {
	// Name tells agents apart: in handoffs, events, records and stored runs. Empty
	// means "agent". Agents that hand over to each other need different ones.
	Name string
	// Description tells other agents what this one is for; empty says nothing.
	Description string

	// Model answers.
	Model dragoman.Model
	// Instructions are what the model is told before the conversation; empty means
	// nothing. Instruct, where it is set, says so for each turn instead.
	Instructions string
	Instruct     func(ctx context.Context, t Turn) (string, error)
	// Settings of every request: sampling, reasoning, tool choice, output. Its
	// Instructions, Messages and Tools are not looked at; hosted tools go into
	// HostedTools.
	Settings dragoman.Request
	// HostedTools are run by the provider, such as a web search; nil means none.
	HostedTools []dragoman.ToolSpec
	// KeepToolChoice keeps a forced tool choice after it was obeyed. Zero resets
	// it: a model that must call a tool in every turn never answers.
	KeepToolChoice bool

	// Tools are what the model may call; nil means none.
	Tools []tool.Tool
	// Toolbox says what the tools share; the zero value is safe.
	Toolbox tool.Config
	// Runner gates, bounds and records calls; nil means one with the defaults.
	// A run uses its store as Journal, Spill and Tickets if they are not set here, and
	// stores long outputs in memory if it has no store for them. The tool
	// "read_tool_output" is added to Tools if outputs can be cut; [tool.NoSpill] turns
	// this off.
	Runner *tool.Runner
	// AfterTools decides whether the run is over when calls were answered; nil asks
	// the model again.
	AfterTools AfterTools
	// Search finds deferred tools; the zero value uses the provider's search where
	// there is one, and ours elsewhere.
	Search Search

	// Handoffs are the agents that may take over; nil means none.
	Handoffs []Handoff
	// Guardrails look at what goes in and out; the zero value looks at nothing.
	Guardrails Guardrails
	// Steer may say something between turns: messages that join the conversation
	// before the model is asked again. Nil says nothing.
	Steer func(ctx context.Context, t Turn) ([]dragoman.Message, error)
	// Compact returns the messages to send for a conversation, such as a summary and the
	// last turns. It gets the messages that would be sent without it: the whole
	// conversation, or what the store has in its place for the model's origin (Instead of
	// [Store]). Media of earlier runs may be references to attachments (Expand of
	// [Store]). Compact may edit its argument, a copy; the stored conversation does not
	// change. Nil sends the messages unchanged.
	Compact func(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error)

	// Limits end runs that do not; the zero value has the defaults.
	Limits Limits
	// Price says what usage costs, for Limits.Cost; nil: nothing has a price.
	Price func(u dragoman.Usage) float64

	// Log gets what callers and models must not see, if the Runner has no Log: panics of
	// tools with their stacks, and the causes of internal errors. Nil means
	// [slog.Default].
	Log *slog.Logger
	// Now is the clock; NewID makes the ids of runs. Go starts every goroutine of a
	// run: the one beside which a run that is watched runs its calls, and those of the
	// calls themselves, their tools, hooks, policies and approvers, unless the Runner
	// has a Go of its own. It is called by several goroutines at once, and must start
	// the task and return: they wait for each other. None outlives the run but those of
	// code that was given up after its time. The agent that began the run starts those
	// of agents that take over too, and an agent that is a tool its own. What a store
	// starts is the store's. Nil means the system's.
	Now   func() time.Time
	NewID func() string
	Go    func(task func())
}

// Turn tells a callback where a run is.
type Turn struct {
	Run   string
	Agent string
	// Number counts the turns of the run from 1; zero: none has begun.
	Number int
	// Messages are the conversation so far. They must not be changed.
	Messages []dragoman.Message
	Usage    dragoman.Usage
}

// defaultName is that of an agent without one.
const defaultName = "agent"

func (a *Agent) name() string {
	if a.Name == "" {
		return defaultName
	}
	return a.Name
}

// Run asks and waits for the answer. The result is there also beside an error, as
// far as the run got: it is never nil, and names no run where none began.
func (a Agent) Run(ctx context.Context, prompt string, opts ...Option) (*Result, error) {
	r, err := a.begin(prompt, opts)
	if err != nil {
		return &Result{Agent: a.name()}, err
	}
	return r.run(ctx)
}

// Stream asks and tells what happens. See [Stream].
func (a Agent) Stream(ctx context.Context, prompt string, opts ...Option) Stream {
	return streamOf(ctx, func() (*run, error) { return a.begin(prompt, opts) })
}

// Resume goes on with a run that was interrupted, cancelled or ended by a limit.
// Decisions on its pending calls are options: [Approve], [Reject], [Edit],
// [Always], [Never]. A nil state is that of the store given by [In]; another must be
// of the same moment, and is refused with [ErrState] once the run went on from there.
// Which calls wait is told by the state that the store has:
//
//	state, err := agent.Stored(ctx, s)
//	res, err := a.Resume(ctx, nil, agent.In(s), agent.Approve(state.Pending()[0]))
//
// A decision on a call that does not wait, such as one that came twice, is
// [ErrState] too. Like that of [Agent.Run], the result is never nil.
func (a Agent) Resume(ctx context.Context, state *State, opts ...Option) (*Result, error) {
	r, err := a.resume(state, opts)
	if err != nil {
		return &Result{Agent: a.name()}, err
	}
	return r.run(ctx)
}

// ResumeStream is [Agent.Resume], and tells what happens.
func (a Agent) ResumeStream(ctx context.Context, state *State, opts ...Option) Stream {
	return streamOf(ctx, func() (*run, error) { return a.resume(state, opts) })
}

// Check reports what is wrong with the agent, and those it hands over to, without
// asking any model. Runs begin with it.
func (a Agent) Check() error {
	_, err := newCast(&a, keepers{}, nil)
	return err
}

func (a *Agent) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// errorf is an error of this package's.
func errorf(format string, args ...any) error { return fmt.Errorf("agent: "+format, args...) }
