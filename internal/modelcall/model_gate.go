package modelcall

import "context"

// ModelGate decides whether a model may be called. An error blocks the call and says
// why.
type ModelGate func(ctx context.Context, model string) error

type gateKey struct{}

// WithModelGate returns a context whose gate is g.
func WithModelGate(ctx context.Context, g ModelGate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// WithoutModelGate returns a context without a gate.
func WithoutModelGate(ctx context.Context) context.Context {
	if g, _ := ctx.Value(gateKey{}).(ModelGate); g == nil {
		return ctx
	}
	return WithModelGate(ctx, nil)
}

// HasModelGate reports whether ctx has a gate. Without one, the name of a model need not be known.
func HasModelGate(ctx context.Context) bool {
	g, _ := ctx.Value(gateKey{}).(ModelGate)
	return g != nil
}

// CheckModel calls the gate of ctx for a model. Without a gate, every model may be
// called.
func CheckModel(ctx context.Context, model string) error {
	if g, ok := ctx.Value(gateKey{}).(ModelGate); ok && g != nil {
		return g(ctx, model)
	}
	return nil
}

type meterKey struct{}

// WithMeter returns a context in which spent receives the usage of model calls that
// actions make. It may be called from any goroutine. U is dragoman.Usage.
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
