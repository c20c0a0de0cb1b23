package servers

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

const chat = dialectname.OpenAIChat

// served returns the tags of a server with the OpenAI Chat API.
func served(name string) []extension.Tag {
	return []extension.Tag{DialectTag(chat), ServerTag(name)}
}

// thinking returns the thinking setting that several servers have.
func thinking(choices ...string) Knob {
	return Knob{Setting: "thinking", Path: "/thinking/type", Label: "whether the model reasons before it responds", Type: "string", Choices: choices}
}

// templated is the setting of servers that run the model's own template.
var templated = Knob{
	Setting: "enable_thinking", Path: "/chat_template_kwargs/enable_thinking", Label: "whether the model reasons before it responds", Type: "boolean",
}

// All returns an extension for each server that this package knows. The order matters if
// several are on: later ones override earlier ones. Facts that differ from model to model are
// in package models.
func All() []extension.Extension {
	return []extension.Extension{
		Server{
			Name: "openai.compatible", Description: "Servers with the OpenAI Chat API that are not OpenAI or Azure: sends only what nearly all of them accept.",
			Requires: []extension.Tag{DialectTag(chat)}, Forbids: []extension.Tag{ServerTag("openai"), ServerTag("azure")},
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.NoStrict, c.NoCustomTools, c.NoNamespaces, c.NoDeferred, c.NoAllowedTools = true, true, true, true, true
				c.NoDeveloperRole, c.LegacyMaxTokens = true, true
				c.TopK, c.AnyMedia = true, true
			},
		},
		Server{
			Name: "openai", Description: "OpenAI: the Chat API refuses top_k.", Requires: served("openai"), Vendor: true,
			Capabilities: func(c *targets.Capabilities, _ string) { refuse(c, "top_k") },
		},
		Server{
			Name: "deepseek", Description: "DeepSeek: sends reasoning back with every turn, except to R1 models, which refuse it.",
			Requires: served("deepseek"),
			Capabilities: func(c *targets.Capabilities, model string) {
				c.ReasoningField, c.ReasoningFieldAlways = "reasoning_content", true
				if strings.Contains(model, "r1") {
					c.ReasoningFieldAlways, c.NoReasoning = false, true
				}
			},
			Knobs: []Knob{thinking("enabled", "disabled", "adaptive")},
		},
		Server{
			Name: "mistral", Description: "Mistral: call ids of nine letters and digits, its own values for the tool choice and the seed, results with the name of the tool.",
			Requires: served("mistral"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ID = &targets.IDRule{Chars: "a-zA-Z0-9", Exact: 9}
				c.ToolResultName, c.AssistantAfterTools, c.NoPrefill = true, true, true
				c.TopK = false
				accept(c, "seed") // as random_seed
			},
			Knobs: []Knob{{Setting: "safe_prompt", Path: "safe_prompt", Label: "whether Mistral adds its safety prompt", Type: "boolean"}},
			Fix:   fixMistral,
		},
		Server{
			Name: "kimi", Description: "Moonshot: sends reasoning back with every turn, lowers schemas to its own subset.",
			Requires: served("moonshot"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ReasoningFieldAlways = "reasoning_content", true
				c.ToolSchema, c.LegacyMaxTokens = "moonshot.tool", false
			},
			Knobs: []Knob{thinking("enabled", "disabled")},
		},
		Server{
			Name: "kimi.ids", Description: "Kimi models on any server: numbers the ids of calls as these models do.",
			Requires:     []extension.Tag{DialectTag(chat), FamilyTag("kimi")},
			Capabilities: func(c *targets.Capabilities, _ string) { c.ID = &targets.IDRule{Numbered: true} },
		},
		Server{
			Name: "qwen", Description: "Qwen on DashScope: sends reasoning back as reasoning_content, results with the name of their tool.",
			Requires: served("qwen"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolResultName = "reasoning_content", true
			},
			Knobs: []Knob{
				{Setting: "enable_thinking", Path: "enable_thinking", Label: "whether the model reasons before it responds", Type: "boolean"},
				{Setting: "thinking_budget", Path: "thinking_budget", Label: "the maximum of reasoning tokens", Type: "integer"},
			},
		},
		Server{
			Name: "openrouter", Description: "OpenRouter: sends the effort in the object reasoning, and reasoning back.",
			Requires:     served("openrouter"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ReasoningField = "reasoning" },
			Knobs: []Knob{
				{Setting: "provider", Path: "provider", Label: "which providers may serve the request, in the form of OpenRouter", Type: "object"},
				{Setting: "exclude_reasoning", Path: "/reasoning/exclude", Label: "whether the response leaves out the reasoning", Type: "boolean"},
			},
			Fix: func(x *extension.Exchange) error { return move(x, "reasoning_effort", "/reasoning/effort") },
		},
		Server{
			Name: "groq", Description: "Groq: sends reasoning back in the field reasoning, and no top_k.", Requires: served("groq"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.LegacyMaxTokens, c.TopK = "reasoning", false, false
			},
			Knobs: []Knob{
				{Setting: "reasoning_format", Path: "reasoning_format", Label: "where the response has the reasoning", Type: "string", Choices: []string{"parsed", "raw", "hidden"}},
				{Setting: "service_tier", Path: "service_tier", Label: "the service tier", Type: "string", Choices: []string{"auto", "on_demand", "flex", "performance"}},
			},
		},
		Server{
			Name: "vllm", Description: "vLLM: sends reasoning back in the field reasoning, and an output schema with tools in the instructions.", Requires: served("vllm"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.NoOutputWithTools = "reasoning", true // one constraint at a time (quirk F9)
			},
			Knobs: []Knob{
				templated,
				{Setting: "include_reasoning", Path: "include_reasoning", Label: "whether the response has the reasoning", Type: "boolean"},
				{Setting: "thinking_token_budget", Path: "thinking_token_budget", Label: "the maximum of reasoning tokens", Type: "integer"},
			},
		},
		Server{
			Name: "llamacpp", Description: "llama.cpp: lowers schemas to what it can compile to a grammar, sends an output schema with tools in the instructions.", Requires: served("llamacpp"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema, c.NoOutputWithTools = "reasoning_content", "llamacpp.tool", true
			},
			Knobs: []Knob{
				templated,
				{Setting: "reasoning_format", Path: "reasoning_format", Label: "where the response has the reasoning", Type: "string", Choices: []string{"none", "deepseek", "deepseek-legacy", "auto"}},
			},
		},
		Server{
			Name: "lmstudio", Description: "LM Studio: sends only the tool that the tool choice names, and an output schema with tools in the instructions.", Requires: served("lmstudio"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ToolSchema, c.NoOutputWithTools = "compat.tool", true },
			Fix:          func(x *extension.Exchange) error { return requireCall(x, "required") },
		},
		Server{
			Name: "glm", Description: "GLM on Z.ai: sends reasoning back as reasoning_content.", Requires: served("zai"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField = "reasoning_content"
			},
			Knobs: []Knob{
				thinking("enabled", "disabled"),
				{Setting: "clear_thinking", Path: "/thinking/clear_thinking", Label: "whether reasoning of earlier turns is left out", Type: "boolean"},
				{Setting: "tool_stream", Path: "tool_stream", Label: "whether arguments are streamed", Type: "boolean"},
			},
		},
		Server{
			Name: "xai", Description: "xAI: sends reasoning back as reasoning_content, and smaller schemas, because large ones get no response.", Requires: served("xai"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema, c.LegacyMaxTokens = "reasoning_content", "xai.tool", false
			},
		},
		Server{
			Name: "fireworks", Description: "Fireworks: sends reasoning back as reasoning_content, lowers schemas to its own subset.", Requires: served("fireworks"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema = "reasoning_content", "fireworks.tool"
			},
			Knobs: []Knob{{
				Setting: "reasoning_history", Path: "reasoning_history", Label: "what happens to reasoning of earlier turns", Type: "string",
				Choices: []string{"disabled", "interleaved", "preserved"},
			}},
		},
		Server{
			Name: "cerebras", Description: "Cerebras: sends reasoning back in the field reasoning, and no parallel_tool_calls.", Requires: served("cerebras"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ReasoningField, c.NoParallelFlag = "reasoning", true },
			Knobs:        []Knob{{Setting: "disable_reasoning", Path: "disable_reasoning", Label: "whether reasoning is off", Type: "boolean"}},
		},
		Server{
			Name: "ollama", Description: "Ollama servers, by their own API.", Requires: []extension.Tag{DialectTag(dialectname.Ollama)},
			Knobs: []Knob{
				{Setting: "think", Path: "think", Label: "whether the model reasons before it responds", Type: "boolean"},
				{Setting: "think_level", Path: "think", Label: "the reasoning effort", Type: "string", Choices: []string{"low", "medium", "high"}},
				{Setting: "num_ctx", Path: "/options/num_ctx", Label: "the length of the context in tokens", Type: "integer"},
				{Setting: "keep_alive", Path: "keep_alive", Label: "how long the model stays loaded", Type: "string"},
			},
		},
	}
}

