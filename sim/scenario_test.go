package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/sim"
)

const coats = `
# A conversation.
turn the user asks
  match user coat
  match turn 1
  think The weather decides that.
  think Always.
  say Let me look.
  call get_weather {"city": "Oslo"}
  call meteo.now
  call run_code <<END
for {
}
END
  pace first=1s rate=2

turn the weather came
  match result /\d+ °C/
  match system polite
  say Take a coat.
  usage input=120 output=8 reasoning=1 cache_read=2 cache_write=3

turn cut off
  match user long
  call get_weather {"city": "Oslo"}
  stop length

turn failing
  match model broken
  error rate_limit status=429 retry=3s Slow
  # a turn ends after its error

turn breaking
  match user break
  say One
  error overloaded Enough.
`

func scenario(t *testing.T, script string) *sim.Scenario {
	t.Helper()
	s, err := sim.ParseScenario("test.scenario", script)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestZ1_ScenarioPlaysItsScript(t *testing.T) {
	s := scenario(t, coats)
	var waits []time.Duration
	s.Pace.Wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	now := function("now", "", "")
	now.Namespace = "meteo"
	code := dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_code"}
	req := ask("Do I need a Coat?", function("get_weather", "", cityOnly), now, code)
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "Be polite."}}

	resp := generate(t, s, req)
	if got, want := summary(resp), "get_weather{\"city\": \"Oslo\"}\nmeteo.now{}\nrun_codefor {\n}\nLet me look."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if c := resp.ToolCalls()[1]; c.Namespace != "meteo" || c.Name != "now" {
		t.Errorf("%+v", c)
	}
	if r, ok := resp.Output[0].Parts[0].(*dragoman.Reasoning); !ok || r.Text != "The weather decides that.\nAlways." {
		t.Errorf("%+v", r)
	}
	if waits[0] != time.Second || waits[1] != time.Second/2 || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%v, %v", waits[:2], resp.Stop)
	}

	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(resp.ToolCalls()[0].ResultText("4 °C")))
	resp = generate(t, s, req)
	want := dragoman.Usage{Input: dragoman.Counted(120), Output: dragoman.Counted(8), Reasoning: dragoman.Counted(1), CacheRead: dragoman.Counted(2), CacheWrite: dragoman.Counted(3)}
	if resp.Text() != "Take a coat." || resp.Usage != want || resp.Stop.Reason != dragoman.StopEnd {
		t.Errorf("%s %+v", resp.Text(), resp)
	}
}

func TestCallsBeforeStopLengthDoNotRun(t *testing.T) {
	resp := generate(t, scenario(t, coats), ask("long"))
	if c := resp.ToolCalls()[0]; c.Problem == nil || c.Problem.Code != codes.ProblemTruncated || resp.Stop.Reason != dragoman.StopLength {
		t.Errorf("%+v", resp)
	}
}

func TestScriptedError(t *testing.T) {
	s := scenario(t, coats)
	req := ask("hi")
	req.Model = "broken"
	_, err := s.Generate(context.Background(), req)
	var e *dragoman.APIError
	if !errors.As(err, &e) || e.Class != dragoman.ErrorRateLimit || e.Status != 429 || e.RetryAfter != 3*time.Second || e.Message != "Slow" {
		t.Errorf("%+v", err)
	}
	resp, err := s.Generate(context.Background(), ask("break it"))
	if !errors.As(err, &e) || e.Class != dragoman.ErrorOverloaded || resp.Text() != "One" || resp.Stop.Reason != dragoman.StopError {
		t.Errorf("%+v %v", resp, err)
	}
}

func TestUnmatchedRequestListsTurns(t *testing.T) {
	_, err := scenario(t, coats).Generate(context.Background(), ask("What?"))
	if !errors.Is(err, sim.ErrNoTurn) || !strings.Contains(err.Error(), `"What?"`) || !strings.Contains(err.Error(), "turn 2 the weather came") {
		t.Error(err)
	}
}

