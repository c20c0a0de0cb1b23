package bedrock_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/targets"
)

// knownAs returns the encode options for a model of the model table.
func knownAs(model string) dialect.EncodeOptions {
	m, _ := models.Default().Lookup("bedrock", model)
	return dialect.EncodeOptions{Target: targets.Target{Caps: m.Capabilities(dialectname.Bedrock)}}
}

func TestQuirkF8_OutputSchemaInPromptNextToTools(t *testing.T) {
	calls := requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{}`}), newMessage(dragoman.RoleTool, &dragoman.ToolResult{CallID: "c", Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "r"}}}))
	tools := requestOf(dragoman.UserText("q"))
	tools.Tools = []dragoman.ToolSpec{{Name: "f"}}
	for what, c := range map[string]struct {
		req   *dragoman.Request
		model string
		words bool
	}{
		"tools":                   {tools, "us.anthropic.claude-opus-4-8-v1:0", true},
		"conversation with calls": {calls, "anthropic.claude-opus-4-7", true},
		"neither":                 {requestOf(dragoman.UserText("q")), "anthropic.claude-opus-4-7", false},
		"unaffected model":        {tools, "anthropic.claude-sonnet-5-5", false},
	} {
		c.req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
		v, enc := encode(t, c.req, knownAs(c.model))
		prompt, _ := field(v, "system", 0, "text").(string)
		if native := v["outputConfig"] != nil; native == c.words || strings.Contains(prompt, `{"n":{"type":"integer"}}`) != c.words {
			t.Errorf("%s: %s", what, enc.Body)
		}
		if c.words {
			has(t, enc.Report, dragoman.Lowered, "/output")
		}
	}
}

func TestModelEffortFields(t *testing.T) {
	effort := func(word string) *dragoman.ReasoningSettings { return &dragoman.ReasoningSettings{Effort: word} }
	for _, tc := range []struct {
		name, model string
		settings    *dragoman.ReasoningSettings
		change      func(*dragoman.Request)
		want, lost  string
	}{
		{"gpt-oss", "openai.gpt-oss-120b-1:0", effort("high"), nil, `{"reasoning_effort":"high"}`, ""},
		{"gpt-oss has no max", "openai.gpt-oss-120b-1:0", effort("max"), nil, `{"reasoning_effort":"high"}`, "/reasoning/effort"},
		{"gpt-oss always reasons", "openai.gpt-oss-20b-1:0", &dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, nil, `{"reasoning_effort":"low"}`, "/reasoning/effort"},
		{"gpt-oss has no budget", "openai.gpt-oss-20b-1:0", &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(9000))}, nil, `{"reasoning_effort":"medium"}`, "/reasoning/budget_tokens"},
		{"gpt-oss adaptive", "openai.gpt-oss-20b-1:0", &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, nil, "", ""},
		{"Nova", "us.amazon.nova-2-lite-v1:0", effort("low"), nil, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}}`, ""},
		{"Nova off", "us.amazon.nova-2-lite-v1:0", effort("none"), nil, `{"reasoningConfig":{"type":"disabled"}}`, ""},
		{"Nova adaptive", "us.amazon.nova-2-lite-v1:0", &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, nil, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}`, "/reasoning/mode"},
		{"Nova high", "us.amazon.nova-2-lite-v1:0", effort("high"), func(r *dragoman.Request) { r.Sampling.Temperature = new(dragoman.Number("0.5")) }, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}`, "/sampling/temperature"},
		{"Nova high with maxTokens", "us.amazon.nova-2-lite-v1:0", effort("high"), func(r *dragoman.Request) { r.MaxOutputTokens = new(int64(100)) }, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}`, "/reasoning/effort"},
		{"model without an effort field", "us.amazon.nova-pro-v1:0", effort("high"), nil, "", "/reasoning"},
	} {
		req := requestOf(dragoman.UserText("q"))
		req.Reasoning = tc.settings
		if tc.change != nil {
			tc.change(req)
		}
		v, enc := encode(t, req, knownAs(tc.model))
		var want any
		if tc.want != "" {
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(v["additionalModelRequestFields"], want) || v["outputConfig"] != nil {
			t.Errorf("%s: %s", tc.name, enc.Body)
		}
		lost := false
		for _, l := range enc.Report.Losses {
			lost = lost || tc.lost != "" && l.Path == tc.lost
			if tc.lost == "" && strings.HasPrefix(l.Path, "/reasoning") {
				t.Errorf("%s: %v", tc.name, l)
			}
		}
		if tc.lost != "" && !lost {
			t.Errorf("%s: the loss at %s is not reported: %s", tc.name, tc.lost, enc.Report)
		}
		if req.Reasoning != tc.settings || tc.name == "Nova high" && req.Sampling.Temperature == nil {
			t.Errorf("%s: the caller's request was changed", tc.name)
		}
	}
}
