package agent_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

func TestL2_LoopRunsCallsUntilFinalAnswer(t *testing.T) {
	var did counted
	m := model(calls("a look", "b look {\"word\":\"x\"}"), calls("c look"), textResponse("found"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}, Instructions: "be kind"}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if res.Output != "found" || res.Turns != 3 || res.Usage.Input.N != 30 || len(res.Records) != 3 || !res.State.Done() {
		t.Errorf("%+v", res)
	}
	want := "user: \"go\"\nassistant: call a look call b look\ntool: result a ok result b ok\nassistant: call c look\ntool: result c ok\nassistant: \"found\"\n"
	if got := script(res.Messages); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := specNames(m.asked[0]); got != "look read_tool_output" || m.asked[0].Instructions[0].(*dragoman.Text).Text != "be kind" {
		t.Errorf("tools %q, %+v", got, m.asked[0].Instructions)
	}
	if len(m.asked[2].Messages) != 5 {
		t.Errorf("the third request has\n%s", script(m.asked[2].Messages))
	}
}

func TestL1_QuirkI2_TurnLimitReturnsPartialResult(t *testing.T) {
	var did counted
	forever := func(req *dragoman.Request) *dragoman.Response {
		return calls("x look {\"word\":\"" + strings.Repeat("a", len(req.Messages)) + "\"}")
	}
	endless := func() *scripted {
		m := model()
		for range 30 {
			m.script = append(m.script, forever)
		}
		return m
	}
	for most, want := range map[int]int{0: 20, 3: 3} {
		a := agent.Agent{Model: endless(), Tools: []tool.Tool{did.tool("look")}, Limits: agent.Limits{Turns: most}}
		res, err := a.Run(t.Context(), "go")
		var limit *agent.LimitError
		if !errors.As(err, &limit) || limit.Limit != "turns" || !is[*agent.LimitError](err) || res.Turns != want {
			t.Fatalf("%d: %v %+v", most, err, res)
		}
		if calls := strings.Count(script(res.Messages), "result x ok"); calls != want { // quirk I2
			t.Errorf("%d of %d calls are answered", calls, want)
		}
		a.Limits.Turns = want + 1
		if again, err := a.Resume(t.Context(), stored(t, res.State)); !is[*agent.LimitError](err) || again.Turns != want+1 {
			t.Errorf("resuming with a higher limit: %v %+v", err, again)
		}
	}
}

func TestL_LimitsOfCallsTokensCostAndTimeEndARun(t *testing.T) {
	var did counted
	now := time.Unix(0, 0)
	for name, tc := range map[string]struct {
		limits agent.Limits
		limit  string
		turns  int
	}{
		"calls":  {agent.Limits{ToolCalls: 2}, "tool_calls", 2},
		"tokens": {agent.Limits{Tokens: 30}, "tokens", 2},
		"cost":   {agent.Limits{Cost: 2.5}, "cost", 2},
		"time":   {agent.Limits{Time: time.Hour}, "time", 0},
	} {
		m := model(calls("a look"), calls("b look {\"word\":\"x\"}"), calls("c look {\"word\":\"y\"}"), calls("d look {\"word\":\"z\"}"))
		a := agent.Agent{
			Model: m, Tools: []tool.Tool{did.tool("look")}, Limits: tc.limits,
			Price: func(dragoman.Usage) float64 { return 1.5 },
			Now:   func() time.Time { now = now.Add(10 * time.Minute); return now },
		}
		res, err := a.Run(t.Context(), "go")
		var limit *agent.LimitError
		if !errors.As(err, &limit) || limit.Limit != tc.limit || len(m.script) == 0 || tc.turns > 0 && res.Turns != tc.turns {
			t.Errorf("%s: %v, %d answers left", name, err, len(m.script))
		}
	}
}

