package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/lazyctx"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/tool"
)

// run is one run of an agent.
type run struct {
	options
	agents *agentSet
	now    func() time.Time
	// active is the current agent.
	active *preparedAgent
	// resumed is set if the run continues an earlier one; prompt is the input of a new run.
	resumed bool
	prompt  string
	began   time.Time

	// messages are the whole conversation; those from index kept on are not stored yet.
	messages    []dragoman.Message
	storedCount int
	state       state
	stored      state // the last stored state; a field, because it is large and written in each turn
	result      Result
	recorded    [][]tool.Record // the records of all calls, batch by batch
	unsaved     []tool.Record   // records for a recordStore since the last save
	decided     decisions
	memory      *tool.MemorySpill // long outputs of a run without a store for them
	runners     map[string]*tool.Run
	pauses      int // in a row
	// mayHaveBegun is set if a process that died may have begun the current calls.
	mayHaveBegun bool
	// turnOver is set once a turn, or the rest of one, is over.
	turnOver bool

	// yield passes events to the caller of a stream, and callerLeft is set once the caller
	// has left the loop. events come from the goroutines of tools.
	yield      func(Event, error) bool
	callerLeft bool
	cancel     context.CancelCauseFunc
	events     chan tool.Event
	eventsDone chan struct{}
	// guarded and newlyFound collect verdicts and found tools of the current turn.
	guarded    guardState
	newlyFound []tool.Key
}

// begin returns a run with new input.
func (a Agent) begin(prompt string, opts []Option) (*run, error) {
	r, err := a.newRun(opts, nil)
	if err != nil {
		return nil, err
	}
	if prompt == "" && len(r.options.messages) == 0 {
		return nil, errorf("the input is missing: pass a prompt or agent.Messages")
	}
	r.prompt = prompt
	return r, nil
}

// resume returns a run that continues an earlier one.
func (a Agent) resume(s *State, opts []Option) (*run, error) {
	var memory *tool.MemorySpill
	if s != nil {
		memory = s.memory
	}
	r, err := a.newRun(opts, memory)
	if err != nil {
		return nil, err
	}
	if s == nil && r.store == nil {
		return nil, fmt.Errorf("%w: pass a state, or a store with agent.In", ErrState)
	}
	if len(r.options.messages) > 0 {
		return nil, fmt.Errorf("%w: Resume takes no Messages; resume the run first, then give new input to Run", ErrUnfinished)
	}
	r.resumed = true
	if s == nil {
		return r, nil
	}
	if r.state, err = s.s.copyForRun(); err != nil {
		return nil, err
	}
	if r.store == nil && len(r.state.Messages) == 0 && r.state.Phase != finished {
		return nil, fmt.Errorf("%w: its conversation is in a store: pass agent.In(store) to Resume", ErrState)
	}
	return r, nil
}

func (a *Agent) newRun(opts []Option, memory *tool.MemorySpill) (*run, error) {
	o := optionsOf(opts)
	k := defaultStoresOf(&o, memory)
	c, err := newAgentSet(a, k, o.policies)
	if err != nil {
		return nil, err
	}
	r := &run{
		options: o, agents: c, active: c.first, now: a.now, memory: k.memory,
		runners: map[string]*tool.Run{}, eventsDone: make(chan struct{}), decided: newDecisions(&o),
	}
	return r, nil
}

// startEvents makes the run emit events.
func (r *run) startEvents(yield func(Event, error) bool, cancel context.CancelCauseFunc) {
	r.yield, r.cancel = yield, cancel
	r.events = make(chan tool.Event)
}

// errLeft is the cancellation cause of a run whose stream is no longer read.
var errLeft = errorf("the caller stopped reading the stream")

// noReader reports whether no caller reads events, so that none need be created.
func (r *run) noReader() bool { return r.yield == nil || r.callerLeft }

// emit sends an event to the caller.
func (r *run) emit(ev Event) {
	if r.noReader() {
		return
	}
	if !r.yield(ev, nil) {
		r.callerLeft = true
		r.cancel(errLeft)
	}
}

