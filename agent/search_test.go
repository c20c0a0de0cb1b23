package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

func specNames(req *dragoman.Request) string {
	var out []string
	for i := range req.Tools {
		s := &req.Tools[i]
		n := s.QualifiedName()
		if s.Deferred {
			n += "(deferred)"
		}
		out = append(out, n)
	}
	return strings.Join(out, " ")
}

// A tool is found by a name of one letter, and by a description in a script without spaces.
func TestL6_SearchKnowsShortNamesAndScriptsWithoutSpaces(t *testing.T) {
	var did counted
	described := func(text string) tool.Option {
		return tool.Describe(func(s *dragoman.ToolSpec) { s.Description = text })
	}
	for query, want := range map[string]string{
		"a tool for r":        "r",
		"stats.r":             "r",
		"メッセージ":               "send",
		"Slackへ送る":            "send",
		"天気":                  "forecast",
		"明日の天気を教えて":           "forecast",
		"発":                   "",
		"送":                   "send",
		"気":                   "forecast",
		"find 気 for me":       "forecast",
		"a":                   "",
		"send a note":         "send",
		"how will it rain, s": "forecast",
	} {
		m := model(calls(fmt.Sprintf(`1 tool_search {"query":%q}`, query)))
		a := agent.Agent{Model: m, Search: agent.Search{MaxResults: 1}, Tools: []tool.Tool{
			did.tool("look"),
			did.tool("r", tool.Deferred(), described("Computes a mean.")),
			did.tool("send", tool.Deferred(), described("Slackでメッセージを送る")),
			did.tool("forecast", tool.Deferred(), described("天気を調べる: will there be a rain?")),
		}}
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		got := ""
		for _, s := range m.asked[1].Tools {
			if slices.Contains([]string{"r", "send", "forecast"}, s.Name) {
				got = s.Name
			}
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

func TestL6_DeferredToolsAreHiddenUntilFoundAndStayFound(t *testing.T) {
	var did counted
	m := model(
		calls("a list_invoices"), calls(`b tool_search {"query":"show my invoices"}`), calls("c list_invoices"), calls("d look"),
	)
	a := agent.Agent{Model: m, Tools: []tool.Tool{
		did.tool("look"), did.tool("list_invoices", tool.Deferred()), did.tool("send_mail", tool.Deferred(), tool.NeedsApproval()),
	}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if did.String() != "list_invoices: look:" || res.Output != "done" {
		t.Errorf("ran %q\n%s", did.String(), script(res.Messages))
	}
	for i, want := range []string{
		"look read_tool_output tool_search", "look read_tool_output tool_search", "look read_tool_output tool_search list_invoices",
		"look read_tool_output tool_search list_invoices", "look read_tool_output tool_search list_invoices",
	} {
		if got := specNames(m.asked[i]); got != want {
			t.Errorf("turn %d has %q, want %q", i+1, got, want)
		}
	}
	if !strings.Contains(script(res.Messages), "result a error") {
		t.Errorf("a hidden tool was called\n%s", script(res.Messages))
	}
}

func TestL6_ToolFoundTwiceIsSentOnce(t *testing.T) {
	var did counted
	search := `tool_search {"query":"deep dive"}`
	m := model(calls("a "+search, "b "+search), calls("c "+search))
	must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{did.tool("deep_dive", tool.Deferred())}}.Run(t.Context(), "go"))
	if got := specNames(m.asked[2]); strings.Count(got, "deep_dive") != 1 {
		t.Error(got)
	}
}

func TestL6_FoundToolsSurviveResumption(t *testing.T) {
	var did counted
	tools := []tool.Tool{did.tool("pay_bill", tool.Deferred(), tool.NeedsApproval())}
	a := agent.Agent{Model: model(calls(`b tool_search {"query":"bill"}`), calls("c pay_bill")), Tools: tools}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	m := model(calls(`d pay_bill {"word":"again"}`))
	res, err = agent.Agent{Model: m, Tools: tools}.Resume(t.Context(), stored(t, res.State), agent.Always(res.Pending[0]))
	if err != nil || did.String() != "pay_bill: pay_bill:again" || specNames(m.asked[0]) != "read_tool_output tool_search pay_bill" {
		t.Errorf("%v, ran %q, %q", err, did.String(), specNames(m.asked[0]))
	}
	if got := res.Messages[len(res.Messages)-2].Parts[0].(*dragoman.ToolResult); got.Name != "pay_bill" || got.Namespace != "" {
		t.Errorf("the result is named %q in %q", got.Name, got.Namespace)
	}
}

func TestL6_BestToolsAreFoundAmongHundreds(t *testing.T) {
	var did counted
	var tools []tool.Tool
	for i := range 300 {
		tools = append(tools, did.tool(fmt.Sprintf("filler_%d", i), tool.Deferred()))
	}
	for _, n := range []string{"createCalendarEvent", "delete_calendar_event", "weather_forecast"} {
		tools = append(tools, did.tool(n, tool.Deferred()))
	}
	for query, want := range map[string]string{
		"add an event to the calendar":       "createCalendarEvent delete_calendar_event",
		"what will the weather be":           "weather_forecast",
		"DELETE calendar events, please":     "delete_calendar_event createCalendarEvent",
		"something nobody has ever heard of": "",
	} {
		m := model(calls(fmt.Sprintf(`a tool_search {"query":%q}`, query)))
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: tools, Search: agent.Search{MaxResults: 2}}.Run(t.Context(), "go"))
		if got := strings.TrimSpace(strings.TrimPrefix(specNames(m.asked[1]), "read_tool_output tool_search")); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// If the API has its own search, the request has the deferred tools, marked as such, and the
// search tool.
func TestL6_ProviderSearchIsPreferred(t *testing.T) {
	for name, tc := range map[string]struct {
		codec dialect.Codec
		ours  bool
		want  string
	}{
		"responses":            {openairesponses.Codec{}, false, "look find(deferred) read_tool_output tool_search"},
		"anthropic":            {anthropic.Codec{}, false, "look find(deferred) read_tool_output tool_search_tool_bm25"},
		"gemini has no search": {gemini.Codec{}, false, "look read_tool_output tool_search"},
		"ours by option":       {anthropic.Codec{}, true, "look read_tool_output tool_search"},
	} {
		var did counted
		m := &recording{Client: &provider.Client{Codec: tc.codec, Model: "m"}, answer: calls("a find")}
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look"), did.tool("find", tool.Deferred())}, Search: agent.Search{LocalOnly: tc.ours}}
		res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
		if got := specNames(m.asked); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if native := strings.Contains(tc.want, "deferred"); native != (len(res.Records) == 1 && res.Records[0].OK) {
			t.Errorf("%s: the call of a deferred tool: %v", name, res.Records)
		}
		if _, err := tc.codec.EncodeRequest(m.asked, dialect.EncodeOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// recording is a provider's model that sends nothing over the network.
type recording struct {
	*provider.Client
	answer *dragoman.Response
	asked  *dragoman.Request
}

func (m *recording) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if m.asked != nil {
		return textResponse("done"), nil
	}
	m.asked = req
	return m.answer, nil
}

// A call that was refused when its turn began stays refused when the turn is resumed.
func TestL6_RefusedHiddenToolIsNotRunByResuming(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls(`a tool_search {"query":"dive"}`, "b dive", "c pay")), Tools: []tool.Tool{did.tool("dive", tool.Deferred()), did.tool("pay", tool.NeedsApproval())}}
	res, _ := a.Run(t.Context(), "go")
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if did.String() != "pay:" || !strings.Contains(script(res.Messages), "result a ok result b error result c ok") {
		t.Errorf("ran %q\n%s", did.String(), script(res.Messages))
	}
}

// A namespace does not make a deferred tool available before it is found.
func TestL6_NamespacedToolIsRefusedUntilFound(t *testing.T) {
	var did counted
	early := calls("a crm.list")
	early.Output[0].Parts[0].(*dragoman.ToolCall).Name, early.Output[0].Parts[0].(*dragoman.ToolCall).Namespace = "list", "crm"
	late := calls("c crm.list")
	late.Output[0].Parts[0].(*dragoman.ToolCall).Name, late.Output[0].Parts[0].(*dragoman.ToolCall).Namespace = "list", "crm"
	m := model(early, calls(`b tool_search {"query":"crm list"}`), late)
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("list", tool.Deferred(), tool.InNamespace("crm", "customers"))}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if s := script(res.Messages); !strings.Contains(s, "result a error") || !strings.Contains(s, "result c ok") || did.String() != "list:" {
		t.Errorf("ran %q\n%s", did.String(), s)
	}
	if got := specNames(m.asked[0]); got != "read_tool_output tool_search" {
		t.Errorf("the first request has %q", got)
	}
}

// A run may change to a provider without a search of its own.
func TestL6_FoundByTheProviderStaysFoundOnAnother(t *testing.T) {
	var did counted
	tools := []tool.Tool{did.tool("pay", tool.Deferred(), tool.NeedsApproval())}
	first := &recording{Client: &provider.Client{Codec: openairesponses.Codec{}, Model: "m"}, answer: calls("a pay")}
	res, err := agent.Agent{Model: first, Tools: tools}.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	m := model(calls(`b pay {"word":"again"}`))
	res, err = agent.Agent{Model: m, Tools: tools}.Resume(t.Context(), stored(t, res.State), agent.Always(res.Pending[0]))
	if err != nil || did.String() != "pay: pay:again" {
		t.Errorf("%v, ran %q\n%s", err, did.String(), script(res.Messages))
	}
	if got := specNames(m.asked[0]); got != "read_tool_output tool_search pay" {
		t.Errorf("the next request has %q", got)
	}
}

func TestL6_ModelsWithoutSearchGetTheSearchTool(t *testing.T) {
	for spec, native := range map[string]string{
		"openai/gpt-4.1": "", "openai/gpt-4o-2024-08-06": "", "openai/gpt-5": "", "openai/gpt-5.2": "", "openai/o3": "",
		"openai/gpt-5.4": "tool_search", "openai/gpt-6-sol": "tool_search", "openai/gpt-7": "tool_search",
		"anthropic/claude-3-7-sonnet-latest": "", "anthropic/claude-opus-4-1": "", "anthropic/claude-sonnet-4-20250514": "",
		"anthropic/claude-sonnet-4-5": "tool_search_tool_bm25", "anthropic/claude-opus-5-5": "tool_search_tool_bm25",
	} {
		opened, err := (&provider.Config{}).Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		var did counted
		m := &recording{Client: opened.(*provider.Client), answer: textResponse("done")}
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{did.tool("find", tool.Deferred())}}.Run(t.Context(), "go"))
		want := "read_tool_output tool_search"
		if native != "" {
			want = "find(deferred) read_tool_output " + native
		}
		if got := specNames(m.asked); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// A choice that names a deferred tool loads it: the request would be refused, because the
// tool is not in it.
func TestL6_ToolNamedByChoiceIsLoaded(t *testing.T) {
	for _, choice := range []dragoman.ToolChoice{
		{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "pay"}}},
		{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "pay"}, {Name: "look"}}},
	} {
		var did counted
		m := model(calls(`a pay {"word":"x"}`))
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("pay", tool.Deferred()), did.tool("hide", tool.Deferred()), did.tool("look")}}
		a.Settings.ToolChoice = &choice
		must[*agent.Result](t)(a.Run(t.Context(), "go"))
		var names []string
		for _, s := range m.asked[0].Tools {
			names = append(names, s.Name)
		}
		if did.String() != "pay:x" || !slices.Contains(names, "pay") || slices.Contains(names, "hide") {
			t.Errorf("%s: ran %q, tools %q", choice.Mode, did.String(), names)
		}
	}
}
