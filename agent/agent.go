package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Agent is a model with tools and rules. Only Model is required; the comment of each other
// field says what its zero value means. Do not change what the fields point to while runs
// are active. If a callback panics, the run fails with a [tool.PanicError].
type Agent struct {
	// Name identifies the agent in handoffs, events, records and stored runs. Empty
	// means "agent". Agents that hand over to each other need different names.
	Name string
	// Description tells other agents what this agent is for; it may be empty.
	Description string

	// Model is the model that the agent calls. It is required.
	Model dragoman.Model
	// Instructions precede the conversation in every request; empty sends none.
	// Instruct, if set, returns the instructions for each turn instead.
	Instructions string
	Instruct     func(ctx context.Context, t Turn) (string, error)
	// Settings are the settings of every request: sampling, reasoning, tool choice,
	// output. Its Instructions, Messages and Tools are ignored; hosted tools go into
	// HostedTools.
	Settings dragoman.Request
	// HostedTools are run by the provider, such as a web search; nil means none.
	HostedTools []dragoman.ToolSpec
	// KeepToolChoice keeps a forced tool choice after the model has followed it. By
	// default the choice is reset, because a model that must call a tool in every turn
	// never gives a final answer.
	KeepToolChoice bool

	// Tools are the tools that the model may call; nil means none.
	Tools []tool.Tool
	// ToolSource returns further tools, such as those of MCP servers, whose lists may change.
	// It is called before each model call, and when a run is resumed; nil adds none.
	//   - Its tools come after Tools. Tools that it returned before keep their places in
	//     requests and new ones come last, so that the prompt caches of providers stay valid.
	//   - A tool that it no longer returns is not sent, and a call of it is an error result.
	//   - If it fails at first, the run fails. Later, the run continues with the earlier tools
	//     and reports a [Notice].
	ToolSource func(ctx context.Context) ([]tool.Tool, error)
	// Toolbox is the configuration that the tools share; the zero value is safe.
	Toolbox tool.Config
	// Runner checks, limits and records calls; nil means a Runner with the defaults.
	// A run uses its store as Journal, Spill and Tickets if they are not set here, and
	// stores long outputs in memory if it has no store for them. The tool
	// "read_tool_output" is added to Tools if outputs can be cut; [tool.NoSpill] turns
	// this off.
	Runner *tool.Runner
	// AfterTools decides whether the run ends after tool calls; nil calls the model
	// again.
	AfterTools AfterTools
	// Search finds deferred tools. The zero value uses the provider's search if it has
	// one, and a search tool of this package otherwise.
	Search Search

	// Handoffs are the agents that may take over; nil means none.
	Handoffs []Handoff
	// Guardrails check input and output; the zero value checks nothing.
	Guardrails Guardrails
	// Steer returns messages that are added to the conversation between turns, before
	// the next model call. Nil adds none.
	Steer func(ctx context.Context, t Turn) ([]dragoman.Message, error)
	// Compact returns the messages to send for a conversation, such as a summary and the
	// last turns. It gets the messages that would be sent without it: the whole
	// conversation, or what the store has in its place for the model's origin (MessagesInPlaceOf of
	// [Store]). Media of earlier runs may be references to attachments (Expand of
	// [Store]). Compact may edit its argument, a copy; the stored conversation does not
	// change. Calls whose results it leaves out are not sent, nor results without their calls. Nil
	// sends the messages unchanged.
	Compact func(ctx context.Context, messages []dragoman.Message) ([]dragoman.Message, error)

	// Limits end runs that do not end by themselves; the zero value means the defaults.
	Limits Limits
	// Price returns the cost of usage, for Limits.Cost; nil means that usage costs nothing.
	Price func(u dragoman.Usage) float64

	// Log gets what callers and models must not see, if the Runner has no Log: panics of
	// tools with their stacks, and the causes of internal errors. Nil means
	// [slog.Default].
	Log *slog.Logger
	// Now is the clock, and NewID makes the ids of runs. Nil means [time.Now] and random
	// ids.
	//
	// Go starts every goroutine of a run: the one that runs calls while the caller reads
	// a stream, and those of the calls, their tools, hooks, policies and approvers,
	// unless the Runner has its own Go. Nil means the go statement.
	//   - Several goroutines call Go at once. It must start the task and return, because
	//     tasks wait for each other.
	//   - No goroutine outlives the run, except code that was abandoned after its timeout.
	//   - The agent that began the run also starts the goroutines of agents that take
	//     over. An agent that is used as a tool starts its own.
	//   - Goroutines of a store are not started with Go.
	Now   func() time.Time
	NewID func() string
	Go    func(task func())
}

// Turn describes the current position in a run, for callbacks.
type Turn struct {
	Run   string
	Agent string
	// Number counts the turns of the run from 1; zero means that no turn has begun.
	Number int
	// Messages are the conversation so far. They must not be changed.
	Messages []dragoman.Message
	Usage    dragoman.Usage
}

// defaultName is the name of an agent whose Name is empty.
const defaultName = "agent"

func (a *Agent) name() string {
	if a.Name == "" {
		return defaultName
	}
	return a.Name
}

// Run runs the agent and waits for the end of the run. The result is never nil: on an
// error, it holds what the run has done so far. Its Run is empty if no run began.
func (a Agent) Run(ctx context.Context, prompt string, opts ...Option) (*Result, error) {
	r, err := a.begin(prompt, opts)
	if err != nil {
		return &Result{Agent: a.name()}, err
	}
	return r.run(ctx)
}

// Stream runs the agent and reports events. See [Stream].
func (a Agent) Stream(ctx context.Context, prompt string, opts ...Option) Stream {
	return streamOf(ctx, func() (*run, error) { return a.begin(prompt, opts) })
}

// Resume continues a run that was interrupted, canceled or ended by a limit.
// Decisions on its pending calls are options: [Approve], [Reject], [Edit],
// [Always], [Never]. If state is nil, Resume uses the state in the store given by [In].
// Another state must match the stored one: once the run has continued from it, Resume
// returns [ErrState]. The stored state lists the pending calls:
//
//	state, err := agent.LoadState(ctx, s)
//	res, err := a.Resume(ctx, nil, agent.In(s), agent.Approve(state.Pending()[0]))
//
// A decision on a call that is not pending, such as a second decision on the same call,
// is also [ErrState]. As with [Agent.Run], the result is never nil.
func (a Agent) Resume(ctx context.Context, state *State, opts ...Option) (*Result, error) {
	r, err := a.resume(state, opts)
	if err != nil {
		return &Result{Agent: a.name()}, err
	}
	return r.run(ctx)
}

// ResumeStream is like [Agent.Resume], but reports events.
func (a Agent) ResumeStream(ctx context.Context, state *State, opts ...Option) Stream {
	return streamOf(ctx, func() (*run, error) { return a.resume(state, opts) })
}

// Check reports errors in the definition of the agent and of the agents that it hands over
// to. It calls no model. Every run begins with it.
func (a Agent) Check() error {
	_, err := newAgentSet(&a, defaultStores{}, nil)
	return err
}

func (a *Agent) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// errorf returns an error with the prefix of this package.
func errorf(format string, args ...any) error { return fmt.Errorf("agent: "+format, args...) }