func TestTurnsWithoutMatchApplyByPosition(t *testing.T) {
	s := scenario(t, "turn\nsay one\nturn\nsay two\n")
	req := ask("a")
	for _, want := range []string{"one", "two"} {
		resp := generate(t, s, req)
		if resp.Text() != want {
			t.Errorf("%s, want %s", resp.Text(), want)
		}
		req.Messages = append(req.Messages, resp.Output...)
		req.Messages = append(req.Messages, dragoman.UserText("b"))
	}
	if _, err := s.Generate(context.Background(), req); !errors.Is(err, sim.ErrNoTurn) {
		t.Error(err)
	}
}

func TestScriptCallsToolsOfEveryDialect(t *testing.T) {
	s := scenario(t, "turn\n  call crm.list_orders {\"cust\": 3}\n  call apply_patch *** Begin <Patch>\n")
	text := json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`)
	for name, test := range map[string]struct {
		tools []dragoman.ToolSpec
		want  []dragoman.ToolCall
	}{
		"namespaces and freeform tools": {
			[]dragoman.ToolSpec{{Name: "crm__list_orders"}, {Namespace: "crm", Name: "list_orders"}, {Name: "apply_patch", Kind: codes.ToolFreeform}},
			[]dragoman.ToolCall{
				{Namespace: "crm", Name: "list_orders", Arguments: `{"cust": 3}`},
				{Name: "apply_patch", Arguments: "*** Begin <Patch>", Payload: codes.PayloadText},
			},
		},
		"functions alone": {
			[]dragoman.ToolSpec{{Name: "crm__list_orders", Parameters: text}, {Name: "apply_patch", Parameters: text}},
			[]dragoman.ToolCall{
				{Name: "crm__list_orders", Arguments: `{"cust": 3}`},
				{Name: "apply_patch", Arguments: `{"input":"*** Begin \u003cPatch\u003e"}`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := generate(t, s, ask("Go on.", test.tools...)).Output[0].ToolCalls()
			if len(calls) != len(test.want) {
				t.Fatalf("%d calls", len(calls))
			}
			for i, c := range calls {
				if w := test.want[i]; c.Namespace != w.Namespace || c.Name != w.Name || c.Arguments != w.Arguments || c.Payload != w.Payload {
					t.Errorf("%+v, want %+v", c, w)
				}
			}
		})
	}
}

func TestMatchResultSeesAllLastResults(t *testing.T) {
	s := scenario(t, "turn both\n  match result amber\n  match result cobalt\n  say Both.\nturn\n  match any\n  say Not both.\n")
	result := func(id, text string) *dragoman.ToolResult {
		return &dragoman.ToolResult{CallID: id, Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: text}}}
	}
	calls := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "a", Name: "f"}, &dragoman.ToolCall{ID: "b", Name: "f"}}}
	tools := func(results ...dragoman.Part) dragoman.Message {
		return dragoman.Message{Role: dragoman.RoleTool, Parts: results}
	}
	for name, test := range map[string]struct {
		results []dragoman.Message
		want    string
	}{
		"one message":      {[]dragoman.Message{tools(result("a", "amber"), result("b", "cobalt"))}, "Both."},
		"several messages": {[]dragoman.Message{tools(result("a", "amber")), tools(result("b", "cobalt"))}, "Both."},
		"one of them":      {[]dragoman.Message{tools(result("a", "amber")), tools(result("b", "none"))}, "Not both."},
	} {
		t.Run(name, func(t *testing.T) {
			req := ask("Go on.", function("f", "", ""))
			req.Messages = append(append(req.Messages, calls), test.results...)
			if got := generate(t, s, req).Output[0].Text(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestSyntaxErrorsHaveLines(t *testing.T) {
	for script, want := range map[string]string{
		"":                                  "test.scenario:1: the script has no turn",
		"# nothing\n":                       "test.scenario:1: the script has no turn",
		"say hi":                            "test.scenario:1: say is not allowed before the first turn",
		"turn\n\nsing hi":                   `test.scenario:3: unknown word "sing"`,
		"turn\nmatch user x":                "test.scenario:1: the turn has no content",
		"turn\nsay a\nmatch nobody x":       `test.scenario:3: unknown match "nobody"`,
		"turn\nsay a\nmatch user /(/":       "test.scenario:3: error parsing regexp",
		"turn\nsay a\nmatch turn zero":      "test.scenario:3: match turn needs a number",
		"turn\nsay a\nmatch any thing":      "test.scenario:3: match any takes no pattern",
		"turn\nsay <<END\na\nb":             "test.scenario:2: the text has no end: missing a line with END",
		"turn\ncall":                        "test.scenario:2: call needs the name",
		"turn\ncall f {\"a\":}":             "test.scenario:2: the arguments are not valid JSON",
		"turn\ncall f <<END\n{\"a\":}\nEND": "test.scenario:2: the arguments are not valid JSON",
		"turn\ncall f {\"a\":1,\"a\":2}":    "test.scenario:2: the arguments repeat",
		"turn\nsay a\nstop soon":            `test.scenario:3: unknown stop reason "soon": known reasons are stop, tool_calls, `,
		"turn\nsay a\nusage input=many":     "test.scenario:3: usage input needs a number",
		"turn\nsay a\nusage money=1":        "test.scenario:3: unknown usage count money",
		"turn\nsay a\nusage":                "test.scenario:3: usage needs counts",
		"turn\nsay a\npace slow":            "test.scenario:3: pace needs",
		"turn\nsay a\npace rate=fast":       "test.scenario:3: invalid pace rate=fast",
		"turn\nsay a\npace last=1s":         "test.scenario:3: unknown pace setting last",
		"turn\nerror bad luck":              `test.scenario:2: unknown error class "bad": known classes are bad_request, `,
		"turn\nerror server status=200 x":   "test.scenario:2: status 200 is not an error status",
		"turn\nerror server when=1 x":       "test.scenario:2: unknown error setting when=",
		"turn\nerror server retry=later x":  "test.scenario:2: invalid value retry=later",
		"turn\nerror server x\nsay hi":      "test.scenario:3: nothing can follow the error",
	} {
		_, err := sim.ParseScenario("test.scenario", script)
		var at *sim.SyntaxError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
	_, err := sim.ParseScenario("test.scenario", "sing\nturn\nsay <<X")
	if s := err.Error(); !strings.Contains(s, ":1:") || !strings.Contains(s, ":3:") {
		t.Errorf("an error lacks some wrong lines: %s", s)
	}
}

func FuzzParseScenario(f *testing.F) {
	f.Add(coats)
	f.Add("turn\nsay <<END\nx\nEND\ncall f {}\n")
	f.Fuzz(func(t *testing.T, script string) {
		s, err := sim.ParseScenario("x", script)
		if err != nil {
			return
		}
		s.Pace.Wait = func(context.Context, time.Duration) error { return nil }
		_, _ = s.Generate(context.Background(), ask("x", toolbox()...))
	})
}

// Users start with the script of the package comment, so it must work.
func TestPackageCommentScriptWorks(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(source), "are ignored.\n//\n")
	script, _, found := strings.Cut(script, "\n//\n// Conditions.")
	s, err := sim.ParseScenario("doc.go", strings.ReplaceAll(strings.ReplaceAll(script, "//\t", ""), "//\n", "\n"))
	if err != nil || !found {
		t.Fatalf("%v\n%s", err, script)
	}
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("Do I need a coat?")}}
	first, err := s.Generate(t.Context(), req)
	if err != nil || len(first.ToolCalls()) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	req.Messages = append(req.Messages, first.Output[0], dragoman.ToolResults(first.ToolCalls()[0].ResultText("-4 °C")))
	if last, err := s.Generate(t.Context(), req); err != nil || last.Text() != "Take a coat." {
		t.Errorf("%+v, %v", last, err)
	}
}
