package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// openSession opens a session, and creates it if it does not exist.
func openSession(t *testing.T, store session.Store, id string) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), store, id)
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Create(t.Context(), store, session.Info{ID: id})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A state that the caller kept is out of date once the run in the store has continued: its
// turn is not the one whose calls are pending.
func TestL14_StaleStateIsRefused(t *testing.T) {
	var mem session.Memory
	var did counted
	stop := make(chan struct{})
	close(stop)
	tools := []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())}
	a := agent.Agent{Model: model(calls("a look")), Tools: tools}
	first, err := a.Run(t.Context(), "go", agent.In(openSession(t, &mem, "s")), agent.StopAfterTurn(stop))
	if !errors.Is(err, agent.ErrStopped) {
		t.Fatal(err)
	}
	atStart := stored(t, first.State)
	a.Model = model(calls(`b pay {"word":"x"}`))
	second, err := a.Resume(t.Context(), atStart, agent.In(openSession(t, &mem, "s")))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	atPay := stored(t, second.State)
	// The same id again, for another payment without approval.
	a.Model = model(calls(`b pay {"word":"y"}`))
	third, err := a.Resume(t.Context(), atPay, agent.In(openSession(t, &mem, "s")), agent.Approve(second.Pending[0]))
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "look: pay:x" {
		t.Fatalf("%v, ran %q", err, did.String())
	}
	before := openSession(t, &mem, "s").Head()
	for name, stale := range map[string]*agent.State{"asking": atStart, "calling": atPay} {
		m := model(textResponse("repeated"))
		a.Model = m
		opts := []agent.Option{agent.In(openSession(t, &mem, "s"))}
		if name == "calling" {
			opts = append(opts, agent.Approve(second.Pending[0]))
		}
		if res, err := a.Resume(t.Context(), stale, opts...); !errors.Is(err, agent.ErrState) || len(m.asked) != 0 {
			t.Errorf("%s: %v, asked %d times, %+v", name, err, len(m.asked), res)
		}
	}
	if head := openSession(t, &mem, "s").Head(); head != before || did.String() != "look: pay:x" {
		t.Errorf("%d entries after %d, ran %q", head, before, did.String())
	}
	a.Model = model()
	must[*agent.Result](t)(a.Resume(t.Context(), stored(t, third.State), agent.In(openSession(t, &mem, "s")), agent.Approve(third.Pending[0])))
	if did.String() != "look: pay:x pay:y" {
		t.Errorf("ran %q", did.String())
	}
}

func TestL14_StateOfAnotherRunIsRefused(t *testing.T) {
	var mem session.Memory
	var did counted
	tools := []tool.Tool{did.tool("pay", tool.NeedsApproval())}
	run := func(id, prompt string, opts ...agent.Option) *agent.Result {
		a := agent.Agent{Model: model(calls(fmt.Sprintf(`b pay {"word":%q}`, prompt))), Tools: tools}
		res, err := a.Run(t.Context(), prompt, append(opts, agent.In(openSession(t, &mem, id)))...)
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		return res
	}
	old := run("one", "x")
	run("one", "y", agent.Abandon())
	other := run("two", "z")
	a := agent.Agent{Model: model(), Tools: tools}
	for _, res := range []*agent.Result{old, other} {
		if _, err := a.Resume(t.Context(), stored(t, res.State), agent.In(openSession(t, &mem, "one")), agent.Approve(res.Pending[0])); !errors.Is(err, agent.ErrState) || did.String() != "" {
			t.Errorf("%v, ran %q", err, did.String())
		}
	}
	openSession(t, &mem, "empty")
	if _, err := a.Resume(t.Context(), stored(t, other.State), agent.In(openSession(t, &mem, "empty")), agent.Approve(other.Pending[0])); !errors.Is(err, agent.ErrState) || did.String() != "" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// A rewind may end between a response and the state that was stored with it.
func TestS3_StateOlderThanPendingCallsIsRefused(t *testing.T) {
	var mem session.Memory
	var did counted
	s := openSession(t, &mem, "s")
	a := agent.Agent{Model: model(calls("a look")), Tools: []tool.Tool{did.tool("look")}}
	must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(s)))
	all := must[[]session.Stored](t)(s.Last(t.Context(), 0))
	if err := s.Rewind(t.Context(), all[1].Seq); err != nil { // after the response with the call
		t.Fatal(err)
	}
	m := model()
	a.Model = m
	if _, err := a.Resume(t.Context(), nil, agent.In(openSession(t, &mem, "s"))); !errors.Is(err, agent.ErrState) || len(m.asked) != 0 {
		t.Errorf("%v, asked %d times", err, len(m.asked))
	}
	if res, err := a.Run(t.Context(), "again", agent.In(openSession(t, &mem, "s")), agent.Abandon()); err != nil || res.Output != "done" {
		t.Errorf("%v %+v", err, res)
	}
}

