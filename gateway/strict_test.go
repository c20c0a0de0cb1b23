package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/sim"
)

// strictModels are models whose vendors refuse something, each with its dialect.
var strictModels = []struct {
	name    string
	dialect dragoman.Dialect
}{
	{"openai/gpt-4.1", dialectname.OpenAIChat},
	{"openai/gpt-4-turbo", dialectname.OpenAIChat},
	{"openai/gpt-5", dialectname.OpenAIChat},
	{"openai/o4-mini", dialectname.OpenAIChat},
	{"openai/gpt-5.5", dialectname.OpenAIChat},
	{"mistral/mistral-large-latest", dialectname.OpenAIChat},
	{"xai/grok-4-fast", dialectname.OpenAIChat},
	{"groq/openai/gpt-oss-120b", dialectname.OpenAIChat},
	{"groq/llama-3.3-70b-versatile", dialectname.OpenAIChat},
	{"qwen/qwen-plus", dialectname.OpenAIChat},
	{"openai/gpt-4", dialectname.OpenAIChat},
	{"deepseek/deepseek-v4-pro", dialectname.OpenAIChat},
	{"deepseek/deepseek-chat", dialectname.OpenAIChat},
	{"moonshot/kimi-k2-thinking", dialectname.OpenAIChat},
	{"moonshot/kimi-k2.6", dialectname.OpenAIChat},
	{"moonshot/kimi-k3", dialectname.OpenAIChat},
	{"xai/grok-4.6", dialectname.OpenAIChat},
	{"zai/glm-5.3", dialectname.OpenAIChat},
	{"qwen/qwen3-32b", dialectname.OpenAIChat},
	{"openai/gpt-4o-search-preview", dialectname.OpenAIChat},
	{"responses/o3-mini", dialectname.OpenAIResponses},
	{"responses/gpt-4o", dialectname.OpenAIResponses},
	{"responses/gpt-5", dialectname.OpenAIResponses},
	{"responses/gpt-6-sol", dialectname.OpenAIResponses},
	{"responses/gpt-5-pro", dialectname.OpenAIResponses},
	{"anthropic/claude-sonnet-4-20250514", dialectname.Anthropic},
	{"anthropic/claude-opus-4-1", dialectname.Anthropic},
	{"anthropic/claude-sonnet-4-5", dialectname.Anthropic},
	{"anthropic/claude-sonnet-4-6", dialectname.Anthropic},
	{"anthropic/claude-opus-4-7", dialectname.Anthropic},
	{"anthropic/claude-opus-5-5", dialectname.Anthropic},
	{"anthropic/claude-3-5-haiku-20241022", dialectname.Anthropic},
	{"gemini/gemini-2.0-flash", dialectname.Gemini},
	{"gemini/gemini-2.5-pro", dialectname.Gemini},
	{"gemini/gemini-3.7-flash", dialectname.Gemini},
	{"ollama/llama3.2", dialectname.Ollama},
	{"ollama/qwen3", dialectname.Ollama},
	{"bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", dialectname.Bedrock},
	{"bedrock/anthropic.claude-opus-4-7-v1:0", dialectname.Bedrock},
	{"bedrock/us.amazon.nova-2-lite-v1:0", dialectname.Bedrock},
	{"bedrock/us.amazon.nova-micro-v1:0", dialectname.Bedrock},
	{"bedrock/us.amazon.nova-pro-v1:0", dialectname.Bedrock},
	{"bedrock/openai.gpt-oss-120b-1:0", dialectname.Bedrock},
	{"cohere/command-a-03-2025", "cohere.chat"},
	{"cohere/command-a-reasoning-08-2025", "cohere.chat"},
}

// compatible are the providers that speak OpenAI Chat with rules of their own. The gateway
// translates requests of Chat clients for them, too.
var compatible = []string{"mistral", "xai", "groq", "qwen", "deepseek", "moonshot", "zai"}

// strictWorld is a gateway in front of a server that refuses what the vendors refuse.
// refused returns the refusals since its last call.
func strictWorld(t *testing.T, how ...option) (w *world, upstream *strictupstream.Server, refused func() []*strictupstream.Refusal) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	var mu sync.Mutex
	var all []*strictupstream.Refusal
	upstream = strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/planner", Record: true, Refused: func(r *strictupstream.Refusal) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r)
	}})
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	config := configOf(s.URL)
	for _, name := range compatible {
		config += "  " + name + `: {base_url: "` + s.URL + `/v1", api_key_env: SIM_KEY, retries: 0}` + "\n"
	}
	return newWorldOf(t, s, config, how...), upstream, func() []*strictupstream.Refusal {
		mu.Lock()
		defer mu.Unlock()
		out := all
		all = nil
		return out
	}
}