// run executes the run and returns its result, also if it fails.
func (r *run) run(ctx context.Context) (*Result, error) {
	defer close(r.eventsDone)
	r.began = r.now()
	leave, err := r.lockStore()
	if err != nil {
		return &Result{Agent: r.active.name()}, err
	}
	defer leave()
	if err := r.load(ctx); err != nil {
		return &Result{Agent: r.active.name()}, err
	}
	if most := r.agents.first.Limits.time(); most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, max(0, most-r.state.Elapsed), &LimitError{"time", fmt.Sprintf("at most %v", most)})
		defer cancel()
	}
	r.emit(&RunStart{Run: r.state.Run, Agent: r.active.name(), Resumed: r.resumed, Session: r.storeID()})
	if r.resumed {
		err = r.decided.save(ctx, r)
	} else {
		err = r.addInput(ctx)
	}
	if err == nil {
		err = r.loop(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = cancelCause(ctx, err)
	}
	r.result.Run, r.result.Agent, r.result.Turns, r.result.Usage = r.state.Run, r.active.name(), r.state.Turn, r.state.Usage
	r.result.Records = slices.Concat(r.recorded...)
	for _, d := range r.state.Degraded {
		r.result.Degraded = append(r.result.Degraded, d.Key.QualifiedName())
	}
	r.result.Messages = r.messages[min(r.state.Begun, len(r.messages)):]
	if r.store == nil { // the state shares them
		r.result.Messages = slices.Clone(r.result.Messages)
	}
	r.result.Pending = leaves(r.state.Pending)
	r.result.State = r.snapshot()
	return &r.result, err
}

// lockStore reserves the store for this run, if the store supports it. Two runs of one process
// would share the same writer, so the store could not detect the conflict.
func (r *run) lockStore() (leave func(), err error) {
	h, ok := r.store.(locker)
	if !ok {
		return func() {}, nil
	}
	if leave, err = h.Lock(); err != nil {
		return nil, errorf("beginning the run: %w", err)
	}
	return leave, nil
}

// storeID returns the id of the run's store, or "" if it has no id.
func (r *run) storeID() string {
	if named, ok := r.store.(interface{ ID() string }); ok {
		return named.ID()
	}
	return ""
}

// cancelCause adds the cause of a canceled context to the error that it led to.
func cancelCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// load reads the stored run and either restores its position or begins a new run.
func (r *run) load(ctx context.Context) error {
	var stored []byte
	if r.store != nil {
		var err error
		if r.messages, stored, err = r.store.Load(ctx); err != nil {
			return errorf("loading the run: %w", err)
		}
		r.storedCount = len(r.messages)
	}
	if r.resumed {
		return r.rebind(ctx, stored)
	}
	return r.open(ctx, stored)
}

// rebind finds the agent and the calls of a resumed run (requirement L13).
func (r *run) rebind(ctx context.Context, stored []byte) error {
	if err := r.loadState(stored); err != nil {
		return err
	}
	if err := r.state.expand(ctx, r.detacher()); err != nil {
		return err
	}
	if known := r.agents.byName[r.state.Agent]; known != nil && r.state.Phase == calling {
		r.active = known
		if err := r.refreshTools(ctx); err != nil {
			return err
		}
	}
	p, err := r.agents.resumedAgent(&r.state)
	if err != nil {
		return err
	}
	r.active = p
	r.mayHaveBegun = r.state.Phase == calling
	if r.state.Stopped != nil {
		r.guarded.stopped = r.state.Stopped.err()
	}
	r.state.Background = r.state.Background || r.agents.background()
	if r.state.Phase == finished {
		if r.result.Output = r.state.Output; r.result.Output == "" {
			r.result.Output = lastAssistantText(r.messages)
		}
	}
	records, err := r.restoreRecords(ctx)
	if err != nil {
		return err
	}
	r.recorded = [][]tool.Record{records}
	return r.decided.resume(ctx, r)
}

// resumedAgent returns the current agent of a stored run, which must have the tools of its
// pending calls.
func (c *agentSet) resumedAgent(s *state) (*preparedAgent, error) {
	p := c.byName[s.Agent]
	if p == nil {
		return nil, fmt.Errorf("%w: unknown agent %q: known agents are %s", ErrState, s.Agent, quoted(c.agentNames()))
	}
	for _, pend := range s.Pending {
		if _, ok := p.box.Find(pend.Binding.Key); !ok {
			return nil, fmt.Errorf("%w: a call of %s is pending, but the agent %q no longer has this tool", ErrState, pend.Tool(), p.name())
		}
	}
	return p, nil
}

// loadState restores the state and its conversation. The state in a store takes precedence: if
// the store has moved past the given state, the effects of that turn are in the journal, and
// other calls are pending by now.
func (r *run) loadState(stored []byte) error {
	given := r.state.Run != ""
	if given {
		if err := r.state.check(); err != nil {
			return err
		}
	}
	if r.store == nil {
		r.messages = slices.Clone(r.state.Messages)
		r.storedCount = len(r.messages)
		return r.checkOpenCalls()
	}
	if stored == nil {
		return fmt.Errorf("%w: the store contains no run", ErrState)
	}
	var s State
	if err := json.Unmarshal(stored, &s); err != nil {
		return err
	}
	switch {
	case !given:
		r.state = s.s
	case !r.state.samePoint(&s.s):
		return fmt.Errorf("%w: the store is at turn %d of the run %.80q, but the state is at turn %d of %.80q: the run has continued, or it is another run; pass a nil state to resume from the store",
			ErrState, s.s.Turn, s.s.Run, r.state.Turn, r.state.Run)
	default:
		r.state.Ledger = s.s.Ledger // a process may have ended after it stored a decision
		r.state.Stopped = s.s.Stopped
	}
	return r.checkOpenCalls()
}

