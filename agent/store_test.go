package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

func TestS1_QuirkI3_EachStepIsStoredBeforeTheNext(t *testing.T) {
	store := &memory{}
	var seen []string
	look := tool.New("look", "Looks.", func(context.Context, word) (string, error) {
		store.mu.Lock()
		defer store.mu.Unlock()
		seen = append(seen, script(store.messages))
		if len(store.begun) != 1 {
			t.Errorf("%d intents when the tool runs", len(store.begun))
		}
		return "ok", nil
	})
	m := model(calls("a look"), func(*dragoman.Request) *dragoman.Response {
		store.mu.Lock()
		defer store.mu.Unlock()
		seen = append(seen, script(store.messages))
		return textResponse("done")
	})
	must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{look}}.Run(t.Context(), "go", agent.In(store)))
	const answer = "user: \"go\"\nassistant: call a look\n"
	if len(seen) != 2 || seen[0] != answer || seen[1] != answer+"tool: result a ok\n" {
		t.Errorf("%q", seen)
	}
}

func TestS1_FailedSaveStopsRunBeforeItActs(t *testing.T) {
	var did counted
	store := &memory{}
	full := errors.New("disk full")
	m := model(func(*dragoman.Request) *dragoman.Response {
		store.mu.Lock()
		defer store.mu.Unlock()
		store.fail = full
		return calls("a look")
	})
	if _, err := (agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}).Run(t.Context(), "go", agent.In(store)); !errors.Is(err, full) || did.String() != "" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

// A process that got a decision, acted on it and was killed before it could store the result
// leaves the decision in the log: humans are not asked about a call that has run.
func TestS1_DecisionIsStoredBeforeItTakesEffect(t *testing.T) {
	for name, given := range map[string]bool{"from the store": false, "from the old state": true} {
		store := &memory{}
		ran := 0
		a := agent.Agent{Model: model(calls("a pay")), Tools: []tool.Tool{tool.New("pay", "Pays.", func(context.Context, word) (string, error) {
			ran++
			store.mu.Lock()
			defer store.mu.Unlock()
			store.fail = errors.New("killed")
			return "paid", nil
		}, tool.NeedsApproval())}}
		res, _ := a.Run(t.Context(), "go", agent.In(store))
		state := stored(t, res.State)
		if _, err := a.Resume(t.Context(), nil, agent.In(store), agent.Approve(res.Pending[0])); !errors.Is(err, store.fail) {
			t.Fatal(err)
		}
		store.fail = nil
		if !given {
			state = nil
		}
		res, err := a.Resume(t.Context(), state, agent.In(store))
		if err != nil || ran != 1 || res.Output != "done" || !res.Records[0].Replayed || !res.Records[0].OK {
			t.Errorf("%s: %v, ran %d times: %+v", name, err, ran, res)
		}
	}
}

func TestS4_SecondRunInSessionGetsConflict(t *testing.T) {
	var store session.Memory
	if _, err := session.Create(t.Context(), &store, session.Info{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	var did counted
	both := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(2)
	go func() { arrived.Wait(); close(both) }()
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		s, err := session.Open(t.Context(), &store, "s") // both see the same session
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			arrived.Done()
			<-both
			a := agent.Agent{Model: model(calls(fmt.Sprintf(`x pay {"word":"%d"}`, i))), Tools: []tool.Tool{did.tool("pay")}}
			_, errs[i] = a.Run(t.Context(), fmt.Sprint(i), agent.In(s))
		})
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
			if did.String() != fmt.Sprintf("pay:%d", i) {
				t.Errorf("ran %q", did.String())
			}
		case !errors.Is(err, session.ErrConflict):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d won: %v", won, errs)
	}
}

func TestAgentRunsConcurrently(t *testing.T) {
	next := agent.Agent{Name: "next", Model: echo{}}
	look := tool.New("look", "Looks.", func(_ context.Context, w word) (string, error) { return w.Word, nil })
	a := agent.Agent{Model: echo{}, Tools: []tool.Tool{look, tool.New("late", "Is deferred.", func(context.Context, word) (string, error) { return "", nil }, tool.Deferred())}, Handoffs: []agent.Handoff{{To: &next}}}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			want := fmt.Sprint("w", i)
			var store session.Memory
			s, err := session.Create(t.Context(), &store, session.Info{})
			if err != nil {
				t.Error(err)
				return
			}
			res, err := a.Stream(t.Context(), want, agent.In(s)).Collect()
			if err != nil || res.Output != want || res.Records[0].Plain != want {
				t.Errorf("%v %+v", err, res)
			}
		})
	}
	wg.Wait()
}

// echo calls look with the prompt, and then returns the result.
type echo struct{}

func (echo) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	last := &req.Messages[len(req.Messages)-1]
	if last.Role == dragoman.RoleUser {
		return calls(fmt.Sprintf(`a look {"word":%q}`, last.Text())), nil
	}
	return textResponse(req.Messages[0].Text()), nil
}

