package tool

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Runner runs tool calls: it authorizes, bounds and records them. The zero value runs every
// valid call within the default limits; set Policy if you do not trust the model. A Runner is
// safe for concurrent use. Do not change it while it is in use.
type Runner struct {
	// Policy decides on every call; nil allows all calls.
	Policy Policy
	// PolicyTimeout limits a policy decision; zero means 5 s.
	PolicyTimeout time.Duration
	// Pins are the accepted definitions of tools; nil checks none. A tool that is not
	// pinned, or differs from its pin, needs approval.
	Pins *Pins
	// Approver decides on calls that need approval; nil leaves them pending.
	Approver Approver
	// ApproverTimeout limits how long the approver may take; zero means no limit other than the
	// context.
	ApproverTimeout time.Duration
	// Journal prevents a call from taking effect twice; nil means no journal.
	Journal Journal
	// Spill stores outputs that are too long. If it is nil, an agent uses the store of its
	// run, or memory; without an agent, the rest of a cut output is lost. With [NoSpill] it
	// is always lost.
	Spill SpillStore
	// Tickets enables tools that work in the background; nil disables them.
	Tickets *Tickets

	// Timeout limits a call if neither the tool nor the toolbox sets a timeout; zero means
	// 60 s.
	Timeout time.Duration
	// Parallel is the maximum number of calls of a turn that run at the same time; zero means 8.
	Parallel int
	// Failure is the failure policy of tools that set none:
	//   - "continue", the default, returns an error result to the model; other calls continue.
	//   - "degrade" also removes the tool from the run after its first failure: later calls get
	//     the error that it is unavailable.
	//   - "fail" cancels the other calls of the turn and ends it with an error.
	Failure string
	// RaiseOnError ends a turn with a [*CallError] when code fails: a tool that returns an
	// error, panics, times out or has an invalid output, or a hook, middleware or journal that
	// fails. It overrides Failure and the failure settings of tools. Mistakes of the model and
	// decisions of policies and humans stay results. If it is false, every failure is a result
	// that the model reads.
	RaiseOnError bool
	// Limits bound outputs if neither the tool nor the toolbox sets limits.
	Limits Limits
	// Count estimates tokens, for Limits.Tokens; nil means one token for four bytes.
	Count func(text string) int

	// Redactor removes secrets from outputs, errors and records; nil removes the common shapes
	// of keys.
	Redactor *Redactor
	// Secrets returns the secrets that handlers get with [Secret]; nil means none.
	Secrets func(ctx context.Context, name string) (string, error)

	// Observe receives events. Events of one turn are sequential; concurrent turns, and [LateReturn]
	// events of earlier ones, call it concurrently. It must return quickly, because calls wait
	// for it. Nil means no observer.
	Observe func(Event)
	// Log receives details that models must not see: panics with their stacks, and the causes
	// of internal errors. Nil means [slog.Default]; slog.New(slog.DiscardHandler) logs nothing.
	Log *slog.Logger
	// Now is the clock and Random the source of fence boundaries; nil means the system's.
	Now    func() time.Time
	Random io.Reader
	// Go starts every goroutine of a turn: those of its calls, and those that run tools, hooks,
	// policies and approvers with a time limit. It is called concurrently. It must start the
	// task and return without waiting for it, because tasks wait for each other. Nil means the
	// go statement.
	Go func(task func())
}

const (
	defaultTimeout       = time.Minute
	defaultPolicyTimeout = 5 * time.Second
	defaultParallel      = 8
)

// Run is one run of an agent: the state that its turns share. It is safe for concurrent use.
type Run struct {
	ID string
	// Agent is the path of agents, the outermost first.
	Agent []string
	// Metadata is data of the host about the run, for policies and handlers.
	Metadata map[string]string

	runner *Runner

	mu sync.Mutex
	// calls holds all calls of the run. latest holds the turns whose results are still stored,
	// oldest first, and busy those that are running.
	calls    map[callName]*seen
	latest   []finishedTurn
	busy     map[int]bool
	degraded []Key

	secrets *givenSecrets
}

