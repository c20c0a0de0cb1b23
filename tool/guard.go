package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errTimeout reports that code of the host or of a tool exceeded its time limit.
var errTimeout = errors.New("took too long")

// PanicError is a recovered panic of a tool, hook, policy, approver or store. It is
// for developers: find it with [errors.As] in [Record.Cause] or in the error of a
// run with [Runner.RaiseOnError]. Models only read that an internal error happened.
type PanicError struct {
	// Text is the panic value, formatted with %v.
	Text string
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// newPanic formats the value, which runs the value's own code: call it on the
// goroutine that panicked, while that is still watched.
func newPanic(value any) *PanicError {
	return &PanicError{Text: fmt.Sprint(value), Stack: debug.Stack()}
}

// Error returns the panic value without the stack.
func (e *PanicError) Error() string { return "panicked: " + e.Text }

// snapshotError is a copy of an error of foreign code, made while that code was watched:
// its text, and the errors of this package that it wraps. Methods of the error itself are
// foreign code, too, and may never return.
type snapshotError struct {
	text string
	// forModel is the text that the model may read.
	forModel string
	wraps    []error
	// own is the original error, which only the developer's code may use.
	own error
}

func (e *snapshotError) Error() string   { return e.text }
func (e *snapshotError) Unwrap() []error { return e.wraps }

// snapshot copies an error; nil for nil.
func snapshot(err error) error {
	if err == nil {
		return nil
	}
	t := &snapshotError{text: err.Error(), own: err}
	t.forModel = withoutCauses(err, t.text)
	var panicked *PanicError
	if errors.As(err, &panicked) {
		t.wraps = append(t.wraps, panicked)
	}
	var waits *Suspended
	if errors.As(err, &waits) {
		t.wraps = append(t.wraps, waits)
	}
	for _, known := range [...]error{errTimeout, errOutput, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			t.wraps = append(t.wraps, known)
		}
	}
	return t
}

// cause returns the error behind a failure, for the developer: a panic as a [PanicError],
// any other error wrapped in a causeError. The texts of both are redacted.
func cause(err error, redact func(string) string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var panicked *PanicError
	if !errors.As(err, &panicked) {
		panicked = nil
	}
	if t, ok := err.(*snapshotError); ok { //nolint:errorlint // only err itself, not what it wraps
		err = t.own
	}
	if panicked != nil {
		return &PanicError{Text: redact(panicked.Text), Stack: []byte(redact(string(panicked.Stack)))}
	}
	return &causeError{redact(text), err}
}

// causeError wraps an error of a tool or hook with a redacted text, which is shown when a
// record is printed.
type causeError struct {
	text string
	own  error
}

func (e *causeError) Error() string { return e.text }
func (e *causeError) Unwrap() error { return e.own }

// errEnded reports that code ended its goroutine instead of returning.
var errEnded = errors.New("ended its goroutine instead of returning")

// task is a call of foreign code (a policy, hook or tool) that replaces the value of the task
// before it.
type task[T any] struct {
	// ctx ends the task and provides its values: the context of the first task, or one that
	// outlasts it.
	ctx   context.Context
	limit time.Duration
	f     func(ctx context.Context, value *T) error
	// late, if not nil, is called when the task returns after it was abandoned.
	late func()
	// immediate reports that the task returns at once and needs no time limit.
	immediate bool
}

// guard runs f on a goroutine that r starts. It returns when the time is over or ctx ends,
// whatever f does: f is then abandoned, its result is discarded, and late is called when it
// returns. A panic of f is an error. If ctx has already ended, f does not run.
func guard[T any](ctx context.Context, r *Runner, limit time.Duration, late func(), f func(context.Context) (T, error)) (T, error) {
	value, _, err := guardAll(r, *new(T), []task[T]{{ctx: ctx, limit: limit, late: late, f: func(ctx context.Context, value *T) (err error) {
		*value, err = f(ctx)
		return err
	}}})
	return value, err
}

// guardDecision runs f as guard does and discards a decision that f returns after the
// deadline. Such a decision may come from code that ignores the error of its context.
func guardDecision[T any](ctx context.Context, r *Runner, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	return guard(ctx, r, limit, nil, func(ctx context.Context) (T, error) {
		value, err := f(ctx)
		if c, ok := ctx.(*limited); ok && err == nil && !time.Now().Before(c.deadline) {
			return *new(T), errTimeout
		}
		return value, err
	})
}

// guardAll runs tasks as guard does, one after the other, each with its own time limit, until
// one fails. It returns the value of the last one, or the index of the failed one. They share a
// goroutine, because switching goroutines takes longer than most hooks do. If all of them are
// immediate, they need none.
func guardAll[T any](r *Runner, value T, tasks []task[T]) (T, int, error) {
	if len(tasks) == 0 {
		return value, 0, nil
	}
	ctx := tasks[0].ctx
	if ctx.Err() != nil {
		return *new(T), 0, context.Cause(ctx)
	}
	if !slices.ContainsFunc(tasks, func(t task[T]) bool { return !t.immediate }) {
		return runInline(value, tasks)
	}
	s := &series[T]{tasks: tasks, value: value, done: make(chan struct{}, 1)}
	s.watch(0)
	defer s.timer.Stop()
	r.start(s.run)
	select {
	case <-s.done:
	case <-ctx.Done():
		if w := s.watched.Load(); w.ctx.Context.Err() != nil && w.settle(abandoned) {
			return *new(T), w.task, context.Cause(w.ctx.Context)
		}
		<-s.done // its last task ended in the same instant, or outlasts ctx
	}
	if w := s.watched.Load(); w.state.Load() == expired {
		return *new(T), w.task, errTimeout
	}
	if s.err != nil {
		return *new(T), s.index, s.err
	}
	return s.value, s.index, nil
}

