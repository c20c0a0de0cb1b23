package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

type ticket struct {
	Repo   string   `json:"repo" doc:"owner/name"`
	Title  string   `json:"title" jsonschema:"minLength=1,maxLength=200"`
	Body   string   `json:"body,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Assign []person `json:"assignees,omitempty"`
	Draft  bool     `json:"draft,omitempty"`
}

type person struct {
	Login string `json:"login"`
	Role  string `json:"role,omitempty" jsonschema:"enum=owner,enum=reviewer"`
}

const ticketArgs = `{"repo":"dragoman-go/dragoman","title":"A title of some length","body":"What happened, and what was expected to happen.","labels":["bug","tools"],"assignees":[{"login":"ada","role":"owner"},{"login":"grace","role":"reviewer"}],"draft":false}`

// turnsOfRun is the number of turns of the runs in the benchmark. The garbage collector scans
// the calls that a run stores, so there must not be more of them than in a real run.
const turnsOfRun = 100

// pipeline returns a call with all steps (validation, 50 rules of which 45 have conditions and
// do not match, two hooks, record, fence) and the compiled validation of the same arguments
// alone. The tool and the hooks are either immediate or have a time limit.
func pipeline(tb testing.TB, immediate bool) (whole, alone func()) {
	tb.Helper()
	params, err := schema.For[ticket]()
	if err != nil {
		tb.Fatal(err)
	}
	v, err := schema.Compile(params)
	if err != nil {
		tb.Fatal(err)
	}
	rules := selecting(45)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		rules = append(rules, Rule{ID: "z-" + name, Effect: tool.Allow, Priority: -1, When: When{Tools: []string{"create_*"}}})
	}
	box, err := tool.Config{Hooks: tool.Hooks{
		Pre:  []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) { return in, nil }},
		Post: []tool.PostHook{func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) { return out, nil }},

		Immediate: immediate,
	}}.Box(tool.New("create_issue", "Creates an issue.", func(context.Context, ticket) (string, error) { return "created", nil },
		tool.Set(func(s *tool.Settings) { s.Immediate = immediate })))
	if err != nil {
		tb.Fatal(err)
	}
	runner := &tool.Runner{Policy: mustNew(tb, Config{Rules: rules})}
	run := runner.Start("r")
	calls := []*dragoman.ToolCall{{ID: "1", Name: "create_issue", Arguments: ticketArgs}}
	turn := 0
	whole = func() {
		if turn++; turn%turnsOfRun == 0 {
			run = runner.Start("r")
		}
		batch, err := run.Do(tb.Context(), box, tool.Turn{Number: turn, Calls: calls})
		if err != nil || !batch.Records[0].OK {
			tb.Fatal(err, batch.Records[0].Error)
		}
	}
	alone = func() {
		if err := v.Validate(json.RawMessage(ticketArgs)); err != nil {
			tb.Fatal(err)
		}
	}
	return whole, alone
}

// BenchmarkPipeline compares the two functions of pipeline, in turn, by medians: on one core,
// where switching goroutines is cheap, and on two, where each switch wakes an idle core.
func BenchmarkPipeline(b *testing.B) {
	for _, how := range []string{"immediate", "watched"} {
		for _, cores := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/cores-%d", how, cores), func(b *testing.B) {
				before := runtime.GOMAXPROCS(cores)
				b.Cleanup(func() { runtime.GOMAXPROCS(before) })
				everything, validation := pipeline(b, how == "immediate")
				bare, whole := &bench{run: validation}, &bench{run: everything}
				const runs = 100
				inTurn(b, runs, bare, whole)
				b.ReportMetric(bare.median(runs), "ns/validation")
				b.ReportMetric(whole.median(runs), "ns/call")
				b.ReportMetric(whole.median(runs)/bare.median(runs), "x-time")
				b.ReportMetric(testing.AllocsPerRun(200, everything)/testing.AllocsPerRun(200, validation), "x-allocs")
			})
		}
	}
}

// The benchmark measures the time, on an otherwise idle machine. Much of it is allocation,
// which is the same on every machine.
func TestPipelineAllocatesLittleMoreThanValidation(t *testing.T) {
	const most = 1.8 // of the 2.5 allowed; half of another validation would exceed it
	whole, alone := pipeline(t, false)
	if times := testing.AllocsPerRun(200, whole) / testing.AllocsPerRun(200, alone); times > most {
		t.Errorf("%.2f times as many allocations, want at most %.2f", times, most)
	}
}
