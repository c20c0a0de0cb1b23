package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// fullDisk is a store that fails to save from the second time on.
type fullDisk struct {
	*session.Session
	saves int
}

var errDiskFull = errors.New("the disk is full")

func (f *fullDisk) Save(ctx context.Context, messages []dragoman.Message, state []byte) error {
	if f.saves++; f.saves > 1 {
		return errDiskFull
	}
	return f.Session.Save(ctx, messages, state)
}

func TestFailedSaveOfAPartialResponseIsReported(t *testing.T) {
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	broken := textResponse("half")
	broken.Error = &dragoman.APIError{Message: "it broke off"}
	_, err := agent.Agent{Model: model(broken)}.Run(t.Context(), "go", agent.In(&fullDisk{Session: s}))
	if !errors.Is(err, errDiskFull) || !strings.Contains(err.Error(), "it broke off") {
		t.Error(err)
	}
}

func TestErrorOfANamedAgentNamesTheTurn(t *testing.T) {
	var did counted
	a := agent.Agent{Name: "clerk", Model: model(calls("a look"), errors.New("down")), Tools: []tool.Tool{did.tool("look")}}
	if _, err := a.Run(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "clerk: turn 2: down") {
		t.Error(err)
	}
}

func TestResultNamesTheModelByItsWholeOrigin(t *testing.T) {
	for _, c := range []struct {
		origin *dragoman.Origin
		want   string
	}{
		{&dragoman.Origin{Provider: "p", Model: "m"}, "p/m"},
		{&dragoman.Origin{Provider: "p"}, "named"},
		{&dragoman.Origin{Model: "m"}, "named"},
		{nil, "named"},
	} {
		resp := textResponse("done")
		resp.Model, resp.Origin = "named", c.origin
		if res := must[*agent.Result](t)(agent.Agent{Model: model(resp)}.Run(t.Context(), "go")); res.Model != c.want {
			t.Errorf("%+v: %q, want %q", c.origin, res.Model, c.want)
		}
	}
}

func TestPendingCallsSurviveACancellationButNotAFailure(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		var did counted
		other := tool.New("other", "Cancels or fails.", func(ctx context.Context, _ word) (string, error) {
			if cancels {
				cancel()
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "", errors.New("no")
		}, tool.Set(func(s *tool.Settings) { s.Failure = codes.FailureFail }))
		a := agent.Agent{Model: model(calls("a other", "b ask")), Tools: []tool.Tool{other, did.tool("ask", tool.NeedsApproval())}}
		res, err := a.Run(ctx, "go")
		if errors.Is(err, agent.ErrInterrupted) != cancels || (len(res.Pending) == 1) != cancels || err == nil {
			t.Errorf("canceled %v: %v, %d calls are pending", cancels, err, len(res.Pending))
		}
		cancel()
	}
}

func TestLimitOfCallsCountsThoseOfEarlierTurns(t *testing.T) {
	var did counted
	m := model(calls("a look"), calls("b look", "c look"), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}, Limits: agent.Limits{ToolCalls: 2}}
	res, err := a.Run(t.Context(), "go")
	if did.String() != "look: look:" {
		t.Errorf("ran %q: %v %+v", did.String(), err, res)
	}
}

func TestT8_LimitsDecideWhetherARunCanSpill(t *testing.T) {
	for name, c := range map[string]struct {
		tool, box, runner tool.Limits
		want              bool
	}{
		"defaults":                      {want: true},
		"a toolbox without a bound":     {box: tool.Limits{Chars: -1, Items: -1}},
		"a runner without a bound":      {runner: tool.Limits{Chars: -1, Items: -1}},
		"parts by default":              {tool: tool.Limits{Chars: -1}, want: true},
		"parts of the toolbox":          {tool: tool.Limits{Chars: -1}, box: tool.Limits{Items: 3}, runner: tool.Limits{Items: -1}, want: true},
		"parts of the runner":           {tool: tool.Limits{Chars: -1}, runner: tool.Limits{Items: 3}, want: true},
		"tokens of the toolbox":         {tool: tool.Limits{Chars: -1}, box: tool.Limits{Tokens: 100}, want: true},
		"tokens of the runner":          {tool: tool.Limits{Chars: -1}, runner: tool.Limits{Tokens: 100}, want: true},
		"the tool's bound comes first":  {tool: tool.Limits{Chars: 10}, runner: tool.Limits{Chars: -1}, want: true},
		"the tool's tokens come first":  {tool: tool.Limits{Chars: -1, Tokens: 10}, box: tool.Limits{Tokens: -1}, runner: tool.Limits{Tokens: -1}, want: true},
		"the toolbox before the runner": {box: tool.Limits{Chars: 10}, runner: tool.Limits{Chars: -1}, want: true},
	} {
		var did counted
		m := model()
		a := agent.Agent{
			Model: m, Tools: []tool.Tool{did.tool("look", tool.Set(func(s *tool.Settings) { s.Limits = c.tool }))},
			Toolbox: tool.Config{Limits: c.box}, Runner: &tool.Runner{Limits: c.runner},
		}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if got := strings.Contains(specNames(m.asked[0]), toolname.ReadOutput); got != c.want {
			t.Errorf("%s: %q", name, specNames(m.asked[0]))
		}
	}
}

