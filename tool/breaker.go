package tool

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// Breaker stops calls of a tool that fails again and again: after Failures within
// Window it is open, and calls are answered with an error at once, which is a failure
// of the tool as its Failure has it; after Pause one call is let through to try.
// The zero value never opens. Time is that of the system, not of [Runner.Now].
//
// A tool made by this package has one breaker, shared by all toolboxes and runs. A tool of
// another type has one breaker for each toolbox, shared with toolboxes that [Box.With]
// derives from it. An agent makes a toolbox for each run.
type Breaker struct {
	// Failures is how many open it; zero means never.
	Failures int
	// Window is the time they must fall into; zero means one minute.
	Window time.Duration
	// Pause is how long it stays open; zero means 30 seconds.
	Pause time.Duration
}

type breaker struct {
	circuitbreaker.CircuitBreaker[any]
}

func newBreaker(b Breaker) *breaker {
	if b.Failures <= 0 {
		return nil
	}
	if b.Window <= 0 {
		b.Window = time.Minute
	}
	if b.Pause <= 0 {
		b.Pause = 30 * time.Second
	}
	return &breaker{circuitbreaker.NewBuilder[any]().
		WithFailureThresholdPeriod(uint(b.Failures), b.Window).
		WithSuccessThreshold(1).
		WithDelay(b.Pause).
		Build()}
}

// admit asks whether a call may run. Whoever was admitted must settle.
func (b *breaker) admit() bool { return b == nil || b.TryAcquirePermit() }

// settle tells the breaker how a call that was admitted went.
func (b *breaker) settle(f *failure) {
	switch {
	case b == nil:
	case f == nil:
		b.RecordSuccess()
	case f.kind.executed():
		b.RecordFailure()
	default:
		b.release()
	}
}

// release takes back an admission that told nothing about the tool. One that was
// to try whether it works again has not shown that it does.
func (b *breaker) release() {
	switch {
	case b == nil:
	case b.IsHalfOpen():
		b.RecordFailure()
	default:
		b.RecordSuccess()
	}
}