// refuse adds a name to what the server refuses.
func refuse(c *targets.Capabilities, word string) {
	if words := strings.Fields(c.Refuses); !slices.Contains(words, word) {
		c.Refuses = strings.Join(append(words, word), " ")
	}
}

// accept removes a name from what the server refuses.
func accept(c *targets.Capabilities, word string) {
	c.Refuses = strings.Join(slices.DeleteFunc(strings.Fields(c.Refuses), func(w string) bool { return w == word }), " ")
}

// fixMistral uses Mistral's names for the tool choice "required" and for the seed.
func fixMistral(x *extension.Exchange) error {
	return errors.Join(requireCall(x, "any"), move(x, "seed", "random_seed"),
		drop(x, "store", "service_tier", "logprobs", "top_logprobs", "logit_bias", "user", "safety_identifier", "prompt_cache_key", "verbosity"))
}

// drop removes OpenAI fields that the server refuses, and reports them.
func drop(x *extension.Exchange, fields ...string) error {
	var errs []error
	for _, f := range fields {
		if x.Payload.Get(f) != nil {
			x.Report.Add(dragoman.Dropped, dragoman.Warn, "/"+f, "the server does not accept the field")
			errs = append(errs, x.Payload.Delete(f))
		}
	}
	return errors.Join(errs...)
}

// move moves a field to another place.
func move(x *extension.Exchange, from, to string) error {
	value := x.Payload.Get(from)
	if value == nil {
		return nil
	}
	return errors.Join(x.Payload.Set(to, value), x.Payload.Delete(from))
}

// requireCall writes the server's word for "a tool must be called". If the request names the tool
// and the server cannot express that, the server gets only that tool.
func requireCall(x *extension.Exchange, word string) error {
	if string(x.Payload.Get("tool_choice")) == `"required"` {
		return x.Payload.Set("tool_choice", word)
	}
	wanted := x.Payload.Get("/tool_choice/function/name")
	if wanted == nil {
		return nil // auto, none, or an unknown value
	}
	var tools, one []json.RawMessage
	if _, err := x.Payload.Read("tools", &tools); err != nil {
		return err
	}
	for _, t := range tools {
		if o, err := extension.NewObject(t); err == nil && string(o.Get("/function/name")) == string(wanted) {
			one = append(one, t)
		}
	}
	if len(one) == 0 {
		return nil
	}
	if len(one) < len(tools) {
		x.Report.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the server cannot force a specific tool; only %s is sent", wanted)
	}
	return errors.Join(x.Payload.Set("tools", one), x.Payload.Set("tool_choice", word))
}