func TestL2_QuirkI15_PausedResponseIsContinuedUnchanged(t *testing.T) {
	paused := textResponse("working")
	paused.Stop.Reason = dragoman.StopPause
	m := model(paused, textResponse("ready"))
	res := must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), "go"))
	if res.Output != "ready" || script(m.asked[1].Messages) != "user: \"go\"\nassistant: \"working\"\n" {
		t.Errorf("%+v\n%s", res, script(m.asked[1].Messages))
	}
	m = model()
	for range 20 {
		m.script = append(m.script, paused)
	}
	if _, err := (agent.Agent{Model: m, Limits: agent.Limits{Turns: 100}}).Run(t.Context(), "go"); !is[*agent.LimitError](err) || len(m.asked) != 11 {
		t.Errorf("%d pauses: %v", len(m.asked), err)
	}
}

func TestL2_HostedTurnContinues(t *testing.T) {
	hosted := &dragoman.Response{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Output: []dragoman.Message{{
		Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "s", Name: "web_search", Hosted: true}},
	}}}
	m := model(hosted, textResponse("read it"))
	if res := must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), "go")); res.Output != "read it" || res.Turns != 2 {
		t.Errorf("%+v", res)
	}
}

func TestL2_UnusableHostedTurnEndsRun(t *testing.T) {
	for _, reason := range []dragoman.StopReason{dragoman.StopContentFilter, dragoman.StopLength, dragoman.StopError, dragoman.StopUnknown, dragoman.StopRefusal} {
		m := model(&dragoman.Response{Stop: dragoman.Stop{Reason: reason}, Output: []dragoman.Message{{
			Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "s", Name: "web_search", Hosted: true}},
		}}})
		_, err := agent.Agent{Model: m}.Run(t.Context(), "go")
		if len(m.asked) != 1 || reason != dragoman.StopRefusal && !errors.Is(err, agent.ErrResponse) {
			t.Errorf("%s: asked %d times: %v", reason, len(m.asked), err)
		}
	}
}

func TestL3_ToolsMayEndTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		after agent.AfterTools
		want  string
		turns int
	}{
		"on the first tool":    {agent.StopOnFirstTool, "look did x", 1},
		"at a named tool":      {agent.StopAtTools("take"), "take did y", 1},
		"at a tool not called": {agent.StopAtTools("give"), "done", 2},
		"at one that failed":   {agent.StopAtTools("fall"), "done", 2},
		"by a function": {func(_ context.Context, c []agent.ToolOutcome) (string, bool, error) {
			return c[2].Record.Error, c[1].Call.ID == "b", nil
		}, "broken", 1},
	} {
		var did counted
		a := agent.Agent{
			Model: model(calls(`a look {"word":"x"}`, `b take {"word":"y"}`, "c fall")),
			Tools: []tool.Tool{did.tool("look"), did.tool("take"), failing("fall")}, AfterTools: tc.after,
		}
		res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if res.Output != tc.want || res.Turns != tc.turns {
			t.Errorf("%s: %q after %d turns", name, res.Output, res.Turns)
		}
	}
}

// The result of a handoff or of a search is not a valid answer.
func TestL3_StoppingOnTheFirstToolIgnoresToolsOfTheAgent(t *testing.T) {
	var did counted
	second := agent.Agent{Name: "second", Model: model(textResponse("taken over"))}
	first := agent.Agent{Model: model(calls("a transfer_to_second")), AfterTools: agent.StopOnFirstTool}
	first.Handoffs = []agent.Handoff{{To: &second, Name: "transfer_to_second"}}
	if res := must[*agent.Result](t)(first.Run(t.Context(), "go")); res.Output != "taken over" || res.Agent != "second" {
		t.Errorf("after a handoff: %q of %s", res.Output, res.Agent)
	}
	searches := agent.Agent{
		Model: model(calls(`a tool_search {"query":"look"}`), calls(`b look {"word":"x"}`)),
		Tools: []tool.Tool{did.tool("look", tool.Deferred())}, AfterTools: agent.StopOnFirstTool,
	}
	if res := must[*agent.Result](t)(searches.Run(t.Context(), "go")); res.Output != "look did x" || res.Turns != 2 {
		t.Errorf("after a search: %q after %d turns", res.Output, res.Turns)
	}
}

