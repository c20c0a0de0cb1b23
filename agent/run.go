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
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
	"github.com/dragoman-go/dragoman/internal/contexts"
	"github.com/dragoman-go/dragoman/internal/contexts/callcontext"
	"github.com/dragoman-go/dragoman/internal/contexts/lazyctx"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/tool"
)

// run is one run of an agent.
type run struct {
	options
	cast *cast
	now  func() time.Time
	// player is who speaks.
	player *player
	// resumed says that the run was begun before; prompt is its input.
	resumed bool
	prompt  string
	began   time.Time

	// messages are the whole conversation; those from kept on are not stored yet.
	messages []dragoman.Message
	kept     int
	state    state
	stored   state // as it was stored last; it is large, and written in each turn
	result   Result
	recorded [][]tool.Record // what became of the calls, batch by batch
	unsaved  []tool.Record   // records for a recordStore since the last save
	decided  decisions
	memory   *tool.MemorySpill // long outputs of a run without a store for them
	runners  map[string]*tool.Run
	pauses   int // in a row
	// again says that the calls at hand may have been begun by a process that died.
	again bool
	// moved says that a turn, or what was left of one, is over.
	moved bool

	// yield tells whoever watches; left says that nobody does any more. events
	// come from the goroutines of tools.
	yield  func(Event, error) bool
	left   bool
	cancel context.CancelCauseFunc
	events chan tool.Event
	over   chan struct{}
	// guarded and newlyFound are what tools of the turn at hand came upon.
	guarded    guardState
	newlyFound []tool.Key
}

// begin makes a run of new input.
func (a Agent) begin(prompt string, opts []Option) (*run, error) {
	r, err := a.newRun(opts, nil)
	if err != nil {
		return nil, err
	}
	if prompt == "" && len(r.options.messages) == 0 {
		return nil, errorf("there is nothing to ask: give a prompt, or Messages")
	}
	r.prompt = prompt
	return r, nil
}

// resume makes a run that goes on.
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
		return nil, errorf("%w: there is neither a state nor a store", ErrState)
	}
	if len(r.options.messages) > 0 {
		return nil, errorf("%w: a run is resumed without new input", ErrUnfinished)
	}
	r.resumed = true
	if s == nil {
		return r, nil
	}
	if r.state, err = s.s.own(); err != nil {
		return nil, err
	}
	if r.store == nil && len(r.state.Messages) == 0 && r.state.Phase != finished {
		return nil, errorf("%w: its conversation is in a store: pass agent.In(store)", ErrState)
	}
	return r, nil
}

func (a *Agent) newRun(opts []Option, memory *tool.MemorySpill) (*run, error) {
	o := optionsOf(opts)
	k := keepersOf(&o, memory)
	c, err := newCast(a, k, o.policies)
	if err != nil {
		return nil, err
	}
	r := &run{
		options: o, cast: c, player: c.first, now: a.now, memory: k.memory,
		runners: map[string]*tool.Run{}, over: make(chan struct{}), decided: newDecisions(&o),
	}
	return r, nil
}

// watched makes a run tell what happens.
func (r *run) watched(yield func(Event, error) bool, cancel context.CancelCauseFunc) {
	r.yield, r.cancel = yield, cancel
	r.events = make(chan tool.Event)
}

// errLeft is why a run is cancelled that nobody watches any more.
var errLeft = errorf("nobody listens any more")

// unwatched says that nobody is told what happens: then no events need be made.
func (r *run) unwatched() bool { return r.yield == nil || r.left }

// tell passes an event on.
func (r *run) tell(ev Event) {
	if r.unwatched() {
		return
	}
	if !r.yield(ev, nil) {
		r.left = true
		r.cancel(errLeft)
	}
}

// run runs, and says as far as it got.
func (r *run) run(ctx context.Context) (*Result, error) {
	defer close(r.over)
	r.began = r.now()
	leave, err := r.hold()
	if err != nil {
		return &Result{Agent: r.player.name()}, err
	}
	defer leave()
	if err := r.load(ctx); err != nil {
		return &Result{Agent: r.player.name()}, err
	}
	if most := r.cast.first.Limits.time(); most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, max(0, most-r.state.Elapsed), &LimitError{"time", fmt.Sprintf("at most %v", most)})
		defer cancel()
	}
	r.tell(&RunStart{Run: r.state.Run, Agent: r.player.name(), Resumed: r.resumed, Session: r.storeID()})
	if r.resumed {
		err = r.decided.save(ctx, r)
	} else {
		err = r.hear(ctx)
	}
	if err == nil {
		err = r.loop(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = cancelled(ctx, err)
	}
	r.result.Run, r.result.Agent, r.result.Turns, r.result.Usage = r.state.Run, r.player.name(), r.state.Turn, r.state.Usage
	r.result.Records = slices.Concat(r.recorded...)
	for _, d := range r.state.Degraded {
		r.result.Degraded = append(r.result.Degraded, d.Key.QualifiedName())
	}
	r.result.Messages = r.messages[min(r.state.Begun, len(r.messages)):]
	if r.store == nil { // then they are the state's too
		r.result.Messages = slices.Clone(r.result.Messages)
	}
	r.result.Pending = leaves(r.state.Pending)
	r.result.State = r.snapshot()
	return &r.result, err
}

