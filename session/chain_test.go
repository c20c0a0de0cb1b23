package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
)

// named returns a model of its own provider, and the exchange that it answered.
func named(t testing.TB, c dialect.Codec, name string, extensions ...extension.Extension) *wireModel {
	w := on(t, c, extensions...)
	w.w.Target.Provider, w.w.Target.Scope = name, "scope of "+name
	return w
}

func (m *wireModel) answered(ask, answer string) []dragoman.Message {
	out := pair(ask, answer)
	origin := m.w.Target.Origin()
	out[1].Origin = &origin
	return out
}

func chainOf(models ...dragoman.Model) *provider.Chain {
	c := &provider.Chain{}
	for i, m := range models {
		c.Links = append(c.Links, provider.Link{Name: fmt.Sprint("link", i+1), Model: m})
	}
	return c
}

func TestX9_ChainRunsTriggersOfRespondingLink(t *testing.T) {
	s := created(t, &session.Memory{})
	a, b := named(t, anthropic.Codec{}, "a", step{"drop", dropFirst}), named(t, openaichat.Codec{}, "b", step{"drop", dropFirst})
	if err := s.Connect(t.Context(), chainOf(&sim.Planner{}, a, chainOf(b))); err != nil {
		t.Fatal(err)
	}
	check := func(wantA, wantB string) {
		t.Helper()
		if got := forWire(t, s, a); got != wantA {
			t.Errorf("a is sent %s, want %s", got, wantA)
		}
		if got := forWire(t, s, b); got != wantB {
			t.Errorf("b is sent %s, want %s", got, wantB)
		}
	}
	save(t, s, a.answered("q1", "r1")...)
	save(t, s, b.answered("q2", "r2")...)
	check("q1 r1 q2 r2", "q2 r2")
	save(t, s, dragoman.UserText("q3")) // b responded last
	check("q1 r1 q2 r2 q3", "q2 r2 q3")
	save(t, s, a.answered("", "r3")[1])
	check("q2 r2 q3 r3", "q2 r2 q3 r3")
	if messages, _, err := s.Load(t.Context()); err != nil || len(messages) != 6 {
		t.Errorf("%d messages are stored, %v", len(messages), err)
	}
}

func TestX9_ChainActionRunsForRespondingOrNamedLink(t *testing.T) {
	a, b, c := named(t, anthropic.Codec{}, "a", step{"drop", dropFirst}), named(t, openaichat.Codec{}, "b", step{"drop", dropFirst}), named(t, openaichat.Codec{}, "c")
	chain := chainOf(a, b, c)
	model := func(s *session.Session, name string) dragoman.Model {
		t.Helper()
		m, err := s.ActionModel(t.Context(), chain, name)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	s := created(t, &session.Memory{})
	if got := model(s, ""); got != a {
		t.Errorf("before a response, %v acts", got)
	}
	save(t, s, a.answered("q1", "r1")...)
	save(t, s, b.answered("q2", "r2")...)
	save(t, s, named(t, openaichat.Codec{}, "other").answered("q3", "r3")...) // no link of the chain
	if got := model(s, ""); got != b {
		t.Errorf("after a response of b, %v acts", got)
	}
	if got := model(s, "link1"); got != a {
		t.Errorf("by its name, %v acts", got)
	}
	if err := s.Act(t.Context(), chain, session.Action{ID: "drop"}); err != nil {
		t.Fatal(err)
	}
	if gotA, gotB := forWire(t, s, a), forWire(t, s, b); gotA != "q1 r1 q2 r2 q3 r3" || gotB != "q2 r2 q3 r3" {
		t.Errorf("a is sent %s, b %s", gotA, gotB)
	}
	if err := s.Act(t.Context(), chain, session.Action{ID: "drop", Model: "link1"}); err != nil {
		t.Fatal(err)
	}
	if gotA := forWire(t, s, a); gotA != "q2 r2 q3 r3" {
		t.Errorf("a is sent %s", gotA)
	}
	for name, want := range map[string]int{"": 1, "link3": 0} {
		if actions, err := s.Actions(t.Context(), chain, name); err != nil || len(actions) != want {
			t.Errorf("link %q has %d actions, %v", name, len(actions), err)
		}
	}
	// A credential that changed makes another scope, but not another model.
	b.w.Target.Scope = "new"
	if got := model(s, ""); got != b {
		t.Errorf("with another credential, %v acts", got)
	}
	twin := named(t, openaichat.Codec{}, "b")
	chain.Links[0].Model = twin
	b.w.Target.Scope = "scope of b"
	twin.w.Target.Scope = "twin"
	if got := model(s, ""); got != b {
		t.Error("the scope does not decide between models of the same name")
	}
}

// brokenWire is a model whose wire cannot be made.
type brokenWire struct{ *wireModel }

func (brokenWire) Wire(context.Context, string) (modelcall.Wire, error) {
	return modelcall.Wire{}, errors.New("bad settings")
}

func TestX9_LinkWithoutWireIsSkipped(t *testing.T) {
	ran := 0
	count := step{"count", func(extension.ActionInput) (extension.ActionResult, error) {
		ran++
		return extension.ActionResult{Metadata: json.RawMessage(`{"ran":true}`)}, nil
	}}
	s := created(t, &session.Memory{})
	b := named(t, openaichat.Codec{}, "b", count)
	if err := s.Connect(t.Context(), chainOf(brokenWire{}, b)); err != nil {
		t.Fatal(err)
	}
	save(t, s, b.answered("q1", "r1")...)
	if ran != 1 {
		t.Errorf("the action ran %d times", ran)
	}
	if err := s.Connect(t.Context(), chainOf(brokenWire{}, &sim.Planner{})); err == nil || !strings.Contains(err.Error(), "link1: bad settings") {
		t.Errorf("connecting to a chain without any wire: %v", err)
	}
	for name, m := range map[string]dragoman.Model{"of simulators": chainOf(&sim.Planner{}), "without links": chainOf()} {
		if err := s.Connect(t.Context(), m); !errors.Is(err, session.ErrNoWire) {
			t.Errorf("a chain %s: %v", name, err)
		}
		if err := s.BeforeSave(t.Context(), m, "", nil); err != nil {
			t.Errorf("a chain %s: %v", name, err)
		}
	}
}
