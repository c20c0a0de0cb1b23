package tool

import (
	"context"
	"time"
)

// Handler is what middleware wraps: a tool's Call, or another middleware.
type Handler func(ctx context.Context, in Input) (Output, error)

// Middleware wraps the running of a tool, to measure, retry or replace it. It must pass on
// the input unchanged: other input than that which was validated and approved makes the
// call an error ([ErrorMismatch]). A tool that is [Suspended] does not run again, and its
// call waits, whatever middleware returns.
type Middleware func(next Handler) Handler

// PreHook transforms a call's input before it runs: once per call, not again on
// resume. What it returns is validated and judged again. An error refuses the call
// ([ErrorDenied]), before any human is asked, and its text is told to the model.
type PreHook func(ctx context.Context, in Input) (Input, error)

// PostHook transforms a call's output, of failed runs too, before it is bounded
// and fenced.
type PostHook func(ctx context.Context, in Input, out Output) (Output, error)

// Hooks of a toolbox go around those of its tools: its pre-hooks run first, its
// middleware is outermost, its post-hooks run last. Within a list the first is
// first, and outermost.
type Hooks struct {
	Pre  []PreHook
	Use  []Middleware
	Post []PostHook
	// Timeout bounds each hook, and what each middleware may add to the tool's
	// own time; zero means 10 s.
	Timeout time.Duration
	// Immediate says that the hooks, and what the middleware adds, return by
	// themselves and at once, whatever they are given: they wait for nothing and
	// have little to compute. Then they need not be watched: see Immediate of [Settings].
	Immediate bool
}

const defaultHookTimeout = 10 * time.Second

func (h Hooks) timeout() time.Duration {
	if h.Timeout > 0 {
		return h.Timeout
	}
	return defaultHookTimeout
}
