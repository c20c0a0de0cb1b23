package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

// The tests in this file pin bounds and branches that mutation testing showed to be untested.

func TestInstructWritesTheInstructionsOfEachTurn(t *testing.T) {
	var did counted
	m := model(calls("a look"))
	a := agent.Agent{
		Model: m, Tools: []tool.Tool{did.tool("look")}, Instructions: "not used",
		Instruct: func(_ context.Context, turn agent.Turn) (string, error) {
			return fmt.Sprint("after turn ", turn.Number), nil
		},
	}
	must[*agent.Result](t)(a.Run(t.Context(), "go"))
	for i, want := range []string{"after turn 0", "after turn 1"} {
		if got := m.asked[i].Instructions[0].(*dragoman.Text).Text; got != want {
			t.Errorf("request %d: %q, want %q", i+1, got, want)
		}
	}
	broken := errors.New("no template")
	m = model()
	a = agent.Agent{Model: m, Instruct: func(context.Context, agent.Turn) (string, error) { return "", broken }}
	if _, err := a.Run(t.Context(), "go"); !errors.Is(err, broken) || !strings.Contains(err.Error(), "Instruct") || len(m.asked) != 0 {
		t.Errorf("%v, %d requests", err, len(m.asked))
	}
}

func TestL4_OnlyForcedChoiceIsReset(t *testing.T) {
	for mode, reset := range map[string]bool{dragoman.ChoiceTool: true, dragoman.ChoiceRequired: true, dragoman.ChoiceAuto: false} {
		var did counted
		m := model(calls("a look"))
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}
		a.Settings.ToolChoice = &dragoman.ToolChoice{Mode: mode, Tools: []dragoman.ToolRef{{Name: "look"}}}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if (m.asked[1].ToolChoice == nil) != reset {
			t.Errorf("%s: the second request has %+v", mode, m.asked[1].ToolChoice)
		}
	}
}

func TestApprovedCallRunsUnderALowerLimit(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls("a look", "b ask")), Tools: []tool.Tool{did.tool("look"), did.tool("ask", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	a.Limits.ToolCalls = 1
	res, err = a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0]))
	if did.String() != "look: ask:" || !is[*agent.LimitError](err) {
		t.Errorf("ran %q: %v\n%s", did.String(), err, script(res.Messages))
	}
}

func TestL11_ProgressEventsHaveTheirParts(t *testing.T) {
	ev := &agent.ToolEvent{Turn: 1, Event: tool.Progress{CallRef: tool.CallRef{CallID: "a"}, Parts: []dragoman.Part{&dragoman.Text{Text: "half way"}}}}
	if b := must[[]byte](t)(agent.MarshalEvent(ev, nil)); !strings.Contains(string(b), "half way") || !strings.Contains(string(b), `"progress"`) {
		t.Errorf("the event is %s", b)
	}
	ev.Event = tool.Progress{Parts: []dragoman.Part{nil}}
	if b, err := agent.MarshalEvent(ev, nil); err == nil {
		t.Errorf("a part that is nil is written as %s", b)
	}
}

type listOf[T any] struct {
	Items []T `json:"items"`
}

func TestL10_OutputNameOfGenericTypeIsValid(t *testing.T) {
	m := model(textResponse(`{"items":[{"word":"x"}]}`))
	if _, _, err := agent.Generate[listOf[word]](t.Context(), agent.Agent{Model: m}, "go"); err != nil {
		t.Fatal(err)
	}
	if got := m.asked[0].Output.Name; got != "listOfgithubcomdragoman-godragomanagent_testword" {
		t.Errorf("the schema is named %q", got)
	}
}

func TestQuirkF7_JSONIsFoundAfterABoundedPrelude(t *testing.T) {
	const prelude = 4096
	for at, ok := range map[int]bool{prelude: true, prelude + 1: false} {
		answer := strings.Repeat("x", at) + `[x {"word":"y"}`
		a := agent.Agent{Model: model(textResponse(answer)), Limits: agent.Limits{Corrections: -1}}
		if got, _, err := agent.Generate[word](t.Context(), a, "go"); (err == nil) != ok || ok && got.Word != "y" {
			t.Errorf("a bracket at %d: %+v, %v", at, got, err)
		}
	}
}