// checkOpenCalls refuses a state that would call the model although the conversation has
// calls without results.
func (r *run) checkOpenCalls() error {
	if r.state.Phase == asking && len(openCalls(r.messages)) > 0 {
		return fmt.Errorf("%w: the state is older than the pending calls of the conversation: pass a nil state to resume from the store", ErrState)
	}
	return nil
}

// samePoint reports whether two states are the same point of a run.
func (s *state) samePoint(t *state) bool {
	sameCall := func(a, b tool.Pending) bool { return a.Binding == b.Binding && bytes.Equal(a.State, b.State) }
	return s.Run == t.Run && s.Turn == t.Turn && s.Phase == t.Phase && s.Agent == t.Agent &&
		len(s.Settled) == len(t.Settled) && slices.EqualFunc(s.Pending, t.Pending, sameCall)
}

// lastAssistantText returns the text of the last assistant messages.
func lastAssistantText(ms []dragoman.Message) string {
	first := len(ms)
	for first > 0 && ms[first-1].Role == dragoman.RoleAssistant {
		first--
	}
	return textOf(ms[first:])
}

// open begins a run with new input.
func (r *run) open(ctx context.Context, stored []byte) error {
	if len(r.decided.given) > 0 && len(r.path) == 0 {
		return fmt.Errorf("%w: pass decisions to Resume, not to Run", ErrState)
	}
	var before State
	if stored != nil {
		if err := json.Unmarshal(stored, &before); err != nil {
			return err
		}
	}
	if err := r.settleBefore(ctx, &before); err != nil {
		return err
	}
	if r.id == "" {
		r.id = r.newID()
	}
	if r.id == "" {
		return errorf("%w: NewID returned an empty id", ErrAgent)
	}
	if stored != nil && before.s.Run == r.id {
		return fmt.Errorf("%w: the store already has a run %q; resume it, or give the new run another ID", ErrState, r.id)
	}
	r.state = state{V: stateVersion, Run: r.id, Agent: r.active.name(), Phase: asking, Begun: len(r.messages), Waiting: before.s.Waiting, Background: r.agents.background()}
	if before.s.Run != "" && before.s.Background {
		r.state.Waiting = append(r.state.Waiting, before.s.Run)
	}
	return nil
}

// addInput adds the input of a run to the conversation.
func (r *run) addInput(ctx context.Context) error {
	input := slices.Clone(r.options.messages)
	if r.prompt != "" {
		input = append(input, dragoman.UserText(r.prompt))
	}
	input, err := r.guardInput(ctx, input)
	if err != nil {
		return r.fail(err)
	}
	r.messages = append(r.messages, input...)
	return r.save(ctx)
}

// settleBefore answers the open calls of the earlier conversation, or returns an error if the
// caller did not pass [Abandon] (decision 27).
func (r *run) settleBefore(ctx context.Context, before *State) error {
	last := r.messages
	if r.store == nil {
		last = r.options.messages
	}
	open := openCalls(last)
	if len(open) == 0 {
		r.keepPartial(before)
		return nil
	}
	if !r.abandon {
		return fmt.Errorf("%w: calls without results: %s; resume the run, or pass agent.Abandon()", ErrUnfinished, callsIn(open))
	}
	results := make([]*dragoman.ToolResult, len(open))
	for i, c := range open {
		res, err := r.resultBefore(ctx, &before.s, c.ID)
		if err != nil {
			return errorf("loading the run: %w", err)
		}
		if res == nil {
			res = turnrules.Abandoned(c)
		}
		results[i] = res
	}
	results = renamed(open, results)
	if r.store == nil {
		r.options.messages = append(r.options.messages, dragoman.ToolResults(results...))
		return nil
	}
	r.messages = append(r.messages, dragoman.ToolResults(results...))
	return nil
}

