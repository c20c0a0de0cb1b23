package errorcatalog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

func agents() section {
	return section{
		title: "From a run of an agent",
		intro: "A run that fails returns its result as well: the messages, the records of the calls and the usage up to the error. In a session\nit can be resumed.",
		entries: []entry{
			{
				title: "Calls wait for approval", from: "`Agent.Run`, when the model calls a tool with `tool.NeedsApproval` and no approver is set", run: waiting,
				means: "This is not a failure: the run stops until someone decides. `errors.Is(err, agent.ErrInterrupted)` is true, and `Result.Pending` has the calls.", fix: "Call `Resume` with `agent.Approve` or `agent.Reject`, here or in another process.",
			},
			{
				title: "Turn limit", from: "a model that calls tools in each turn, with `Limits{Turns: 2}`", run: ends("turn\n  match any\n  call get_weather {\"city\":\"Oslo\"}\n", agent.Agent{Limits: agent.Limits{Turns: 2}}),
				means: "The run used all its model calls.", fix: "Raise the limit and resume, or give the model a smaller task.",
			},
			{
				title: "Loop", from: "a model that repeats a call whose result does not change", run: ends("turn\n  match any\n  call get_weather {\"city\":\"Oslo\"}\n", agent.Agent{}),
				means: "The model makes no progress, so the run ends before it costs more.", fix: "Improve the tool's description or its result. Set `Settings.Polling` for a tool that is meant to be called again and again.",
			},
			{
				title: "Every call fails", from: "a model that calls an unknown tool with new arguments again and again", run: ends(failingCalls(), agent.Agent{}),
				means: "Every call of five turns failed.", fix: "Look at `Result.Records` for the reasons.",
			},
			{
				title: "Structured output stays invalid", from: "`agent.Generate`, when the model does not follow the schema", run: invalidOutput,
				means: "The model got two corrections, and its output still does not match the type.", fix: "Describe the fields with `doc` tags, or use a model that enforces schemas.",
			},
			{
				title: "Response was cut off", from: "a response that reaches `MaxOutputTokens`", run: ends("turn\n  match any\n  say The weather in\n  stop length\n", agent.Agent{}),
				means: "The model had more to say than the limit allows.", fix: "Raise `Settings.MaxOutputTokens`. The text so far is in the result.",
			},
			{
				title: "Model refused", from: "`agent.Generate`, when the model refuses the request", run: refused,
				means: "The model declined, with this reason.", fix: "Change the request, or use another model.",
			},
			{
				title: "Content filter", from: "a response that the provider's content filter ends", run: ends("turn\n  match any\n  say The weather in\n  stop content_filter\n", agent.Agent{}),
				means: "The provider ended the response.", fix: "Change the prompt, or the filter settings of the provider.",
			},
			{
				title: "Guardrail", from: "an input guardrail that stops", run: guarded,
				means: "A guardrail of the program stopped the run.", fix: "The reason is the guardrail's own.",
			},
			{
				title: "Agent without a model", from: "`agent.Agent{}`", run: func(t *testing.T) string { return failed(t, agent.Agent{}) },
				means: "The definition of the agent is not complete.", fix: "Set `Model`.",
			},
			{
				title: "Unfinished run", from: "`Run` in a session whose last run waits for approval", run: unfinished,
				means: "The session has calls without results, so a new prompt cannot be added.", fix: "Resume the run first, or pass `agent.Abandon()`.",
			},
			{
				title: "State without its session", from: "`Resume` with the state of a run in a session, without `agent.In`", run: stateWithoutSession,
				means: "The state refers to a conversation that is in a store.", fix: "Pass `agent.In(session)`.",
			},
		},
	}
}

type place struct {
	City string `json:"city"`
}

func weather(opts ...tool.Option) tool.Tool {
	return tool.New("get_weather", "Current weather in a city.", func(context.Context, place) (string, error) { return "4 °C", nil }, opts...)
}

