package provider

import (
	"context"
	"time"
)

// clock tells the time and wakes. It is safe for concurrent use. Tests bring
// their own, so that they need not wait.
type clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own when d has passed.
	AfterFunc(d time.Duration, f func()) timer
}

// timer is what a [clock] will do. A *time.Timer is one.
type timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) timer { return time.AfterFunc(d, f) }

// sleep waits, and says why it did not wait to the end.
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
