package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

func TestL5_FirstHandoffWinsAfterOtherTools(t *testing.T) {
	var did counted
	math := agent.Agent{Name: "Math Tutor", Description: "Knows numbers.", Model: model(calls("x count"), textResponse("42")), Instructions: "count", Tools: []tool.Tool{did.tool("count")}}
	art := agent.Agent{Name: "art", Model: model()}
	desk := agent.Agent{
		Name: "desk", Model: model(calls("a transfer_to_art", "b look", "c transfer_to_math_tutor"), textResponse("never")), Tools: []tool.Tool{did.tool("look")},
		Handoffs: []agent.Handoff{{To: &math}, {To: &art}},
	}
	res, err := desk.Run(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if res.Agent != "art" || did.String() != "look:" {
		t.Errorf("%s, ran %q\n%s", res.Agent, did.String(), script(res.Messages))
	}
	if !strings.Contains(script(res.Messages), "result a ok result b ok result c error") {
		t.Error(script(res.Messages))
	}
	desk.Model = model(calls("a transfer_to_math_tutor"))
	var events []string
	for ev, err := range desk.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := ev.(*agent.HandedOff); ok {
			events = append(events, h.From+">"+h.To)
		}
		if end, ok := ev.(*agent.RunEnd); ok {
			res = end.Result
		}
	}
	if res.Agent != "Math Tutor" || res.Output != "42" || did.String() != "look: count:" || strings.Join(events, "") != "desk>Math Tutor" {
		t.Errorf("%+v, ran %q, %q", res, did.String(), events)
	}
	asked := math.Model.(*scripted).asked
	if asked[0].Instructions[0].(*dragoman.Text).Text != "count" || specNames(asked[0]) != "count read_tool_output" {
		t.Errorf("%+v", asked[0])
	}
}

func TestL5_FilterDoesNotChangeStoredConversation(t *testing.T) {
	var did counted
	next := agent.Agent{Name: "next", Model: model(calls("x look"), textResponse("ok")), Tools: []tool.Tool{did.tool("look", tool.NeedsApproval())}}
	first := agent.Agent{Model: model(calls("a transfer_to_next")), Handoffs: []agent.Handoff{{To: &next, Filter: func([]dragoman.Message) []dragoman.Message {
		return []dragoman.Message{dragoman.UserText("(short)")}
	}}}}
	res, err := first.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	res = must[*agent.Result](t)(first.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if len(res.Messages) != 6 || res.Agent != "next" {
		t.Errorf("kept\n%s", script(res.Messages))
	}
	if got := script(next.Model.(*scripted).asked[1].Messages); got != "user: \"(short)\"\nassistant: call x look\ntool: result x ok\n" {
		t.Errorf("seen\n%s", got)
	}
}

func TestL5_FilterGetsViewOfPreviousAgent(t *testing.T) {
	var shown string
	third := agent.Agent{Name: "third", Model: model()}
	second := agent.Agent{Name: "second", Model: model(calls("b to_third")), Handoffs: []agent.Handoff{{To: &third, Name: "to_third", Filter: func(ms []dragoman.Message) []dragoman.Message {
		shown = script(ms)
		return ms
	}}}}
	first := agent.Agent{Name: "first", Model: model(calls("a to_second")), Handoffs: []agent.Handoff{{To: &second, Name: "to_second", Filter: func([]dragoman.Message) []dragoman.Message {
		return []dragoman.Message{dragoman.UserText("in short")}
	}}}}
	must[*agent.Result](t)(first.Run(t.Context(), "secret"))
	if shown != "user: \"in short\"\nassistant: call b to_third\ntool: result b ok\n" {
		t.Errorf("the second filter sees\n%s", shown)
	}
}

func TestL5_PolicyAppliesToHandoffs(t *testing.T) {
	next := agent.Agent{Name: "next", Model: model()}
	first := agent.Agent{Model: model(calls("a transfer_to_next")), Handoffs: []agent.Handoff{{To: &next, NeedsApproval: true}}}
	res, err := first.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	res = must[*agent.Result](t)(first.Resume(t.Context(), stored(t, res.State), agent.Reject(res.Pending[0], "stay")))
	if res.Agent != "agent" || res.Output != "done" {
		t.Errorf("%+v", res)
	}
}

func TestL7_GuardrailsLetPassReplaceOrStop(t *testing.T) {
	verdict := func(v agent.Verdict) func(context.Context, string) (agent.Verdict, error) {
		return func(context.Context, string) (agent.Verdict, error) { return v, nil }
	}
	for name, tc := range map[string]struct {
		rails agent.Guardrails
		want  string
		stage string
	}{
		"passed":   {rails: agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "g", Check: verdict(agent.Verdict{})}}}, want: "secret"},
		"replaced": {rails: agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "g", Check: verdict(agent.Verdict{Replace: true, Text: "—"})}}}, want: "—"},
		"stopped at the end": {
			rails: agent.Guardrails{Output: []agent.OutputGuardrail{{Name: "g", Check: verdict(agent.Verdict{Stop: true, Reason: "leak"})}}}, stage: "output",
		},
		"stopped at the start": {rails: agent.Guardrails{Input: []agent.InputGuardrail{{Name: "g", Check: func(context.Context, []dragoman.Message) (agent.Verdict, error) {
			return agent.Verdict{Stop: true}, nil
		}}}}, stage: "input"},
		"broken": {rails: agent.Guardrails{Input: []agent.InputGuardrail{{Name: "g", Check: func(context.Context, []dragoman.Message) (agent.Verdict, error) {
			panic("boo")
		}}}}, stage: "input"},
	} {
		m := model(textResponse("secret"))
		res, err := agent.Agent{Model: m, Guardrails: tc.rails}.Run(t.Context(), "go")
		var stop *agent.GuardrailError
		switch {
		case tc.stage == "" && (err != nil || res.Output != tc.want || res.Messages[1].Text() != tc.want):
			t.Errorf("%s: %v %+v", name, err, res)
		case tc.stage != "" && (!errors.As(err, &stop) || !errors.Is(err, agent.ErrGuardrail) || stop.Stage != tc.stage || stop.Name != "g"):
			t.Errorf("%s: %v", name, err)
		case tc.stage == "input" && len(m.asked) > 0:
			t.Errorf("%s: the model was asked", name)
		}
		if again, err := (agent.Agent{Model: m, Guardrails: tc.rails}).Resume(t.Context(), stored(t, res.State)); errors.Is(err, agent.ErrGuardrail) != (tc.stage != "") || again.Output != tc.want {
			t.Errorf("%s: resumed: %v %+v", name, err, again)
		}
	}
}

