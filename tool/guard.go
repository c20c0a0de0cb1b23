package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// errTimeout says that code of the host or of a tool took longer than it may.
var errTimeout = errors.New("took too long")

// panicError is a panic that was caught. Its text is fit for a model; the stack
// is for the log.
type panicError struct {
	text  string
	stack []byte
}

// newPanic is the panic with a value. The value's own code takes part in its text,
// so this must be called where the code that panicked was run.
func newPanic(value any) *panicError {
	return &panicError{text: fmt.Sprintf("panicked: %v", value), stack: debug.Stack()}
}

func (e *panicError) Error() string { return e.text }

// toldError is an error of code that is not ours as it was while that was watched:
// its text, and those of our errors that it wraps. Who asked the error itself would
// run its code, which may never return.
type toldError struct {
	text  string
	wraps []error
}

func (e *toldError) Error() string   { return e.text }
func (e *toldError) Unwrap() []error { return e.wraps }

// told is the error as it is now.
func told(err error) error {
	if err == nil {
		return nil
	}
	t := &toldError{text: err.Error()}
	var panicked *panicError
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

// errEnded says that the code ended its goroutine instead of returning.
var errEnded = errors.New("ended its goroutine instead of returning")

// lane is the goroutine beside a call on which code runs that is not ours:
// policies, hooks, tools. One serves all steps of a call, one after the other. A
// step that is abandoned keeps the goroutine, and the next step gets another. The
// zero value is ready; it serves one goroutine, and whoever has it must end it.
type lane struct {
	work chan func()
}

// do runs f on the lane's goroutine.
func (l *lane) do(f func()) {
	if l.work == nil {
		l.work = make(chan func())
		go serve(l.work)
	}
	l.work <- f
}

// leave lets go of the goroutine, which ends when its step does.
func (l *lane) leave() {
	if l.work != nil {
		close(l.work)
		l.work = nil
	}
}

// serve runs what it is given. A step that ends its goroutine ends the one it was
// given, and another goes on.
func serve(work <-chan func()) {
	ended := true
	defer func() {
		if ended {
			go serve(work)
		}
	}()
	for f := range work {
		f()
	}
	ended = false
}

// guarded is what a guarded function came to.
type guarded[T any] struct {
	value T
	err   error
	// state says who was first: the function or the end of its time.
	state atomic.Int32
	done  chan struct{}
}

const (
	running = iota
	finished
	abandoned
)

// guard runs f, and returns by itself when the time is over or ctx ends, whatever
// f does: f is abandoned then, what it still returns is discarded, and late is
// told when it does return. A panic of f is an error. Nothing runs when ctx has
// ended already.
func guard[T any](ctx context.Context, l *lane, limit time.Duration, late func(), f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	g := &guarded[T]{done: make(chan struct{}, 1)}
	l.do(func() { g.run(ctx, late, f) })
	select {
	case <-g.done:
		return g.value, g.err
	case <-ctx.Done():
		if g.state.CompareAndSwap(running, abandoned) {
			l.leave()
			return none, context.Cause(ctx)
		}
		<-g.done // it finished in the same instant
		return g.value, g.err
	}
}

func (g *guarded[T]) run(ctx context.Context, late func(), f func(context.Context) (T, error)) {
	value, err := *new(T), errEnded
	defer func() {
		if r := recover(); r != nil {
			err = newPanic(r)
		}
		if g.state.CompareAndSwap(running, finished) {
			g.value, g.err = value, err
			g.done <- struct{}{}
		} else if late != nil {
			late()
		}
	}()
	v, failed := f(ctx)
	if failed != nil {
		_ = failed.Error() // one that panics when it is asked is caught here
	}
	value, err = v, failed
}

// contained runs code of the host in place that needs no watch, because it ends by
// itself. A panic of it is an error.
func contained[T any](f func() (T, error)) (value T, err error) {
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