func TestLongestNameOfAnAgent(t *testing.T) {
	for n, ok := range map[int]bool{256: true, 257: false} {
		if err := (agent.Agent{Name: strings.Repeat("n", n), Model: model()}).Check(); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

type answers tool.Verdict

func (v answers) Approve(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
	return tool.Answer{Verdict: tool.Verdict(v)}, nil
}

func TestS1_OnlyDecisionsOfApproverAreStored(t *testing.T) {
	for verdict, want := range map[tool.Verdict]int{tool.Approved: 1, tool.Rejected: 1, tool.Undecided: 0} {
		s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
		var did counted
		a := agent.Agent{Model: model(calls("a ask")), Tools: []tool.Tool{did.tool("ask", tool.NeedsApproval())}, Runner: &tool.Runner{Approver: answers(verdict)}}
		_, _ = a.Run(t.Context(), "go", agent.In(s))
		n := 0
		for _, err := range s.Entries(t.Context(), session.Query{Kinds: []string{"decision"}}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("%v: %d decisions are stored, want %d", verdict, n, want)
		}
	}
}

func TestEndOfARunSaysWhetherItIsDone(t *testing.T) {
	var did counted
	for want, script := range map[string]*dragoman.Response{`"done":true`: textResponse("x"), `"done":false`: calls("a ask")} {
		a := agent.Agent{Model: model(script), Tools: []tool.Tool{did.tool("ask", tool.NeedsApproval())}}
		for ev, err := range a.Stream(t.Context(), "go") {
			if _, end := ev.(*agent.RunEnd); !end {
				continue
			}
			b := string(must[[]byte](t)(agent.MarshalEvent(ev, err)))
			if done := strings.Contains(b, `"done":true`); done != (want == `"done":true`) {
				t.Errorf("want %s in %s", want, b)
			}
		}
	}
}

func TestToolOutputGuardrailsReportReplacements(t *testing.T) {
	var did counted
	for _, stop := range []bool{false, true} {
		rail := agent.ToolOutputGuardrail{Name: "no words", Check: func(context.Context, tool.Info, tool.Output) (agent.Verdict, error) {
			return agent.Verdict{Replace: true, Stop: stop, Text: "hidden"}, nil
		}}
		a := agent.Agent{Model: model(calls("a look")), Tools: []tool.Tool{did.tool("look")}, Guardrails: agent.Guardrails{ToolOutput: []agent.ToolOutputGuardrail{rail}}}
		var stages []string
		var failed error
		for ev, err := range a.Stream(t.Context(), "go") {
			if g, ok := ev.(*agent.GuardrailTripped); ok {
				stages = append(stages, g.Stage)
			}
			failed = err
		}
		if len(stages) != 1 || stages[0] != "tool_output" || errors.Is(failed, agent.ErrGuardrail) != stop {
			t.Errorf("stop %v: stages %v, %v", stop, stages, failed)
		}
	}
}

type (
	azAZ09 struct {
		City string `json:"city"`
	}
	T123456789012345678901234567890123456789012345678901234567890123 struct {
		City string `json:"city"`
	}
	T1234567890123456789012345678901234567890123456789012345678901234 struct {
		City string `json:"city"`
	}
)

func TestOutputIsNamedAfterItsType(t *testing.T) {
	for want, run := range map[string]func(a agent.Agent) error{
		"azAZ09": func(a agent.Agent) error { _, _, err := agent.Generate[azAZ09](t.Context(), a, "go"); return err },
		"T123456789012345678901234567890123456789012345678901234567890123": func(a agent.Agent) error {
			_, _, err := agent.Generate[T123456789012345678901234567890123456789012345678901234567890123](t.Context(), a, "go")
			return err
		},
		"response": func(a agent.Agent) error {
			_, _, err := agent.Generate[T1234567890123456789012345678901234567890123456789012345678901234](t.Context(), a, "go")
			return err
		},
	} {
		m := model(textResponse(`{"city":"Oslo"}`))
		if err := run(agent.Agent{Model: m}); err != nil {
			t.Fatal(err)
		}
		if got := m.asked[0].Output.Name; got != want {
			t.Errorf("the schema is named %q, want %q", got, want)
		}
	}
}
