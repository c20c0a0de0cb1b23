package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

func TestStateOfStoredRunNeedsItsStore(t *testing.T) {
	var did counted
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	m := model(calls(`b pay {"word":"x"}`))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	state := stored(t, res.State)
	_, err = a.Resume(t.Context(), state, agent.Approve(res.Pending[0]))
	if !errors.Is(err, agent.ErrState) || !strings.Contains(err.Error(), "its conversation is in a store: pass agent.In(store)") || did.String() != "" || len(m.asked) != 1 {
		t.Errorf("%v, ran %q, asked %d times", err, did.String(), len(m.asked))
	}
	if _, err := a.Resume(t.Context(), state, agent.Approve(res.Pending[0]), agent.In(s)); err != nil || did.String() != "pay:x" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// A store without a run has a nil state. A program may approve what is pending without
// checking for that.
func TestNilStateHasNothingPending(t *testing.T) {
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	a := agent.Agent{Model: model()}
	state := must[*agent.State](t)(agent.LoadState(t.Context(), s))
	if state.Run() != "" || !state.Done() || state.Partial() != "" || state.Pending() != nil {
		t.Errorf("run %q, done %v, partial %q, pending %v", state.Run(), state.Done(), state.Partial(), state.Pending())
	}
	_, err := a.Resume(t.Context(), state, agent.In(s), agent.ApproveAll(state.Pending()))
	if !errors.Is(err, agent.ErrState) || !strings.Contains(err.Error(), "the store contains no run") {
		t.Errorf("%v", err)
	}
}

// A branch at a message lacks the state that was saved with it.
func TestL13_BranchBeforeItsStateSaysThatTheStateIsOlder(t *testing.T) {
	var did counted
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay")}}
	if _, err := a.Run(t.Context(), "go", agent.In(s)); err != nil {
		t.Fatal(err)
	}
	last := must[[]session.Stored](t)(s.Last(t.Context(), 2))
	branch := must[*session.Session](t)(s.Branch(t.Context(), last[0].Seq, session.Info{}))
	_, err := a.Resume(t.Context(), nil, agent.In(branch))
	if !errors.Is(err, agent.ErrState) || !strings.Contains(err.Error(), "the state is older: rewind the session") || did.String() != "pay:x" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	if _, err := a.Run(t.Context(), "next", agent.In(branch)); err != nil {
		t.Error(err)
	}
}

// The docs of Event and MessageAdded say which messages have an event.
func TestMessagesOfTheModelAndOfSteerAreReported(t *testing.T) {
	var did counted
	said := false
	a := agent.Agent{
		Model: model(calls(`b look {"word":"x"}`)), Tools: []tool.Tool{did.tool("look")},
		Steer: func(context.Context, agent.Turn) ([]dragoman.Message, error) {
			if said {
				return nil, nil
			}
			said = true
			return []dragoman.Message{dragoman.UserText("hurry")}, nil
		},
	}
	var added []dragoman.Message
	for ev, err := range a.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if ev, ok := ev.(*agent.MessageAdded); ok {
			added = append(added, ev.Message)
		}
	}
	if got, want := script(added), "user: \"hurry\"\nassistant: call b look\nassistant: \"done\"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