// givenSecrets holds the secrets that tools got, for one run or for several that share
// them.
type givenSecrets struct {
	mu   sync.Mutex
	list []string
}

// callName names a call of a run.
type callName struct {
	turn int
	id   string
}

// seen is a call that was passed to a run before.
type seen struct {
	content Hash
	// result is nil if the call has no result yet, or if the result is no longer stored;
	// settled distinguishes the two.
	result  *dragoman.ToolResult
	record  *Record
	settled bool
	// kind is the kind of its error, which is stored longer than the record.
	kind ErrorKind
}

type finishedTurn struct {
	number int
	calls  []*seen
}

// Start begins a run, or resumes one with the same id. The Run does not know what happened in
// another process: see [Turn.Results] and [Journal].
func (r *Runner) Start(id string) *Run {
	if r == nil {
		r = &Runner{}
	}
	return &Run{ID: id, runner: r, calls: map[callName]*seen{}, busy: map[int]bool{}, secrets: &givenSecrets{}}
}

// Turn holds the calls of one model response.
type Turn struct {
	// Number identifies the turn within its run.
	Number int
	Calls  []*dragoman.ToolCall
	// Resume holds the calls that an earlier attempt at this turn left pending.
	Resume []Pending
	// Results holds the existing results of calls of this turn. These calls do not run again. A
	// [Run] stores the results of its own latest turns. In another process, pass them here or
	// use a [Journal], which also has the calls whose results were lost.
	Results []*dragoman.ToolResult
	// MayHaveRun reports that another process may have run this turn before and stopped: see
	// [Journal].
	MayHaveRun bool
	// Timeout limits each call. It takes precedence over the timeouts of the tool, the toolbox
	// and the runner; zero means those.
	Timeout time.Duration
}

// Batch is the outcome of a turn's calls, in the order of the calls.
type Batch struct {
	// Results has one element per call; it is nil for a pending call.
	Results []*dragoman.ToolResult
	Records []Record
	// Pending holds the calls that wait for a human.
	Pending []Pending
}

// Settled returns the results that are not nil, in the order of the calls.
func (b *Batch) Settled() []*dragoman.ToolResult {
	if b == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.Results), func(r *dragoman.ToolResult) bool { return r == nil })
}

// Errors of [Run.Do].
var (
	// ErrConflict reports a call that has the id of an earlier call, but other content. Causes
	// are a replayed stream or a changed state. No call of the turn ran, unless only the
	// journal has the earlier call and it has no method Recall.
	ErrConflict = errors.New("tool: two different calls have the same id")
	// ErrRepeated reports a turn that was handed in again while it runs, or so late that
	// its results are no longer stored and are not in [Turn.Results]. No call of the turn
	// ran again.
	ErrRepeated = errors.New("tool: the turn was already processed")
	// ErrJournal reports that a call ran, but the journal could not record its result. The
	// batch has the results of all calls; calls that wait for approval stay pending.
	ErrJournal = errors.New("tool: the journal failed")
	// ErrFailed reports a failed call whose failure policy ends the run.
	ErrFailed = errors.New("tool: a call failed, and the run ends with its failure")
)

// CallError is the failed call that ended a turn: see Failure and
// [Runner.RaiseOnError]. It wraps [ErrFailed] and Record.Cause, the error that the
// tool returned or a [*PanicError].
type CallError struct {
	Record Record
}

// Error returns the name of the tool, the message for the model, and the cause unless the
// message contains it. The text is for developers: [ModelText] returns it without the cause.
func (e *CallError) Error() string {
	text := e.modelText()
	if c := e.Record.Cause; c != nil && !strings.Contains(text, c.Error()) {
		text += " (cause: " + c.Error() + ")"
	}
	return text
}

func (e *CallError) modelText() string {
	return fmt.Sprintf("%v: %s: %s", ErrFailed, e.Record.Tool, e.Record.Error)
}

// ModelText returns the text of an error for models and users: err.Error() without the causes
// of the [*CallError] values in its tree, such as panic values. A [Run] uses it for errors of
// tools. It returns "" for nil.
func ModelText(err error) string {
	if err == nil {
		return ""
	}
	return withoutCauses(err, err.Error())
}

