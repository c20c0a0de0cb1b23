package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// The outcome of background work is delivered once, to the agent that is current when the
// work ends. The two agents may have different ticket stores, or the second one none.
func TestT13_OutcomesReachTheAgentThatTookOver(t *testing.T) {
	for name, other := range map[string]*tool.Runner{
		"none":        nil,
		"its own":     {Tickets: &tool.Tickets{Store: &tool.MemoryTickets{}}},
		"the same":    {},
		"same, apart": {},
	} {
		tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
		switch name {
		case "the same":
			other.Tickets = tickets
		case "same, apart":
			other.Tickets = &tool.Tickets{Store: tickets.Store}
		}
		var id string
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		})
		finish := tool.New("finish", "Ends the work.", func(ctx context.Context, _ word) (string, error) {
			return "", tickets.Resolve(ctx, id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}})
		})
		m := model(calls("c finish"), calls("d look"), textResponse("done"))
		var did counted
		second := &agent.Agent{Name: "second", Model: m, Tools: []tool.Tool{finish, did.tool("look")}, Runner: other}
		first := agent.Agent{
			Name: "first", Model: model(calls("a build"), calls("b transfer_to_second")), Tools: []tool.Tool{build},
			Runner: &tool.Runner{Tickets: tickets}, Handoffs: []agent.Handoff{{To: second}},
		}
		res := must[*agent.Result](t)(first.Run(t.Context(), "go"))
		if n := strings.Count(script(res.Messages), "is resolved."); n != 1 || !strings.Contains(script(m.asked[1].Messages), "the outcome") {
			t.Errorf("%s: told %d times:\n%s", name, n, script(res.Messages))
		}
	}
}

// The model of a call that failed or was abandoned has its result: no outcome of a ticket
// follows, whether the handler opened the ticket in time or too late.
func TestT6_NoOutcomeFollowsAFailedCall(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	release := make(chan struct{})
	late := make(chan error, 2)
	finish := func(ctx context.Context) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		if err == nil {
			err = tickets.Resolve(context.Background(), ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "OUTCOME"}}})
		}
		return ticket, err
	}
	opensLate := tool.New("opens_late", "Opens a ticket too late.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
		<-release
		ticket, err := finish(ctx)
		late <- err
		return ticket, err
	}, tool.Timeout(time.Millisecond))
	hangs := tool.New("hangs", "Opens a ticket and hangs.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
		_, err := tool.Background(ctx, time.Hour)
		if err != nil {
			late <- err
			return nil, err
		}
		<-release
		ticket, err := finish(ctx)
		late <- err
		return ticket, err
	}, tool.Timeout(50*time.Millisecond))
	fails := tool.New("fails", "Opens a ticket and fails.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		if err != nil {
			return nil, err
		}
		return ticket, errors.New("the work could not be started")
	})
	wait := tool.New("wait", "Waits.", func(context.Context, word) (string, error) {
		close(release)
		for range 2 {
			if err := <-late; !errors.Is(err, tool.ErrNoTicket) {
				t.Errorf("an abandoned handler gets %v", err)
			}
		}
		return "waited", nil
	})
	a := agent.Agent{
		Model: model(calls("a opens_late", "b hangs", "c fails"), calls("d wait"), textResponse("done")),
		Tools: []tool.Tool{opensLate, hangs, fails, wait}, Runner: &tool.Runner{Tickets: tickets},
	}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if text := script(res.Messages); strings.Contains(text, "OUTCOME") || strings.Contains(text, "background work") {
		t.Errorf("an outcome was delivered:\n%s", text)
	}
	if left, err := tickets.Store.List(t.Context(), res.Run); err != nil || len(left) != 0 {
		t.Errorf("%d tickets are left, %v", len(left), err)
	}
}

// An attempt that follows one whose result could not be recorded gets a ticket that can be
// resolved.
func TestT13_LaterAttemptReopensWithdrawnTicket(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	attempt := 0
	build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		if attempt++; attempt == 1 || err != nil {
			return nil, errors.Join(errors.New("no worker"), err)
		}
		return ticket, tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}})
	}, tool.Idempotent())
	box, err := tool.NewBox(build)
	if err != nil {
		t.Fatal(err)
	}
	turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "a", Name: "build", Arguments: "{}"}}}
	for range 2 { // two independent processes
		run := (&tool.Runner{Tickets: tickets}).Start("run")
		if _, err := run.Do(t.Context(), box, turn); err != nil {
			t.Fatal(err)
		}
	}
	ms, err := (&tool.Runner{Tickets: tickets}).Start("run").Deliver(t.Context(), box)
	if err != nil || len(ms) != 1 || !strings.Contains(script(ms), "the outcome") {
		t.Errorf("delivered %s, %v", script(ms), err)
	}
}

