package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

func TestA2_InterruptedRunReturnsPendingCallsAndState(t *testing.T) {
	var did counted
	script1 := func() *scripted { return model(calls("a look", `b pay {"word":"x"}`, `c pay {"word":"y"}`)) }
	a := agent.Agent{Model: script1(), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 2 || did.String() != "look:" {
		t.Fatalf("%v, %d pending, ran %q", err, len(res.Pending), did.String())
	}
	if res.Turns != 1 || res.State.Done() || len(res.State.Pending()) != 2 {
		t.Errorf("%+v", res)
	}
	// Another process: only the state, the agent and its tools.
	later := agent.Agent{Model: model(), Tools: a.Tools}
	res = must[*agent.Result](t)(later.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]), agent.Reject(res.Pending[1], "too dear")))
	if did.String() != "look: pay:x" || res.Output != "done" || res.Turns != 2 {
		t.Errorf("ran %q: %+v", did.String(), res)
	}
	want := "user: \"go\"\nassistant: call a look call b pay call c pay\ntool: result a ok result b ok result c error\nassistant: \"done\"\n"
	if got := script(res.Messages); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := script(later.Model.(*scripted).asked[0].Messages); !strings.HasPrefix(want, got) {
		t.Errorf("the model got\n%s", got)
	}
}

func TestA3_UndecidedCallsInterruptAgain(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`, `c pay {"word":"y"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	first := res.Pending
	res, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(first[1]))
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Binding != first[0].Binding || did.String() != "pay:y" {
		t.Fatalf("%v %+v, ran %q", err, res, did.String())
	}
	if res.Turns != 1 {
		t.Errorf("resuming spent a turn: %d", res.Turns)
	}
	res, err = a.Resume(t.Context(), stored(t, res.State))
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "pay:y" {
		t.Fatalf("without a decision: %v, ran %q", err, did.String())
	}
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Edit(res.Pending[0], tool.Input{Arguments: json.RawMessage(`{"word":"z"}`)})))
	if did.String() != "pay:y pay:z" || script(res.Messages) != "user: \"go\"\nassistant: call b pay call c pay\ntool: result b ok result c ok\nassistant: \"done\"\n" {
		t.Errorf("ran %q\n%s", did.String(), script(res.Messages))
	}
}