func TestL7_GuardrailReplacesInput(t *testing.T) {
	m := model()
	rail := agent.InputGuardrail{Name: "g", Check: func(context.Context, []dragoman.Message) (agent.Verdict, error) {
		return agent.Verdict{Replace: true, Text: "harmless"}, nil
	}}
	res := must[*agent.Result](t)(agent.Agent{Model: m, Guardrails: agent.Guardrails{Input: []agent.InputGuardrail{rail}}}.Run(t.Context(), "secret"))
	if script(m.asked[0].Messages) != "user: \"harmless\"\n" || strings.Contains(script(res.Messages), "secret") {
		t.Errorf("asked\n%skept\n%s", script(m.asked[0].Messages), script(res.Messages))
	}
}

func TestL7_ToolGuardrailsRunBeforeApprovalAndBeforeTool(t *testing.T) {
	var did counted
	var seen []string
	shut := false
	rails := agent.Guardrails{
		ToolInput: []agent.ToolGuardrail{{Name: "in", Check: func(_ context.Context, c tool.Info, in tool.Input) (agent.Verdict, error) {
			seen = append(seen, c.CallID+string(in.Arguments))
			return agent.Verdict{Replace: shut, Text: "not that"}, nil
		}}},
		ToolOutput: []agent.ToolOutputGuardrail{{Name: "out", Check: func(_ context.Context, _ tool.Info, out tool.Output) (agent.Verdict, error) {
			return agent.Verdict{Replace: true, Text: "(withheld)"}, nil
		}}},
	}
	a := agent.Agent{Model: model(calls(`a pay {"word":"x"}`)), Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())}, Guardrails: rails}
	res, _ := a.Run(t.Context(), "go")
	if len(seen) != 1 || len(res.Pending) != 1 {
		t.Fatalf("%q, %d pending", seen, len(res.Pending))
	}
	state := stored(t, res.State)
	ok := must[*agent.Result](t)(a.Resume(t.Context(), state, agent.Approve(res.Pending[0])))
	if len(seen) != 2 || did.String() != "pay:x" || !strings.Contains(ok.Records[0].Output, "(withheld)") || strings.Contains(ok.Records[0].Output, "did") {
		t.Errorf("%q, ran %q, %q", seen, did.String(), ok.Records[0].Output)
	}
	shut = true
	a.Model = model()
	late := must[*agent.Result](t)(a.Resume(t.Context(), stored(t, state), agent.Approve(res.Pending[0])))
	if did.String() != "pay:x" || late.Records[0].OK || !strings.Contains(late.Records[0].Error, "not that") {
		t.Errorf("ran %q: %+v", did.String(), late.Records[0])
	}
}

