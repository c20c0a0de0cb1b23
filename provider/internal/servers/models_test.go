package servers_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
)

// The supported settings depend on the name of the model, on every server.
func TestX7_ModelFamiliesGetTheirSettings(t *testing.T) {
	budget := int64(20000)
	for _, tc := range []struct {
		c             dialect.Codec
		server, model string
		ask           func(*dragoman.Request)
		has, lacks    []string
	}{
		// Efforts are mapped to the nearest supported one, rounding up; none becomes the lowest if
		// reasoning cannot be turned off (quirk G10).
		{openairesponses.Codec{}, "openai", "gpt-5", effort("xhigh"), []string{`"effort":"high"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-5", effort("none"), []string{`"effort":"minimal"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-5-mini", effort("minimal"), []string{`"effort":"minimal"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-5.1-codex", effort("minimal"), []string{`"effort":"low"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-5.10", effort("minimal"), []string{`"effort":"low"`}, nil}, // unknown: what all models of the family take
		{openairesponses.Codec{}, "openai", "gpt-5.6", effort("max"), []string{`"effort":"max"`}, nil},
		{openairesponses.Codec{}, "openai", "o4-mini", effort("minimal"), []string{`"effort":"low"`}, nil},
		{openairesponses.Codec{}, "openai", "o3", off, []string{`"effort":"low"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-4o3-x", effort("minimal"), []string{`"temperature"`}, []string{`"effort"`}},
		{openairesponses.Codec{}, "openai", "gpt-4.1", effort("minimal"), []string{`"temperature"`}, []string{`"effort"`, `"reasoning"`}},
		{gemini.Codec{}, "gemini", "gemini-3.7-flash", effort("minimal"), []string{`"thinkingLevel":"LOW"`}, nil},
		{gemini.Codec{}, "gemini", "gemini-3.5-flash", effort("minimal"), []string{`"thinkingLevel":"MINIMAL"`}, nil},

		{gemini.Codec{}, "gemini", "gemini-2.5-pro", func(r *dragoman.Request) {
			r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Effort: "none"}
		}, []string{`"thinkingBudget":1024`}, nil}, // it always reasons

		// Reasoning models refuse sampling settings.
		{openairesponses.Codec{}, "openai", "o3", nil, nil, []string{`"temperature"`}},
		{openairesponses.Codec{}, "openai", "gpt-5.1", nil, []string{`"temperature"`}, nil},
		{anthropic.Codec{}, "anthropic", "claude-opus-5-5", nil, nil, []string{`"temperature"`}},
		{bedrock.Codec{}, "bedrock", "us.anthropic.claude-opus-4-8-v1:0", nil, nil, []string{`"temperature"`}},
		{anthropic.Codec{}, "anthropic", "claude-sonnet-4-6", nil, []string{`"temperature"`}, nil},
		{anthropic.Codec{}, "anthropic", "claude-sonnet-4-6", topP, []string{`"temperature"`}, []string{`"top_p"`}},
		{anthropic.Codec{}, "anthropic", "claude-opus-4-1-20250805", topP, []string{`"temperature"`}, []string{`"top_p"`}},
		{bedrock.Codec{}, "bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", topP, []string{`"temperature"`}, []string{`"topP"`}},
		{anthropic.Codec{}, "anthropic", "claude-opus-4-20250514", topP, []string{`"temperature"`, `"top_p"`}, nil},

		// Claude: budgets, and forced choices (quirk E4).
		{anthropic.Codec{}, "anthropic", "claude-opus-4-7", func(r *dragoman.Request) {
			r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &budget}
		}, []string{`"adaptive"`, `"effort":"high"`}, []string{"budget_tokens"}},
		{anthropic.Codec{}, "anthropic", "claude-opus-4-7", func(r *dragoman.Request) {
			r.Reasoning = &dragoman.ReasoningSettings{Effort: "low", BudgetTokens: &budget}
		}, []string{`"effort":"low"`}, []string{"budget_tokens"}},
		{anthropic.Codec{}, "anthropic", "claude-opus-4-6", func(r *dragoman.Request) {
			r.MaxOutputTokens = new(int64(30000))
			r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &budget}
		}, []string{`"budget_tokens":20000`}, nil},
		{anthropic.Codec{}, "anthropic", "claude-haiku-4-5-20251001", effort("high"), []string{`"budget_tokens":`}, []string{`"effort"`}},
		{anthropic.Codec{}, "anthropic", "claude-opus-5-5", off, []string{`"effort":"low"`}, []string{`"disabled"`}},
		{anthropic.Codec{}, "anthropic", "claude-opus-4-8", off, []string{`"disabled"`}, nil},
		{anthropic.Codec{}, "anthropic", "claude-opus-5-5", force, []string{`{"type":"auto"`}, []string{`"type":"tool"`}},
		{anthropic.Codec{}, "anthropic", "claude-fable-5", force, []string{`{"type":"auto"`}, []string{`"type":"tool"`}},
		{anthropic.Codec{}, "anthropic", "claude-haiku-4-5", force, []string{`"type":"tool"`}, nil},

		// Tools together with reasoning on Chat (quirk E12).
		{openaichat.Codec{}, "openai", "gpt-5.5", effort("high"), []string{`"reasoning_effort":"none"`, `"tools"`}, nil},
		{openaichat.Codec{}, "openai", "gpt-5.4", nil, []string{`"reasoning_effort":"none"`}, nil},
		{openaichat.Codec{}, "openai", "gpt-5.5", func(r *dragoman.Request) { r.Tools, r.Reasoning = nil, &dragoman.ReasoningSettings{Effort: "high"} }, []string{`"reasoning_effort":"high"`}, nil},
		{openaichat.Codec{}, "openai", "gpt-5.1", effort("high"), []string{`"reasoning_effort":"high"`}, nil},
		{openairesponses.Codec{}, "openai", "gpt-5.5", effort("high"), []string{`"effort":"high"`, `"tools"`}, nil},
	} {
		req := &dragoman.Request{
			Messages: []dragoman.Message{dragoman.UserText("Do I need a coat?")}, Tools: []dragoman.ToolSpec{{Name: "find"}},
			Sampling: dragoman.Sampling{Temperature: dragoman.Num(0.5)},
		}
		if tc.ask != nil {
			tc.ask(req)
		}
		body, err := sent(t, tc.c, tc.server, tc.model, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s: %s", tc.model, want, body)
			}
		}
		for _, not := range tc.lacks {
			if strings.Contains(body, not) {
				t.Errorf("%s gets %s: %s", tc.model, not, body)
			}
		}
	}
}

func topP(r *dragoman.Request) { r.Sampling.TopP = dragoman.Num(0.9) }

func effort(e string) func(*dragoman.Request) {
	return func(r *dragoman.Request) { r.Reasoning = &dragoman.ReasoningSettings{Effort: e} }
}

func off(r *dragoman.Request) { r.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningOff} }

func force(r *dragoman.Request) {
	r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "find"}}}
}

// A tool choice that the server cannot express is reported.
func TestX7_UnsupportedToolChoiceIsReported(t *testing.T) {
	set, err := extension.NewSet(servers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Resolve(servers.Tags(dialectname.OpenAIChat, "lmstudio", "m"), extension.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],"tool_choice":{"type":"function","function":{"name":"b"}}}`
	x := extension.NewExchange(extension.Options{Resolution: r})
	out, err := x.Decorate(t.Context(), json.RawMessage(body))
	if err != nil || string(out) != `{"tools":[{"type":"function","function":{"name":"b"}}],"tool_choice":"required"}` {
		t.Errorf("%v %s", err, out)
	}
	if len(x.Report.Losses) != 1 || x.Report.Losses[0].Path != "/tool_choice" {
		t.Errorf("%s", x.Report)
	}
}