// withoutCauses removes the causes of the call errors in the tree of err from a text, including
// causes that a wrapping error repeats or quotes.
func withoutCauses(err error, text string) string {
	calls := callErrors(err, nil)
	if len(calls) == 0 {
		return text
	}
	var causes []string
	slices.SortStableFunc(calls, func(a, b *CallError) int { return cmp.Compare(len(b.Error()), len(a.Error())) }) // a longer text may contain a shorter one
	for _, e := range calls {
		if full, safe := e.Error(), e.modelText(); full != safe {
			text = strings.ReplaceAll(text, full, safe)
			causes = append(causes, e.Record.Cause.Error())
		}
	}
	slices.SortStableFunc(causes, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, c := range causes {
		quoted := strconv.Quote(c)
		text = strings.NewReplacer(c, "an internal error", quoted[1:len(quoted)-1], "an internal error").Replace(text)
	}
	return text
}

// callErrors appends the call errors in the tree of err and in their causes.
func callErrors(err error, to []*CallError) []*CallError {
	if e, ok := err.(*CallError); ok { //nolint:errorlint // the tree is walked here
		if e == nil {
			return to
		}
		to = append(to, e)
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		to = callErrors(e.Unwrap(), to)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			to = callErrors(inner, to)
		}
	}
	return to
}

// Unwrap returns [ErrFailed] and the cause.
func (e *CallError) Unwrap() []error {
	if e.Record.Cause == nil {
		return []error{ErrFailed}
	}
	return []error{ErrFailed, e.Record.Cause}
}

// Do runs the calls of a turn. It returns when every call has a result or is pending. If ctx
// ends, the calls that did not run get a result that reports it. With an error, Do also returns
// the part of the batch that exists. Failures of tools are results, not errors, unless the
// failure policy "fail" or RaiseOnError turns one into a [*CallError].
func (r *Run) Do(ctx context.Context, box *Box, turn Turn) (*Batch, error) {
	b, err := r.begin(box, turn)
	if err != nil {
		return &Batch{}, err
	}
	ctx, cancel := b.cancelable(ctx)
	defer cancel(nil)
	defer b.finish()
	if err := b.checkStates(ctx); err != nil {
		return &Batch{}, err
	}
	b.parallel(b.calls, func(x *execution) { x.step(ctx, (*execution).prepare) })
	for _, x := range b.calls {
		x.step(ctx, (*execution).approve)
	}
	if err := b.compareJournal(ctx); err != nil {
		return &Batch{}, err
	}
	b.execute(ctx)
	return b.collect()
}

// cancelable returns a context with which one call can cancel the others. A single call needs
// none.
func (b *batch) cancelable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if b.cancel = func(error) {}; len(b.calls) > 1 {
		ctx, b.cancel = context.WithCancelCause(ctx)
	}
	return ctx, b.cancel
}

// batch is a running turn.
type batch struct {
	run     *Run
	runner  *Runner
	box     *Box
	turn    Turn
	calls   []*execution
	records []Record // of the calls
	byID    map[string]*execution
	cancel  context.CancelCauseFunc
	observe sync.Mutex
	// asking is locked while an approver answers questions of running tools.
	asking sync.Mutex
	// failed is the call that ends the run.
	mu     sync.Mutex
	failed *execution
	broken error
}