func TestImmediateToolsRunInPlaceWithoutGuardrails(t *testing.T) {
	same := func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) { return out, nil }
	inPlace := tool.New("now", "Answers at once.", func(context.Context, word) (string, error) { return "x", nil }, toolopt.Immediately())
	input := agent.ToolGuardrail{Name: "in", Check: func(context.Context, tool.Info, tool.Input) (agent.Verdict, error) { return agent.Verdict{}, nil }}
	output := agent.ToolOutputGuardrail{Name: "out", Check: func(context.Context, tool.Info, tool.Output) (agent.Verdict, error) { return agent.Verdict{}, nil }}
	for name, c := range map[string]struct {
		rails agent.Guardrails
		want  bool
	}{
		"none":   {agent.Guardrails{}, false},
		"input":  {agent.Guardrails{ToolInput: []agent.ToolGuardrail{input}}, true},
		"output": {agent.Guardrails{ToolOutput: []agent.ToolOutputGuardrail{output}}, true},
	} {
		started := make(chan struct{}, 100)
		a := agent.Agent{Model: model(calls("a now")), Tools: []tool.Tool{inPlace}, Guardrails: c.rails, Toolbox: tool.Config{Hooks: tool.Hooks{Post: []tool.PostHook{same}, Immediate: true}}, Go: func(task func()) {
			started <- struct{}{}
			go task()
		}}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if got := len(started) > 0; got != c.want {
			t.Errorf("guardrails %s: the run started %d goroutines", name, len(started))
		}
	}
}

func TestL7_ImmediateHooksLeaveGuardrailsTheirTimeout(t *testing.T) {
	waits := func(ctx context.Context) (agent.Verdict, error) { <-ctx.Done(); return agent.Verdict{}, ctx.Err() }
	for name, rails := range map[string]agent.Guardrails{
		"input": {ToolInput: []agent.ToolGuardrail{{Name: "in", Check: func(ctx context.Context, _ tool.Info, _ tool.Input) (agent.Verdict, error) { return waits(ctx) }}}},
		"output": {ToolOutput: []agent.ToolOutputGuardrail{{Name: "out", Check: func(ctx context.Context, _ tool.Info, _ tool.Output) (agent.Verdict, error) {
			return waits(ctx)
		}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var did counted
			a := agent.Agent{
				Model: model(calls("a look")), Tools: []tool.Tool{did.tool("look", toolopt.Immediately())}, Guardrails: rails,
				Toolbox: tool.Config{Hooks: tool.Hooks{Immediate: true, Timeout: time.Minute}},
			}
			res, err := a.Run(t.Context(), "go")
			if took := time.Since(began); took != time.Minute {
				t.Errorf("%s: the run took %v: %v\n%s", name, took, err, recordLines(res.Records))
			}
		})
	}
}

func TestI9_GeneratedHandoffNamesDiffer(t *testing.T) {
	agents := []agent.Handoff{
		{To: &agent.Agent{Name: "front desk", Model: model(textResponse("one"))}},
		{To: &agent.Agent{Name: "front_desk", Model: model(textResponse("two"))}},
	}
	a := agent.Agent{Model: model(calls("a transfer_to_front_desk_2")), Handoffs: agents}
	if res := must[*agent.Result](t)(a.Run(t.Context(), "go")); res.Agent != "front_desk" || res.Output != "two" {
		t.Errorf("%s said %q", res.Agent, res.Output)
	}
}

// nilSpecTool is a tool without a spec.
type nilSpecTool struct{ tool.Tool }

func (nilSpecTool) Spec() *dragoman.ToolSpec { return nil }

func TestMissingToolOfAnAgentWithHandoffsIsReported(t *testing.T) {
	for _, missing := range []tool.Tool{nil, nilSpecTool{failing("x")}} {
		a := agent.Agent{Model: model(), Tools: []tool.Tool{missing}, Handoffs: []agent.Handoff{{To: &agent.Agent{Name: "b", Model: model()}}}}
		if err := a.Check(); !errors.Is(err, agent.ErrAgent) {
			t.Error(err)
		}
	}
}

func TestLimitsEndARunWhenTheyAreReached(t *testing.T) {
	for name, c := range map[string]struct {
		limits agent.Limits
		limit  string // the limit that ends the run; empty if none does
	}{
		"the time":        {agent.Limits{Time: time.Minute}, "time"},
		"more time":       {agent.Limits{Time: time.Minute + 1}, ""},
		"the cost":        {agent.Limits{Cost: 1.5}, "cost"},
		"a higher cost":   {agent.Limits{Cost: 1.75}, ""},
		"no limit":        {agent.Limits{Time: -1}, ""},
		"the default":     {agent.Limits{}, ""},
		"the tokens":      {agent.Limits{Tokens: 15}, "tokens"},
		"one token more":  {agent.Limits{Tokens: 16}, ""},
		"the calls":       {agent.Limits{ToolCalls: 1}, "tool_calls"},
		"one call more":   {agent.Limits{ToolCalls: 2}, ""},
		"the turns":       {agent.Limits{Turns: 1}, "turns"},
		"one turn more":   {agent.Limits{Turns: 2}, ""},
		"blanks disabled": {agent.Limits{EmptyResponses: -1}, ""},
	} {
		clock := time.Unix(0, 0)
		work := tool.New("work", "Takes a minute.", func(context.Context, word) (string, error) { clock = clock.Add(time.Minute); return "done", nil })
		a := agent.Agent{
			Model: model(calls("a work")), Tools: []tool.Tool{work}, Limits: c.limits,
			Now: func() time.Time { return clock }, Price: func(dragoman.Usage) float64 { return 1.5 },
		}
		_, err := a.Run(t.Context(), "go")
		var reached *agent.LimitError
		if errors.As(err, &reached) != (c.limit != "") || reached != nil && reached.Limit != c.limit || reached == nil && err != nil {
			t.Errorf("%s: %v, want the limit %q", name, err, c.limit)
		}
	}
}

func TestL9_WhitespaceInArgumentsIsIgnored(t *testing.T) {
	var did counted
	m := model(calls(`a look {"word":"x"}`), calls(`b look { "word" : "x" }`))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}, Limits: agent.Limits{Repeats: 1}}
	if _, err := a.Run(t.Context(), "go"); !is[*agent.LoopError](err) || !strings.Contains(err.Error(), "look was called 2 times with the same arguments") {
		t.Error(err)
	}
}

