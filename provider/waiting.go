package provider

import "context"

type waitingKey struct{}

// WithWaiting returns a context whose streams call waiting, on the goroutine that takes
// their events, each time before they read on and may wait for their server. Who
// passes events on flushes then, and not with every event of those that came together.
func WithWaiting(ctx context.Context, waiting func()) context.Context {
	return context.WithValue(ctx, waitingKey{}, waiting)
}

// waitingOf is what to call before waiting; nil: nothing.
func waitingOf(ctx context.Context) func() {
	waiting, _ := ctx.Value(waitingKey{}).(func())
	return waiting
}
