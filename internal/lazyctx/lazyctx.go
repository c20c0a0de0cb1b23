// Package lazyctx provides contexts that start a timer only when they are waited for.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// WithTimeout is like [context.WithTimeout], for calls that rarely wait: the timer
// starts with the first call of Done. A store in memory never calls Done, and a run
// writes to its store several times in each turn.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c := &timeout{Context: parent, ends: time.Now().Add(limit)}
	if d, ok := parent.Deadline(); ok && d.Before(c.ends) {
		c.ends = d
	}
	return c, c.cancel
}

type timeout struct {
	context.Context // the parent
	ends            time.Time

	mu       sync.Mutex
	timed    context.Context // nil before the first call of Done
	stop     context.CancelFunc
	canceled bool
}

func (c *timeout) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	if c.stop != nil {
		c.stop()
	}
}

func (c *timeout) Deadline() (time.Time, bool) { return c.ends, true }

func (c *timeout) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.stop = context.WithDeadline(c.Context, c.ends)
		if c.canceled {
			c.stop()
		}
	}
	return c.timed.Done()
}

func (c *timeout) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.timed != nil:
		return c.timed.Err()
	case c.canceled:
		return context.Canceled
	case c.Context.Err() != nil:
		return c.Context.Err()
	case !time.Now().Before(c.ends):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value returns the values of the context with the timer if there is one, so that contexts
// derived from this one need no goroutine to follow it.
func (c *timeout) Value(key any) any {
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return c.Context.Value(key)
}