// Two goroutines that share one open session share its head, so no append conflicts.
func TestS4_OpenSessionServesOneRunAtATime(t *testing.T) {
	var mem session.Memory
	s := openSession(t, &mem, "s")
	var did counted
	a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go", agent.In(s))
	yes := agent.Approve(res.Pending[0])
	inner := 0
	a.Model = model(func(*dragoman.Request) *dragoman.Response { // the second run starts during the model call of the first
		inner++
		b := agent.Agent{Model: model(calls(`c pay {"word":"z"}`)), Tools: []tool.Tool{did.tool("pay")}}
		if _, err := b.Resume(t.Context(), nil, agent.In(s)); !errors.Is(err, session.ErrConflict) {
			t.Errorf("the second: %v", err)
		}
		if _, err := b.Run(t.Context(), "me too", agent.In(s)); !errors.Is(err, session.ErrConflict) {
			t.Errorf("a third: %v", err)
		}
		return textResponse("done")
	})
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), yes))
	if did.String() != "pay:x" || inner != 1 {
		t.Errorf("ran %q", did.String())
	}
	a.Model = model()
	if _, err := a.Run(t.Context(), "next", agent.In(s)); err != nil {
		t.Errorf("one after the other: %v", err)
	}
}

// Calls that ran before an interruption are part of the turn when it ends.
func TestL5_HandoffWithPendingCallIsNotLost(t *testing.T) {
	var did counted
	next := agent.Agent{Name: "next", Model: model(textResponse("I am next"))}
	a := agent.Agent{
		Model: model(calls("h transfer_to_next", `b pay {"word":"x"}`), textResponse("I am still here")),
		Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}, Handoffs: []agent.Handoff{{To: &next, Name: "transfer_to_next"}},
	}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if res.Agent != "next" || res.Output != "I am next" {
		t.Errorf("%+v", res)
	}
}