func TestL9_ErrorOfFailedTurnsNamesNoTool(t *testing.T) {
	a := agent.Agent{Model: model(calls("a fall")), Tools: []tool.Tool{failing("fall")}, Limits: agent.Limits{ErrorTurns: 1}}
	if _, err := a.Run(t.Context(), "go"); !is[*agent.LoopError](err) || !strings.HasSuffix(err.Error(), ": every call of the last 1 turns failed; see Result.Records") {
		t.Error(err)
	}
}

func TestUnusableResponseErrorHasTheNativeReason(t *testing.T) {
	for native, want := range map[string]string{"SPII": "the model stopped with content_filter (SPII)", "": "the model stopped with content_filter"} {
		resp := textResponse("part")
		resp.Stop = dragoman.Stop{Reason: dragoman.StopContentFilter, Native: native}
		if _, err := (agent.Agent{Model: model(resp)}).Run(t.Context(), "go"); !errors.Is(err, agent.ErrResponse) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", native, err)
		}
	}
}

func TestL2_HostedCallsWithTextEndTheRun(t *testing.T) {
	for text, turns := range map[string]int{"It rains.": 1, " \n": 2} {
		resp := calls("h web_search")
		resp.Output[0].Parts[0].(*dragoman.ToolCall).Hosted = true
		resp.Output[0].Parts = append(resp.Output[0].Parts, &dragoman.Text{Text: text})
		resp.Stop.Reason = dragoman.StopEnd
		if res := must[*agent.Result](t)(agent.Agent{Model: model(resp)}.Run(t.Context(), "go")); res.Turns != turns {
			t.Errorf("%q: the run took %d turns, want %d", text, res.Turns, turns)
		}
	}
}