// begin starts a turn. It refuses calls whose ids were seen with other content (quirk I5), and
// calls that would run a second time.
func (r *Run) begin(box *Box, turn Turn) (*batch, error) {
	if err := checkFailure(r.runner.Failure); err != nil {
		return nil, fmt.Errorf("Runner.Failure: %w", err)
	}
	b := &batch{run: r, runner: r.runner, box: box, turn: turn, calls: make([]*execution, len(turn.Calls)), records: make([]Record, len(turn.Calls))}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[turn.Number] {
		return nil, fmt.Errorf("%w: turn %d is already running", ErrRepeated, turn.Number)
	}
	wrong := r.recognize(b)
	wrong = append(wrong, b.takeResults()...)
	wrong = append(wrong, b.takeResumed()...)
	for _, x := range b.calls {
		if x != nil && x.seen.settled && x.result == nil {
			wrong = append(wrong, fmt.Errorf("%w: %q of turn %d has a result that is no longer stored: pass it in Turn.Results", ErrRepeated, x.call.ID, turn.Number))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	for _, x := range b.calls {
		r.calls[callName{turn.Number, x.call.ID}] = x.seen
	}
	r.busy[turn.Number] = true
	return b, nil
}

// recognize makes the executions of a turn, and finds calls that were passed before.
func (r *Run) recognize(b *batch) (wrong []error) {
	number := b.turn.Number
	for i, c := range b.turn.Calls {
		if c == nil {
			wrong = append(wrong, fmt.Errorf("%w: call %d is nil", ErrConflict, i))
			continue
		}
		x := &execution{batch: b, call: c, key: KeyOfCall(c), seen: &seen{content: contentOf(c)}, record: &b.records[i]}
		if b.find(c.ID) != nil {
			wrong = append(wrong, fmt.Errorf("%w: id %q appears twice in turn %d", ErrConflict, c.ID, number))
		}
		b.add(i, x)
		old := r.calls[callName{number, c.ID}]
		switch {
		case old == nil:
		case old.content != x.seen.content:
			wrong = append(wrong, fmt.Errorf("%w: id %q of turn %d belonged to a different call before", ErrConflict, c.ID, number))
		default:
			x.seen = old
			if old.result != nil {
				x.replay(old)
			}
		}
	}
	return wrong
}

// fewCalls is the number of calls up to which a linear search is faster than an index.
const fewCalls = 8

// add sets the call at an index.
func (b *batch) add(i int, x *execution) {
	if b.calls[i] = x; len(b.calls) <= fewCalls {
		return
	}
	if b.byID == nil {
		b.byID = make(map[string]*execution, len(b.calls))
	}
	b.byID[x.call.ID] = x
}

// find returns the last call with an id, or nil.
func (b *batch) find(id string) *execution {
	if len(b.calls) > fewCalls {
		return b.byID[id]
	}
	for _, x := range slices.Backward(b.calls) {
		if x != nil && x.call.ID == id {
			return x
		}
	}
	return nil
}

// takeResults assigns the results in Turn.Results to their calls.
func (b *batch) takeResults() (wrong []error) {
	for _, res := range b.turn.Results {
		if res == nil || b.find(res.CallID) == nil {
			wrong = append(wrong, fmt.Errorf("%w: Turn.Results has a result for no call of turn %d", ErrConflict, b.turn.Number))
		} else if x := b.find(res.CallID); x.result == nil {
			x.useResult(res, x.seen.kind)
		}
	}
	return wrong
}

// takeResumed assigns the pending calls in Turn.Resume.
func (b *batch) takeResumed() (wrong []error) {
	for _, p := range b.turn.Resume {
		x := b.find(p.Binding.CallID)
		if x == nil || p.Binding.Key != x.key || p.Binding.Turn != b.turn.Number || p.Binding.Run != b.run.ID {
			wrong = append(wrong, fmt.Errorf("%w: Turn.Resume has call %q, which turn %d does not contain", ErrConflict, p.Binding.CallID, b.turn.Number))
			continue
		}
		x.resume = &p
	}
	return wrong
}

// contentOf returns a hash of the content of a call.
func contentOf(c *dragoman.ToolCall) Hash {
	var room [512]byte // enough for most calls
	all := room[:0]
	for _, s := range [...]string{c.Name, c.Namespace, c.Payload, c.Arguments} {
		all = binary.AppendUvarint(all, uint64(len(s)))
		all = append(all, s...)
	}
	return sha256.Sum256(all)
}

// execute runs the calls in the model's order: several at the same time, exclusive calls alone.
func (b *batch) execute(ctx context.Context) {
	from := 0
	for i, x := range b.calls {
		if x.entry == nil || !x.entry.settings.Exclusive {
			continue
		}
		b.parallel(b.calls[from:i], func(x *execution) { x.step(ctx, (*execution).execute) })
		x.step(ctx, (*execution).execute)
		from = i + 1
	}
	b.parallel(b.calls[from:], func(x *execution) { x.step(ctx, (*execution).execute) })
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
		wg.Add(1)
		b.runner.start(func() {
			defer wg.Done()
			defer func() { <-slots }()
			f(x)
		})
	}
	wg.Wait()
}

// collect returns the outcome of the calls.
func (b *batch) collect() (*Batch, error) {
	out := &Batch{Results: make([]*dragoman.ToolResult, len(b.calls)), Records: b.records}
	for i, x := range b.calls {
		out.Results[i] = x.result
		if x.pending != nil {
			out.Pending = append(out.Pending, *x.pending)
		}
	}
	switch {
	case b.broken != nil:
		return out, b.broken
	case b.failed != nil:
		return out, &CallError{Record: *b.failed.record}
	default:
		return out, nil
	}
}

// maxFinishedTurns is the number of turns whose results are stored.
const maxFinishedTurns = 8

// finish ends a turn. It stores the results, so that no call runs again if the turn is passed
// again. For older turns it keeps only which calls they had.
func (b *batch) finish() {
	r := b.run
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, b.turn.Number)
	kept := finishedTurn{number: b.turn.Number}
	for _, x := range b.calls {
		kept.calls = append(kept.calls, x.seen)
		if x.result != nil {
			x.seen.result, x.seen.record, x.seen.settled, x.seen.kind = x.result, new(*x.record), true, x.record.ErrorKind
		}
	}
	r.latest = slices.DeleteFunc(r.latest, func(t finishedTurn) bool { return t.number == kept.number })
	r.latest = append(r.latest, kept)
	if len(r.latest) > maxFinishedTurns {
		for _, s := range r.latest[0].calls {
			s.result, s.record = nil, nil
		}
		r.latest = slices.Delete(r.latest, 0, 1)
	}
}

