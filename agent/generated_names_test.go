package agent_test

import (
	"context"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

func TestI9_SearchToolAvoidsTheUsersNames(t *testing.T) {
	var did counted
	m := model(calls(`a tool_search_2 {"query":"weather"}`, `b tool_search {"word":"mine"}`), calls(`c weather {"word":"Oslo"}`), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("tool_search"), did.tool("weather", tool.Deferred())}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if res.Output != "done" || did.String() != "tool_search:mine weather:Oslo" {
		t.Errorf("%s, runs %q\n%s", res.Output, did.String(), recordLines(res.Records))
	}
	// The error for a deferred tool that is called too early contains the right name.
	m = model(calls("a weather"), textResponse("done"))
	a.Model = m
	res = must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if text := res.Messages[2].Parts[0].(*dragoman.ToolResult).Text(); !strings.Contains(text, "tool_search_2") {
		t.Errorf("the model reads %q", text)
	}
}

func TestI9_HandoffNamesAvoidTheUsersNames(t *testing.T) {
	var did counted
	billing := &agent.Agent{Name: "billing", Model: model(textResponse("paid"))}
	sales := &agent.Agent{Name: "sales", Model: model(textResponse("sold"))}
	m := model(calls("a transfer_to_billing_3"))
	a := agent.Agent{
		Model: m, Tools: []tool.Tool{did.tool("transfer_to_billing")},
		Handoffs: []agent.Handoff{{To: billing}, {To: sales, Name: "transfer_to_billing_2"}},
	}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if res.Agent != "billing" || res.Output != "paid" {
		t.Errorf("%s said %q", res.Agent, res.Output)
	}
}

func TestI9_ShortenedOutputNamesTheToolThatReadsIt(t *testing.T) {
	spill := &tool.MemorySpill{}
	long := tool.New("long", "Writes.", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", 1000), nil })
	for name, tools := range map[string][]tool.Tool{
		"read all of it with read_tool_output,":   {long, tool.ReadOutput(spill)},
		"read all of it with read_more,":          {long, failing(toolname.ReadOutput), tool.ReadOutput(spill, tool.Describe(func(s *dragoman.ToolSpec) { s.Name = "read_more" }))},
		"read all of it with read_tool_output_2,": {long, failing(toolname.ReadOutput)},
	} {
		a := agent.Agent{Model: model(calls("a long"), textResponse("done")), Tools: tools, Runner: &tool.Runner{Spill: spill, Limits: tool.Limits{Chars: 100}}}
		res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if got := res.Records[0].Plain; !strings.Contains(got, name) {
			t.Errorf("want %q in %q", name, got)
		}
	}
}