// everyTranslation runs a test for every client and every strict model of another dialect,
// whole and streamed. A request that is passed through is the client's own.
func everyTranslation(t *testing.T, f func(t *testing.T, c *client, model string, stream bool)) {
	t.Helper()
	w, _, refused := strictWorld(t)
	for _, codec := range clientDialects {
		for _, m := range strictModels {
			vendor, _, _ := strings.Cut(m.name, "/")
			if m.dialect == codec.Dialect() && !slices.Contains(compatible, vendor) {
				continue
			}
			for _, stream := range []bool{false, true} {
				how := map[bool]string{false: "whole", true: "streamed"}[stream]
				t.Run(string(codec.Dialect())+" to "+m.name+" "+how, func(t *testing.T) {
					f(t, &client{t: t, codec: codec, url: w.url}, m.name, stream)
					for _, r := range refused() {
						t.Errorf("refused: %v", r)
					}
				})
			}
		}
	}
}

func TestNoSettingIsRefusedByTheUpstream(t *testing.T) {
	reasoning := func(s dragoman.ReasoningSettings) func(*dragoman.Request) {
		return func(r *dragoman.Request) { r.Reasoning = &s }
	}
	effort := func(word string) func(*dragoman.Request) { return reasoning(dragoman.ReasoningSettings{Effort: word}) }
	body := &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
	forced := &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	cases := map[string]func(r *dragoman.Request){
		"none set":    func(*dragoman.Request) {},
		"temperature": func(r *dragoman.Request) { r.Sampling.Temperature = new(dragoman.Number("0.5")) },
		"top_p":       func(r *dragoman.Request) { r.Sampling.TopP = new(dragoman.Number("0.5")) },
		"both": func(r *dragoman.Request) {
			r.Sampling.Temperature, r.Sampling.TopP = new(dragoman.Number("0.5")), new(dragoman.Number("0.5"))
		},
		"top_k": func(r *dragoman.Request) { r.Sampling.TopK = new(int64(40)) },
		"penalties": func(r *dragoman.Request) {
			r.Sampling.PresencePenalty, r.Sampling.FrequencyPenalty = new(dragoman.Number("0.5")), new(dragoman.Number("0.5"))
		},
		"seed and stop": func(r *dragoman.Request) { r.Sampling.Seed, r.Sampling.Stop = new(int64(7)), []string{"END"} },
		"parallel": func(r *dragoman.Request) {
			r.ParallelToolCalls, r.Tools = new(false), []dragoman.ToolSpec{weatherTool()}
		},
		"forced": func(r *dragoman.Request) { r.ToolChoice, r.Tools = forced, []dragoman.ToolSpec{weatherTool()} },
		"named": func(r *dragoman.Request) {
			r.ToolChoice, r.Tools = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: weatherTool().Name}}}, []dragoman.ToolSpec{weatherTool()}
		},
		"prefill": func(r *dragoman.Request) {
			r.Messages = append(r.Messages, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "Hel"}}})
		},
		"prefill and budget": func(r *dragoman.Request) {
			reasoning(dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(2000))})(r)
			r.Messages = append(r.Messages, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "Hel"}}})
		},
		"effort none":    effort("none"),
		"effort minimal": effort("minimal"),
		"effort low":     effort("low"),
		"effort high":    effort("high"),
		"effort xhigh":   effort("xhigh"),
		"effort max":     effort("max"),
		"budget":         reasoning(dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(2000))}),
		"large budget":   reasoning(dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(60000))}),
		"adaptive":       reasoning(dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}),
		"off":            reasoning(dragoman.ReasoningSettings{Mode: codes.ReasoningOff}),
		"low and a tool": func(r *dragoman.Request) { effort("low")(r); r.Tools = []dragoman.ToolSpec{weatherTool()} },
		"high and more": func(r *dragoman.Request) {
			effort("high")(r)
			r.Sampling.Temperature, r.Sampling.TopK, r.Sampling.TopP = new(dragoman.Number("0.5")), new(int64(40)), new(dragoman.Number("0.5"))
			r.ToolChoice, r.Tools = forced, []dragoman.ToolSpec{weatherTool()}
		},
		"schema":          func(r *dragoman.Request) { r.Output = body },
		"schema and tool": func(r *dragoman.Request) { r.Output, r.Tools = body, []dragoman.ToolSpec{weatherTool()} },
		"file": func(r *dragoman.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Name: "a.pdf", Base64: "JVBERi0xLjQK"})
		},
		"image": func(r *dragoman.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBORw0KGgo="})
		},
		"audio": func(r *dragoman.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, &dragoman.Media{Media: codes.MediaAudio, MIME: "audio/wav", Base64: "UklGRg=="})
		},
		"no bound": func(r *dragoman.Request) { effort("high")(r); r.MaxOutputTokens = nil },
	}
	everyTranslation(t, func(t *testing.T, c *client, model string, stream bool) {
		for name, change := range cases {
			if c.codec.Dialect() == dialectname.OpenAIResponses && (name == "effort minimal" || name == "effort max") {
				continue // Open Responses does not have these words, and a response repeats them
			}
			req := &dragoman.Request{Model: model, Stream: stream, MaxOutputTokens: new(int64(5000)), Messages: []dragoman.Message{userSays("Say hello.")}}
			change(req)
			if _, err := c.generate(req); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Tools have schemas that their vendor takes and others refuse, and requests have limits of
// their own. None of that reaches a vendor that refuses it.
func TestNoSchemaAndNoLimitIsRefusedByTheUpstream(t *testing.T) {
	schemas := map[string]string{
		"open":                     `{"type":"object","properties":{"a":{"type":"string"}}}`,
		"no type":                  `{"properties":{"a":{"type":"string"}}}`,
		"array without items":      `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`,
		"type list":                `{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`,
		"oneOf":                    `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"],"additionalProperties":false}`,
		"allOf":                    `{"type":"object","properties":{"a":{"allOf":[{"type":"object","properties":{"b":{"type":"string"}}},{"type":"object","properties":{"c":{"type":"integer"}}}]}},"required":["a"],"additionalProperties":false}`,
		"bounds":                   `{"type":"object","properties":{"a":{"type":"integer","minimum":1,"exclusiveMaximum":9,"multipleOf":2},"b":{"type":"string","minLength":2,"format":"uri"}},"required":["a","b"],"additionalProperties":false}`,
		"undefined property":       `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`,
		"empty enum value":         `{"type":"object","properties":{"a":{"type":"string","enum":["","x"]}},"required":["a"],"additionalProperties":false}`,
		"siblings of a reference":  `{"type":"object","$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d","description":"x","default":"y","title":"T"}},"required":["a"],"additionalProperties":false}`,
		"look-around":              `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)[a-z]+$"},"b":{"type":"string","pattern":"(a)\\1"}},"required":["a","b"],"additionalProperties":false}`,
		"keywords of another type": `{"type":"object","properties":{"a":{"type":"string","properties":{"b":{"type":"string"}},"required":["b"]}},"required":["a"],"additionalProperties":false}`,
		"tuple":                    `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}},"required":["a"],"additionalProperties":false}`,
		"old tuple":                `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"integer"}]}},"required":["a"],"additionalProperties":false}`,
		"none":                     `{}`,
		"definitions":              `{"type":"object","$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}}}},"properties":{"a":{"$ref":"#/$defs/d"}},"required":["a"]}`,
	}
	properties := func(n int, schema string) (all string) {
		for i := range n {
			all += fmt.Sprintf(`,"p%d":%s`, i, schema)
		}
		return all[1:]
	}
	manyOf := map[string]string{ // three strict tools with each
		"many optional properties": `{"type":"object","properties":{` + properties(10, `{"type":"string"}`) + `},"additionalProperties":false}`,
		"many unions":              `{"type":"object","properties":{` + properties(8, `{"type":["string","null"]}`) + `},"required":["p0","p1","p2","p3","p4","p5","p6","p7"],"additionalProperties":false}`,
	}
	limits := map[string]func(*dragoman.Request){
		"temperature":    func(r *dragoman.Request) { r.Sampling.Temperature = new(dragoman.Number("1.8")) },
		"stop sequences": func(r *dragoman.Request) { r.Sampling.Stop = []string{"a", "b", "c", "d", "e", "f"} },
	}
	everyTranslation(t, func(t *testing.T, c *client, model string, stream bool) {
		ask := func(name string, change func(*dragoman.Request)) {
			req := &dragoman.Request{Model: model, Stream: stream, MaxOutputTokens: new(int64(5000)), Messages: []dragoman.Message{userSays("Say hello.")}}
			change(req)
			if _, err := c.generate(req); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, schema := range schemas {
			for _, strict := range []string{codes.StrictOff, codes.StrictOn} {
				ask(fmt.Sprintf("%s, strict %q", name, strict), func(r *dragoman.Request) {
					r.Tools = []dragoman.ToolSpec{{Kind: codes.ToolFunction, Name: "f", Parameters: json.RawMessage(schema), Strict: strict}}
				})
			}
		}
		for name, change := range limits {
			ask(name, change)
		}
		for name, schema := range manyOf {
			ask(name, func(r *dragoman.Request) {
				for i := range 3 {
					r.Tools = append(r.Tools, dragoman.ToolSpec{Kind: codes.ToolFunction, Name: fmt.Sprintf("f%d", i), Parameters: json.RawMessage(schema), Strict: codes.StrictOn})
				}
			})
		}
	})
}

// Clients drop reasoning when they send results back. A model that wants it before the
// pending calls gets it from the gateway, or does not reason in that turn.
func TestToolLoopsWithReasoningAreAccepted(t *testing.T) {
	everyTranslation(t, func(t *testing.T, c *client, model string, stream bool) {
		for _, s := range []dragoman.ReasoningSettings{{Effort: "high"}, {Mode: codes.ReasoningAdaptive}, {Mode: codes.ReasoningBudget, BudgetTokens: new(int64(2000))}} {
			req := &dragoman.Request{
				Model: model, Stream: stream, MaxOutputTokens: new(int64(5000)), Tools: []dragoman.ToolSpec{weatherTool()},
				Messages: []dragoman.Message{userSays("What is the weather in Oslo and in Rome?")}, Reasoning: &s,
			}
			resp, err := c.generate(req)
			if err != nil {
				t.Errorf("%v: %v", s, err)
				continue
			}
			calls := callsOf(resp)
			if len(calls) == 0 {
				t.Errorf("%v: no calls: %v", s, resp.Output)
				continue
			}
			turn := dragoman.Message{Role: dragoman.RoleAssistant}
			results := dragoman.Message{Role: dragoman.RoleTool}
			for _, call := range calls {
				turn.Parts = append(turn.Parts, call)
				results.Parts = append(results.Parts, call.Result(&dragoman.Text{Text: "4 °C"}))
			}
			req.Messages = append(req.Messages, turn, results)
			resp, err = c.generate(req)
			if err != nil {
				t.Errorf("%v, results: %v", s, err)
			} else if !strings.Contains(textOf(resp), "4 °C") {
				t.Errorf("%v, results: %q", s, textOf(resp))
			}
		}
	})
}

// Histories of one vendor contain content that others refuse: parallel calls, failed and empty results,
// images in results, calls of tools that are not declared, ids of any form, blank texts,
// reasoning without a signature, and instructions between the turns.
func TestNoHistoryIsRefusedByTheUpstream(t *testing.T) {
	text := func(s string) dragoman.Part { return &dragoman.Text{Text: s} }
	called := func(id, name, args string) *dragoman.ToolCall {
		return &dragoman.ToolCall{ID: id, Name: name, Payload: codes.PayloadObject, Arguments: args}
	}
	turn := func(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
		return dragoman.Message{Role: role, Parts: parts}
	}
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBORw0KGgo="}
	a, b := called("functions.get_weather:0", "get_weather", `{"city":"Oslo"}`), called("call_"+strings.Repeat("x", 30), "get_weather", `{"city":"Rome"}`)
	other := called("toolu_01", "undeclared.tool", `{}`)
	histories := map[string][]dragoman.Message{
		"parallel calls, one failed": {turn(dragoman.RoleAssistant, text("I look."), a, b), turn(dragoman.RoleTool, a.Result(text("4 °C")), b.Fail("no such city"))},
		"empty result":               {turn(dragoman.RoleAssistant, a), turn(dragoman.RoleTool, a.Result())},
		"image in a result":          {turn(dragoman.RoleAssistant, a, b), turn(dragoman.RoleTool, a.Result(text("a map"), image), b.Result(image))},
		"undeclared tool":            {turn(dragoman.RoleAssistant, other), turn(dragoman.RoleTool, other.Result(text("done")))},
		"question after a result":    {turn(dragoman.RoleAssistant, a), turn(dragoman.RoleTool, a.Result(text("4 °C"))), turn(dragoman.RoleUser, text("And in Rome?"))},
		"two loops with the same id": {turn(dragoman.RoleAssistant, a), turn(dragoman.RoleTool, a.Result(text("4 °C"))), turn(dragoman.RoleAssistant, a), turn(dragoman.RoleTool, a.Result(text("5 °C")))},
		"blank text":                 {turn(dragoman.RoleAssistant, text(" \n")), turn(dragoman.RoleUser, text("Go on."))},
		"two questions":              {turn(dragoman.RoleUser, text("Please.")), turn(dragoman.RoleUser, text("Now."))},
		"instructions in between":    {turn(dragoman.RoleAssistant, text("Hm.")), turn(dragoman.RoleSystem, text("Be brief.")), turn(dragoman.RoleUser, text("Go on."))},
		"unsigned reasoning":         {turn(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "I think."}, a), turn(dragoman.RoleTool, a.Result(text("4 °C")))},
	}
	everyTranslation(t, func(t *testing.T, c *client, model string, stream bool) {
		for name, history := range histories {
			req := &dragoman.Request{
				Model: model, Stream: stream, MaxOutputTokens: new(int64(5000)), Tools: []dragoman.ToolSpec{weatherTool()},
				Messages: append([]dragoman.Message{userSays("What is the weather in Oslo?")}, history...),
			}
			if _, err := c.generate(req); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
