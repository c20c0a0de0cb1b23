package tool

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Runner runs the calls of models: it gates, bounds and records them. The zero
// value runs everything that validates, within the default bounds; a host that
// does not trust its models sets a Policy. It is safe for concurrent use, and must
// not change while it is used.
type Runner struct {
	// Policy decides on every call; nil allows all.
	Policy Policy
	// PolicyTimeout bounds a decision; zero means 5 s.
	PolicyTimeout time.Duration
	// Approver answers for humans; nil leaves every call that needs approval
	// pending.
	Approver Approver
	// ApproverTimeout bounds an answer; zero means that it may take as long as
	// the context does.
	ApproverTimeout time.Duration
	// Journal keeps effects from happening twice; nil keeps none.
	Journal Journal
	// Spill keeps outputs that are too long; nil loses what is cut.
	Spill SpillStore
	// Tickets are for tools that work in the background; nil: they cannot.
	Tickets *Tickets

	// Timeout bounds a call where neither the tool nor the toolbox does; zero
	// means 60 s.
	Timeout time.Duration
	// Parallel is how many calls of a turn run at once; zero means 8.
	Parallel int
	// Failure says what a failed call does where its tool does not; zero means
	// [FailureContinue].
	Failure Failure
	// Limits bound outputs where neither the tool nor the toolbox does.
	Limits Limits
	// Count estimates tokens, for Limits.Tokens; nil means a quarter of the bytes.
	Count func(text string) int

	// Redactor takes secrets out of outputs, errors and records; nil knows the
	// common shapes of keys.
	Redactor *Redactor
	// Secrets are what handlers get by [Secret]; nil: none.
	Secrets func(ctx context.Context, name string) (string, error)

	// Observe is told what happens, one event after another. It must return
	// quickly: calls wait for it. Nil: nobody is told.
	Observe func(Event)
	// Log gets what models must not see: stacks, causes. Nil: nothing is logged.
	Log *slog.Logger
	// Now is the clock and Random the source of fences; nil means the system's.
	Now    func() time.Time
	Random io.Reader
}

const (
	defaultTimeout       = time.Minute
	defaultPolicyTimeout = 5 * time.Second
	defaultParallel      = 8
)

// Run is one run of an agent: what its turns share. It is safe for concurrent
// use.
type Run struct {
	ID string
	// Agent is the path of agents, the outermost first.
	Agent []string
	// Metadata is what the host says of the run, for policies and handlers.
	Metadata map[string]string

	runner *Runner

	mu sync.Mutex
	// turns has the calls of each turn by their ids; latest are the turns whose
	// results are still kept.
	turns    map[int]map[string]seen
	latest   []int
	degraded map[Key]bool
}

// seen is a call that was handed to a run before.
type seen struct {
	content Hash
	result  *dragoman.ToolResult
	record  Record
}

// Start begins a run, or goes on with one of the same id. What it did in another
// process it does not know: see [Turn.Results] and [Journal].
func (r *Runner) Start(id string) *Run {
	if r == nil {
		r = &Runner{}
	}
	return &Run{ID: id, runner: r, turns: map[int]map[string]seen{}, degraded: map[Key]bool{}}
}

// Turn is the calls of one answer of a model.
type Turn struct {
	// Number tells turns of a run apart.
	Number int
	Calls  []*dragoman.ToolCall
	// Resume is what an earlier attempt at this turn left pending.
	Resume []Pending
	// Results are those that calls of this turn have already: these calls do not
	// run again. A [Run] knows the results of its own last turns; in another
	// process give them here, or keep a [Journal], which also knows of calls whose
	// results were lost.
	Results []*dragoman.ToolResult
	// Timeout bounds each call, before what the tool, the toolbox and the runner
	// say; zero means as they say.
	Timeout time.Duration
}

// Batch is what became of a turn's calls, in the model's order.
type Batch struct {
	// Results has the result of each call; nil where it is pending.
	Results []*dragoman.ToolResult
	Records []Record
	// Pending are the calls that wait for a human.
	Pending []Pending
}

// Settled are the results that there are, in the model's order.
func (b *Batch) Settled() []*dragoman.ToolResult {
	if b == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.Results), func(r *dragoman.ToolResult) bool { return r == nil })
}

// Errors of a turn.
var (
	// ErrConflict says that a call has the identity of another with other
	// content: a replayed stream, a tampered state. Nothing of the turn ran.
	ErrConflict = errors.New("tool: one call id stands for two different calls")
	// ErrFailed says that a call failed whose failure ends the run.
	ErrFailed = errors.New("tool: a call failed that must not")
)