func TestL7_ToolGuardrailStopsRun(t *testing.T) {
	var did counted
	a := agent.Agent{
		Model: model(calls("a look", "b pay")), Tools: []tool.Tool{did.tool("look"), did.tool("pay")},
		Guardrails: agent.Guardrails{ToolInput: []agent.ToolGuardrail{{Name: "g", Check: func(_ context.Context, c tool.Info, _ tool.Input) (agent.Verdict, error) {
			return agent.Verdict{Stop: c.Key.Name == "pay", Reason: "no money"}, nil
		}}}},
	}
	res, err := a.Run(t.Context(), "go")
	var stop *agent.GuardrailError
	if !errors.As(err, &stop) || stop.Reason != "no money" || did.String() != "look:" || !strings.Contains(script(res.Messages), "result a ok result b error") {
		t.Errorf("%v, ran %q\n%s", err, did.String(), script(res.Messages))
	}
	m := model()
	a.Model = m
	if _, err := a.Resume(t.Context(), stored(t, res.State)); !errors.Is(err, agent.ErrGuardrail) || len(m.asked) != 0 {
		t.Errorf("resuming bypassed the guardrail: %v, %d model calls", err, len(m.asked))
	}
}

// A filter, or Compact, may leave out calls without their results, or the other way around: APIs
// refuse both. The other half is left out, too.
func TestL5_HalfACallIsLeftOut(t *testing.T) {
	without := func(role dragoman.Role) func([]dragoman.Message) []dragoman.Message {
		return func(ms []dragoman.Message) []dragoman.Message {
			return slices.DeleteFunc(ms, func(m dragoman.Message) bool { return m.Role == role })
		}
	}
	for name, tc := range map[string]struct {
		cut  func([]dragoman.Message) []dragoman.Message
		want string // what is sent; empty if nothing is left
	}{
		"no results":   {without(dragoman.RoleTool), "user: \"go\"\nassistant: \"I will\"\n"},
		"no calls":     {without(dragoman.RoleAssistant), "user: \"go\"\n"},
		"only results": {func(ms []dragoman.Message) []dragoman.Message { return ms[len(ms)-1:] }, ""},
		"one result": {func(ms []dragoman.Message) []dragoman.Message {
			ms[2].Parts = ms[2].Parts[1:2]
			return ms
		}, "user: \"go\"\nassistant: \"I will\" call b look\ntool: result b ok\n"},
		"no result, but text": {func(ms []dragoman.Message) []dragoman.Message {
			ms[1].Parts = append(ms[1].Parts, &dragoman.Text{Text: "more"})
			return ms[:2]
		}, "user: \"go\"\nassistant: \"I will\" \"more\"\n"},
		"no result of a turn that only thought": {func(ms []dragoman.Message) []dragoman.Message {
			thought := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Reasoning{Text: "hm"}}}
			ms[1].Parts = ms[1].Parts[1:]
			return []dragoman.Message{ms[0], thought, ms[1]}
		}, "user: \"go\"\n"},
		"everything": {func(ms []dragoman.Message) []dragoman.Message { return ms }, "user: \"go\"\nassistant: \"I will\" call a transfer_to_next call b look\ntool: result a ok result b ok\n"},
	} {
		t.Run(name, func(t *testing.T) {
			first := calls("a transfer_to_next", "b look")
			first.Output[0].Parts = slices.Insert(first.Output[0].Parts, 0, dragoman.Part(&dragoman.Text{Text: "I will"}))
			var did counted
			m := model()
			next := &agent.Agent{Name: "next", Model: m}
			a := agent.Agent{Model: model(first), Tools: []tool.Tool{did.tool("look")}, Handoffs: []agent.Handoff{{To: next, Name: "transfer_to_next", Filter: tc.cut}}}
			_, err := a.Run(t.Context(), "go")
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "returned no messages") {
					t.Errorf("the filter: %v", err)
				}
				return
			}
			if err != nil || script(m.asked[0].Messages) != tc.want {
				t.Errorf("the filter: %v, sent\n%s", err, script(m.asked[0].Messages))
			}
			m = model()
			next.Model, a.Handoffs[0].Filter, a.Model = m, nil, model(first)
			next.Compact = func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) { return tc.cut(ms), nil }
			if _, err := a.Run(t.Context(), "go"); err != nil || script(m.asked[0].Messages) != tc.want {
				t.Errorf("Compact: %v, sent\n%s", err, script(m.asked[0].Messages))
			}
		})
	}
}
