package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

func guard(stage string, check func(ctx context.Context) (agent.Verdict, error)) agent.Guardrails {
	switch stage {
	case "input":
		return agent.Guardrails{Input: []agent.InputGuardrail{{Name: "g", Check: func(ctx context.Context, _ []dragoman.Message) (agent.Verdict, error) { return check(ctx) }}}}
	case "output":
		return agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "g", Check: func(ctx context.Context, _ string) (agent.Verdict, error) { return check(ctx) }}}}
	case "tool_input":
		return agent.Guardrails{ToolInput: []agent.ToolGuardrail{{Name: "g", Check: func(ctx context.Context, _ tool.Info, _ tool.Input) (agent.Verdict, error) { return check(ctx) }}}}
	default:
		return agent.Guardrails{ToolOutput: []agent.ToolOutputGuardrail{{Name: "g", Check: func(ctx context.Context, _ tool.Info, _ tool.Output) (agent.Verdict, error) { return check(ctx) }}}}
	}
}

func TestL7_PanickingGuardrailStopsRun(t *testing.T) {
	for _, stage := range []string{"input", "output", "tool_input", "tool_output"} {
		var did counted
		a := agent.Agent{Model: model(calls("a pay")), Tools: []tool.Tool{did.tool("pay")}}
		a.Guardrails = guard(stage, func(context.Context) (agent.Verdict, error) { panic("broken") })
		told := false
		var res *agent.Result
		var err error
		for ev, e := range a.Stream(t.Context(), "go") {
			switch ev := ev.(type) {
			case *agent.GuardrailTripped:
				told = told || ev.Stage == stage && ev.Verdict.Stop
			case *agent.RunEnd:
				res, err = ev.Result, e
			}
		}
		var stop *agent.GuardrailError
		if !errors.As(err, &stop) || stop.Stage != stage || !told || res.Output != "" {
			t.Errorf("%s: the run ended with %q, %v; Guarded was told: %v", stage, res.Output, err, told)
		}
		if ran := did.String() != ""; ran != (stage == "output" || stage == "tool_output") {
			t.Errorf("%s: the tool ran %q", stage, did.String())
		}
		if told, err := json.Marshal(res.Messages); err != nil || stage == "tool_output" && strings.Contains(string(told), "pay did") {
			t.Errorf("%s: the output of the tool is in the conversation: %s, %v", stage, told, err)
		}
	}
}

// The call gets a result at the timeout of the guardrail, whenever the guardrail returns.
func TestL7_SlowToolGuardrailStopsRun(t *testing.T) {
	for _, stage := range []string{"tool_input", "tool_output"} {
		for name, takes := range map[string]time.Duration{"until the call is over": 90 * time.Second, "until the turn is over": time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				var did counted
				m := model(calls("a pay", "b wait"))
				wait := tool.New("wait", "Waits.", func(context.Context, word) (string, error) { time.Sleep(2 * time.Minute); return "", nil }, tool.Timeout(5*time.Minute))
				a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay"), wait}, Toolbox: tool.Config{Hooks: tool.Hooks{Timeout: time.Minute}}}
				first := true
				a.Guardrails = guard(stage, func(ctx context.Context) (agent.Verdict, error) {
					if info, _ := tool.InfoFrom(ctx); info.Key.Name == "pay" && first {
						first = false
						time.Sleep(takes)
					}
					return agent.Verdict{}, nil
				})
				_, err := a.Run(t.Context(), "go")
				var stop *agent.GuardrailError
				if !errors.As(err, &stop) || stop.Stage != stage || len(m.asked) != 1 {
					t.Errorf("%s, %s: the run ended with %v, and the model was asked %d times", stage, name, err, len(m.asked))
				}
				time.Sleep(2 * time.Hour) // until the guardrail has returned
			})
		}
	}
}