// resultBefore returns the result of a call of the previous run, or nil. A process that was
// killed may have left the result only in the journal.
func (r *run) resultBefore(ctx context.Context, before *state, call string) (*dragoman.ToolResult, error) {
	if res := before.settled(call); res != nil {
		return res, nil
	}
	j, ok := r.store.(interface {
		Recall(ctx context.Context, call tool.CallRef) (tool.Prior, error)
	})
	if !ok || before.Phase != calling {
		return nil, nil
	}
	prior, err := j.Recall(ctx, tool.CallRef{Run: before.Run, Turn: before.Turn, CallID: call})
	return prior.Result, err
}

// keepPartial adds the text of a response that broke off to the conversation, before
// new input.
func (r *run) keepPartial(before *State) {
	if r.store != nil && before.s.Phase == asking && before.s.Partial != "" {
		r.messages = append(r.messages, dragoman.AssistantText(before.s.Partial))
	}
}

// openCalls returns the calls of the last turn that have no results, if nothing follows the
// turn.
func openCalls(ms []dragoman.Message) []*dragoman.ToolCall {
	answered := map[string]bool{}
	var open []*dragoman.ToolCall
	for i := len(ms) - 1; i >= 0; i-- {
		m := &ms[i]
		if m.Role != dragoman.RoleAssistant {
			if open != nil || m.Role == dragoman.RoleUser && !hasResults(m) {
				break
			}
			for _, p := range m.Parts {
				if res, ok := p.(*dragoman.ToolResult); ok {
					answered[res.CallID] = true
				}
			}
			continue
		}
		var calls []*dragoman.ToolCall
		for _, c := range m.ToolCalls() {
			if !c.Hosted && !answered[c.ID] {
				calls = append(calls, c)
			}
		}
		open = append(calls, open...)
	}
	return open
}

func hasResults(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindToolResult })
}

// callsIn returns the quoted names of calls, for an error.
func callsIn(calls []*dragoman.ToolCall) string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.QualifiedName()
	}
	return quoted(names)
}

// newID returns the id of a new run.
func (r *run) newID() string {
	if f := r.agents.first.NewID; f != nil {
		return f()
	}
	return "run_" + rand.Text()
}

// saveTimeout bounds the time for storing a run.
const saveTimeout = 30 * time.Second

// save stores new messages together with the current state. It also stores a canceled run,
// so that the stored run is complete.
func (r *run) save(ctx context.Context) error {
	if r.store == nil {
		r.storedCount = len(r.messages)
		return nil
	}
	r.prepareSave(ctx)
	waits, cancel := lazyctx.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	r.stored = r.current()
	if err := r.stored.detach(waits, r.detacher()); err != nil {
		return errorf("storing the run: %w", err)
	}
	b, err := r.stored.encode()
	if err != nil {
		return errorf("storing the run: %w", err)
	}
	if s, ok := r.store.(recordStore); ok && len(r.unsaved) > 0 {
		err = s.SaveRecords(waits, r.messages[r.storedCount:], b, r.state.Run, r.unsaved)
	} else {
		err = r.store.Save(waits, r.messages[r.storedCount:], b)
	}
	if err != nil {
		return errorf("storing the run: %w", err)
	}
	r.storedCount = len(r.messages)
	clear(r.unsaved)
	r.unsaved = r.unsaved[:0]
	return nil
}

// prepareSave runs the session_save_prepare actions of the model's extensions. It skips
// conversations with open calls, which must be followed by their results, and those that a
// handoff filtered, which the store does not have.
func (r *run) prepareSave(ctx context.Context) {
	s, ok := r.store.(savePreparer)
	if !ok || len(r.messages) == r.storedCount || ctx.Err() != nil || r.state.Offset > 0 || len(openCalls(r.messages[r.storedCount:])) > 0 {
		return
	}
	p := r.active
	ctx = modelcall.WithPosition(ctx, extension.Position{Run: r.state.Run, Turn: r.state.Turn, Message: len(r.messages)})
	var err error
	var spent meter
	r.gatedActions(modelcall.WithMeter(ctx, spent.add), func(ctx context.Context) {
		err = s.BeforeSave(ctx, p.Model, p.Settings.Model, r.messages[r.storedCount:])
	})
	err = errors.Join(err, r.spend(&spent))
	if err == nil {
		return
	}
	r.log().Warn("an extension action before saving failed; the run is saved anyway", "run", r.state.Run, "error", err)
	r.emit(&Notice{r.state.Turn, "action", "an action before saving failed: " + err.Error()})
}

// log returns the logger of the current agent.
func (r *run) log() *slog.Logger {
	if l := r.active.Log; l != nil {
		return l
	}
	return slog.Default()
}

// turn returns the current position in the run, for callbacks.
func (r *run) turn() Turn {
	return Turn{Run: r.state.Run, Agent: r.active.name(), Number: r.state.Turn, Messages: r.messages, Usage: r.state.Usage}
}