// hold keeps other runs of this process away from the store, where it can: they
// would write with one hand, and none would lose.
func (r *run) hold() (leave func(), err error) {
	h, ok := r.store.(holder)
	if !ok {
		return func() {}, nil
	}
	if leave, err = h.Hold(); err != nil {
		return nil, errorf("beginning the run: %w", err)
	}
	return leave, nil
}

// storeID names what the run is kept in; empty where that has no name.
func (r *run) storeID() string {
	if named, ok := r.store.(interface{ ID() string }); ok {
		return named.ID()
	}
	return ""
}

// cancelled says why a context ended, with the error that came of it.
func cancelled(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// load finds out where the run stands, and takes its input.
func (r *run) load(ctx context.Context) error {
	var stored []byte
	if r.store != nil {
		var err error
		if r.messages, stored, err = r.store.Load(ctx); err != nil {
			return errorf("loading the run: %w", err)
		}
		r.kept = len(r.messages)
	}
	if r.resumed {
		return r.rebind(ctx, stored)
	}
	return r.open(ctx, stored)
}

// rebind finds the agent and the calls of a run that goes on (requirement L13).
func (r *run) rebind(ctx context.Context, stored []byte) error {
	if err := r.recall(stored); err != nil {
		return err
	}
	if err := r.state.expand(ctx, r.detacher()); err != nil {
		return err
	}
	p, err := r.cast.speaker(&r.state)
	if err != nil {
		return err
	}
	r.player = p
	r.again = r.state.Phase == calling
	if r.state.Stopped != nil {
		r.guarded.stopped = r.state.Stopped.err()
	}
	r.state.Background = r.state.Background || r.cast.background()
	if r.state.Phase == finished {
		if r.result.Output = r.state.Output; r.result.Output == "" {
			r.result.Output = lastWords(r.messages)
		}
	}
	records, err := r.restoreRecords(ctx)
	if err != nil {
		return err
	}
	r.recorded = [][]tool.Record{records}
	return r.decided.resume(ctx, r)
}

// speaker returns the agent of a stored run, which must have the tools of the calls that
// wait.
func (c *cast) speaker(s *state) (*player, error) {
	p := c.players[s.Agent]
	if p == nil {
		return nil, fmt.Errorf("%w: unknown agent %q: known agents are %s", ErrState, s.Agent, quoted(c.names()))
	}
	for _, pend := range s.Pending {
		if _, ok := p.box.Find(pend.Binding.Key); !ok {
			return nil, fmt.Errorf("%w: %s waits for a human, and the agent %q has no such tool any more", ErrState, pend.Tool(), p.name())
		}
	}
	return p, nil
}

// recall finds the state to go on with, and its conversation. Where there is a store,
// that knows: a state that it has gone past names a turn whose effects are in the
// journal, and the calls that wait by now are those of another.
func (r *run) recall(stored []byte) error {
	given := r.state.Run != ""
	if given {
		if err := r.state.check(); err != nil {
			return err
		}
	}
	if r.store == nil {
		r.messages = slices.Clone(r.state.Messages)
		r.kept = len(r.messages)
		return r.checkOpenCalls()
	}
	if stored == nil {
		return fmt.Errorf("%w: the store has no run", ErrState)
	}
	var s State
	if err := json.Unmarshal(stored, &s); err != nil {
		return err
	}
	switch {
	case !given:
		r.state = s.s
	case !r.state.where(&s.s):
		return fmt.Errorf("%w: the store is at turn %d of the run %.80q, and the state at turn %d of %.80q: the run went on, or is another; give no state to go on from where it is",
			ErrState, s.s.Turn, s.s.Run, r.state.Turn, r.state.Run)
	default:
		r.state.Ledger = s.s.Ledger // a process may have ended behind a decision
		r.state.Stopped = s.s.Stopped
	}
	return r.checkOpenCalls()
}

// checkOpenCalls refuses a state that is to ask the model although the conversation has
// calls without results.
func (r *run) checkOpenCalls() error {
	if r.state.Phase == asking && len(openCalls(r.messages)) > 0 {
		return fmt.Errorf("%w: the conversation has calls that wait, and the state is one from before them", ErrState)
	}
	return nil
}

// where reports whether two states are of the same moment of a run.
func (s *state) where(t *state) bool {
	sameCall := func(a, b tool.Pending) bool { return a.Binding == b.Binding && bytes.Equal(a.State, b.State) }
	return s.Run == t.Run && s.Turn == t.Turn && s.Phase == t.Phase && s.Agent == t.Agent &&
		len(s.Settled) == len(t.Settled) && slices.EqualFunc(s.Pending, t.Pending, sameCall)
}

// lastWords are what the assistant said last.
func lastWords(ms []dragoman.Message) string {
	first := len(ms)
	for first > 0 && ms[first-1].Role == dragoman.RoleAssistant {
		first--
	}
	return textOf(ms[first:])
}

// open begins a run with new input.
func (r *run) open(ctx context.Context, stored []byte) error {
	if len(r.decided.given) > 0 && len(r.path) == 0 {
		return errorf("%w: decisions belong to Resume", ErrState)
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
		return errorf("%w: NewID gives a run no name", ErrAgent)
	}
	if stored != nil && before.s.Run == r.id {
		return errorf("%w: the store has a run %q already; resume it, or give the new one its own ID", ErrState, r.id)
	}
	r.state = state{V: stateVersion, Run: r.id, Agent: r.player.name(), Phase: asking, Begun: len(r.messages), Waiting: before.s.Waiting, Background: r.cast.background()}
	if before.s.Run != "" && before.s.Background {
		r.state.Waiting = append(r.state.Waiting, before.s.Run)
	}
	return nil
}

// hear takes the input of a run.
func (r *run) hear(ctx context.Context) error {
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

// settleBefore answers the calls that the conversation before left open, or
// refuses to go past them (decision 18).
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
		return fmt.Errorf("%w: %s; resume it, or give them up with Abandon", ErrUnfinished, callsIn(open))
	}
	results := make([]*dragoman.ToolResult, len(open))
	for i, c := range open {
		res, err := r.resultBefore(ctx, &before.s, c.ID)
		if err != nil {
			return errorf("loading the run: %w", err)
		}
		if res == nil {
			res = resultorder.Abandoned(c)
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

// resultBefore returns the result of a call of the run before; nil if it has none. A process
// that was killed may have left it in the journal alone.
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

// openCalls are the calls of the last turn, where nothing follows it.
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

// callsIn names calls for a message.
func callsIn(calls []*dragoman.ToolCall) string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.QualifiedName()
	}
	return quoted(names)
}

// newID names a run.
func (r *run) newID() string {
	if f := r.cast.first.NewID; f != nil {
		return f()
	}
	return "run_" + rand.Text()
}

// saveTimeout is what storing a run may take.
const saveTimeout = 30 * time.Second

// save stores what was added, with the state as it is now. A run that is cancelled
// is stored all the same: what it leaves must be whole.
func (r *run) save(ctx context.Context) error {
	if r.store == nil {
		r.kept = len(r.messages)
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
		err = s.SaveRecords(waits, r.messages[r.kept:], b, r.state.Run, r.unsaved)
	} else {
		err = r.store.Save(waits, r.messages[r.kept:], b)
	}
	if err != nil {
		return errorf("storing the run: %w", err)
	}
	r.kept = len(r.messages)
	clear(r.unsaved)
	r.unsaved = r.unsaved[:0]
	return nil
}

// prepareSave runs the session_save_prepare actions of the model's extensions. It skips
// conversations with open calls, which must be followed by their results, and those that a
// handoff filtered, which the store does not have.
func (r *run) prepareSave(ctx context.Context) {
	s, ok := r.store.(savePreparer)
	if !ok || len(r.messages) == r.kept || ctx.Err() != nil || r.state.Offset > 0 || len(openCalls(r.messages[r.kept:])) > 0 {
		return
	}
	p := r.player
	ctx = callcontext.WithPosition(ctx, extension.Position{Run: r.state.Run, Turn: r.state.Turn, Message: len(r.messages)})
	var err error
	var spent meter
	r.gatedActions(contexts.WithMeter(ctx, spent.add), func(ctx context.Context) { err = s.BeforeSave(ctx, p.Model, p.Settings.Model, r.messages[r.kept:]) })
	err = errors.Join(err, r.spend(&spent))
	if err == nil {
		return
	}
	r.log().Warn("an extension action before saving failed; the run is saved anyway", "run", r.state.Run, "error", err)
	r.tell(&Notice{r.state.Turn, "action", "an action before saving failed: " + err.Error()})
}

// log returns the logger of the current agent.
func (r *run) log() *slog.Logger {
	if l := r.player.Log; l != nil {
		return l
	}
	return slog.Default()
}

// turn tells a callback where the run is.
func (r *run) turn() Turn {
	return Turn{Run: r.state.Run, Agent: r.player.name(), Number: r.state.Turn, Messages: r.messages, Usage: r.state.Usage}
}