// The tools of an agent that runs as a tool open tickets in the store of the outer run:
// that of its session, or that of its Runner.
func TestT13_AgentAsToolOpensTicketsInTheStoreOfTheOuterRun(t *testing.T) {
	for name, outer := range map[string]*tool.Runner{
		"session": nil,
		"runner":  {Tickets: &tool.Tickets{Store: &tool.MemoryTickets{}}},
	} {
		var opened *tool.Ticket
		store := &session.Memory{}
		tickets := &tool.Tickets{Store: store.Tickets()}
		if outer != nil {
			tickets = outer.Tickets
		}
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (_ *tool.Ticket, err error) {
			opened, err = tool.Background(ctx, time.Hour)
			return opened, err
		})
		finish := tool.New("finish", "Ends the work.", func(ctx context.Context, _ word) (string, error) {
			return "", tickets.Resolve(ctx, opened.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}})
		})
		m := model(calls("a build"), calls("b finish"), textResponse("built"))
		clerk := agent.Agent{Name: "clerk", Model: m, Tools: []tool.Tool{build, finish}}
		boss := agent.Agent{Name: "boss", Model: model(calls(`p clerk {"task":"t"}`), textResponse("done")), Tools: []tool.Tool{clerk.AsTool()}, Runner: outer}
		s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{}))
		must[*agent.Result](t)(boss.Run(t.Context(), "go", agent.In(s)))
		if opened == nil || len(m.asked) != 3 || strings.Count(script(m.asked[2].Messages), "the outcome") != 1 {
			t.Errorf("%s: ticket %v, the clerk read:\n%s", name, opened, script(m.asked[len(m.asked)-1].Messages))
		}
	}
}

// Guardrails check the outcome of background work like the output of a call. A stop ends the run;
// the conversation has the outcome without its content, and continues.
func TestL7_GuardrailsCheckOutcomesOfBackgroundWork(t *testing.T) {
	for name, v := range map[string]agent.Verdict{
		"replaced": {Replace: true, Text: "harmless"}, "stopped": {Stop: true, Reason: "an order"},
	} {
		var id string
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		})
		m := model(calls("a build"), textResponse("started"), textResponse("read"))
		a := agent.Agent{Model: m, Tools: []tool.Tool{build}, Guardrails: agent.Guardrails{ToolOutput: []agent.ToolOutputGuardrail{{
			Name: "orders", Check: func(_ context.Context, of tool.Info, out tool.Output) (agent.Verdict, error) {
				if len(out.Content) == 0 {
					return agent.Verdict{}, nil
				}
				if text, _ := out.Content[0].(*dragoman.Text); of.Key.Name != "build" || text == nil || !strings.Contains(text.Text, "ORDER") {
					return agent.Verdict{}, nil
				}
				return v, nil
			},
		}}}}
		var mem session.Memory
		s := openSession(t, &mem, "s")
		must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(s)))
		if err := (&tool.Tickets{Store: s.Tickets()}).Resolve(t.Context(), id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "ORDER"}}}); err != nil {
			t.Fatal(err)
		}
		tripped := 0
		var err error
		for ev, failed := range a.Stream(t.Context(), "and?", agent.In(s)) {
			if g, ok := ev.(*agent.GuardrailTripped); ok && g.Name == "orders" && g.Stage == "tool_output" {
				tripped++
			}
			err = failed
		}
		if tripped != 1 || v.Stop != errors.Is(err, agent.ErrGuardrail) || v.Replace && err != nil {
			t.Errorf("%s: %d verdicts, %v", name, tripped, err)
		}
		if v.Stop {
			state := must[*agent.State](t)(agent.LoadState(t.Context(), s))
			if _, err := a.Resume(t.Context(), state, agent.In(s)); !errors.Is(err, agent.ErrGuardrail) {
				t.Errorf("%s: resumed with %v", name, err)
			}
		}
		res := must[*agent.Result](t)(a.Run(t.Context(), "more", agent.In(s)))
		if res.Output == "" {
			t.Errorf("%s: the session does not continue", name)
		}
		for i, req := range m.asked {
			if strings.Contains(script(req.Messages), "ORDER") {
				t.Errorf("%s: request %d has the outcome", name, i)
			}
		}
		if last := script(m.asked[len(m.asked)-1].Messages); strings.Count(last, "is resolved.") != 1 {
			t.Errorf("%s: the conversation is\n%s", name, last)
		}
	}
}
