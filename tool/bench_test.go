package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

type issue struct {
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

const issueArgs = `{"repo":"dragoman-go/dragoman","title":"A title of some length","body":"What happened, and what was expected to happen.","labels":["bug","tools"],"assignees":[{"login":"ada","role":"owner"},{"login":"grace","role":"reviewer"}],"draft":false}`

// BenchmarkValidation is what the pipeline is compared with.
func BenchmarkValidation(b *testing.B) {
	params, err := schema.For[issue]()
	if err != nil {
		b.Fatal(err)
	}
	v, err := schema.Compile(params)
	if err != nil {
		b.Fatal(err)
	}
	args := json.RawMessage(issueArgs)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPipeline is a call through everything: validation, a policy, two hooks,
// record and fence.
func BenchmarkPipeline(b *testing.B) {
	box, err := tool.Config{Hooks: tool.Hooks{
		Pre:  []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) { return in, nil }},
		Post: []tool.PostHook{func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) { return out, nil }},
	}}.Box(tool.New("create_issue", "Creates an issue.", func(context.Context, issue) (string, error) { return "created", nil }))
	if err != nil {
		b.Fatal(err)
	}
	r := &tool.Runner{Policy: always(tool.Allow)}
	calls := []*dragoman.ToolCall{call("1", "create_issue", issueArgs)}
	run := r.Start("r")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		batch, err := run.Do(b.Context(), box, tool.Turn{Number: n, Calls: calls})
		if err != nil || !batch.Records[0].OK {
			b.Fatal(err, batch.Records[0].Error)
		}
	}
}

// BenchmarkLookup finds one of many tools: there is no scan.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 1000} {
		tools := make([]tool.Tool, n)
		for i := range tools {
			tools[i] = echo(fmt.Sprint("tool_", i))
		}
		box := mustBox(b, tools...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := tool.Bare(fmt.Sprint("tool_", n-1))
			for b.Loop() {
				if _, ok := box.Find(k); !ok {
					b.Fatal("lost")
				}
			}
		})
	}
}