func (m echo) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return streamed(ctx, req, m.Generate)
}

func TestL_BackgroundOutcomeReachesLaterTurnOrRun(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	var open []string
	build := tool.Remote(dragoman.ToolSpec{Name: "build", Description: "Builds.", Parameters: []byte(`{"type":"object"}`)},
		func(ctx context.Context, _ tool.Input) (tool.Output, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err != nil {
				return tool.Output{}, err
			}
			open = append(open, ticket.ID)
			return tool.Output{Ticket: ticket}, nil
		})
	resolve := func(i int) {
		if err := tickets.Resolve(t.Context(), open[i], tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: fmt.Sprint("built ", i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	m := model(calls("a build"), func(*dragoman.Request) *dragoman.Response { resolve(0); return calls("b build") }, textResponse("later"))
	store := &memory{}
	a := agent.Agent{Model: m, Tools: []tool.Tool{build}, Runner: &tool.Runner{Tickets: tickets}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(store)))
	if n := strings.Count(fmt.Sprint(texts(res.Messages)), "built 0"); n != 1 {
		t.Errorf("delivered %d times: %q", n, texts(res.Messages))
	}
	resolve(1)
	res = must[*agent.Result](t)(a.Run(t.Context(), "and?", agent.In(store)))
	if n := strings.Count(fmt.Sprint(texts(store.messages)), "built 1"); n != 1 || res.Output != "done" {
		t.Errorf("delivered %d times: %q", n, texts(store.messages))
	}
	res = must[*agent.Result](t)(a.Run(t.Context(), "and?", agent.In(store)))
	if n := strings.Count(fmt.Sprint(texts(store.messages)), "built"); n != 2 || res.Output != "done" {
		t.Errorf("delivered %d times: %q", n, texts(store.messages))
	}
}

func texts(ms []dragoman.Message) (out []string) {
	for i := range ms {
		out = append(out, ms[i].Text())
	}
	return out
}

// A process approved a call, ran it, and died before it could store the result. A process
// that resumes the run and rejects the call must not report that nothing happened.
func TestL14_CallThatRanBeforeCrashIsNotReportedAsRejected(t *testing.T) {
	edited := func(p tool.Pending) []agent.Option {
		return []agent.Option{agent.Edit(p, tool.Input{Arguments: json.RawMessage(`{"word":"less"}`)})}
	}
	for name, tc := range map[string]struct {
		ended  bool
		decide func(tool.Pending) []agent.Option
		want   string
		kind   tool.ErrorKind
	}{
		"rejected, its result known":     {true, func(p tool.Pending) []agent.Option { return []agent.Option{agent.Reject(p, "no")} }, "paid", ""},
		"rejected, its outcome unknown":  {false, func(p tool.Pending) []agent.Option { return []agent.Option{agent.Reject(p, "no")} }, "unknown whether", tool.ErrorUncertain},
		"edited, its result known":       {true, edited, "paid", ""},
		"edited, its outcome unknown":    {false, edited, "unknown whether", tool.ErrorUncertain},
		"undecided, its result known":    {true, func(tool.Pending) []agent.Option { return nil }, "paid", ""},
		"undecided, its outcome unknown": {false, func(tool.Pending) []agent.Option { return nil }, "unknown whether", tool.ErrorUncertain},
	} {
		var store session.Memory
		s, err := session.Create(t.Context(), &store, session.Info{})
		if err != nil {
			t.Fatal(err)
		}
		var did counted
		a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
		res, err := a.Run(t.Context(), "go", agent.In(s))
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		p := res.Pending[0]
		intent := tool.Intent{CallRef: tool.CallRef{Run: p.Binding.Run, Turn: p.Binding.Turn, CallID: p.Binding.CallID, Key: p.Binding.Key}, Arguments: p.Binding.Arguments}
		if _, err := s.Begin(t.Context(), intent); err != nil {
			t.Fatal(err)
		}
		if tc.ended {
			if err := s.End(t.Context(), intent, (&dragoman.ToolCall{ID: "b", Name: "pay"}).ResultText("paid")); err != nil {
				t.Fatal(err)
			}
		}
		res, err = a.Resume(t.Context(), nil, append(tc.decide(p), agent.In(s))...)
		if err != nil || did.String() != "" || len(res.Records) != 1 || res.Records[0].ErrorKind != tc.kind {
			t.Errorf("%s: %v, ran %q, %+v", name, err, did.String(), res.Records)
		}
		got := res.Messages[2].Parts[0].(*dragoman.ToolResult)
		if !strings.Contains(got.Text(), tc.want) {
			t.Errorf("%s: the model reads %q", name, got.Text())
		}
	}
}

// A process died while a call ran. In the next process, a new version of the tool changes the
// arguments. No call of the turn runs, not even one that was never begun.
func TestL14_ChangedArgumentsOfABegunCallStopItsTurn(t *testing.T) {
	var store session.Memory
	first := must[*session.Session](t)(session.Create(t.Context(), &store, session.Info{ID: "s"}))
	var next *session.Session
	var did counted
	agentOf := func(m dragoman.Model, account string, pays func()) agent.Agent {
		pay := tool.New("pay", "Pays.", func(_ context.Context, w word) (string, error) {
			did.mu.Lock()
			did.runs = append(did.runs, "pay:"+w.Word)
			did.mu.Unlock()
			pays()
			return "paid", nil
		}, tool.Set(func(s *tool.Settings) {
			s.Exclusive = true // in the order of the calls
			s.Hooks.Pre = []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) {
				in.Arguments = bytes.ReplaceAll(in.Arguments, []byte("account"), []byte(account))
				return in, nil
			}}
		}))
		return agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look", tool.Set(func(s *tool.Settings) { s.Exclusive = true })), pay}}
	}
	dies := func() { // another process opens the session, so that this one cannot write
		next = must[*session.Session](t)(session.Open(t.Context(), &store, "s"))
		if err := next.SetMetadata(t.Context(), json.RawMessage(`{"by":"next"}`)); err != nil {
			t.Error(err)
		}
	}
	_, err := agentOf(model(calls(`p pay {"word":"account"}`, `l look {"word":"l"}`)), "old", dies).Run(t.Context(), "go", agent.In(first))
	if !errors.Is(err, session.ErrConflict) || did.String() != "pay:old" {
		t.Fatalf("%v, ran %q", err, did.String())
	}
	for range 2 {
		swapped := agentOf(model(), "new", func() {})
		if _, err = swapped.Resume(t.Context(), nil, agent.In(next)); !errors.Is(err, tool.ErrConflict) {
			t.Errorf("with other arguments: %v", err)
		}
	}
	if did.String() != "pay:old" {
		t.Errorf("with other arguments ran %q", did.String())
	}
	res, err := agentOf(model(), "old", func() {}).Resume(t.Context(), nil, agent.In(next))
	if err != nil || did.String() != "pay:old look:l" || res.Records[0].ErrorKind != tool.ErrorUncertain {
		t.Errorf("with the same arguments: %v, ran %q, %+v", err, did.String(), res.Records)
	}
}