func TestL4_ForcedChoiceIsReset(t *testing.T) {
	for keep, want := range map[bool]bool{false: false, true: true} {
		var did counted
		m := model(calls("a look"))
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}, KeepToolChoice: keep}
		a.Settings.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if m.asked[0].ToolChoice == nil || (m.asked[1].ToolChoice != nil) != want {
			t.Errorf("keep %v: %v, then %v", keep, m.asked[0].ToolChoice, m.asked[1].ToolChoice)
		}
	}
}

func TestL4_ForcedChoiceIsPerAgent(t *testing.T) {
	must := func(m dragoman.Model, tools ...tool.Tool) agent.Agent {
		return agent.Agent{Model: m, Tools: tools, Settings: dragoman.Request{ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}}}
	}
	var did counted
	next := model(calls("b look"))
	second := must(next, did.tool("look"))
	second.Name = "second"
	first := must(model(calls("a transfer_to_second")))
	first.Handoffs = []agent.Handoff{{To: &second, Name: "transfer_to_second"}}
	if _, err := first.Run(t.Context(), "go"); err != nil || len(next.asked) != 2 || next.asked[0].ToolChoice == nil || next.asked[1].ToolChoice != nil {
		t.Errorf("%v %+v", err, next.asked)
	}
}

// Neither steering nor the outcome of background work comes between a paused response and
// its continuation, also if another process continues it: an API refuses a call of its own
// tools that is followed by a user message and has no result.
func TestL2_NothingIsInsertedAfterAPause(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
		return tool.Background(ctx, time.Hour)
	})
	for _, resumed := range []bool{false, true} {
		paused := textResponse("working")
		paused.Stop.Reason = dragoman.StopPause
		settle := func(req *dragoman.Request) *dragoman.Response {
			open, err := tickets.Store.List(t.Context(), "run")
			if err != nil || len(open) != 1 {
				t.Fatalf("%d tickets, %v", len(open), err)
			}
			if err := tickets.Resolve(t.Context(), open[0].Ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built"}}}); err != nil {
				t.Error(err)
			}
			return paused
		}
		m := model(calls("a build"), settle, calls("b look"), textResponse("done"))
		var did counted
		a := agent.Agent{
			Model: m, Tools: []tool.Tool{build, did.tool("look")}, Runner: &tool.Runner{Tickets: tickets},
			Steer: func(_ context.Context, turn agent.Turn) ([]dragoman.Message, error) {
				if turn.Number != 2 && turn.Number != 3 {
					return nil, nil
				}
				return []dragoman.Message{dragoman.UserText("hurry")}, nil
			},
		}
		opts := []agent.Option{agent.ID("run")}
		if resumed {
			m.script[2] = errors.New("down")
		}
		res, err := a.Run(t.Context(), "go", opts...)
		if resumed {
			if err == nil {
				t.Fatal("the model is down")
			}
			m.script = []any{calls("b look"), textResponse("done")}
			res, err = a.Resume(t.Context(), stored(t, res.State))
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, req := range m.asked {
			text := script(req.Messages)
			if i >= 2 && i < len(m.asked)-1 && !strings.HasSuffix(text, "assistant: \"working\"\n") {
				t.Errorf("resumed %v, request %d:\n%s", resumed, i+1, text)
			}
		}
		if text := script(m.asked[len(m.asked)-1].Messages); !strings.Contains(text, "built") || !strings.Contains(text, "hurry") {
			t.Errorf("resumed %v: after the pause:\n%s", resumed, text)
		}
		if res.Output != "done" {
			t.Errorf("resumed %v: %q", resumed, res.Output)
		}
		tickets.Store = &tool.MemoryTickets{}
	}
}

func TestL2_PausesAreCountedInARow(t *testing.T) {
	var did counted
	m := model()
	for range 3 {
		for range 10 {
			paused := textResponse("working")
			paused.Stop.Reason = dragoman.StopPause
			m.script = append(m.script, paused)
		}
		m.script = append(m.script, calls("a look"))
	}
	if _, err := (agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}, Limits: agent.Limits{Turns: 100}}).Run(t.Context(), "go"); err != nil {
		t.Error(err)
	}
}