// Do runs the calls of a turn and returns when each has its result or is pending,
// also when ctx ends: what did not run then is answered so. An error comes with
// whatever of the batch there is; failures of tools are no errors, but results.
func (r *Run) Do(ctx context.Context, box *Box, turn Turn) (*Batch, error) {
	b, err := r.begin(box, turn)
	if err != nil {
		return &Batch{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.cancel = cancel
	b.each(func(x *execution) { x.prepare(ctx) })
	for _, x := range b.calls {
		x.approve(ctx)
	}
	b.execute(ctx)
	return b.collect()
}

// batch is a turn that is being run.
type batch struct {
	run     *Run
	runner  *Runner
	box     *Box
	turn    Turn
	calls   []*execution
	cancel  context.CancelCauseFunc
	observe sync.Mutex
	// failed is the call that ends the run.
	mu     sync.Mutex
	failed *execution
	broken error
}

// begin checks that every call is what it was when its id was seen before, before
// any of them runs (quirk I5).
func (r *Run) begin(box *Box, turn Turn) (*batch, error) {
	b := &batch{run: r, runner: r.runner, box: box, turn: turn, calls: make([]*execution, len(turn.Calls))}
	r.mu.Lock()
	defer r.mu.Unlock()
	var conflicts []error
	before := r.turns[turn.Number]
	here := make(map[string]seen, len(turn.Calls))
	for i, c := range turn.Calls {
		if c == nil {
			conflicts = append(conflicts, fmt.Errorf("%w: call %d is nil", ErrConflict, i))
			continue
		}
		x := &execution{batch: b, call: c, key: KeyOfCall(c), content: contentOf(c)}
		b.calls[i] = x
		old, again := before[c.ID]
		_, twice := here[c.ID]
		switch {
		case twice:
			conflicts = append(conflicts, fmt.Errorf("%w: %q is there twice in turn %d", ErrConflict, c.ID, turn.Number))
		case again && old.content != x.content:
			conflicts = append(conflicts, fmt.Errorf("%w: %q of turn %d was another call before", ErrConflict, c.ID, turn.Number))
		case again && old.result != nil:
			x.replay(old)
		}
		here[c.ID] = seen{content: x.content, result: old.result, record: old.record}
	}
	for _, res := range turn.Results {
		i := slices.IndexFunc(b.calls, func(x *execution) bool { return x != nil && res != nil && res.CallID == x.call.ID })
		switch {
		case i < 0:
			conflicts = append(conflicts, fmt.Errorf("%w: a result is given that answers no call of turn %d", ErrConflict, turn.Number))
		case b.calls[i].result == nil:
			b.calls[i].given(res)
		}
	}
	for _, p := range turn.Resume {
		i := slices.IndexFunc(b.calls, func(x *execution) bool {
			return x != nil && p.Binding.CallID == x.call.ID && p.Binding.Key == x.key && p.Binding.Turn == turn.Number && p.Binding.Run == r.ID
		})
		if i < 0 {
			conflicts = append(conflicts, fmt.Errorf("%w: %q is to be resumed, and is no such call of turn %d", ErrConflict, p.Binding.CallID, turn.Number))
			continue
		}
		b.calls[i].resume = &p
	}
	if len(conflicts) > 0 {
		return nil, errors.Join(conflicts...)
	}
	if before == nil {
		r.turns[turn.Number] = here
	} else {
		maps.Copy(before, here)
	}
	return b, nil
}

// contentOf identifies what a call asks for.
func contentOf(c *dragoman.ToolCall) Hash {
	h := sha256.New()
	for _, s := range [...]string{c.Name, c.Namespace, string(c.Payload), c.Arguments} {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	var out Hash
	h.Sum(out[:0])
	return out
}

// each calls f for every call that has no result yet, several at once.
func (b *batch) each(f func(*execution)) {
	b.parallel(b.calls, f)
}

// execute runs what may run, in the model's order: several at once, and those
// that must be alone alone.
func (b *batch) execute(ctx context.Context) {
	from := 0
	for i, x := range b.calls {
		if x.entry == nil || !x.entry.settings.Exclusive {
			continue
		}
		b.parallel(b.calls[from:i], func(x *execution) { x.execute(ctx) })
		x.execute(ctx)
		from = i + 1
	}
	b.parallel(b.calls[from:], func(x *execution) { x.execute(ctx) })
}

func (b *batch) parallel(calls []*execution, f func(*execution)) {
	if len(calls) == 1 {
		f(calls[0])
		return
	}
	most := b.runner.Parallel
	if most <= 0 {
		most = defaultParallel
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, most)
	for _, x := range calls {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(x)
		})
	}
	wg.Wait()
}

// collect gathers what the calls came to.
func (b *batch) collect() (*Batch, error) {
	out := &Batch{Results: make([]*dragoman.ToolResult, len(b.calls)), Records: make([]Record, len(b.calls))}
	for i, x := range b.calls {
		out.Results[i], out.Records[i] = x.result, x.record
		if x.pending != nil {
			out.Pending = append(out.Pending, *x.pending)
		}
	}
	b.run.remember(b)
	switch {
	case b.broken != nil:
		return out, b.broken
	case b.failed != nil:
		return out, fmt.Errorf("%w: %s: %s", ErrFailed, b.failed.key.QualifiedName(), b.failed.record.Error)
	default:
		return out, nil
	}
}

// keptTurns is of how many turns the results are kept.
const keptTurns = 2

// remember keeps what the calls of the latest turns came to, so that none runs
// again when it is handed in again. Of older ones it keeps what they were.
func (r *Run) remember(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.turns[b.turn.Number]
	for _, x := range b.calls {
		if x.result != nil {
			here[x.call.ID] = seen{x.content, x.result, x.record}
		}
	}
	if slices.Contains(r.latest, b.turn.Number) {
		return
	}
	r.latest = append(r.latest, b.turn.Number)
	if len(r.latest) > keptTurns {
		old := r.turns[r.latest[0]]
		for id, s := range old {
			old[id] = seen{content: s.content}
		}
		r.latest = slices.Delete(r.latest, 0, 1)
	}
}

// tell passes an event to the observer, one at a time. An observer that panics
// disturbs nobody.
func (b *batch) tell(ev Event) {
	if b.runner.Observe == nil {
		return
	}
	b.observe.Lock()
	defer b.observe.Unlock()
	defer func() {
		if v := recover(); v != nil {
			b.runner.log("the observer of tools panicked", "panic", v)
		}
	}()
	b.runner.Observe(ev)
}

func (r *Runner) log(msg string, args ...any) {
	if r.Log != nil {
		r.Log.Error(msg, args...)
	}
}

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

func (r *Runner) random() io.Reader {
	if r.Random != nil {
		return r.Random
	}
	return rand.Reader
}

func (r *Runner) policyTimeout() time.Duration {
	if r.PolicyTimeout > 0 {
		return r.PolicyTimeout
	}
	return defaultPolicyTimeout
}
