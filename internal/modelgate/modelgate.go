// Package modelgate carries, in a context, the decision whether a model may be called.
// Whoever runs a request sets it; a chain of models asks it before each of its links. It
// also carries a meter for the model calls of a run, and a function to call when a request
// is sent to a model.
package modelgate

import "context"

// Gate decides whether a model may be called. An error keeps it from being called and
// says why.
type Gate func(ctx context.Context, model string) error

type key struct{}

// With returns a context whose gate is g.
func With(ctx context.Context, g Gate) context.Context { return context.WithValue(ctx, key{}, g) }

// Without returns a context without a gate.
func Without(ctx context.Context) context.Context {
	if g, _ := ctx.Value(key{}).(Gate); g == nil {
		return ctx
	}
	return With(ctx, nil)
}

// Gated reports whether ctx has a gate. Without one, the name of a model need not be known.
func Gated(ctx context.Context) bool {
	g, _ := ctx.Value(key{}).(Gate)
	return g != nil
}

// Check asks the gate of ctx about a model. Without a gate every model may be called.
func Check(ctx context.Context, model string) error {
	if g, ok := ctx.Value(key{}).(Gate); ok && g != nil {
		return g(ctx, model)
	}
	return nil
}

type meterKey struct{}

// WithMeter returns a context in which spent gets the usage of model calls that actions
// make. It may be called from any goroutine. U is dragoman.Usage.
func WithMeter[U any](ctx context.Context, spent func(U)) context.Context {
	return context.WithValue(ctx, meterKey{}, spent)
}

// Spent adds the usage of a model call to the meter of ctx, if it has one.
func Spent[U any](ctx context.Context, u U) {
	if spent, ok := ctx.Value(meterKey{}).(func(U)); ok {
		spent(u)
	}
}

type calledKey struct{}

// WithCalled returns a context in which called runs before each request to an upstream, on
// the goroutine of the request. A request that is refused earlier does not call it.
func WithCalled(ctx context.Context, called func()) context.Context {
	return context.WithValue(ctx, calledKey{}, called)
}

// Called reports that a request is about to be sent to an upstream.
func Called(ctx context.Context) {
	if called, ok := ctx.Value(calledKey{}).(func()); ok {
		called()
	}
}
