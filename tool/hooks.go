package tool

import (
	"context"
	"time"
)

// Handler is the function that middleware wraps: the Call of a tool, or another middleware.
type Handler func(ctx context.Context, in Input) (Output, error)

// Middleware wraps the run of a tool, such as to measure, retry or replace it. It must pass on
// the input unchanged: input other than the validated and approved one makes the call an error
// ([ErrorMismatch]). A tool that is [Suspended] does not run again, and its call waits,
// whatever the middleware returns.
type Middleware func(next Handler) Handler

// PreHook transforms the input of a call before it runs: once per call, not again on resume.
// Its result is validated and judged by the policy again. An error refuses the call
// ([ErrorDenied]) before any human is asked, and the model gets its text.
type PreHook func(ctx context.Context, in Input) (Input, error)

// PostHook transforms the output of a call, also of a failed one, before it is bounded and
// fenced. It transforms the outcome of background work, too; in is then empty.
type PostHook func(ctx context.Context, in Input, out Output) (Output, error)

// Hooks of a toolbox wrap those of its tools: its pre-hooks run first, its middleware is
// outermost, and its post-hooks run last. The first of a list is the first to run, or the
// outermost.
type Hooks struct {
	Pre  []PreHook
	Use  []Middleware
	Post []PostHook
	// Timeout limits each hook, and the time that each middleware may add to the tool's own;
	// zero means 10 s.
	Timeout time.Duration
	// Immediate reports that the hooks, and the additions of the middleware, return at once for
	// any input: they never block and compute little. They then run without a time limit:
	// see Immediate of [Settings].
	Immediate bool
}

const defaultHookTimeout = 10 * time.Second

func (h Hooks) timeout() time.Duration {
	if h.Timeout > 0 {
		return h.Timeout
	}
	return defaultHookTimeout
}
