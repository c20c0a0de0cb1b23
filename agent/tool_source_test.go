package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// named returns a tool without arguments that answers with its name.
func namedTool(name string, opts ...tool.Option) tool.Tool {
	return tool.New(name, "Answers with its name.", func(context.Context, struct{}) (string, error) { return "I am " + name, nil }, opts...)
}

// sentTools returns the names of the tools of each request.
func sentTools(m *scripted) []string {
	var out []string
	for _, req := range m.asked {
		var names []string
		for _, s := range req.Tools {
			names = append(names, s.Name)
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

// changing returns a source that returns one list after the other, and repeats the last.
func changing(lists ...[]tool.Tool) func(context.Context) ([]tool.Tool, error) {
	return func(context.Context) ([]tool.Tool, error) {
		now := lists[0]
		if len(lists) > 1 {
			lists = lists[1:]
		}
		return now, nil
	}
}

func TestQuirkH4_ToolsChangeBetweenTurnsInAStableOrder(t *testing.T) {
	a, b, c, own := namedTool("a"), namedTool("b"), namedTool("c"), namedTool("own")
	m := model(calls(`c1 a {}`), calls(`c2 c {}`), calls(`c3 a {}`))
	ag := agent.Agent{
		Model: m, Tools: []tool.Tool{own}, Runner: &tool.Runner{Spill: tool.NoSpill},
		ToolSource: changing([]tool.Tool{a, b}, []tool.Tool{c, b, a}, []tool.Tool{c, b}),
	}
	res, err := ag.Run(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"own a b", "own a b c", "own b c", "own b c"}
	if got := sentTools(m); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	var results []string
	for _, msg := range res.Messages {
		for _, p := range msg.Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				results = append(results, r.PlainText())
			}
		}
	}
	if len(results) != 3 || !strings.Contains(results[0], "I am a") || !strings.Contains(results[1], "I am c") || !strings.Contains(results[2], "unavailable") {
		t.Errorf("results %q", results)
	}
}

func TestFailingToolSource(t *testing.T) {
	broken := errors.New("no connection")
	ag := agent.Agent{Model: model(), ToolSource: func(context.Context) ([]tool.Tool, error) { return nil, broken }}
	if _, err := ag.Run(t.Context(), "go"); !errors.Is(err, broken) {
		t.Errorf("the run went on without its tools: %v", err)
	}
	turns := 0
	m := model(calls(`c1 a {}`))
	ag = agent.Agent{Model: m, Runner: &tool.Runner{Spill: tool.NoSpill}, ToolSource: func(context.Context) ([]tool.Tool, error) {
		if turns++; turns > 1 {
			return nil, broken
		}
		return []tool.Tool{namedTool("a")}, nil
	}}
	var notices []string
	for ev, err := range ag.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := ev.(*agent.Notice); ok {
			notices = append(notices, n.Code)
		}
	}
	if got := sentTools(m); !slices.Equal(got, []string{"a", "a"}) || !slices.Equal(notices, []string{"tools"}) {
		t.Errorf("sent %q, notices %q", got, notices)
	}
}

func TestPendingCallOfASourcedToolIsResumed(t *testing.T) {
	source := func(context.Context) ([]tool.Tool, error) {
		return []tool.Tool{namedTool("a", tool.NeedsApproval())}, nil
	}
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{}))
	ag := agent.Agent{Model: model(calls(`c1 a {}`)), ToolSource: source}
	res, err := ag.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	again := agent.Agent{Model: model(), ToolSource: source}
	res, err = again.Resume(t.Context(), nil, agent.In(s), agent.Approve(res.Pending[0]))
	if err != nil || len(res.Records) != 1 || !res.Records[0].OK {
		t.Errorf("%+v, %v", res.Records, err)
	}
}

func TestQuestionOfAToolInterruptsTheRunAndIsAnsweredOnResume(t *testing.T) {
	ask := tool.Raw("push", "Pushes.", []byte(`{"type":"object"}`), func(ctx context.Context, _ json.RawMessage) (any, error) {
		answers, asked := tool.Answers(ctx)
		if !asked {
			return nil, &tool.Suspended{Asks: []tool.InputRequest{{Name: "branch", Prompt: "Which?", Schema: []byte(`{"type":"object"}`)}}, State: []byte(`1`)}
		}
		return "pushed to " + string(answers["branch"].Value), nil
	})
	run := agent.Agent{Name: "git", Model: model(calls(`c1 push {}`)), Tools: []tool.Tool{ask}}
	check := func(t *testing.T, ag agent.Agent, again agent.Agent) {
		res, err := ag.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 || res.Pending[0].Wanted == nil || res.Pending[0].Wanted.Prompt != "Which?" {
			t.Fatalf("%+v, %v", res.Pending, err)
		}
		p := res.Pending
		res, err = again.Resume(t.Context(), res.State, agent.ApproveAll(p))
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatalf("a question was answered by approving everything: %v", err)
		}
		res, err = again.Resume(t.Context(), res.State, agent.Value(p[0], []byte(`{"b":"main"}`)))
		if err != nil || len(res.Records) == 0 || !res.Records[len(res.Records)-1].OK {
			t.Fatalf("%+v, %v", res.Records, err)
		}
	}
	t.Run("own tool", func(t *testing.T) {
		again := run
		again.Model = model()
		check(t, run, again)
	})
	t.Run("tool of a nested agent", func(t *testing.T) {
		inner := run
		inner.Model = model(calls(`c1 push {}`))
		outer := agent.Agent{Name: "outer", Model: model(calls(`o1 git {"task":"push"}`)), Tools: []tool.Tool{inner.AsTool()}}
		again := run
		again.Model = model()
		check(t, outer, agent.Agent{Name: "outer", Model: model(), Tools: []tool.Tool{again.AsTool()}})
	})
}
