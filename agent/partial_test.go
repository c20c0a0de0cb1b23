package agent_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
)

// hangingModel streams a text, cancels the run, and waits for the end of its context.
type hangingModel struct {
	text   string
	cancel context.CancelFunc
}

func (h hangingModel) Generate(context.Context, *dragoman.Request) (*dragoman.Response, error) {
	return nil, errors.New("not streamed")
}

func (h hangingModel) Stream(ctx context.Context, _ *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		for _, ev := range eventsOf(textResponse(h.text)) {
			if _, ended := ev.(*dragoman.PartEnd); ended {
				break
			}
			if !yield(ev, nil) {
				return
			}
		}
		h.cancel()
		<-ctx.Done()
		yield(nil, context.Cause(ctx))
	}
}

func TestPartialTextSurvivesACancel(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := session.Create(ctx, &session.Memory{}, session.Info{})
		if err != nil {
			t.Fatal(err)
		}
		a := agent.Agent{Model: hangingModel{"half an ans", cancel}}
		want := "half an ans"
		if guarded {
			want = ""
			a.Guardrails.Output = []agent.OutputGuardrail{{Name: "g", Check: func(context.Context, string) (agent.Verdict, error) { return agent.Verdict{}, nil }}}
		}
		res, err := a.Stream(ctx, "a question", agent.In(s)).Collect()
		if !errors.Is(err, context.Canceled) || res.Partial.Text() != "half an ans" {
			t.Fatalf("%v %+v", err, res)
		}
		state, err := agent.LoadState(t.Context(), s)
		if err != nil || state.Done() || state.Partial() != want {
			t.Fatalf("guarded %v: %v, partial %q", guarded, err, state.Partial())
		}

		next := model(textResponse("whole"))
		if _, err := (agent.Agent{Model: next}).Run(t.Context(), "never mind", agent.In(s)); err != nil {
			t.Fatal(err)
		}
		conversation := "user: \"a question\"\nassistant: \"half an ans\"\nuser: \"never mind\"\n"
		if guarded {
			conversation = "user: \"a question\"\nuser: \"never mind\"\n"
		}
		if got := script(next.asked[0].Messages); got != conversation {
			t.Errorf("guarded %v: the model saw %q, want %q", guarded, got, conversation)
		}
	}
}

func TestResumeAsksAgainAndDropsPartialText(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := session.Create(ctx, &session.Memory{}, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (agent.Agent{Model: hangingModel{"half", cancel}}).Stream(ctx, "a question", agent.In(s)).Collect(); err == nil {
		t.Fatal("not canceled")
	}
	again := model(textResponse("whole"))
	res, err := (agent.Agent{Model: again}).Resume(t.Context(), nil, agent.In(s))
	if err != nil || res.Output != "whole" || script(again.asked[0].Messages) != "user: \"a question\"\n" {
		t.Fatalf("%v %+v: the model saw %q", err, res, script(again.asked[0].Messages))
	}
	if state, err := agent.LoadState(t.Context(), s); err != nil || state.Partial() != "" {
		t.Errorf("%v: partial %q", err, state.Partial())
	}
}