// targetedModel is a model that knows its target, or fails to find it.
type targetedModel struct {
	*scripted
	target targets.Target
	err    error
}

func (a targetedModel) Target(context.Context, string) (targets.Target, *extension.Resolution, error) {
	return a.target, nil, a.err
}

func (targetedModel) String() string { return "unaimed" }

func TestP1_PoliciesNameAModelByItsTarget(t *testing.T) {
	for _, c := range []struct {
		m    targetedModel
		want string
	}{
		{targetedModel{target: targets.Target{Provider: "p", Model: "m"}}, "model_call p/m allow yes"},
		{targetedModel{target: targets.Target{Provider: "p"}}, "model_call p/asked allow yes"},
		{targetedModel{target: targets.Target{Model: "m"}}, "model_call m allow yes"},
		{targetedModel{target: targets.Target{Provider: "p", Model: "m"}, err: errors.New("unknown")}, "model_call unaimed allow yes"},
	} {
		c.m.scripted = model()
		a := &agent.Agent{Model: c.m, Runner: &tool.Runner{Policy: rules(t, `rules: [{id: "yes", effect: allow, subjects: model_call}]`)}}
		a.Settings.Model = "asked"
		if got, _, err := decisions(t, a); err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("%+v: %q, %v", c.m.target, got, err)
		}
	}
}

func TestA6_AgentAsAToolHasATimeAndADescription(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Hour, -1: time.Hour, time.Minute: time.Minute, 1: 1} {
		nested := agent.Agent{Name: "clerk", Model: model(), Limits: agent.Limits{Time: limit}}.AsTool()
		if got := nested.(interface{ Settings() tool.Settings }).Settings().Timeout; got != want {
			t.Errorf("%v: the tool has %v", limit, got)
		}
	}
	for text, want := range map[string]string{"": "Asks the agent clerk.", "Files letters.": "Files letters."} {
		if got := (agent.Agent{Name: "clerk", Model: model(), Description: text}).AsTool().Spec().Description; got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestT10_LongErrorsAreNotStoredTwice(t *testing.T) {
	for n, kept := range map[int]bool{1000: true, 1001: false} {
		text := strings.Repeat("x", n)
		var did counted
		fails := tool.New("fall", "Fails.", func(context.Context, word) (string, error) { return "", errors.New(text) })
		a := agent.Agent{Model: model(calls("a fall"), calls("b ask")), Tools: []tool.Tool{fails, did.tool("ask", tool.NeedsApproval())}}
		res, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		size := len(res.Records[0].Error)
		if size != n {
			t.Fatalf("the error has %d bytes: %q", size, res.Records[0].Error)
		}
		var state struct{ Records []tool.Record }
		if err := json.Unmarshal(must[[]byte](t)(json.Marshal(res.State)), &state); err != nil || (state.Records[0].Error == text) != kept {
			t.Errorf("%d bytes: the state has %d of them, %v", n, len(state.Records[0].Error), err)
		}
		res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
		if res.Records[0].Error != text {
			t.Errorf("%d bytes: the resumed run has %q", n, res.Records[0].Error)
		}
	}
}

func TestT10_ErrorsOfRestoredRecordsAreTheirOwn(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls(`a look {"word":5}`), calls("b ask")), Tools: []tool.Tool{did.tool("look"), did.tool("ask", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	want := res.Records[0]
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if got := res.Records[0]; want.Error == "" || got.Error != want.Error || got.Plain != want.Plain {
		t.Errorf("error %q, plain %q; was %q, %q", got.Error, got.Plain, want.Error, want.Plain)
	}
}

func TestT10_CallsSettledByTheLoopHaveNoRecord(t *testing.T) {
	for name, c := range map[string]struct {
		script []any
		want   string // the calls with records
	}{
		"before a call that ran": {[]any{calls("a hidden"), calls("b look"), calls("c ask")}, "b c"},
		"and none ran":           {[]any{calls("a hidden"), calls("c ask")}, "c"},
		"in the same turn":       {[]any{calls("a look", "b hidden", "c ask")}, "a c"},
	} {
		var did counted
		a := agent.Agent{Model: model(c.script...), Tools: []tool.Tool{did.tool("hidden", tool.Deferred()), did.tool("look"), did.tool("ask", tool.NeedsApproval())}}
		res, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(name, err)
		}
		res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
		var ids []string
		for i := range res.Records {
			ids = append(ids, res.Records[i].CallID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: records of %s, want %s", name, got, c.want)
		}
	}
}

func TestT10_StateWithoutRecordsHasThemRebuilt(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls("a look"), calls("b ask")), Tools: []tool.Tool{did.tool("look"), did.tool("ask", tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(must[[]byte](t)(json.Marshal(res.State)), &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "records")
	delete(fields, "recorded")
	var old agent.State
	if err := json.Unmarshal(must[[]byte](t)(json.Marshal(fields)), &old); err != nil {
		t.Fatal(err)
	}
	res = must[*agent.Result](t)(a.Resume(t.Context(), &old, agent.Approve(res.Pending[0])))
	if len(res.Records) != 2 || res.Records[0].CallID != "a" || !res.Records[0].Replayed || res.Records[1].CallID != "b" {
		t.Errorf("the records are\n%s", recordLines(res.Records))
	}
}

func TestResumingAFinishedRunWritesNothing(t *testing.T) {
	store := &memory{}
	a := agent.Agent{Model: model(textResponse("done"))}
	must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(store)))
	before := store.saves
	if res := must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store))); res.Output != "done" || store.saves != before {
		t.Errorf("%q, and %d saves", res.Output, store.saves-before)
	}
}

