package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/lazyctx"
	"github.com/dragoman-go/dragoman/tool"
)

// The stages of guardrails.
const (
	stageInput      = "input"
	stageOutput     = "output"
	stageToolInput  = "tool_input"
	stageToolOutput = "tool_output"
)

// Guardrails check input and output, each list in its order. A guardrail that fails or
// panics stops the run. So does a tool guardrail that takes longer than the hook timeout of
// the toolbox. A guardrail that fails because the run is canceled does not stop the run,
// except an input guardrail: in that case the run has not begun.
type Guardrails struct {
	// Input checks the new messages of a run before anything else reads them.
	Input []InputGuardrail
	// Output checks the text of the final answer before the run returns it. A caller that
	// streams has already read the text.
	Output []OutputGuardrail
	// ToolInput checks the arguments of a call before a human is asked, and again
	// before the tool runs. If it replaces them the second time, the call is refused.
	ToolInput []ToolGuardrail
	// ToolOutput checks the output of a tool, and the outcome of its background work, before
	// the model reads it.
	ToolOutput []ToolOutputGuardrail
}

// Verdict is the decision of a guardrail. The zero value lets everything pass.
type Verdict struct {
	// Stop ends the run with a [*GuardrailError].
	Stop bool `json:"stop,omitempty"`
	// Replace puts Text in place of the checked content. For the input of a call, it
	// refuses the call, and the model reads Text.
	Replace bool   `json:"replace,omitempty"`
	Text    string `json:"text,omitempty"`
	// Reason is for the caller and the log; the model does not read it.
	Reason string `json:"reason,omitempty"`
}

// InputGuardrail checks new messages.
type InputGuardrail struct {
	Name  string
	Check func(ctx context.Context, messages []dragoman.Message) (Verdict, error)
}

// OutputGuardrail checks the final answer.
type OutputGuardrail struct {
	Name  string
	Check func(ctx context.Context, answer string) (Verdict, error)
}

// ToolGuardrail checks the arguments of a call.
type ToolGuardrail struct {
	Name  string
	Check func(ctx context.Context, call tool.Info, in tool.Input) (Verdict, error)
}

// ToolOutputGuardrail checks the output of a tool.
type ToolOutputGuardrail struct {
	Name  string
	Check func(ctx context.Context, call tool.Info, out tool.Output) (Verdict, error)
}

// GuardrailError reports the guardrail that stopped a run.
type GuardrailError struct {
	Name string
	// Stage is "input", "output", "tool_input" or "tool_output".
	Stage  string
	Reason string
	// Err is the error of the guardrail itself; nil if it did not fail.
	Err error
}

func (e *GuardrailError) Error() string {
	why := e.Reason
	if e.Err != nil {
		why = "it failed: " + e.Err.Error()
	}
	return fmt.Sprintf("%v: %s, at %s: %s", ErrGuardrail, e.Name, e.Stage, why)
}

// Unwrap returns [ErrGuardrail] and the error of the guardrail.
func (e *GuardrailError) Unwrap() []error { return []error{ErrGuardrail, e.Err} }

// guardState collects the verdicts of tool guardrails from their goroutines.
type guardState struct {
	mu       sync.Mutex
	stopped  *GuardrailError
	verdicts []GuardrailTripped
	// running are the checks that have not returned yet.
	running []*GuardrailTripped
}

func (g *guardState) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped == nil {
		return nil
	}
	return g.stopped
}

func (g *guardState) begin(ev *GuardrailTripped) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = append(g.running, ev)
}

// end records the verdict of a guardrail. It reports whether this is the first one that
// stops the run. The verdict of a check that was abandoned is discarded.
func (g *guardState) end(ev *GuardrailTripped, stop *GuardrailError) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.running, ev)
	if i < 0 {
		return false
	}
	g.running = slices.Delete(g.running, i, i+1)
	if !ev.Verdict.Stop && !ev.Verdict.Replace {
		return false
	}
	g.verdicts = append(g.verdicts, *ev)
	if g.stopped != nil || stop == nil {
		return false
	}
	g.stopped = stop
	return true
}

// drop discards a check.
func (g *guardState) drop(ev *GuardrailTripped) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.running, ev); i >= 0 {
		g.running = slices.Delete(g.running, i, i+1)
	}
}