func TestL1_FailedResponseDoesNotCountAsTurn(t *testing.T) {
	broken := textResponse("hal")
	broken.Error = &dragoman.APIError{Message: "overloaded"}
	a := agent.Agent{Model: model(broken)}
	res, err := a.Run(t.Context(), "go")
	if err == nil || res.Turns != 0 || res.Partial != broken {
		t.Fatalf("%v %+v", err, res)
	}
	if res, err = a.Resume(t.Context(), stored(t, res.State)); err != nil || res.Turns != 1 || res.Output != "done" {
		t.Errorf("%v %+v", err, res)
	}
}

func TestL_TimeLimitCoversResumptions(t *testing.T) {
	now := time.Unix(1, 0)
	var left time.Duration
	a := agent.Agent{
		Model: model(errors.New("down")), Limits: agent.Limits{Time: time.Hour}, Now: func() time.Time { return now },
		Steer: func(ctx context.Context, _ agent.Turn) ([]dragoman.Message, error) {
			now = now.Add(50 * time.Minute)
			end, _ := ctx.Deadline()
			left = time.Until(end)
			return nil, nil
		},
	}
	res, _ := a.Run(t.Context(), "go")
	if _, err := a.Resume(t.Context(), stored(t, res.State)); err != nil || left > 10*time.Minute {
		t.Errorf("%v left: %v", left, err)
	}
}

func TestL8_SteerAddsMessagesAndCompactChangesOnlyRequests(t *testing.T) {
	var did counted
	m := model(calls("a look"))
	a := agent.Agent{
		Model: m, Tools: []tool.Tool{did.tool("look")},
		Steer: func(_ context.Context, t agent.Turn) ([]dragoman.Message, error) {
			if t.Number != 1 {
				return nil, nil
			}
			return []dragoman.Message{dragoman.UserText("and hurry")}, nil
		},
		Compact: func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
			return append([]dragoman.Message{dragoman.UserText("(summary)")}, ms[1:]...), nil
		},
	}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if got := script(res.Messages); got != "user: \"go\"\nassistant: call a look\ntool: result a ok\nuser: \"and hurry\"\nassistant: \"done\"\n" {
		t.Errorf("kept\n%s", got)
	}
	if got := script(m.asked[1].Messages); got != "user: \"(summary)\"\nassistant: call a look\ntool: result a ok\nuser: \"and hurry\"\n" {
		t.Errorf("sent\n%s", got)
	}
}

func TestL9_OnlyRepeatedResultsAreALoop(t *testing.T) {
	n := 0
	ticks := tool.New("tick", "Ticks.", func(context.Context, word) (int, error) { n++; return n, nil })
	same := tool.New("same", "Stays.", func(context.Context, word) (string, error) { return "as ever", nil })
	polled := tool.New("poll", "Polls.", func(context.Context, word) (string, error) { return "as ever", nil }, tool.Set(func(s *tool.Settings) { s.Polling = true }))
	for name, tc := range map[string]struct {
		call  string
		limit agent.Limits
		times int
	}{
		"a result that changes":    {"tick", agent.Limits{}, 0},
		"a tool that is polled":    {"poll", agent.Limits{}, 0},
		"the same again and again": {"same", agent.Limits{}, 6},
		"a lower limit":            {"same", agent.Limits{Repeats: 2}, 3},
		"a limit over the window":  {"same", agent.Limits{Repeats: 11}, 12},
		"no limit":                 {"same", agent.Limits{Repeats: -1}, 0},
	} {
		m := model()
		for range 12 {
			m.script = append(m.script, calls("x "+tc.call))
		}
		res, err := agent.Agent{Model: m, Tools: []tool.Tool{ticks, same, polled}, Limits: tc.limit}.Run(t.Context(), "go")
		var loop *agent.LoopError
		switch {
		case tc.times == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.times > 0 && (!errors.As(err, &loop) || !is[*agent.LoopError](err) || loop.Times != tc.times || loop.Tool != tc.call || res.Turns != tc.times):
			t.Errorf("%s: %v %+v", name, err, res)
		}
	}
}