// emit sends an event to the observer, one at a time, and recovers from its panics. Without an
// observer the event is not created.
func (b *batch) emit(event func() Event) {
	if b.runner.Observe == nil {
		return
	}
	ev := event()
	b.observe.Lock()
	defer b.observe.Unlock()
	defer func() {
		if v := recover(); v != nil {
			logWith(cmp.Or(b.runner.Log, slog.Default()), "the observer of tools panicked", "panic", b.run.redactor().Redact(fmt.Sprint(v)), "stack", string(debug.Stack()))
		}
	}()
	b.runner.Observe(ev)
}

// log writes to the runner's log, if there is one.
func (r *Runner) log(msg string, args ...any) {
	if r.Log != nil {
		logWith(r.Log, msg, args...)
	}
}

// logWith writes an error. A log handler that panics must not end the call.
func logWith(log *slog.Logger, msg string, args ...any) {
	defer func() { _ = recover() }()
	log.Error(msg, args...)
}

// redactor removes the secrets of the host and those that tools of this run received.
func (r *Run) redactor() *Redactor {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	return r.runner.Redactor.withSecrets(r.secrets.list)
}

// addSecret stores a secret that a tool receives.
func (r *Run) addSecret(secret string) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	if !slices.Contains(r.secrets.list, secret) {
		r.secrets.list = append(r.secrets.list, secret)
	}
}

// HideSecretsOf makes two runs hide each other's secrets: a secret that [Secret] returns to
// a tool of either run is removed from the outputs, errors and records of both. Call it
// before r runs calls. Agents of one conversation need it if each has its own Run.
func (r *Run) HideSecretsOf(other *Run) {
	if r.secrets == other.secrets {
		return
	}
	for _, s := range r.secrets.list {
		other.addSecret(s)
	}
	r.secrets = other.secrets
}

// start starts a goroutine.
func (r *Runner) start(task func()) {
	if r != nil && r.Go != nil {
		r.Go(task)
		return
	}
	go task()
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