// errSlow is the error of a guardrail that was abandoned.
var errSlow = errors.New("it took too long")

// abandon discards the checks that still run after their calls have ended. If failed, they
// ran out of time, and the first one stops the run.
func (g *guardState) abandon(failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	running := g.running
	g.running = nil
	if !failed {
		return
	}
	for _, ev := range running {
		g.verdicts = append(g.verdicts, GuardrailTripped{ev.Turn, ev.Name, ev.Stage, Verdict{Stop: true}})
		if g.stopped == nil {
			g.stopped = &GuardrailError{Name: ev.Name, Stage: ev.Stage, Err: errSlow}
		}
	}
}

// guard calls a tool guardrail and records its verdict. It stores a stop at once, before the
// journal gets the result of the call: a process that resumes the run does not call the
// guardrail again.
func (r *run) guard(ctx context.Context, turn int, name, stage string, check func() (Verdict, error)) Verdict {
	if r == nil {
		v, _ := verdict(name, stage, check)
		return v
	}
	ev := &GuardrailTripped{Turn: turn, Name: name, Stage: stage}
	r.guarded.begin(ev)
	v, stop := verdict(name, stage, check)
	switch late, canceled := ctx.Err() != nil, canceledTurn(ctx); {
	case canceled && stop != nil && stop.Err != nil: // a canceled guardrail has not failed
		r.guarded.drop(ev)
		return v
	case late && !canceled && stop == nil: // its call was answered without it
		v, stop = Verdict{Stop: true}, &GuardrailError{Name: name, Stage: stage, Err: errSlow}
	}
	ev.Verdict = v
	if r.guarded.end(ev, stop) && r.store != nil {
		r.storeStop(ctx, stop)
	}
	return v
}

func (r *run) storeStop(ctx context.Context, stop *GuardrailError) {
	ctx, cancel := lazyctx.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	s := r.current() // the state does not change while tools run
	s.Stopped = stop.stored()
	err := s.detach(ctx, r.detacher())
	var b []byte
	if err == nil {
		b, err = s.encode()
	}
	if err == nil {
		err = r.store.Save(ctx, nil, b)
	}
	if err != nil {
		r.log().Error("storing the stop of a guardrail failed; a resumed run does not see it", "run", r.state.Run, "guardrail", stop.Name, "error", err)
	}
}