func TestQuirkI1_EquivalentArgumentsAreSameCall(t *testing.T) {
	type pair struct {
		A, B int
	}
	same := tool.New("same", "Stays.", func(context.Context, pair) (string, error) { return "as ever", nil })
	m := model()
	for i := range 12 {
		args := [...]string{`{"A":1,"B":2}`, `{ "B": 2, "A": 1 }`, `{"B":2,"A":1}`}
		m.script = append(m.script, calls("x same "+args[i%3]))
	}
	var loop *agent.LoopError
	if res, err := (agent.Agent{Model: m, Tools: []tool.Tool{same}}).Run(t.Context(), "go"); !errors.As(err, &loop) || loop.Times != 6 || res.Turns != 6 {
		t.Errorf("%v %+v", err, res)
	}
}

func TestL9_ChangingPictureIsProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		step  byte
		loops bool
	}{"another each time": {1, false}, "always the same": {0, true}} {
		shown := byte(1)
		screen := tool.New("screen", "Shows the screen.", func(context.Context, word) (tool.Output, error) {
			shown += tc.step
			picture := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: base64.StdEncoding.EncodeToString([]byte{shown})}
			return tool.Output{Content: []dragoman.Part{picture}}, nil
		})
		m := model()
		for range 12 {
			m.script = append(m.script, calls("x screen"))
		}
		_, err := agent.Agent{Model: m, Tools: []tool.Tool{screen}}.Run(t.Context(), "go")
		if is[*agent.LoopError](err) != tc.loops || !tc.loops && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Outputs are compared before they are cut, although the model reads only the beginning and
// the end.
func TestL9_LongOutputsAreComparedBeforeTheyAreCut(t *testing.T) {
	for name, tc := range map[string]struct {
		out   func(n int) any
		loops bool
	}{
		"always the same": {func(int) any { return strings.Repeat("a", 99_000) }, true},
		"another in the middle": {func(n int) any {
			return strings.Repeat("a", 40_000) + strconv.Itoa(100+n) + strings.Repeat("b", 40_000)
		}, false},
		"the same large picture": {func(int) any {
			return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: strings.Repeat("QUJD", 40)}
		}, true},
		"another large picture": {func(n int) any {
			return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: strings.Repeat("QUJD", 40) + base64.StdEncoding.EncodeToString([]byte{1, 2, byte(n)})}
		}, false},
	} {
		for _, spill := range []tool.SpillStore{nil, tool.NoSpill} {
			n := 0
			show := tool.New("show", "Shows much.", func(context.Context, word) (any, error) { n++; return tc.out(n), nil },
				tool.Set(func(s *tool.Settings) { s.Limits.Binary = 100 }))
			m := model()
			for i := range 12 {
				m.script = append(m.script, calls(fmt.Sprintf("c%d show", i)))
			}
			_, err := agent.Agent{Model: m, Tools: []tool.Tool{show}, Runner: &tool.Runner{Spill: spill}}.Run(t.Context(), "go")
			if is[*agent.LoopError](err) != tc.loops || !tc.loops && err != nil {
				t.Errorf("%s, spill %v: %v", name, spill, err)
			}
		}
	}
}

