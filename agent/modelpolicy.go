package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/modelcall"
)

// gated returns a context in which the policy decides on each model of a chain before
// it is called. The policy of an outer run does not apply.
func (r *run) gated(ctx context.Context) context.Context {
	if r.active.Runner == nil || r.active.Runner.Policy == nil {
		return modelcall.WithoutModelGate(ctx)
	}
	return modelcall.WithModelGate(ctx, r.decideModel)
}

// gatedActions calls f, which runs actions of extensions, with a context in which the
// policy decides on the models that they call. An action may call one on any goroutine,
// so f runs concurrently with the goroutine that emits events.
func (r *run) gatedActions(ctx context.Context, f func(context.Context)) {
	if r.active.Runner == nil || r.active.Runner.Policy == nil {
		f(modelcall.WithoutModelGate(ctx))
		return
	}
	t, turn := r.runner(), r.state.Turn
	ctx = modelcall.WithModelGate(ctx, func(ctx context.Context, model string) error { return t.DecideModel(ctx, turn, model) })
	if r.yield == nil {
		f(ctx)
		return
	}
	r.relay(func() { f(ctx) })
}

// permitted calls the model once, if the policy allows it.
func (r *run) permitted(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if !isChain(r.active.Model) && modelcall.HasModelGate(ctx) { // a chain checks each link itself
		if err := modelcall.CheckModel(ctx, policyName(ctx, r.active.Model, req.Model)); err != nil {
			return nil, err
		}
	}
	return r.answer(ctx, req)
}

// decideModel asks the policy whether a model may be called.
func (r *run) decideModel(ctx context.Context, model string) (err error) {
	t := r.runner()
	if r.yield == nil {
		return t.DecideModel(ctx, r.state.Turn, model)
	}
	r.relay(func() { err = t.DecideModel(ctx, r.state.Turn, model) })
	return err
}

// policyName returns the name of a model for policies: "provider/model" if the model knows
// its target, else the result of its String method, else the model of the request.
func policyName(ctx context.Context, m dragoman.Model, requested string) string {
	if t, ok := m.(targeter); ok {
		if target, _, err := t.Target(ctx, requested); err == nil {
			name := target.Model
			if name == "" {
				name = requested
			}
			if target.Provider != "" {
				return target.Provider + "/" + name
			}
			return name
		}
	}
	if s, ok := m.(fmt.Stringer); ok {
		return s.String()
	}
	return requested
}

// meter collects the usage of model calls that actions make.
type meter struct {
	mu    sync.Mutex
	calls []dragoman.Usage
}

func (m *meter) add(u dragoman.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, u)
}

// spend adds the usage of actions to the usage and the cost of the run.
func (r *run) spend(m *meter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed error
	for _, u := range m.calls {
		failed = errors.Join(failed, r.charge(u))
	}
	return failed
}