// storedStop is the stored form of a [GuardrailError].
type storedStop struct {
	Name   string `json:"name"`
	Stage  string `json:"stage"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (e *GuardrailError) stored() *storedStop {
	s := &storedStop{Name: e.Name, Stage: e.Stage, Reason: e.Reason}
	if e.Err != nil {
		s.Error = tool.ModelText(e.Err)
	}
	return s
}

// err returns the stored error.
func (s *storedStop) err() *GuardrailError {
	e := &GuardrailError{Name: s.Name, Stage: s.Stage, Reason: s.Reason}
	if s.Error != "" {
		e.Err = errors.New(s.Error)
	}
	return e
}

// verdict calls a guardrail. A guardrail that fails or panics stops the run.
func verdict(name, stage string, check func() (Verdict, error)) (v Verdict, stop *GuardrailError) {
	failed := func(err error) *GuardrailError { return &GuardrailError{Name: name, Stage: stage, Err: err} }
	defer func() {
		if p := recover(); p != nil {
			v, stop = Verdict{Stop: true}, failed(fmt.Errorf("it panicked: %v", p))
		}
	}()
	v, err := check()
	switch {
	case err != nil:
		return Verdict{Stop: true}, failed(err)
	case v.Stop:
		return v, &GuardrailError{Name: name, Stage: stage, Reason: v.Reason}
	default:
		return v, nil
	}
}

// guardInput passes the new messages of a run to the guardrails.
func (r *run) guardInput(ctx context.Context, input []dragoman.Message) ([]dragoman.Message, error) {
	for _, g := range r.active.Guardrails.Input {
		v, stop := verdict(g.Name, stageInput, func() (Verdict, error) { return g.Check(ctx, input) })
		if v.Stop || v.Replace {
			r.emit(&GuardrailTripped{r.state.Turn, g.Name, stageInput, v})
		}
		if stop != nil {
			return nil, stop
		}
		if v.Replace {
			input = []dragoman.Message{dragoman.UserText(v.Text)}
		}
	}
	return input, nil
}

// guardOutput passes the final answer to the guardrails. The error is a [*GuardrailError],
// or that of ctx.
func (r *run) guardOutput(ctx context.Context, output []dragoman.Message) ([]dragoman.Message, error) {
	for _, g := range r.active.Guardrails.Output {
		text := textOf(output)
		v, stop := verdict(g.Name, stageOutput, func() (Verdict, error) { return g.Check(ctx, text) })
		if stop != nil && stop.Err != nil && ctx.Err() != nil { // a canceled guardrail has not failed
			return nil, ctx.Err()
		}
		if v.Stop || v.Replace {
			r.emit(&GuardrailTripped{r.state.Turn, g.Name, stageOutput, v})
		}
		if stop != nil {
			return nil, stop
		}
		if v.Replace {
			output = []dragoman.Message{dragoman.AssistantText(v.Text)}
		}
	}
	return output, nil
}

// errRefused means that a guardrail refused a call.
var errRefused = errors.New("")

// wrapHooks adds the tool guardrails to the hooks of a toolbox: before approval, directly
// before the tool, and after it. The hook timeout applies to them, even if the hooks of the
// toolbox are immediate.
func (g *Guardrails) wrapHooks(h tool.Hooks) tool.Hooks {
	if len(g.ToolInput) > 0 {
		h.Immediate = false
		h.Pre = append(h.Pre[:len(h.Pre):len(h.Pre)], func(ctx context.Context, in tool.Input) (tool.Input, error) {
			return in, g.checkInput(ctx, in)
		})
		h.Use = append(h.Use[:len(h.Use):len(h.Use)], func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				if err := g.checkInput(ctx, in); err != nil {
					return tool.Output{}, err
				}
				return next(ctx, in)
			}
		})
	}
	if len(g.ToolOutput) > 0 {
		h.Immediate = false
		h.Post = append(h.Post[:len(h.Post):len(h.Post)], g.checkOutput)
	}
	return h
}

// refusal is an error whose text is for the model.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }
func (*refusal) Unwrap() error   { return errRefused }

// checkInput passes the arguments of a call to the guardrails.
func (g *Guardrails) checkInput(ctx context.Context, in tool.Input) error {
	info, _ := tool.InfoFrom(ctx)
	r := runFrom(ctx)
	for _, rail := range g.ToolInput {
		v := r.guard(ctx, info.Turn, rail.Name, stageToolInput, func() (Verdict, error) { return rail.Check(ctx, info, in) })
		if !v.Stop && !v.Replace {
			continue
		}
		text := v.Text
		if text == "" {
			text = "a guardrail refuses this call"
		}
		return &refusal{text}
	}
	return nil
}

// checkOutput passes the output of a tool to the guardrails.
func (g *Guardrails) checkOutput(ctx context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
	info, _ := tool.InfoFrom(ctx)
	r := runFrom(ctx)
	for _, rail := range g.ToolOutput {
		v := r.guard(ctx, info.Turn, rail.Name, stageToolOutput, func() (Verdict, error) { return rail.Check(ctx, info, out) })
		if !v.Stop && !v.Replace {
			continue
		}
		text := v.Text
		if text == "" {
			text = "The output is withheld."
		}
		out = tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: text}}, Failed: out.Failed}
	}
	return out, nil
}

type runKey struct{}

// turnOf is the run that a tool belongs to, and the context of its turn.
type turnOf struct {
	run *run
	ctx context.Context //nolint:containedctx // it is a value of contexts that are derived from it
}

// withRun returns a context that carries the run, for guardrails and nested agents.
func (r *run) withRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, runKey{}, turnOf{r, ctx})
}

func runFrom(ctx context.Context) *run {
	t, _ := ctx.Value(runKey{}).(turnOf)
	return t.run
}

// canceledTurn reports whether the turn or the call that ctx belongs to was canceled. A
// timeout of the call itself is not a cancellation.
func canceledTurn(ctx context.Context) bool {
	t, _ := ctx.Value(runKey{}).(turnOf)
	return t.ctx != nil && t.ctx.Err() != nil || errors.Is(ctx.Err(), context.Canceled)
}