// The model reads the native form of a result, so a native form that changes is progress,
// even if the text for other models stays the same.
func TestL9_ChangingNativeResultIsProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		frame func(n int) int
		chars int
		loops bool
	}{
		"another each time":             {func(n int) int { return n }, 0, false},
		"always the same":               {func(int) int { return 1 }, 0, true},
		"another, and the text is cut":  {func(n int) int { return n }, 20, false},
		"the same, and the text is cut": {func(int) int { return 1 }, 20, true},
	} {
		n := 0
		show := tool.New("show", "Shows the screen.", func(context.Context, word) (tool.Output, error) {
			n++
			native := &dragoman.Native{Format: "anthropic.messages", JSON: json.RawMessage(fmt.Sprintf(`[{"type":"text","text":"frame %d"}]`, tc.frame(n)))}
			return tool.Output{Envelope: native, Content: []dragoman.Part{&dragoman.Text{Text: "a picture of the whole screen"}}}, nil
		}, tool.Set(func(s *tool.Settings) { s.Limits.Chars = tc.chars }))
		m := model()
		for i := range 12 {
			m.script = append(m.script, calls(fmt.Sprintf("c%d show", i)))
		}
		_, err := agent.Agent{Model: m, Tools: []tool.Tool{show}}.Run(t.Context(), "go")
		if is[*agent.LoopError](err) != tc.loops || !tc.loops && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Records hide secrets, so two calls with different keys have equal records.
func TestL9_CallsWithDifferentSecretsAreDifferentCalls(t *testing.T) {
	check := tool.New("check", "Checks a key.", func(context.Context, word) (string, error) { return "wrong", nil })
	for name, tc := range map[string]struct {
		step  int
		loops bool
	}{"another key each time": {1, false}, "always the same key": {0, true}} {
		m := model()
		for i := range 12 {
			m.script = append(m.script, calls(fmt.Sprintf(`c%d check {"word":"sk-proj-abcdefghijklmnopqrstuvwxyz%04dabcdefghijklmnop"}`, i, i*tc.step)))
		}
		res, err := agent.Agent{Model: m, Tools: []tool.Tool{check}}.Run(t.Context(), "go")
		if is[*agent.LoopError](err) != tc.loops || !tc.loops && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, rec := range res.Records {
			if strings.Contains(rec.Raw, "sk-proj") {
				t.Errorf("%s: the record has the key: %s", name, rec.Raw)
			}
		}
	}
}

// Calls that were cut off count as failed. Otherwise a model that never completes a call
// would use all turns of the run.
func TestL9_TurnsWithTruncatedCallsEndTheRun(t *testing.T) {
	for _, reason := range []dragoman.StopReason{dragoman.StopLength, dragoman.StopMalformedCall} {
		cut := func(i int) *dragoman.Response {
			resp := calls(fmt.Sprintf(`c%d look {"word":"%d"}`, i, i))
			resp.Stop.Reason = reason
			return resp
		}
		var did counted
		m := model()
		for i := range 12 {
			m.script = append(m.script, cut(i))
		}
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look"), failing("fall")}}
		res, err := a.Run(t.Context(), "go")
		var loop *agent.LoopError
		if !errors.As(err, &loop) || loop.Tool != "" || loop.Times != 5 || res.Turns != 5 || did.String() != "" {
			t.Errorf("%s: %v, %d turns, ran %q", reason, err, res.Turns, did.String())
		}
		a.Limits.ErrorTurns = 3
		a.Model = model(cut(1), calls("f fall"), cut(2))
		if _, err = a.Run(t.Context(), "go"); !errors.As(err, &loop) || loop.Times != 3 {
			t.Errorf("%s after a call that failed: %v", reason, err)
		}
		a.Model = model(cut(1), cut(2), calls("g look"), cut(3), cut(4))
		if _, err = a.Run(t.Context(), "go"); err != nil {
			t.Errorf("%s with a call that worked in between: %v", reason, err)
		}
	}
}

func TestL9_FailedTurnsEndRun(t *testing.T) {
	var did counted
	m := model()
	for i := range 12 {
		m.script = append(m.script, calls("x fall {\"word\":\""+strings.Repeat("a", i)+"\"}"))
	}
	res, err := agent.Agent{Model: m, Tools: []tool.Tool{failing("fall"), did.tool("look")}}.Run(t.Context(), "go")
	var loop *agent.LoopError
	if !errors.As(err, &loop) || loop.Tool != "" || loop.Times != 5 || res.Turns != 5 {
		t.Errorf("%v %+v", err, res)
	}
	m = model(calls("x fall"), calls("x fall {\"word\":\"b\"}", "y look"), calls("x fall {\"word\":\"c\"}"))
	if _, err := (agent.Agent{Model: m, Tools: []tool.Tool{failing("fall"), did.tool("look")}, Limits: agent.Limits{ErrorTurns: 2}}).Run(t.Context(), "go"); err != nil {
		t.Errorf("one successful call must be enough: %v", err)
	}
}

func TestQuirkI4_CallsOfUnusableResponseDoNotRun(t *testing.T) {
	for reason, goesOn := range map[dragoman.StopReason]bool{
		dragoman.StopLength: true, dragoman.StopMalformedCall: true,
		dragoman.StopContentFilter: false, dragoman.StopError: false, dragoman.StopUnknown: false, dragoman.StopCanceled: false,
	} {
		var did counted
		cut := calls("a look")
		cut.Stop.Reason = reason
		res, err := agent.Agent{Model: model(cut), Tools: []tool.Tool{did.tool("look")}}.Run(t.Context(), "go")
		if did.String() != "" || !strings.Contains(script(res.Messages), "result a error") {
			t.Errorf("%s: ran %q\n%s", reason, did.String(), script(res.Messages))
		}
		if goesOn != (err == nil && res.Output == "done") || !goesOn && !errors.Is(err, agent.ErrResponse) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestQuirkI14_EmptyResponseIsRetried(t *testing.T) {
	malformed := textResponse("")
	malformed.Stop.Reason = dragoman.StopMalformedCall
	if res, err := (agent.Agent{Model: model(malformed, textResponse("hi"))}).Run(t.Context(), "go"); err != nil || res.Output != "hi" {
		t.Errorf("a call that the server could not read: %v %+v", err, res)
	}
	m := model(textResponse(" "), provider.ErrEmpty, textResponse("hi"))
	res := must[*agent.Result](t)(agent.Agent{Model: m}.Run(t.Context(), "go"))
	if res.Output != "hi" || res.Turns != 1 || len(res.Messages) != 2 {
		t.Errorf("%+v", res)
	}
	m = model(textResponse(""), textResponse(""), textResponse(""), textResponse("too late"))
	if res, err := (agent.Agent{Model: m}).Run(t.Context(), "go"); err != nil || res.Output != "" || len(m.script) != 1 {
		t.Errorf("%+v %v", res, err)
	}
}

func TestQuirkI10_UnknownToolGetsErrorResult(t *testing.T) {
	var did counted
	res := must[*agent.Result](t)(agent.Agent{Model: model(calls("a lok")), Tools: []tool.Tool{did.tool("look")}}.Run(t.Context(), "go"))
	if res.Output != "done" || !strings.Contains(res.Records[0].Error, "look") {
		t.Errorf("%+v", res)
	}
}

func TestInvalidAgentIsRefusedBeforeModelCall(t *testing.T) {
	var did counted
	m := model()
	twin := agent.Agent{Model: m}
	for name, a := range map[string]agent.Agent{
		"no model":                 {},
		"two tools, one name":      {Model: m, Tools: []tool.Tool{did.tool("look"), did.tool("look")}},
		"a broken tool":            {Model: m, Tools: []tool.Tool{tool.New("x", "", func(context.Context, int) (int, error) { return 0, nil })}},
		"a nil tool":               {Model: m, Tools: []tool.Tool{nil}},
		"twins":                    {Model: m, Handoffs: []agent.Handoff{{To: &twin}}},
		"handoff without an agent": {Model: m, Handoffs: []agent.Handoff{{}}},
		"a broken receiver":        {Model: m, Handoffs: []agent.Handoff{{To: &agent.Agent{Name: "b"}}}},
	} {
		if _, err := a.Run(t.Context(), "go"); !errors.Is(err, agent.ErrAgent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (agent.Agent{Model: m}).Run(t.Context(), ""); err == nil {
		t.Error("an empty prompt was accepted")
	}
	if len(m.asked) > 0 {
		t.Error("a model was called")
	}
}

func TestModelErrorReturnsResultThatCanBeResumed(t *testing.T) {
	var did counted
	broken := errors.New("no network")
	m := model(calls("a look"), broken)
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, broken) || res.Turns != 1 || len(res.Messages) != 3 {
		t.Fatalf("%v %+v", err, res)
	}
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State)))
	if res.Output != "done" || res.Turns != 2 || did.String() != "look:" {
		t.Errorf("%+v, ran %s", res, did.String())
	}
}