func TestL4_AfterToolsSeesAllCallsOfInterruptedTurn(t *testing.T) {
	var did counted
	var seen []string
	a := agent.Agent{
		Model: model(calls("a look", `b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
		AfterTools: func(_ context.Context, calls []agent.ToolOutcome) (string, bool, error) {
			for _, c := range calls {
				seen = append(seen, fmt.Sprint(c.Call.Name, c.Record.OK, c.Output()))
			}
			return "", false, nil
		},
	}
	res, _ := a.Run(t.Context(), "go")
	must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if got := strings.Join(seen, " "); got != "looktruelook did  paytruepay did x" {
		t.Errorf("%q", got)
	}
}

func TestL2_CallsBeforeInterruptionCountForLimit(t *testing.T) {
	var did counted
	a := agent.Agent{
		Model:  model(calls("a look", "b look", `c pay {"word":"x"}`), calls("d look")),
		Tools:  []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
		Limits: agent.Limits{ToolCalls: 3},
	}
	res, _ := a.Run(t.Context(), "go")
	res, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
	var limit *agent.LimitError
	if !errors.As(err, &limit) || limit.Limit != "tool_calls" || did.String() != "look: look: pay:x" {
		t.Errorf("%v, ran %q: %+v", err, did.String(), res)
	}

	did = counted{}
	a.Model = model(calls(`a look {"word":"1"}`, `b look {"word":"2"}`, `c look {"word":"3"}`, `d look {"word":"4"}`, `e look {"word":"5"}`))
	a.Runner = &tool.Runner{Parallel: 1}
	res, err = a.Run(t.Context(), "go")
	if !errors.As(err, &limit) || did.String() != "look:1 look:2 look:3" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	if got := script(res.Messages); !strings.HasSuffix(got, "tool: result a ok result b ok result c ok result d error result e error\n") {
		t.Error(got)
	}
}

func TestL10_AfterToolsOutputIsGuardedAndValidated(t *testing.T) {
	var did counted
	guarded := agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "secret", Check: func(_ context.Context, answer string) (agent.Verdict, error) {
		switch {
		case strings.Contains(answer, "stop"):
			return agent.Verdict{Stop: true, Reason: "no"}, nil
		case strings.Contains(answer, "look did"):
			return agent.Verdict{Replace: true, Text: "withheld"}, nil
		}
		return agent.Verdict{}, nil
	}}}}
	for arg, want := range map[string]string{"x": "withheld", "stop": ""} {
		a := agent.Agent{Model: model(calls(fmt.Sprintf(`a look {"word":%q}`, arg))), Tools: []tool.Tool{did.tool("look")}, AfterTools: agent.StopOnFirstTool, Guardrails: guarded}
		res, err := a.Run(t.Context(), "go")
		if res.Output != want || errors.Is(err, agent.ErrGuardrail) != (want == "") {
			t.Errorf("%s: %q %v", arg, res.Output, err)
		}
	}
	a := agent.Agent{Model: model(calls("a look")), Tools: []tool.Tool{did.tool("look")}, AfterTools: agent.StopOnFirstTool}
	out, _, err := agent.Generate[word](t.Context(), a, "go")
	var bad *agent.OutputError
	if !errors.As(err, &bad) {
		t.Errorf("%+v %v", out, err)
	}
	a.Model = model(calls("a look"))
	a.AfterTools = func(context.Context, []agent.ToolOutcome) (string, bool, error) { return `{"word":"w"}`, true, nil }
	if out, _, err := agent.Generate[word](t.Context(), a, "go"); err != nil || out.Word != "w" {
		t.Errorf("%+v %v", out, err)
	}
}

func TestResumingRunEndedByAfterToolsReturnsItsOutput(t *testing.T) {
	var did counted
	store := &memory{}
	a := agent.Agent{Model: model(calls(`a look {"word":"x"}`)), Tools: []tool.Tool{did.tool("look")}, AfterTools: agent.StopOnFirstTool}
	must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(store)))
	if res := must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store))); res.Output != "look did x" {
		t.Errorf("%+v", res)
	}
}

// An outcome is delivered once: a failure afterwards must not lose it.
func TestL_BackgroundOutcomeSurvivesFailedSteer(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	build := tool.Remote(dragoman.ToolSpec{Name: "build", Description: "Builds.", Parameters: []byte(`{"type":"object"}`)},
		func(ctx context.Context, _ tool.Input) (tool.Output, error) {
			ticket, err := tool.Background(ctx, 1<<40)
			if err == nil {
				err = tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built"}}})
			}
			return tool.Output{Ticket: ticket}, err
		})
	store := &memory{}
	broken := errors.New("broken")
	a := agent.Agent{Model: model(calls("a build")), Tools: []tool.Tool{build}, Runner: &tool.Runner{Tickets: tickets}}
	a.Steer = func(_ context.Context, turn agent.Turn) ([]dragoman.Message, error) {
		if turn.Number > 0 {
			return nil, broken
		}
		return nil, nil
	}
	if _, err := a.Run(t.Context(), "go", agent.In(store)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	a.Steer = nil
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store)))
	if n := strings.Count(fmt.Sprint(texts(store.messages)), "is resolved"); n != 1 {
		t.Errorf("delivered %d times: %q", n, texts(store.messages))
	}
}

func TestStateDoesNotGrowWithRunsOfSession(t *testing.T) {
	store := &memory{}
	size := 0
	for i := range 20 {
		must[*agent.Result](t)(agent.Agent{Model: model()}.Run(t.Context(), "go", agent.In(store), agent.ID(fmt.Sprintf("run%02d", i))))
		if i == 2 {
			size = len(store.state)
		}
	}
	if len(store.state) > size+20 {
		t.Errorf("%d bytes after 3 runs, %d after 20:\n%s", size, len(store.state), store.state)
	}
}

func TestIncompleteStateDoesNotPanic(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(), Tools: []tool.Tool{did.tool("look")}}
	for _, text := range []string{
		`{"v":1,"run":"r","agent":"agent","turn":1,"phase":"calling","usage":{},"settled":[null],"messages":[{"v":1,"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"look","arguments":"{}"}]}]}`,
		`{"v":1,"run":"r","agent":"agent","turn":9223372036854775807,"phase":"asking","usage":{},"calls":9223372036854775807}`,
	} {
		var s agent.State
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			continue
		}
		if _, err := a.Resume(t.Context(), &s); err != nil {
			t.Log(err)
		}
	}
}

func TestEmptyRunIDIsRefused(t *testing.T) {
	a := agent.Agent{Model: model(), NewID: func() string { return "" }}
	if _, err := a.Run(t.Context(), "go", agent.In(&memory{})); !errors.Is(err, agent.ErrAgent) {
		t.Error(err)
	}
}

// A refusal may have calls: they get results, so that another run can follow.
func TestI4_CallsOfRefusalGetResults(t *testing.T) {
	var did counted
	store := &memory{}
	refusal := calls("a look")
	refusal.Stop.Reason = dragoman.StopRefusal
	a := agent.Agent{Model: model(refusal), Tools: []tool.Tool{did.tool("look")}}
	if _, err := a.Run(t.Context(), "go", agent.In(store)); err != nil || did.String() != "" {
		t.Fatalf("%v, ran %q", err, did.String())
	}
	if res, err := a.Run(t.Context(), "and now?", agent.In(store)); err != nil || res.Output != "done" {
		t.Errorf("%v\n%s", err, script(store.messages))
	}
}

func TestI1_RepeatedCallsOfHiddenToolsEndRun(t *testing.T) {
	var did counted
	var script []any
	for range 30 {
		script = append(script, calls("a late"))
	}
	a := agent.Agent{Model: model(script...), Tools: []tool.Tool{did.tool("late", tool.Deferred())}}
	if res, err := a.Run(t.Context(), "go"); !is[*agent.LoopError](err) {
		t.Errorf("%v after %d turns", err, res.Turns)
	}
}

// As a durable workflow engine runs it (decision 60).
func TestL_ClosedStopChannelRunsOneTurn(t *testing.T) {
	var did counted
	stop := make(chan struct{})
	close(stop)
	a := agent.Agent{Model: model(calls("a look"), calls("b look")), Tools: []tool.Tool{did.tool("look")}}
	res, err := a.Run(t.Context(), "go", agent.StopAfterTurn(stop))
	steps := 1
	for ; errors.Is(err, agent.ErrStopped) && steps < 10; steps++ {
		if res.Turns != steps {
			t.Fatalf("%d turns after %d steps", res.Turns, steps)
		}
		res, err = a.Resume(t.Context(), stored(t, res.State), agent.StopAfterTurn(stop))
	}
	if err != nil || steps != 3 || did.String() != "look: look:" || res.Output != "done" {
		t.Errorf("%v after %d steps, ran %q", err, steps, did.String())
	}
}

// An agent that waits inside a call already counts for the limit.
func TestL2_PendingCallIsAllowedUnderLimit(t *testing.T) {
	var did counted
	inner := agent.Agent{Name: "clerk", Model: model(calls(`j pay {"word":"in"}`), textResponse("paid")), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	a := agent.Agent{Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{inner.AsTool()}, Limits: agent.Limits{ToolCalls: 1}}
	res, _ := a.Run(t.Context(), "go")
	a.Limits.Turns = 5
	res, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
	if !is[*agent.LimitError](err) || did.String() != "pay:in" || !strings.HasSuffix(script(res.Messages), "result p ok\n") {
		t.Errorf("%v, ran %q\n%s", err, did.String(), script(res.Messages))
	}
}

func TestL2_PendingCallCountsOnceForLimit(t *testing.T) {
	var did counted
	inner := agent.Agent{Name: "clerk", Model: model(calls(`j pay {"word":"in"}`), textResponse("paid")), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	a := agent.Agent{Model: model(calls(`p clerk {"task":"t"}`), calls("q look")), Tools: []tool.Tool{inner.AsTool(), did.tool("look")}, Limits: agent.Limits{ToolCalls: 2}}
	res, _ := a.Run(t.Context(), "go")
	_, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
	if !is[*agent.LimitError](err) || did.String() != "pay:in look:" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// The process that continues a waiting nested agent is killed after one of its effects: the
// next process would call the model again, which may use another call id.
func TestA6_KilledNestedRunIsUncertain(t *testing.T) {
	var mem session.Memory
	var did counted
	killed, dead := make(chan struct{}), make(chan struct{})
	charge := did.tool("charge")
	dying := tool.New("charge", "Does charge.", func(_ context.Context, w word) (string, error) {
		did.mu.Lock()
		did.runs = append(did.runs, "charge:"+w.Word)
		did.mu.Unlock()
		close(killed)
		<-dead
		return "", nil
	})
	outer := func(name string, charge tool.Tool) agent.Agent {
		inner := agent.Agent{
			Name: "clerk", Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval()), charge},
			Model: model(calls(fmt.Sprintf(`%s charge {"word":%q}`, name, name)), textResponse("paid")),
		}
		return agent.Agent{Model: model(), Tools: []tool.Tool{inner.AsTool()}}
	}
	first := outer("x", charge)
	first.Model = model(calls(`p clerk {"task":"t"}`))
	inner := agent.Agent{Name: "clerk", Model: model(calls(`j pay {"word":"in"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval()), charge}}
	first.Tools = []tool.Tool{inner.AsTool()}
	if _, err := first.Run(t.Context(), "go", agent.In(openSession(t, &mem, "s"))); !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	// Without a decision, it is interrupted again, any number of times.
	res, err := outer("none", charge).Resume(t.Context(), nil, agent.In(openSession(t, &mem, "s")))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	yes := agent.Approve(res.Pending[0])
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = outer("k1", dying).Resume(t.Context(), nil, agent.In(openSession(t, &mem, "s")), yes)
	}()
	<-killed
	res, err = outer("k2", charge).Resume(t.Context(), nil, agent.In(openSession(t, &mem, "s")), yes)
	if err != nil || did.String() != "pay:in charge:k1" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	if got := fmt.Sprint(res.Records[0].ErrorKind, res.Output); got != "uncertaindone" {
		t.Error(got)
	}
	close(dead)
	<-over
}

func TestA3_StickyDecisionSurvivesResumptionsWithoutStore(t *testing.T) {
	var did counted
	a := agent.Agent{
		Model: model(calls(`a pay {"word":"x"}`), calls("b ask"), calls(`c pay {"word":"y"}`)),
		Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval()), did.tool("ask", tool.NeedsApproval())},
	}
	res, _ := a.Run(t.Context(), "go")
	res, _ = a.Resume(t.Context(), stored(t, res.State), agent.Always(res.Pending[0]))
	if len(res.Pending) != 1 {
		t.Fatalf("%+v", res)
	}
	if _, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])); err != nil || did.String() != "pay:x ask: pay:y" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// Runs that continue from a state do not change it.
func TestA_ResumingDoesNotChangeState(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls("l look", `b pay {"word":"x"}`, `c pay {"word":"y"}`)), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	// Encode it as JSON, so that its ledger is not nil.
	res, _ = a.Resume(t.Context(), stored(t, res.State))
	state, before := res.State, marshal(t, res.State)
	other := res.Pending[0]
	other.Binding.CallID = "z"
	if _, err := a.Resume(t.Context(), state, agent.Approve(res.Pending[0]), agent.Approve(other)); !errors.Is(err, agent.ErrState) {
		t.Fatal(err)
	}
	if _, err := a.Resume(t.Context(), state); !errors.Is(err, agent.ErrInterrupted) || did.String() != "look:" {
		t.Errorf("a refused decision took effect: %v, ran %q", err, did.String())
	}
	if _, err := a.Resume(t.Context(), state, agent.Approve(res.Pending[0])); !errors.Is(err, agent.ErrInterrupted) || did.String() != "look: pay:x" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	if after := marshal(t, state); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// The loop of the caller and every callback may panic: the stored run stays complete, no
// goroutine continues, and the next run can use the same session.
func TestL_RunCanBeResumedAfterPanicOfCaller(t *testing.T) {
	for at := range 200 {
		var mem session.Memory
		var did counted
		s := openSession(t, &mem, "s")
		a := agent.Agent{Model: model(calls("a look", `b pay {"word":"x"}`), textResponse("done")), Tools: []tool.Tool{did.tool("look"), did.tool("pay")}}
		n, over := 0, false
		func() {
			defer func() { _ = recover() }()
			for range a.Stream(t.Context(), "go", agent.In(s)) {
				if n++; n > at {
					panic("here")
				}
			}
			over = true
		}()
		if err := continueSession(t, a, &mem); err != nil || strings.Count(did.String(), "pay:x") > 1 {
			t.Errorf("event %d: %v, ran %q", at, err, did.String())
		}
		if over {
			return
		}
	}
	t.Error("the stream did not end")
}

// continueSession continues the session after a panic, and checks that every call has exactly one
// result.
func continueSession(t *testing.T, a agent.Agent, mem session.Store) error {
	t.Helper()
	s := openSession(t, mem, "s")
	_, state, err := s.Load(t.Context())
	if err != nil || state == nil {
		return err
	}
	a.Model = model()
	for {
		_, err = a.Resume(t.Context(), nil, agent.In(s))
		if !errors.Is(err, session.ErrConflict) { // a tool that was still running has written
			break
		}
		s = openSession(t, mem, "s")
	}
	ms, _, loaded := openSession(t, mem, "s").Load(t.Context())
	if loaded != nil {
		return loaded
	}
	open := map[string]int{}
	for i := range ms {
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				open[p.ID]++
			case *dragoman.ToolResult:
				open[p.CallID]--
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			return fmt.Errorf("%s: %d\n%s", id, n, script(ms))
		}
	}
	return err
}

// A guardrail for one tool can identify the call, also before a human is asked.
func TestL8_ToolGuardrailKnowsCallBeforeApproval(t *testing.T) {
	var did counted
	var told []agent.GuardrailTripped
	a := agent.Agent{
		Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
		Guardrails: agent.Guardrails{ToolInput: []agent.ToolGuardrail{{Name: "pay", Check: func(_ context.Context, call tool.Info, _ tool.Input) (agent.Verdict, error) {
			return agent.Verdict{Replace: call.Key.Name == "pay" && call.CallID == "b", Text: "no payments"}, nil
		}}}},
	}
	for ev, err := range a.Stream(t.Context(), "go") {
		if err != nil {
			t.Error(err)
		}
		if g, ok := ev.(*agent.GuardrailTripped); ok {
			told = append(told, *g)
		}
	}
	if len(told) != 1 || told[0].Turn != 1 {
		t.Errorf("%+v", told)
	}
}

// A process is killed, or a store fails, between the outcome and its message.
func TestL14_BackgroundOutcomeIsDeliveredOnceAfterACrash(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	build := tool.Remote(dragoman.ToolSpec{Name: "build", Description: "Builds.", Parameters: []byte(`{"type":"object"}`)},
		func(ctx context.Context, _ tool.Input) (tool.Output, error) {
			ticket, err := tool.Background(ctx, 1<<40)
			if err == nil {
				err = tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built"}}})
			}
			return tool.Output{Ticket: ticket}, err
		})
	full := errors.New("disk full")
	store := &memory{}
	unmarked := &failingTickets{TicketStore: tickets.Store}
	a := agent.Agent{Model: model(calls("a build")), Tools: []tool.Tool{build}, Runner: &tool.Runner{Tickets: &tool.Tickets{Store: unmarked}}}
	saves := 0
	failing := &failingSaves{memory: store, before: func() error {
		if saves++; saves == 4 { // the save of the outcome
			return full
		}
		return nil
	}}
	if _, err := a.Run(t.Context(), "go", agent.In(failing)); !errors.Is(err, full) {
		t.Fatal(err)
	}
	unmarked.fail = full // stored, but not marked as delivered
	if _, err := a.Resume(t.Context(), nil, agent.In(store)); !errors.Is(err, full) {
		t.Fatal(err)
	}
	unmarked.fail = nil
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store)))
	if n := strings.Count(fmt.Sprint(texts(store.messages)), "is resolved"); n != 1 {
		t.Errorf("delivered %d times: %q", n, texts(store.messages))
	}
}

type failingSaves struct {
	*memory
	before func() error
}

func (s *failingSaves) Save(ctx context.Context, ms []dragoman.Message, state []byte) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.memory.Save(ctx, ms, state)
}

// failingTickets is a ticket store whose updates fail.
type failingTickets struct {
	tool.TicketStore
	fail error
}

func (f *failingTickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	if f.fail != nil {
		return f.fail
	}
	return f.TicketStore.Update(ctx, id, change)
}

// A process may be killed after it has seen a failed response, before it reports the error.
func TestL14_ResumingFailedRunReturnsItsError(t *testing.T) {
	cut := textResponse("half of")
	cut.Stop.Reason = dragoman.StopLength
	stop := agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "g", Check: func(context.Context, string) (agent.Verdict, error) {
		return agent.Verdict{Stop: true, Reason: "no"}, nil
	}}}}
	for name, tc := range map[string]struct {
		a    agent.Agent
		want error
	}{
		"cut off": {agent.Agent{Model: model(cut)}, agent.ErrResponse},
		"guarded": {agent.Agent{Model: model(textResponse("secret")), Guardrails: stop}, agent.ErrGuardrail},
	} {
		store := &memory{}
		for range 2 {
			if _, err := tc.a.Run(t.Context(), "go", agent.In(store), agent.ID("r")); err == nil {
				t.Errorf("%s: no error", name)
			}
			m := model()
			tc.a.Model = m
			res, err := tc.a.Resume(t.Context(), nil, agent.In(store))
			if !errors.Is(err, tc.want) || res == nil || !res.State.Done() || len(m.asked) != 0 {
				t.Errorf("%s: %v %+v", name, err, res)
			}
		}
		tc.a.Guardrails = agent.Guardrails{}
		if res, err := tc.a.Run(t.Context(), "next", agent.In(store)); err != nil || res.Output != "done" {
			t.Errorf("%s: the next run: %v", name, err)
		}
	}
}
