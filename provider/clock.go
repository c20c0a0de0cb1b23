package provider

import (
	"context"
	"time"
)

// Clock tells the time and wakes. It is safe for concurrent use. Tests bring
// their own, so that they need not wait.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is what a [Clock] will do. A *time.Timer is one.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// sleep waits, and says why it did not wait to the end.
func sleep(ctx context.Context, clock Clock, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	woken := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(woken) })
	defer timer.Stop()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
