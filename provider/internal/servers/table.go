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
	return Knob{Setting: "thinking", Place: "/thinking/type", Label: "whether the model thinks before it answers", Type: "string", Choices: choices}
}

// templated is the setting of servers that run the model's own template.
var templated = Knob{
	Setting: "enable_thinking", Place: "/chat_template_kwargs/enable_thinking", Label: "whether the model thinks before it answers", Type: "boolean",
}

// All returns an extension for each server that this package knows. The order matters if
// several are on: later ones override earlier ones. Facts that differ from model to model are
// in package models.
func All() []extension.Extension {
	return []extension.Extension{
		Server{
			Name: "openai.compatible", Description: "Servers with the OpenAI Chat API other than OpenAI: settings that nearly all of them accept.",
			Requires: []extension.Tag{DialectTag(chat)}, Forbids: []extension.Tag{ServerTag("openai"), ServerTag("azure")},
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.NoStrict, c.NoCustomTools, c.NoNamespaces, c.NoDeferred, c.NoAllowedTools = true, true, true, true, true
				c.NoDeveloperRole, c.LegacyMaxTokens = true, true
				c.TopK, c.AnyMedia = true, true
			},
		},
		Server{
			Name: "openai", Description: "OpenAI itself: Chat has no top_k.", Requires: served("openai"), Vendor: true,
			Capabilities: func(c *targets.Capabilities, _ string) { refuse(c, "top_k") },
		},
		Server{
			Name: "deepseek", Description: "DeepSeek: reasoning is returned with every turn, except for R1, which accepts none.",
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
			Name: "mistral", Description: "Mistral: ids of nine letters, any instead of required, results with the name of the tool.",
			Requires: served("mistral"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ID = &targets.IDRule{Chars: "a-zA-Z0-9", Exact: 9}
				c.ToolResultName, c.AssistantAfterTools, c.NoPrefill = true, true, true
				c.TopK = false
				accept(c, "seed") // as random_seed
			},
			Knobs: []Knob{{Setting: "safe_prompt", Place: "safe_prompt", Label: "add the safety prompt of Mistral", Type: "boolean"}},
			Fix:   fixMistral,
		},
		Server{
			Name: "kimi", Description: "Moonshot: reasoning is returned, sampling is fixed, and schemas have a format of their own.",
			Requires: served("moonshot"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ReasoningFieldAlways = "reasoning_content", true
				c.ToolSchema, c.LegacyMaxTokens = "moonshot.tool", false
			},
			Knobs: []Knob{thinking("enabled", "disabled")},
		},
		Server{
			Name: "kimi.ids", Description: "Kimi K2 on any server: call ids are the numbers that the model assigns.",
			Requires:     []extension.Tag{DialectTag(chat), FamilyTag("kimi")},
			Capabilities: func(c *targets.Capabilities, _ string) { c.ID = &targets.IDRule{Numbered: true} },
		},
		Server{
			Name: "qwen", Description: "Qwen at DashScope.",
			Requires: served("qwen"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolResultName = "reasoning_content", true
			},
			Knobs: []Knob{
				{Setting: "enable_thinking", Place: "enable_thinking", Label: "whether the model thinks before it answers", Type: "boolean"},
				{Setting: "thinking_budget", Place: "thinking_budget", Label: "how many tokens it may think for", Type: "integer"},
			},
		},
		Server{
			Name: "openrouter", Description: "OpenRouter: effort is in an object, and reasoning is returned unchanged.",
			Requires:     served("openrouter"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ReasoningField = "reasoning" },
			Knobs: []Knob{
				{Setting: "provider", Place: "provider", Label: "which providers may serve the request", Type: "object"},
				{Setting: "exclude_reasoning", Place: "/reasoning/exclude", Label: "whether reasoning is withheld", Type: "boolean"},
			},
			Fix: func(x *extension.Exchange) error { return move(x, "reasoning_effort", "/reasoning/effort") },
		},
		Server{
			Name: "groq", Description: "Groq.", Requires: served("groq"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.LegacyMaxTokens, c.TopK = "reasoning", false, false
			},
			Knobs: []Knob{
				{Setting: "reasoning_format", Place: "reasoning_format", Label: "the format in which reasoning is returned", Type: "string", Choices: []string{"parsed", "raw", "hidden"}},
				{Setting: "service_tier", Place: "service_tier", Label: "the tier of service", Type: "string", Choices: []string{"auto", "on_demand", "flex", "performance"}},
			},
		},
		Server{
			Name: "vllm", Description: "vLLM.", Requires: served("vllm"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.NoOutputWithTools = "reasoning", true // one constraint at a time (quirk F9)
			},
			Knobs: []Knob{
				templated,
				{Setting: "include_reasoning", Place: "include_reasoning", Label: "whether reasoning is returned", Type: "boolean"},
				{Setting: "thinking_token_budget", Place: "thinking_token_budget", Label: "how many tokens it may think for", Type: "integer"},
			},
		},
		Server{
			Name: "llamacpp", Description: "llama.cpp's server: schemas become grammars.", Requires: served("llamacpp"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema, c.NoOutputWithTools = "reasoning_content", "llamacpp.tool", true
			},
			Knobs: []Knob{
				templated,
				{Setting: "reasoning_format", Place: "reasoning_format", Label: "the format in which reasoning is returned", Type: "string", Choices: []string{"none", "deepseek", "deepseek-legacy", "auto"}},
			},
		},
		Server{
			Name: "lmstudio", Description: "LM Studio: a call can be required, but not of a specific tool.", Requires: served("lmstudio"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ToolSchema, c.NoOutputWithTools = "compat.tool", true },
			Fix:          func(x *extension.Exchange) error { return demand(x, "required") },
		},
		Server{
			Name: "glm", Description: "GLM at Z.ai: a call cannot be forced, and reasoning is returned unchanged.", Requires: served("zai"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField = "reasoning_content"
			},
			Knobs: []Knob{
				thinking("enabled", "disabled"),
				{Setting: "clear_thinking", Place: "/thinking/clear_thinking", Label: "whether the reasoning of earlier turns is removed", Type: "boolean"},
				{Setting: "tool_stream", Place: "tool_stream", Label: "whether arguments are streamed", Type: "boolean"},
			},
		},
		Server{
			Name: "xai", Description: "xAI: requests with a large schema get no response.", Requires: served("xai"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema, c.LegacyMaxTokens = "reasoning_content", "xai.tool", false
			},
		},
		Server{
			Name: "fireworks", Description: "Fireworks.", Requires: served("fireworks"),
			Capabilities: func(c *targets.Capabilities, _ string) {
				c.ReasoningField, c.ToolSchema = "reasoning_content", "fireworks.tool"
			},
			Knobs: []Knob{{
				Setting: "reasoning_history", Place: "reasoning_history", Label: "how the reasoning of earlier turns is used", Type: "string",
				Choices: []string{"disabled", "interleaved", "preserved"},
			}},
		},
		Server{
			Name: "cerebras", Description: "Cerebras.", Requires: served("cerebras"),
			Capabilities: func(c *targets.Capabilities, _ string) { c.ReasoningField, c.NoParallelFlag = "reasoning", true },
			Knobs:        []Knob{{Setting: "disable_reasoning", Place: "disable_reasoning", Label: "whether thinking is off", Type: "boolean"}},
		},
		Server{
			Name: "ollama", Description: "Ollama's own API.", Requires: []extension.Tag{DialectTag(dialectname.Ollama)},
			Knobs: []Knob{
				{Setting: "think", Place: "think", Label: "whether the model thinks before it answers", Type: "boolean"},
				{Setting: "think_level", Place: "think", Label: "how much it thinks", Type: "string", Choices: []string{"low", "medium", "high"}},
				{Setting: "num_ctx", Place: "/options/num_ctx", Label: "how many tokens the model sees", Type: "integer"},
				{Setting: "keep_alive", Place: "keep_alive", Label: "how long the model stays loaded", Type: "string"},
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
	return errors.Join(demand(x, "any"), move(x, "seed", "random_seed"),
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

// demand writes the server's word for "a tool must be called". If the request names the tool
// and the server cannot express that, the server gets only that tool.
func demand(x *extension.Exchange, word string) error {
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