// runInline runs immediate tasks on the current goroutine.
func runInline[T any](value T, tasks []task[T]) (T, int, error) {
	at := 0
	_, err := withoutPanic(func() (none struct{}, err error) {
		for ; at < len(tasks); at++ {
			t := &tasks[at]
			if t.ctx.Err() != nil {
				return none, context.Cause(t.ctx)
			}
			if err := t.f(t.ctx, &value); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	if err != nil {
		return *new(T), at, err
	}
	return value, at - 1, nil
}

// series is a list of tasks that run on their own goroutine.
type series[T any] struct {
	tasks []task[T]
	// value and err are the outcome of the tasks so far, and index is that of the last
	// one. They belong to the goroutine until done is signaled, and forever if a task is
	// abandoned.
	value T
	err   error
	index int
	// done is signaled once, when no more task will run, or when one took too long.
	done chan struct{}
	// timer is the timer of the current task.
	timer   *time.Timer
	watched atomic.Pointer[watch]
	first   watch
}

// watch starts the time limit of a task.
func (s *series[T]) watch(i int) *watch {
	t, w := &s.tasks[i], &s.first
	if i > 0 {
		w = &watch{task: i}
	}
	w.ctx.Context, w.ctx.deadline = t.ctx, time.Now().Add(t.limit)
	if s.watched.Store(w); i == 0 {
		s.timer = time.AfterFunc(t.limit, s.expire)
	} else {
		s.timer.Reset(t.limit)
	}
	return w
}

// expire ends the current task if its time is over: a timer may fire late, when the next task
// has begun.
func (s *series[T]) expire() {
	if w := s.watched.Load(); !time.Now().Before(w.ctx.deadline) && w.settle(expired) {
		s.done <- struct{}{}
	}
}

// run runs the tasks. None runs after one that was abandoned.
func (s *series[T]) run() {
	w := s.watched.Load()
	for s.step(w) {
		w = s.watch(w.task + 1)
	}
}

// step runs a task, and reports whether to continue with the next.
func (s *series[T]) step(w *watch) (next bool) {
	t := &s.tasks[w.task]
	err := errEnded
	defer func() {
		if r := recover(); r != nil {
			err = newPanic(r)
		}
		if !w.settle(finished) {
			if t.late != nil {
				t.late()
			}
			return
		}
		w.ctx.end()
		s.err, s.index = err, w.task
		if next = err == nil && w.task+1 < len(s.tasks); !next {
			s.done <- struct{}{}
		}
	}()
	if t.ctx.Err() != nil { // asked when it is watched: whoever waits asks in the other order
		err = context.Cause(t.ctx)
		return false
	}
	failed := t.f(&w.ctx, &s.value)
	if failed != nil {
		_ = failed.Error() // one that panics when it is asked is caught here
	}
	err = failed
	return false
}

// watch records how a task ended.
type watch struct {
	task  int
	ctx   limited
	state atomic.Int32
}

const (
	running = iota
	finished
	expired
	abandoned
)

// settle sets the end of a task, and reports whether it had not ended before.
func (w *watch) settle(state int32) bool { return w.state.CompareAndSwap(running, state) }

// limited is the context of a task with a time limit. Most tasks never use their deadline, so
// the context with a timer is created only when a task asks for it; from then on it is a
// context of the standard library. The time limit applies in both cases.
type limited struct {
	context.Context // the call's
	deadline        time.Time

	mu     sync.Mutex
	made   context.Context
	cancel context.CancelFunc
	ended  bool
}

// timerContext returns the context that ends with the task.
func (c *limited) timerContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithDeadlineCause(c.Context, c.deadline, errTimeout)
		if c.ended {
			c.cancel()
		}
	}
	return c.made
}

// end ends it, because the step returned in time. One that did not needs no end: its
// deadline has passed, or the call's context has ended.
func (c *limited) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.made != nil {
		c.cancel()
	}
}

func (c *limited) Deadline() (time.Time, bool) { return c.timerContext().Deadline() }
func (c *limited) Done() <-chan struct{}       { return c.timerContext().Done() }
func (c *limited) Err() error                  { return c.timerContext().Err() }

// Value returns the call's value, except for the key with which the standard library derives
// contexts: it must find the created context.
func (c *limited) Value(key any) any {
	c.mu.Lock()
	from := c.made
	c.mu.Unlock()
	if from == nil {
		from = c.Context
	}
	return from.Value(key)
}

// withoutPanic runs immediate code of the host on the current goroutine. A panic is an error.
func withoutPanic[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = *new(T), newPanic(r)
		}
	}()
	value, err = f()
	if err != nil {
		_ = err.Error()
	}
	return value, err
}