func TestL12_RunCanceledInGuardrailCanBeResumed(t *testing.T) {
	for _, stage := range []string{"output", "tool_input", "tool_output"} {
		for _, inStore := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := true
				a := agent.Agent{Model: model(calls("a look"), textResponse("one"), textResponse("two")), Tools: []tool.Tool{new(counted).tool("look")}}
				a.Guardrails = guard(stage, func(ctx context.Context) (agent.Verdict, error) {
					if !first {
						return agent.Verdict{}, nil
					}
					first = false
					cancel()
					<-ctx.Done()
					return agent.Verdict{}, ctx.Err()
				})
				var opts []agent.Option
				if inStore {
					opts = append(opts, agent.In(&memory{}))
				}
				res, err := a.Run(ctx, "go", opts...)
				if !errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrGuardrail) {
					t.Errorf("%s: the run ended with %v", stage, err)
				}
				state := res.State
				if inStore {
					state = nil
				}
				if res, err = a.Resume(t.Context(), state, opts...); err != nil || res.Output == "" {
					t.Errorf("%s, in a store %v: resumed: %q, %v", stage, inStore, res.Output, err)
				}
			})
		}
	}
}

// fullStore fails to save once a guardrail has stopped the run.
type fullStore struct {
	agent.Store
	full bool
}

func (s *fullStore) Save(ctx context.Context, messages []dragoman.Message, state []byte) error {
	if s.full {
		return errors.New("the disk is full")
	}
	return s.Store.Save(ctx, messages, state)
}

func TestL7_StopThatCannotBeStoredIsLogged(t *testing.T) {
	for _, full := range []bool{false, true} {
		var log bytes.Buffer
		s := &fullStore{Store: newSession(t)}
		a := agent.Agent{
			Model: model(calls("a look")), Tools: []tool.Tool{new(counted).tool("look")}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Guardrails: guard("tool_output", func(context.Context) (agent.Verdict, error) {
				s.full = full
				return agent.Verdict{Stop: true}, nil
			}),
		}
		if _, err := a.Run(t.Context(), "go", agent.In(s)); !errors.Is(err, agent.ErrGuardrail) {
			t.Errorf("the run ended with %v", err)
		}
		if logged := strings.Contains(log.String(), "storing the stop of a guardrail failed"); logged != full {
			t.Errorf("full %v: logged %s", full, log.String())
		}
	}
}

func TestL7_StoredStopHasTheErrorOfItsGuardrail(t *testing.T) {
	s := dyingSession(t)
	a := agent.Agent{
		Model: model(calls(`a look {"word":"x"}`)), Tools: []tool.Tool{new(counted).tool("look")},
		Guardrails: guard("tool_output", func(context.Context) (agent.Verdict, error) { return agent.Verdict{}, errors.New("no connection") }),
	}
	if _, err := a.Run(t.Context(), "go", agent.In(s)); err == nil {
		t.Fatal("the run did not end")
	}
	s.dies = false
	_, err := a.Resume(t.Context(), nil, agent.In(s))
	var stop *agent.GuardrailError
	if !errors.As(err, &stop) || stop.Err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("the resumed run ended with %v", err)
	}
}

func TestL7_StoredStopNamesItsReasonOnce(t *testing.T) {
	for stage, want := range map[string]string{"tool_input": "agent: stopped by a guardrail (loaded from the stored run): g, at tool_input: no", "": "agent: the response of the model cannot be used (loaded from the stored run): it was cut off at the output limit: raise Settings.MaxOutputTokens"} {
		cut := textResponse("part")
		cut.Stop.Reason = dragoman.StopLength
		a := agent.Agent{Model: model(cut)}
		if stage != "" {
			var did counted
			a = agent.Agent{Model: model(calls("a pay")), Tools: []tool.Tool{did.tool("pay")}}
			a.Guardrails = guard(stage, func(context.Context) (agent.Verdict, error) { return agent.Verdict{Stop: true, Reason: "no"}, nil })
		}
		res, _ := a.Run(t.Context(), "go")
		if _, err := a.Resume(t.Context(), stored(t, res.State)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", stage, err, want)
		}
	}
}