// lossySession is the session of a process that dies after its calls ran. The journal has the
// results, but the conversation does not.
type lossySession struct {
	*session.Session
	dies bool
}

func (s *lossySession) SaveRecords(ctx context.Context, ms []dragoman.Message, state []byte, run string, records []tool.Record) error {
	if s.dies {
		return errDisk
	}
	return s.Session.SaveRecords(ctx, ms, state, run, records)
}

// dyingSession returns an in-memory session whose process dies after the first calls.
func dyingSession(t *testing.T) *lossySession {
	t.Helper()
	return &lossySession{must[*session.Session](t)(session.Create(t.Context(), new(session.Memory), session.Info{})), true}
}

// runTwice runs an agent until its process dies, and resumes the run in another process.
func runTwice(t *testing.T, a agent.Agent) (*agent.Result, error) {
	t.Helper()
	s := dyingSession(t)
	if _, err := a.Run(t.Context(), "go", agent.In(s)); !errors.Is(err, errDisk) {
		t.Fatalf("the first process: %v", err)
	}
	s.dies = false
	return a.Resume(t.Context(), nil, agent.In(s))
}

// A call failed and its process died. The failure policy applies to the resumed run, although
// the call does not run again.
func TestL14_FailurePolicyAppliesToReplayedFailures(t *testing.T) {
	for _, tc := range []struct {
		failure string
		raise   bool
		runs    int
		fails   bool
		lost    string
	}{
		{codes.FailureContinue, false, 2, false, "[]"},
		{codes.FailureDegrade, false, 1, false, "[fall]"},
		{codes.FailureFail, false, 1, true, "[]"},
		{codes.FailureContinue, true, 1, true, "[]"},
	} {
		runs := 0
		fall := tool.New("fall", "Fails.", func(context.Context, word) (string, error) { runs++; return "", errors.New("broken") },
			tool.Set(func(s *tool.Settings) { s.Failure = tc.failure }))
		a := agent.Agent{Model: model(calls("a fall"), calls("b fall")), Tools: []tool.Tool{fall}, Runner: &tool.Runner{RaiseOnError: tc.raise}}
		res, err := runTwice(t, a)
		if errors.Is(err, tool.ErrFailed) != tc.fails || !tc.fails && err != nil {
			t.Errorf("%s, raise %v: %v", tc.failure, tc.raise, err)
		}
		if runs != tc.runs || fmt.Sprint(res.Degraded) != tc.lost || !res.Records[0].Replayed {
			t.Errorf("%s, raise %v: ran %d times, lost %v, %+v", tc.failure, tc.raise, runs, res.Degraded, res.Records)
		}
	}
}

