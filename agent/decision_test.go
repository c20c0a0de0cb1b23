package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// logged returns the entries of a session's log that concern calls, in order.
func logged(t *testing.T, s *session.Session) string {
	t.Helper()
	var out []string
	for e, err := range s.Entries(t.Context(), session.Query{Kinds: []string{"decision", "intent"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "intent" {
			var in struct{ Call, Tool string }
			if err := json.Unmarshal(e.Body, &in); err != nil {
				t.Fatal(err)
			}
			out = append(out, "begin "+in.Call)
			continue
		}
		r := must[tool.Ruling](t)(e.Decision())
		word := string(r.Answer.Verdict) + " " + r.Binding.CallID + string(r.Input.Arguments)
		if r.Answer.Edited != nil {
			word += ">" + string(r.Answer.Edited.Arguments)
		}
		if r.Sticky {
			word += " for good"
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

func newSession(t *testing.T) *session.Session {
	t.Helper()
	return must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
}

// Decisions are logged before the calls that they allow, for every kind of decider.
func TestS1_DecisionIsLoggedBeforeCallBegins(t *testing.T) {
	var did counted
	pay := did.tool("pay", tool.NeedsApproval())
	s := newSession(t)
	a := agent.Agent{Model: model(calls(`a pay {"word":"x"}`, `b pay {"word":"y"}`, `c pay {"word":"z"}`), calls(`d pay {"word":"w"}`)), Tools: []tool.Tool{pay}}
	res, _ := a.Run(t.Context(), "go", agent.In(s))
	p := res.Pending
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), agent.Reject(p[0], "no"),
		agent.Edit(p[1], tool.Input{Arguments: json.RawMessage(`{"word":"less"}`)}), agent.Always(p[2])))
	want := `rejected a{"word":"x"}, approved b{"word":"y"}>{"word":"less"}, approved c{"word":"z"} for good, begin b, begin c, begin d`
	if got := strings.Replace(logged(t, s), "begin c, begin b", "begin b, begin c", 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	s = newSession(t)
	yes := approver(func(*tool.ApprovalRequest) tool.Answer { return tool.Answer{Verdict: tool.Approved} })
	clerk := agent.Agent{Name: "clerk", Model: model(calls(`i pay {"word":"in"}`), textResponse("paid")), Tools: []tool.Tool{pay}, Runner: &tool.Runner{Approver: yes}}
	a = agent.Agent{Model: model(calls(`a pay {"word":"x"}`), calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{pay, clerk.AsTool()}, Runner: &tool.Runner{Approver: yes}}
	must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(s)))
	if got, want := logged(t, s), `approved a{"word":"x"}, begin a, begin p, approved i{"word":"in"}, begin i`; got != want {
		t.Errorf("with an approver: got\n%s\nwant\n%s", got, want)
	}
}

// A process that was killed after a decision leaves it in the log: the next process acts on
// it, and no human is asked again.
func TestS1_LoggedDecisionIsNotAskedForAgain(t *testing.T) {
	asked := 0
	for name, tc := range map[string]struct {
		approver tool.Approver
		nested   bool
	}{
		"of the run":         {},
		"of a run inside it": {nested: true},
		"of an approver": {approver: approver(func(*tool.ApprovalRequest) tool.Answer {
			asked++
			return tool.Answer{}
		})},
	} {
		var did counted
		pay := did.tool("pay", tool.NeedsApproval())
		s := newSession(t)
		a := agent.Agent{Model: model(calls(`a pay {"word":"x"}`)), Tools: []tool.Tool{pay}, Runner: &tool.Runner{Approver: tc.approver}}
		if tc.nested {
			clerk := agent.Agent{Name: "clerk", Model: model(calls(`a pay {"word":"x"}`), textResponse("paid")), Tools: []tool.Tool{pay}}
			a = agent.Agent{Model: model(calls(`p clerk {"task":"t"}`)), Tools: []tool.Tool{clerk.AsTool()}}
		}
		res, err := a.Run(t.Context(), "go", agent.In(s))
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		p := res.Pending[0]
		if err := s.Decide(t.Context(), tool.Ruling{Binding: p.Binding, Input: p.Input, Answer: tool.Answer{Verdict: tool.Approved}}); err != nil {
			t.Fatal(err)
		}
		asked = 0
		res, err = a.Resume(t.Context(), nil, agent.In(s))
		if err != nil || did.String() != "pay:x" || res.Output != "done" || asked != 0 {
			t.Errorf("%s: %v, ran %q, asked %d times", name, err, did.String(), asked)
		}
		if n := strings.Count(logged(t, s), "approved"); n != 1 {
			t.Errorf("%s: it is in the log %d times", name, n)
		}
	}
}

// A new decision has precedence over a logged one that has not taken effect.
func TestS1_NewDecisionReplacesLoggedDecision(t *testing.T) {
	var did counted
	s := newSession(t)
	a := agent.Agent{Model: model(calls(`a pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go", agent.In(s))
	p := res.Pending[0]
	if err := s.Decide(t.Context(), tool.Ruling{Binding: p.Binding, Input: p.Input, Answer: tool.Answer{Verdict: tool.Approved}}); err != nil {
		t.Fatal(err)
	}
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), agent.Reject(p, "no")))
	if did.String() != "" || !strings.HasSuffix(logged(t, s), `rejected a{"word":"x"}`) {
		t.Errorf("ran %q, %s", did.String(), logged(t, s))
	}
}

// A decision of an approver that cannot be stored does not take effect.
func TestS1_DecisionThatCannotBeStoredHasNoEffect(t *testing.T) {
	var did counted
	s := &undecided{Session: newSession(t)}
	a := agent.Agent{
		Model: model(calls(`a pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
		Runner: &tool.Runner{Approver: approver(func(*tool.ApprovalRequest) tool.Answer { return tool.Answer{Verdict: tool.Approved} })},
	}
	res, err := a.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) || did.String() != "" {
		t.Fatalf("%v, ran %q", err, did.String())
	}
	if _, err := a.Resume(t.Context(), nil, agent.In(s), agent.Approve(res.Pending[0])); !errors.Is(err, errFull) || did.String() != "" {
		t.Errorf("%v, ran %q", err, did.String())
	}
}

var errFull = errors.New("disk full")

// undecided is a session that cannot store decisions.
type undecided struct{ *session.Session }

func (undecided) Decide(context.Context, ...tool.Ruling) error { return errFull }