func script(t *testing.T, text string) dragoman.Model {
	t.Helper()
	s, err := sim.ParseScenario("script", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func failed(t *testing.T, a agent.Agent, opts ...agent.Option) string {
	t.Helper()
	a.Log = slog.New(slog.DiscardHandler)
	_, err := a.Run(t.Context(), "What is the weather in Oslo?", opts...)
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func ends(text string, a agent.Agent) func(*testing.T) string {
	return func(t *testing.T) string {
		a.Model, a.Tools = script(t, text), []tool.Tool{weather()}
		return failed(t, a)
	}
}

func waiting(t *testing.T) string {
	text := failed(t, agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather(tool.NeedsApproval())}})
	return text
}

func failingCalls() string {
	var b strings.Builder
	for i := range 6 {
		b.WriteString("turn\n  match turn " + string(rune('1'+i)) + "\n  call get_wether {\"city\":\"Oslo " + strings.Repeat("!", i) + "\"}\n")
	}
	return b.String()
}

type forecast struct {
	Celsius int `json:"celsius"`
}

func invalidOutput(t *testing.T) string {
	_, _, err := agent.Generate[forecast](t.Context(), agent.Agent{Model: script(t, "turn\n  match any\n  say {\"celsius\":\"cold\"}\n")}, "How cold is it?")
	if out := new(agent.OutputError); !errors.As(err, &out) {
		t.Fatal(err)
	}
	return err.Error()
}

func guarded(t *testing.T) string {
	return failed(t, agent.Agent{Model: provider.MustOpen("sim/echo"), Guardrails: agent.Guardrails{Input: []agent.InputGuardrail{{
		Name: "no-weather",
		Check: func(context.Context, []dragoman.Message) (agent.Verdict, error) {
			return agent.Verdict{Stop: true, Reason: "questions about the weather are off topic"}, nil
		},
	}}}})
}

func refused(t *testing.T) string {
	_, _, err := agent.Generate[forecast](t.Context(), agent.Agent{Model: script(t, "turn\n  match any\n  refuse I cannot help with that.\n")}, "How cold is it?")
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func pendingIn(t *testing.T) (agent.Agent, *session.Session, *agent.Result) {
	t.Helper()
	s, err := session.Create(t.Context(), &session.Memory{}, session.Info{ID: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather(tool.NeedsApproval())}, NewID: func() string { return "run-1" }}
	res, err := a.Run(t.Context(), "What is the weather in Oslo?", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	return a, s, res
}

func unfinished(t *testing.T) string {
	a, s, _ := pendingIn(t)
	return failed(t, a, agent.In(s))
}

func stateWithoutSession(t *testing.T) string {
	a, _, res := pendingIn(t)
	_, err := a.Resume(t.Context(), res.State, agent.Approve(res.Pending[0]))
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func tools() section {
	return section{
		title: "From a tool call",
		intro: "A call that fails does not end the run. Its result is an error that the model reads and can act on; `Result.Records` has the same\ntext, and details that models must not see, such as the stack of a panic, go to the log.",
		entries: []entry{
			{
				title: "Unknown tool", from: "a call of `get_wether`", run: calls(`get_wether`, `{"city":"Oslo"}`, &tool.Runner{}, weather()),
				means: "The model called a tool that it was not given.", fix: "You need not do anything: the model sees the right name and calls again.",
			},
			{
				title: "Invalid arguments", from: "a call with another field", run: calls(`get_weather`, `{"town":"Oslo"}`, &tool.Runner{}, weather()),
				means: "The arguments do not match the schema, so the tool did not run.", fix: "If it happens often, simplify the schema or describe its fields.",
			},
			{
				title: "Arguments that are not JSON", from: "a call with a missing brace", run: calls(`get_weather`, `{"city":"Oslo"`, &tool.Runner{}, weather()),
				means: "The model wrote broken JSON that has no safe repair.", fix: "Raise `MaxOutputTokens` if the arguments were cut off.",
			},
			{
				title: "Denied by policy", from: "a call that a policy rule denies", run: deniedCall,
				means: "A rule denies the call. The model reads the reason of the rule.", fix: "Change the rule, if the call should run; `dragoman tools why` explains it.",
			},
			{
				title: "Rejected by the user", from: "a call whose approval was rejected", run: rejected,
				means: "A human said no, with this message.", fix: "You need not do anything: the model goes on without the call.",
			},
			{
				title: "Tool needs approval, and no approver is attached", from: "a call of a tool that needs approval in `dragoman run` without a terminal", run: noApprover,
				means: "No approver was attached to the run, so the call was refused.", fix: "Attach one (`Runner.Approver`), or permit the call by a rule.",
			},
			{
				title: "Tool returned an error", from: "a tool that returns `errors.New(\"no such city\")`", run: calls(`get_weather`, `{"city":"Oslo"}`, &tool.Runner{}, failing(func() (string, error) { return "", errors.New("no such city") })),
				means: "The tool ran and failed, with its own text.", fix: "Write tool errors for the model: what is wrong, and what to try.",
			},
			{
				title: "Tool panicked", from: "a tool that panics", run: calls(`get_weather`, `{"city":"Oslo"}`, &tool.Runner{}, failing(func() (string, error) { panic("index out of range") })),
				means: "The tool has a bug. The panic and its stack are in the log, not in the result.", fix: "Look at the log.",
			},
			{
				title: "Tool timed out", from: "a tool with `tool.Timeout(50*time.Millisecond)` that takes longer", run: slowTool,
				means: "The call was abandoned, because the tool did not return when its context ended.", fix: "Raise `tool.Timeout`, and let the tool watch its context.",
			},
			{
				title: "Result is too large", from: "a result of more than 1,000 characters, with `Limits{Chars: 1000}`, outside of an agent", run: largeResult,
				means: "The model gets the beginning and the end of the output.", fix: "Return less, in pages. An agent stores the whole output, and the model can read the rest.",
			},
			{
				title: "Call was already begun", from: "a call that a process began before it crashed", run: begunBefore,
				means: "A crash interrupted the call, and its effect is unknown. It does not run twice.", fix: "Check the effect. `tool.Idempotent()` lets a tool run again.",
			},
			{
				title: "Invalid tool definition", from: "`tool.Make` with a channel in the arguments", run: invalidDefinition,
				means: "The tool cannot be offered to a model. `tool.New` panics with this error, `tool.Make` returns it.", fix: "Correct the definition, as the text says.",
			},
			{
				title: "Two tools with one name", from: "an agent with the same tool twice", run: func(t *testing.T) string {
					return failed(t, agent.Agent{Model: provider.MustOpen("sim/echo"), Tools: []tool.Tool{weather(), weather()}})
				},
				means: "Names of tools are unique in a request.", fix: "Rename one, or set `Toolbox.Collisions`.",
			},
		},
	}
}

func failing(f func() (string, error)) tool.Tool {
	return tool.New("get_weather", "Current weather in a city.", func(context.Context, place) (string, error) { return f() })
}

// calls returns the result that the model reads.
func calls(name, arguments string, r *tool.Runner, t tool.Tool) func(*testing.T) string {
	return func(test *testing.T) string { return result(test, name, arguments, *r, t) }
}

func result(t *testing.T, name, arguments string, r tool.Runner, defined tool.Tool) string {
	t.Helper()
	r.Log = slog.New(slog.DiscardHandler)
	box, err := tool.NewBox(defined)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := r.Start("run-1").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "call_1", Name: name, Arguments: arguments}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(batch.Results) != 1 || batch.Results[0] == nil {
		t.Fatalf("%+v", batch)
	}
	return batch.Results[0].Text()
}

const oslo = `{"city":"Oslo"}`

func deniedCall(t *testing.T) string {
	c, err := policy.Parse("policy.yaml", []byte("version: 1\nrules:\n  - {id: no-weather, effect: deny, reason: Ask for the forecast instead., when: {tool: get_weather}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return result(t, "get_weather", oslo, tool.Runner{Policy: p}, weather())
}

func rejected(t *testing.T) string {
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather(tool.NeedsApproval())}}
	res, err := a.Run(t.Context(), "What is the weather in Oslo?")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	if res, err = a.Resume(t.Context(), res.State, agent.Reject(res.Pending[0], "use the cached report")); err != nil {
		t.Fatal(err)
	}
	return res.Records[len(res.Records)-1].Plain
}

func noApprover(t *testing.T) string {
	out, err := command(t, "run", "--no-session", "--model", "sim/planner", `Write the file "a.txt" with the content "x"`)
	if err == nil {
		t.Error("the call was not refused")
	}
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, " failed: "); ok {
			return text
		}
	}
	t.Fatal(out)
	return ""
}

func slowTool(t *testing.T) string {
	done := make(chan struct{})
	defer close(done)
	return result(t, "get_weather", oslo, tool.Runner{}, tool.New("get_weather", "Current weather in a city.", func(context.Context, place) (string, error) {
		<-done
		return "", nil
	}, tool.Timeout(50*time.Millisecond)))
}

func largeResult(t *testing.T) string {
	text := result(t, "get_weather", oslo, tool.Runner{Limits: tool.Limits{Chars: 1000}}, tool.New("get_weather", "Current weather in a city.", func(context.Context, place) (string, error) {
		return strings.Repeat("4 °C\n", 1000), nil
	}, tool.Set(func(s *tool.Settings) { s.Trusted = true })))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[") {
			return "4 °C\n…\n" + strings.TrimSpace(line) + "\n…\n4 °C"
		}
	}
	t.Fatal(text)
	return ""
}

// crashed is a journal whose process ends before a result is recorded.
type crashed struct{ *session.Session }

func (crashed) End(context.Context, tool.Intent, *dragoman.ToolResult) error { return nil }

func begunBefore(t *testing.T) string {
	s, err := session.Create(t.Context(), &session.Memory{}, session.Info{ID: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	if text := result(t, "get_weather", oslo, tool.Runner{Journal: crashed{s}}, weather()); !strings.Contains(text, "4 °C") {
		t.Fatal(text)
	}
	return result(t, "get_weather", oslo, tool.Runner{Journal: s}, weather())
}

type inquiry struct {
	City  string      `json:"city"`
	Reply chan string `json:"reply"`
}

func invalidDefinition(t *testing.T) string {
	_, err := tool.Make("get_weather", "Current weather in a city.", func(context.Context, inquiry) (string, error) { return "", nil })
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}