func TestMessagesOfAResultAreNotThoseOfItsState(t *testing.T) {
	res := must[*agent.Result](t)(agent.Agent{Model: model(textResponse("done"))}.Run(t.Context(), "go"))
	before := marshal(t, res.State)
	res.Messages[0] = dragoman.UserText("changed")
	if got := marshal(t, res.State); got != before {
		t.Errorf("the state became\n%s\nand was\n%s", got, before)
	}
}

func TestDecision27_OpenCallsOfGivenMessages(t *testing.T) {
	user := dragoman.UserText("q")
	asks := calls("a look", "b look").Output[0]
	result := func(ids ...string) dragoman.Message {
		var all []*dragoman.ToolResult
		for _, id := range ids {
			all = append(all, (&dragoman.ToolCall{ID: id, Name: "look"}).Result(&dragoman.Text{Text: "x"}))
		}
		return dragoman.ToolResults(all...)
	}
	asUser := func(m dragoman.Message) dragoman.Message { m.Role = dragoman.RoleUser; return m }
	for name, c := range map[string]struct {
		given []dragoman.Message
		open  int
	}{
		"none answered":             {[]dragoman.Message{user, asks}, 2},
		"one answered":              {[]dragoman.Message{user, asks, result("a")}, 1},
		"one answered by a user":    {[]dragoman.Message{user, asks, asUser(result("a"))}, 1},
		"both answered":             {[]dragoman.Message{user, asks, result("a", "b")}, 0},
		"both answered one by one":  {[]dragoman.Message{user, asks, result("a"), result("b")}, 0},
		"the user went on":          {[]dragoman.Message{user, asks, dragoman.UserText("never mind")}, 0},
		"earlier calls do not wait": {[]dragoman.Message{user, asks, dragoman.UserText("never mind"), calls("c look").Output[0]}, 1},
	} {
		var did counted
		m := model()
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}
		_, err := a.Run(t.Context(), "next", agent.Messages(c.given...))
		if errors.Is(err, agent.ErrUnfinished) != (c.open > 0) || err != nil && strings.Count(err.Error(), `"look"`) != c.open {
			t.Errorf("%s: %v, want %d calls", name, err, c.open)
		}
		if c.open == 0 {
			continue
		}
		must[*agent.Result](t)(a.Run(t.Context(), "next", agent.Messages(c.given...), agent.Abandon()))
		sent := m.asked[0].Messages
		if got := script(sent[:len(c.given)]); got != script(c.given) {
			t.Errorf("%s: the request begins with\n%s", name, got)
		}
		if got := script(sent[len(c.given):]); strings.Count(got, "result") != c.open || !strings.HasSuffix(got, "user: \"next\"\n") {
			t.Errorf("%s: the request ends with\n%s", name, got)
		}
	}
}

