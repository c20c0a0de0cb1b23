package provider

import (
	"context"
	"time"
)

// clock returns the time and starts timers. It is safe for concurrent use. Tests replace it, so
// that they do not have to wait.
type clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d.
	AfterFunc(d time.Duration, f func()) timer
}

// timer is a timer that a [clock] started, such as a *time.Timer.
type timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) timer { return time.AfterFunc(d, f) }

// sleep waits for d. It returns an error if the context ends first.
func sleep(ctx context.Context, c clock, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	woken := make(chan struct{})
	t := c.AfterFunc(d, func() { close(woken) })
	defer t.Stop()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
