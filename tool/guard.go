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
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panicked: %v", e.value) }

// errEnded says that the code ended its goroutine instead of returning.
var errEnded = errors.New("ended its goroutine instead of returning")

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
func guard[T any](ctx context.Context, limit time.Duration, late func(), f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	g := &guarded[T]{done: make(chan struct{})}
	go g.run(ctx, late, f)
	select {
	case <-g.done:
		return g.value, g.err
	case <-ctx.Done():
		if g.state.CompareAndSwap(running, abandoned) {
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
			err = &panicError{value: r, stack: debug.Stack()}
		}
		if g.state.CompareAndSwap(running, finished) {
			g.value, g.err = value, err
			close(g.done)
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