func TestI9_SearchToolAvoidsTheNamesOfHostedTools(t *testing.T) {
	var did counted
	for name, want := range map[string]string{"tool_search": "read_tool_output tool_search_2 tool_search", "web": "read_tool_output tool_search web"} {
		m := model()
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("dive", tool.Deferred())}, HostedTools: []dragoman.ToolSpec{{Kind: codes.ToolHosted, Name: name}}}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if got := specNames(m.asked[0]); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// search returns the result of the search tool for a query.
func search(t *testing.T, query string, most int, specs ...dragoman.ToolSpec) string {
	t.Helper()
	a := agent.Agent{Model: model(calls(fmt.Sprintf(`a tool_search {"query":%q}`, query))), Search: agent.Search{MaxResults: most}}
	for _, s := range specs {
		a.Tools = append(a.Tools, tool.New(s.Name, s.Description, func(context.Context, word) (string, error) { return "", nil }, tool.Deferred()))
	}
	return must[*agent.Result](t)(a.Run(t.Context(), "go")).Records[0].Plain
}

func TestL6_SearchShortensDescriptions(t *testing.T) {
	for n, want := range map[int]string{200: strings.Repeat("d", 200), 201: strings.Repeat("d", 200) + "…"} {
		if got := search(t, "dive", 0, dragoman.ToolSpec{Name: "dive", Description: strings.Repeat("d", n)}); got != "Found, and loaded:\n- dive: "+want+"\n" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

func TestL6_SearchRanksRareWordsFirst(t *testing.T) {
	specs := []dragoman.ToolSpec{{Name: "one", Description: "Sends mail."}, {Name: "two", Description: "Reads mail."}, {Name: "three", Description: "Deletes mail."}, {Name: "four", Description: "Prints stamps."}}
	if got := search(t, "mail stamp", 0, specs...); !strings.HasPrefix(got, "Found, and loaded:\n- four:") {
		t.Error(got)
	}
	if got := search(t, "a", 0, dragoman.ToolSpec{Name: "one", Description: "Sends a mail."}); !strings.HasPrefix(got, "No tool was found") {
		t.Errorf("one letter finds %q", got)
	}
}

func TestL6_SearchOrdersManyTools(t *testing.T) {
	const n = 60
	var specs []dragoman.ToolSpec
	want := "Found, and loaded:\n"
	var named strings.Builder
	for i := range n {
		s := dragoman.ToolSpec{Name: fmt.Sprintf("t%d", i), Description: "Works on mail."}
		if i >= n/2 {
			s.Name = fmt.Sprintf("mail_t%d", i)
			want += "- " + s.Name + ": " + s.Description + "\n"
		} else {
			named.WriteString("- " + s.Name + ": " + s.Description + "\n")
		}
		specs = append(specs, s)
	}
	if got := search(t, "mail", n, specs...); got != want+named.String() {
		t.Errorf("got\n%s\nwant\n%s", got, want+named.String())
	}
}

func TestDecision85_PendingNestedAgentStoresNoMedia(t *testing.T) {
	picture := dragoman.Image("image/png", bytes.Repeat([]byte("picture "), 1000))
	var did counted
	m := model(calls("x show"), calls("y ask"), textResponse("inner done"))
	inner := agent.Agent{Name: "inner", Model: m, Tools: []tool.Tool{pictureTool(picture), did.tool("ask", tool.NeedsApproval())}}
	a := agent.Agent{Model: model(calls(`a inner {"task":"look"}`)), Tools: []tool.Tool{inner.AsTool()}}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	res, err := a.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	_, state, err := s.Load(t.Context())
	if err != nil || bytes.Contains(state, []byte(picture.Base64[:500])) || !bytes.Contains(state, []byte(`"att_`)) {
		t.Errorf("the stored state has %d bytes: %v", len(state), err)
	}
	must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), agent.ApproveAll(res.Pending)))
	var got []string
	for _, msg := range m.asked[len(m.asked)-1].Messages {
		got = append(got, pictures(msg.Parts)...)
	}
	if len(got) != 1 || got[0] != picture.Base64 {
		t.Errorf("the model sees %d pictures", len(got))
	}
}