func TestA3_StickyDecisionsSurviveResumption(t *testing.T) {
	for name, tc := range map[string]struct {
		decide func(tool.Pending) agent.Option
		ran    string
		errs   int
	}{
		"always": {agent.Always, "pay:x pay:y", 0},
		"never":  {func(p tool.Pending) agent.Option { return agent.Never(p, "no") }, "", 2},
	} {
		var did counted
		a := agent.Agent{
			Model: model(calls(`b pay {"word":"x"}`), calls(`b pay {"word":"y"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
		}
		res, _ := a.Run(t.Context(), "go")
		res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), tc.decide(res.Pending[0])))
		if did.String() != tc.ran || strings.Count(script(res.Messages), "error") != tc.errs {
			t.Errorf("%s: ran %q\n%s", name, did.String(), script(res.Messages))
		}
		a.Model = model(calls(`b pay {"word":"x"}`))
		if _, err := a.Run(t.Context(), "go"); !errors.Is(err, agent.ErrInterrupted) {
			t.Errorf("%s: another run is not asked: %v", name, err)
		}
	}
}

// inputPolicy is a policy that requires a value from a human for every call.
type inputPolicy struct{}

func (inputPolicy) Version() string { return "1" }

func (inputPolicy) Decide(_ context.Context, q *tool.Question) (tool.Decision, error) {
	if q.Subject == codes.SubjectModelCall {
		return tool.Decision{Effect: tool.Allow}, nil
	}
	return tool.Decision{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "word", Prompt: "Which word?"}}, nil
}

func TestA3_PendingCallRunsWithGivenValue(t *testing.T) {
	for name, tc := range map[string]struct {
		decide func(tool.Pending) agent.Option
		ran    string
		reads  string // the result that the model reads, or the problem of the call that stays pending
	}{
		"a value":                  {func(p tool.Pending) agent.Option { return agent.Value(p, json.RawMessage(`"given"`)) }, "pay:given", "pay did given"},
		"a value of another type":  {func(p tool.Pending) agent.Option { return agent.Value(p, json.RawMessage(`7`)) }, "", "/word: must be string, is number"},
		"approved without a value": {agent.Approve, "", "a value for word is missing"},
		"sticky, without a value":  {agent.Always, "", "a value for word is missing"},
		"a no":                     {func(p tool.Pending) agent.Option { return agent.Reject(p, "never") }, "", "never"},
	} {
		var did counted
		a := agent.Agent{Model: model(calls(`b pay {"word":"asked"}`)), Tools: []tool.Tool{did.tool("pay")}, Runner: &tool.Runner{Policy: inputPolicy{}}}
		res, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Wanted == nil || res.Pending[0].Wanted.Prompt != "Which word?" {
			t.Fatalf("%s: %v %+v", name, err, res.Pending)
		}
		state := stored(t, res.State)
		if _, err := a.Resume(t.Context(), state, agent.Value(state.Pending()[0], json.RawMessage(`{`))); !errors.Is(err, policy.ErrDecision) || did.String() != "" {
			t.Errorf("%s: a value that is not valid JSON: %v, ran %q", name, err, did.String())
		}
		res, err = a.Resume(t.Context(), state, tc.decide(state.Pending()[0]))
		if len(res.Pending) == 1 && did.String() == "" {
			if res.Pending[0].Problem != tc.reads || !errors.Is(err, agent.ErrInterrupted) {
				t.Errorf("%s: %v, %+v", name, err, res.Pending[0])
			}
			continue
		}
		if err != nil || did.String() != tc.ran || res.Output != "done" {
			t.Errorf("%s: %v, ran %q", name, err, did.String())
			continue
		}
		if got := res.Messages[2].Parts[0].(*dragoman.ToolResult).Text(); !strings.Contains(got, tc.reads) {
			t.Errorf("%s: the model reads %q", name, got)
		}
	}
}

func TestA_DecisionOnCallThatIsNotPendingIsRefused(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	other := res.Pending[0]
	other.Binding.CallID = "z"
	if _, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]), agent.Approve(other)); !errors.Is(err, agent.ErrState) || did.String() != "" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	foreign := res.Pending[0]
	foreign.Binding.Run = "another"
	if _, err := a.Resume(t.Context(), stored(t, res.State), agent.Approve(foreign)); !errors.Is(err, agent.ErrState) || did.String() != "" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

func TestL13_StoredRunNeedsItsAgentAndTools(t *testing.T) {
	var did counted
	a := agent.Agent{Name: "payer", Model: model(calls("a look", `b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	state := stored(t, res.State)
	yes := agent.Approve(res.Pending[0])

	for name, other := range map[string]agent.Agent{
		"another agent":  {Name: "other", Model: model(), Tools: a.Tools},
		"a missing tool": {Name: "payer", Model: model(), Tools: a.Tools[:1]},
	} {
		if _, err := other.Resume(t.Context(), state, yes); !errors.Is(err, agent.ErrState) || did.String() != "look:" {
			t.Errorf("%s: %v, ran %q", name, err, did.String())
		}
	}
	changed := agent.Agent{Name: "payer", Model: model(), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval(), toolopt.Title("Pay much"))}}
	again, err := changed.Resume(t.Context(), state, yes)
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "look:" {
		t.Errorf("a changed tool must need approval again: %v, ran %q", err, did.String())
	}
	if len(again.Pending) != 1 || !strings.HasPrefix(again.Pending[0].Reason, "pay changed since approval was requested") {
		t.Errorf("the reason does not name the change: %+v", again.Pending)
	}
	for what, text := range map[string]string{
		"newer": strings.Replace(marshal(t, state), `"v":1`, `"v":2`, 1), "no state": `{"hello":1}`, "negative": strings.Replace(marshal(t, state), `"v":1`, `"v":-1`, 1), "no JSON": `{`,
		"no phase": strings.Replace(marshal(t, state), `"phase":"calling"`, `"phase":"dancing"`, 1),
		"no run":   strings.Replace(marshal(t, state), `"run":"`+res.Run+`"`, `"run":""`, 1),
	} {
		var s agent.State
		if err := json.Unmarshal([]byte(text), &s); err == nil || what != "no JSON" && !errors.Is(err, agent.ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An edited state that would call the model despite pending calls is refused, with and
// without a store.
func TestL13_EditedStateDoesNotSkipItsPendingCalls(t *testing.T) {
	var did counted
	m := model(calls(`b pay {"word":"x"}`))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	var edited agent.State
	text := strings.Replace(marshal(t, res.State), `"phase":"calling"`, `"phase":"asking"`, 1)
	if err := json.Unmarshal([]byte(text), &edited); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Resume(t.Context(), &edited); !errors.Is(err, agent.ErrState) || len(m.asked) != 1 || did.String() != "" {
		t.Errorf("%v, %d requests, ran %q", err, len(m.asked), did.String())
	}
	text = strings.Replace(marshal(t, res.State), `"phase":"calling"`, `"phase":"calling","cost":-5`, 1)
	if err := json.Unmarshal([]byte(text), &edited); !errors.Is(err, agent.ErrState) {
		t.Errorf("a negative cost: %v", err)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDecision27_QuirkI18_NewInputNeedsAbandonForPendingCalls(t *testing.T) {
	var did counted
	store := &memory{}
	a := agent.Agent{Model: model(calls("a look", `b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())}}
	if _, err := a.Run(t.Context(), "go", agent.In(store)); !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	if _, err := a.Run(t.Context(), "never mind", agent.In(store)); !errors.Is(err, agent.ErrUnfinished) || !strings.Contains(err.Error(), "pay") {
		t.Fatal(err)
	}
	res := must[*agent.Result](t)(a.Run(t.Context(), "never mind", agent.In(store), agent.Abandon()))
	if res.Output != "done" || did.String() != "look:" {
		t.Errorf("%+v, ran %q", res, did.String())
	}
	want := "user: \"go\"\nassistant: call a look call b pay\ntool: result a ok result b error\nuser: \"never mind\"\nassistant: \"done\"\n"
	if got := script(store.messages); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestA6_NestedApprovalsArePendingInOuterRun(t *testing.T) {
	var did counted
	inner := agent.Agent{
		Name: "clerk", Description: "Pays.", Model: model(calls("i look", `j pay {"word":"x"}`), textResponse("paid")),
		Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
	}
	outer := agent.Agent{
		Model: model(calls("o greet", `p clerk {"task":"pay the bill"}`)), Tools: []tool.Tool{did.tool("greet"), inner.AsTool()},
	}
	res, err := outer.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Binding.Key.Name != "pay" {
		t.Fatalf("%v %+v", err, res.Pending)
	}
	res, err = outer.Resume(t.Context(), stored(t, res.State))
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 {
		t.Fatalf("undecided, it interrupts again: %v", err)
	}
	before := stored(t, res.State)
	res = must[*agent.Result](t)(outer.Resume(t.Context(), before, agent.Approve(res.Pending[0])))
	if got := did.String(); got != "greet: look: pay:x" && got != "look: greet: pay:x" {
		t.Errorf("ran %q", got)
	}
	if res.Output != "done" || script(res.Messages) != "user: \"go\"\nassistant: call o greet call p clerk\ntool: result o ok result p ok\nassistant: \"done\"\n" {
		t.Errorf("%+v\n%s", res, script(res.Messages))
	}
	if task := inner.Model.(*scripted).asked[0].Messages; script(task) != "user: \"pay the bill\"\n" {
		t.Errorf("the nested run sees\n%s", script(task))
	}
}

func TestA6_OuterAndNestedCallsAreDecidedSeparately(t *testing.T) {
	var did counted
	pay := did.tool("pay", tool.NeedsApproval())
	inner := agent.Agent{Name: "clerk", Model: model(calls(`i pay {"word":"in1"}`, `j pay {"word":"in2"}`), textResponse("paid")), Tools: []tool.Tool{pay}}
	outer := agent.Agent{Model: model(calls(`o pay {"word":"out"}`, `p clerk {"task":"t"}`)), Tools: []tool.Tool{pay, inner.AsTool()}}
	res, _ := outer.Run(t.Context(), "go")
	if len(res.Pending) != 3 {
		t.Fatalf("%d wait", len(res.Pending))
	}
	edited := agent.Edit(res.Pending[1], tool.Input{Arguments: json.RawMessage(`{"word":"less"}`)})
	res, err := outer.Resume(t.Context(), stored(t, res.State), edited)
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 2 || did.String() != "pay:less" {
		t.Fatalf("%v, %d wait, ran %q", err, len(res.Pending), did.String())
	}
	res, err = outer.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]), agent.Reject(res.Pending[1], "enough"))
	if err != nil || did.String() != "pay:less pay:out" || res.Output != "done" {
		t.Errorf("%v, ran %q", err, did.String())
	}
	if said := inner.Model.(*scripted).asked[1].Messages; !strings.Contains(said[2].Parts[1].(*dragoman.ToolResult).Text(), "enough") {
		t.Errorf("the inner model does not read why:\n%s", script(said))
	}
}

func TestA6_NestedToolKnowsOuterAgents(t *testing.T) {
	who := ""
	pay := tool.New("pay", "Pays.", func(ctx context.Context, _ word) (string, error) {
		info, _ := tool.InfoFrom(ctx)
		who = strings.Join(info.Agent, "/")
		return "", nil
	})
	inner := agent.Agent{Name: "clerk", Model: model(calls("i pay")), Tools: []tool.Tool{pay}}
	must[*agent.Result](t)(agent.Agent{Name: "boss", Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{inner.AsTool()}}.Run(t.Context(), "go"))
	if who != "boss/clerk" {
		t.Error(who)
	}
}

func TestA6_NestedEffectsAreInOuterJournal(t *testing.T) {
	var did counted
	inner := agent.Agent{Name: "clerk", Model: model(calls("i pay"), textResponse("paid")), Tools: []tool.Tool{did.tool("pay")}}
	for name, own := range map[string]bool{"its store": false, "its runner's": true} {
		store, journal := &memory{}, &memory{}
		inner.Model = model(calls("i pay"), textResponse("paid"))
		outer := agent.Agent{Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{inner.AsTool()}}
		want := store
		if own {
			outer.Runner, want = &tool.Runner{Journal: journal}, journal
		}
		must[*agent.Result](t)(outer.Run(t.Context(), "go", agent.In(store)))
		if len(want.begun) != 2 || len(store.begun)+len(journal.begun) != 2 {
			t.Errorf("%s: %v %v", name, store.begun, journal.begun)
		}
	}
}

func TestA6_NestedRunInheritsNoStickyDecision(t *testing.T) {
	var did counted
	inner := agent.Agent{Name: "clerk", Model: model(calls(`j pay {"word":"in"}`), textResponse("paid")), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	outer := agent.Agent{
		Model: model(calls(`a pay {"word":"out"}`), calls(`p clerk {"task":"t"}`)),
		Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval()), inner.AsTool()},
	}
	res, _ := outer.Run(t.Context(), "go")
	res, err := outer.Resume(t.Context(), stored(t, res.State), agent.Always(res.Pending[0]))
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "pay:out" || len(res.Pending) != 1 {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

func TestA7_LedgerPrecedesApprover(t *testing.T) {
	var did counted
	asked := 0
	a := agent.Agent{
		Model: model(calls(`a pay {"word":"x"}`), calls(`b pay {"word":"y"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
		Runner: &tool.Runner{Approver: approver(func(req *tool.ApprovalRequest) tool.Answer {
			asked++
			if strings.Contains(string(req.Input.Arguments), "y") {
				return tool.Answer{}
			}
			return tool.Answer{Verdict: tool.Approved}
		})},
	}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "pay:x" || asked != 2 {
		t.Fatalf("%v, ran %q, asked %d", err, did.String(), asked)
	}
	must[*agent.Result](t)(a.Resume(t.Context(), res.State, agent.Approve(res.Pending[0])))
	if did.String() != "pay:x pay:y" || asked != 2 {
		t.Errorf("ran %q, asked %d", did.String(), asked)
	}
}

type approver func(*tool.ApprovalRequest) tool.Answer

func (f approver) Approve(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	return f(req), nil
}

var _ dragoman.Model = (*scripted)(nil)

func TestResumingFinishedRunReturnsItsOutput(t *testing.T) {
	store := &memory{}
	a := agent.Agent{Model: model(textResponse("hi"))}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(store)))
	for _, state := range []*agent.State{nil, res.State} {
		again := must[*agent.Result](t)(a.Resume(t.Context(), state, agent.In(store)))
		if again.Output != "hi" || again.Turns != 1 || len(store.messages) != 2 {
			t.Errorf("%+v", again)
		}
	}
	if _, err := a.Resume(t.Context(), nil); !errors.Is(err, agent.ErrState) {
		t.Error(err)
	}
	if _, err := a.Resume(t.Context(), nil, agent.In(&memory{})); !errors.Is(err, agent.ErrState) {
		t.Error(err)
	}
	if _, err := a.Run(t.Context(), "go", agent.In(store), agent.ID(res.Run)); !errors.Is(err, agent.ErrState) {
		t.Errorf("two runs with one id: %v", err)
	}
}

func TestStoredStateListsPendingCalls(t *testing.T) {
	var did counted
	store := &memory{}
	if s, err := agent.LoadState(t.Context(), store); err != nil || s != nil || !s.Done() || s.Pending() != nil || s.Run() != "" || s.Partial() != "" {
		t.Errorf("nothing was stored: %+v %v", s, err)
	}
	a := agent.Agent{Model: model(calls(`b pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	_, _ = a.Run(t.Context(), "go", agent.In(store))
	s := must[*agent.State](t)(agent.LoadState(t.Context(), store))
	if len(s.Pending()) != 1 || s.Pending()[0].Tool() != "pay" || s.Done() {
		t.Fatalf("%+v", s)
	}
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store), agent.Approve(s.Pending()[0])))
	if s = must[*agent.State](t)(agent.LoadState(t.Context(), store)); !s.Done() || did.String() != "pay:x" {
		t.Errorf("%+v, ran %q", s, did.String())
	}
}

// A sticky answer of a human is stored with the run: the process that resumes the run does
// not ask again.
func TestA3_StickyApproverAnswersSurviveResumption(t *testing.T) {
	for _, tc := range []struct {
		answer, want string
		stored       bool
	}{
		{"always\n", "pay:x pay:y", true},
		{"always\n", "pay:x pay:y", false},
		{"never too much\n", "", true},
		{"never too much\n", "", false},
	} {
		var did counted
		asked := 0
		with := func(m *scripted) agent.Agent {
			prompt := policy.NewPrompt(strings.NewReader(tc.answer), io.Discard)
			prompt.Ledger = new(policy.Ledger)
			ask := policy.ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
				asked++
				return prompt.Approve(ctx, req)
			})
			return agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}, Runner: &tool.Runner{Approver: policy.First(prompt.Ledger, ask)}}
		}
		var in []agent.Option
		if tc.stored {
			in = append(in, agent.In(must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))))
		}
		res, err := with(model(calls(`a pay {"word":"x"}`), errors.New("broken"))).Run(t.Context(), "go", in...)
		if err == nil || asked != 1 {
			t.Fatalf("%q: asked %d times, %v", tc.answer, asked, err)
		}
		var state *agent.State
		if !tc.stored {
			state = new(agent.State)
			if err := json.Unmarshal(must[[]byte](t)(json.Marshal(res.State)), state); err != nil {
				t.Fatal(err)
			}
		}
		_, err = with(model(calls(`b pay {"word":"y"}`))).Resume(t.Context(), state, in...)
		if err != nil || asked != 1 || did.String() != tc.want {
			t.Errorf("%q, stored %v: asked %d times, ran %q, %v", tc.answer, tc.stored, asked, did.String(), err)
		}
	}
}

// A decision that cannot be used changes nothing: the call stays pending and says why, also in a
// session, and the next decision counts.
func TestA3_InvalidEditLeavesTheCallPending(t *testing.T) {
	edit := func(p tool.Pending, args string) agent.Option {
		return agent.Edit(p, tool.Input{Arguments: json.RawMessage(args)})
	}
	for name, again := range map[string]func(tool.Pending) (agent.Option, string){
		"edited well": func(p tool.Pending) (agent.Option, string) { return edit(p, `{"word":"less"}`), "pay:less" },
		"approved":    func(p tool.Pending) (agent.Option, string) { return agent.Approve(p), "pay:much" },
		"always":      func(p tool.Pending) (agent.Option, string) { return agent.Always(p), "pay:much" },
		"rejected":    func(p tool.Pending) (agent.Option, string) { return agent.Reject(p, "no"), "" },
	} {
		for _, inSession := range []bool{false, true} {
			var did counted
			m := model(calls(`b pay {"word":"much"}`), textResponse("done"))
			a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
			var opts []agent.Option
			if inSession {
				opts = append(opts, agent.In(must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))))
			}
			res, err := a.Run(t.Context(), "go", opts...)
			resume := func(more ...agent.Option) {
				t.Helper()
				if state := res.State; inSession {
					res, err = a.Resume(t.Context(), nil, append(more, opts...)...)
				} else {
					res, err = a.Resume(t.Context(), stored(t, state), more...)
				}
			}
			resume(edit(res.Pending[0], `{"word":7}`))
			for range 2 {
				if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Problem != "/word: must be string, is number" || did.String() != "" || len(m.asked) != 1 {
					t.Fatalf("%s: %v, ran %q, %+v", name, err, did.String(), res.Pending)
				}
				resume() // without a new decision
			}
			option, want := again(res.Pending[0])
			if resume(option); err != nil || res.Output != "done" || did.String() != want {
				t.Errorf("%s, in a session %v: %v, ran %q", name, inSession, err, did.String())
			}
		}
	}
}
