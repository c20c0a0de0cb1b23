package tool

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// Breaker stops calls of a tool that fails repeatedly. After Failures within Window it is open:
// calls get an error at once, which counts as a failure of the tool for its failure policy.
// After Pause one call is let through as a trial. The zero value never opens. It uses the
// system clock, not [Runner.Now].
//
// A tool made by this package has one breaker, shared by all toolboxes and runs. A tool of
// another type has one breaker for each toolbox, shared with toolboxes that [Box.With]
// derives from it. An agent makes a toolbox for each run.
type Breaker struct {
	// Failures is the number of failures that open it; zero means never.
	Failures int
	// Window is the time in which they must occur; zero means one minute.
	Window time.Duration
	// Pause is the time that it stays open; zero means 30 seconds.
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

// admit reports whether a call may run. An admitted call must settle.
func (b *breaker) admit() bool { return b == nil || b.TryAcquirePermit() }

// settle records the outcome of an admitted call.
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

// release cancels an admission whose outcome does not show whether the tool works. A canceled trial does not
// close the breaker.
func (b *breaker) release() {
	switch {
	case b == nil:
	case b.IsHalfOpen():
		b.RecordFailure()
	default:
		b.RecordSuccess()
	}
}