// native is a session that has its own history for one provider.
type native struct {
	*session.Session
	provider string
}

func (n native) MessagesInPlaceOf(_ context.Context, ms []dragoman.Message, target dragoman.Origin, _ targets.Match) ([]dragoman.Message, error) {
	if target.Provider != n.provider {
		return ms, nil
	}
	return []dragoman.Message{dragoman.UserText("native")}, nil
}

// linkModel is a model of a chain that knows its target.
type linkModel struct{ targetedModel }

func (linkModel) Limits() targets.Limits { return targets.Limits{} }

func TestX9_ChainsCompactTheConversationOnce(t *testing.T) {
	for name, c := range map[string]struct {
		provider string // the provider that has a native history
		want     string // the messages that Compact gets
	}{
		"no native history":             {"", "go"},
		"a native history of one model": {"second", "go,native"},
	} {
		link := func(name string, script ...any) linkModel {
			return linkModel{targetedModel{scripted: model(script...), target: targets.Target{Provider: name, Model: "m"}}}
		}
		first, second := link("first", &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "busy"}), link("second")
		chain := &provider.Chain{Links: []provider.Link{{Name: "first/m", Model: first}, {Name: "second/m", Model: second}}}
		var compacted []string
		a := agent.Agent{Model: chain, Compact: func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
			compacted = append(compacted, ms[0].Text())
			return ms, nil
		}}
		s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
		must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(native{s, c.provider})))
		if got := strings.Join(compacted, ","); got != c.want || len(second.asked) != 1 || second.asked[0].Messages[0].Text() != compacted[len(compacted)-1] {
			t.Errorf("%s: compacted %q, then asked %+v", name, got, second.asked)
		}
	}
}

func TestL8_CompactMayEditReasoning(t *testing.T) {
	thinks := calls("a look")
	thinks.Output[0].Parts = append([]dragoman.Part{&dragoman.Reasoning{Text: "think", Summary: []string{"kept"}}}, thinks.Output[0].Parts...)
	var did counted
	a := agent.Agent{Model: model(thinks), Tools: []tool.Tool{did.tool("look")}, Compact: func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
		for _, m := range ms {
			for _, p := range m.Parts {
				if r, ok := p.(*dragoman.Reasoning); ok {
					r.Text, r.Summary[0] = "cut", "cut"
				}
			}
		}
		return ms, nil
	}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if r := res.Messages[1].Parts[0].(*dragoman.Reasoning); r.Text != "think" || r.Summary[0] != "kept" {
		t.Errorf("the conversation has %+v", r)
	}
}

func TestToolsOfTheAgentKeepTheirAnnotations(t *testing.T) {
	var did counted
	m := model()
	must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look", tool.ReadOnly())}}.Run(t.Context(), "go"))
	for _, s := range m.asked[0].Tools {
		if got, want := s.Annotations.ReadOnly != nil, s.Name == "look"; got != want {
			t.Errorf("%s: the annotations are %+v", s.Name, s.Annotations)
		}
	}
}

func TestL13_StateWithoutAVersionIsRefused(t *testing.T) {
	good := marshal(t, must[*agent.Result](t)(agent.Agent{Model: model()}.Run(t.Context(), "go")).State)
	for version, ok := range map[string]bool{"1": true, "0": false, "-1": false, "2": false} {
		text := strings.Replace(good, `"v":1,`, `"v":`+version+`,`, 1)
		err := json.Unmarshal([]byte(text), new(agent.State))
		if (err == nil) != ok || err != nil && !errors.Is(err, agent.ErrState) {
			t.Errorf("version %s: %v", version, err)
		}
	}
	if err := json.Unmarshal([]byte("{}"), new(agent.State)); !errors.Is(err, agent.ErrState) || !strings.Contains(err.Error(), "no version") {
		t.Error(err)
	}
}

func TestT16_UnknownFailurePolicyIsRefused(t *testing.T) {
	a := agent.Agent{Model: model(), Runner: &tool.Runner{Failure: "contniue"}}
	if err := a.Check(); !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "contniue") {
		t.Error(err)
	}
}