// A hook failed after the tool ran, and the process died. The replayed call has the same kind
// of error as before, so that the failure policy of the tool does not end the run.
func TestL14_ReplayedFailuresKeepTheirKind(t *testing.T) {
	runs := 0
	hook := toolopt.Post(func(context.Context, tool.Input, tool.Output) (tool.Output, error) {
		return tool.Output{}, errors.New("broken")
	})
	look := tool.New("look", "Looks.", func(context.Context, word) (string, error) { runs++; return "seen", nil },
		hook, tool.Set(func(s *tool.Settings) { s.Failure = codes.FailureFail }))
	a := agent.Agent{Model: model(calls("a look"), calls("b look")), Tools: []tool.Tool{look}}
	res, err := runTwice(t, a)
	if err != nil || runs != 2 {
		t.Fatalf("%v, ran %d times", err, runs)
	}
	for i, rec := range res.Records {
		if rec.ErrorKind != tool.ErrorHook || rec.Replayed != (i == 0) {
			t.Errorf("record %d: %+v", i, rec)
		}
	}
}

// A search found a tool and its process died. The resumed run offers the tool, because the
// result of the search says that it is loaded.
func TestL6_FoundToolsStayLoadedAfterACrash(t *testing.T) {
	var did counted
	m := model(calls(`s tool_search {"query":"dive"}`), calls(`d deep_dive {"word":"1"}`))
	a := agent.Agent{Model: m, Tools: []tool.Tool{
		did.tool("look"), did.tool("deep_dive", tool.Deferred()), did.tool("deep", tool.Deferred()), did.tool("climb", tool.Deferred()),
	}}
	res, err := runTwice(t, a)
	if err != nil || did.String() != "deep_dive:1" || !res.Records[0].Replayed {
		t.Errorf("%v, ran %q, %+v", err, did.String(), res.Records)
	}
	var sent []string
	for _, s := range m.asked[1].Tools {
		sent = append(sent, s.Name)
	}
	if got := strings.Join(sent, " "); got != "look read_tool_output tool_search deep_dive" {
		t.Errorf("sent %s", got)
	}
}

// A guardrail stopped the run because of a call, and the process died before the turn was
// stored. The journal has the result of the call, so the guardrail does not see it again:
// the run stays stopped, and no call runs.
func TestL7_GuardrailStopSurvivesACrash(t *testing.T) {
	stopped := func(name string, a agent.Agent, s *lossySession, did *counted, ran, results string) {
		t.Helper()
		asked := len(a.Model.(*scripted).asked)
		for range 2 {
			res, err := a.Resume(t.Context(), nil, agent.In(s))
			if !errors.Is(err, agent.ErrGuardrail) || !strings.Contains(err.Error(), "words") || !strings.Contains(err.Error(), "not these") || did.String() != ran {
				t.Errorf("%s: %v, ran %q", name, err, did.String())
			}
			if got := script(res.Messages); !strings.HasSuffix(got, results) {
				t.Errorf("%s:\n%s", name, got)
			}
		}
		if n := len(a.Model.(*scripted).asked); n != asked {
			t.Errorf("%s: the model was asked again", name)
		}
	}

	var did counted
	s := dyingSession(t)
	a := agent.Agent{
		Model: model(calls(`a look {"word":"x"}`, `b pay {"word":"y"}`)),
		Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
		Guardrails: agent.Guardrails{ToolOutput: []agent.ToolOutputGuardrail{{Name: "words", Check: func(_ context.Context, _ tool.Info, out tool.Output) (agent.Verdict, error) {
			bad := strings.Contains(out.Content[0].(*dragoman.Text).Text, "did x")
			return agent.Verdict{Stop: bad, Reason: "not these"}, nil
		}}}},
	}
	if _, err := a.Run(t.Context(), "go", agent.In(s)); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	s.dies = false
	stopped("at the output", a, s, &did, "look:x", "tool: result a ok result b error\n")

	did = counted{}
	s = dyingSession(t)
	checks := 0
	a = agent.Agent{
		Model: model(calls(`a pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
		Guardrails: agent.Guardrails{ToolInput: []agent.ToolGuardrail{{Name: "words", Check: func(context.Context, tool.Info, tool.Input) (agent.Verdict, error) {
			checks++
			return agent.Verdict{Stop: checks == 2, Reason: "not these"}, nil // after the approval
		}}}},
	}
	res, err := a.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	if _, err := a.Resume(t.Context(), nil, agent.In(s), agent.Approve(res.Pending[0])); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	s.dies = false
	stopped("at the input, after the approval", a, s, &did, "", "tool: result a error\n")
}
