package sniff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// fact is something seen, and the dialects that have it.
type fact struct {
	fits    []dragoman.Dialect
	because string
	seen    bool
}

// likeliest is the order in which dialects are offered where several fit.
var likeliest = []dragoman.Dialect{
	dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama,
	dragoman.OpenAIResponses, dragoman.Gemini, dragoman.Bedrock,
}

// evidence is what was seen, in groups of falling weight: what a later group
// says counts only as far as it agrees with the earlier ones.
type evidence struct {
	groups [][]fact
	model  string
}

// narrow makes a guess of evidence. Facts of one group that exclude each other
// make an *AmbiguousError; no fact in the first group makes ErrUnknown.
func narrow(e evidence, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	left := likeliest
	because, contradicting := "", ""
	for i, group := range e.groups {
		facts := slices.DeleteFunc(slices.Clone(group), func(f fact) bool { return !f.seen || len(both(left, f.fits)) == 0 })
		if i == 0 && len(facts) == 0 {
			return Guess{}, ErrUnknown
		}
		next := left
		for _, f := range facts {
			if dialect != "" && slices.Contains(left, dialect) && !slices.Contains(f.fits, dialect) {
				contradicting = cmp.Or(contradicting, f.because)
				continue // it was said; what speaks for others is a mistake in the document
			}
			narrower := both(next, f.fits)
			if len(narrower) == 0 {
				return Guess{}, contradiction(left, facts, kind)
			}
			if len(narrower) < len(next) || because == "" {
				because = f.because
			}
			next = narrower
		}
		left = next
	}
	if dialect != "" {
		if !slices.Contains(left, dialect) {
			return Guess{}, ErrUnknown
		}
		if because == "" { // every fact spoke for others
			because = youSaidSo + ", although " + contradicting
		}
		return Guess{Dialect: dialect, Kind: kind, Because: because}, nil
	}
	left = byModel(left, e.model)
	return Guess{Dialect: left[0], Kind: kind, Because: because, Or: left[1:]}, nil
}

// contradiction names the dialects that facts speak for, and the first fact
// for each.
func contradiction(left []dragoman.Dialect, facts []fact, kind Kind) error {
	e := &AmbiguousError{Kind: kind}
	for _, f := range facts {
		fits := both(left, f.fits)
		if len(both(e.Fits, fits)) > 0 {
			continue
		}
		e.Fits = append(e.Fits, fits...)
		e.Because = append(e.Because, f.because)
	}
	return e
}

// both is what two lists have in common, in the order of the first.
func both(a, b []dragoman.Dialect) []dragoman.Dialect {
	var out []dragoman.Dialect
	for _, d := range a {
		if slices.Contains(b, d) {
			out = append(out, d)
		}
	}
	return out
}

// byModel puts the dialect of a model's vendor first, where all else fits
// several: a bare name of Anthropic's is what Anthropic's own API takes, a name
// with a tag is Ollama's.
func byModel(fits []dragoman.Dialect, model string) []dragoman.Dialect {
	var vendor dragoman.Dialect
	switch {
	case strings.HasPrefix(model, "claude"):
		vendor = dragoman.Anthropic
	case strings.Contains(model, ":") && !strings.Contains(model, "/"):
		vendor = dragoman.Ollama
	}
	i := slices.Index(fits, vendor)
	if i <= 0 {
		return fits
	}
	return slices.Concat([]dragoman.Dialect{vendor}, fits[:i], fits[i+1:])
}

// The dialects that have a list of messages, and those of them that have
// something in common.
var (
	withMessages = of(dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama, dragoman.Bedrock)
	chat         = of(dragoman.OpenAIChat)
	anthropic    = of(dragoman.Anthropic)
	ollama       = of(dragoman.Ollama)
	bedrock      = of(dragoman.Bedrock)
	responsesAPI = of(dragoman.OpenAIResponses)
	gemini       = of(dragoman.Gemini)
	functions    = of(dragoman.OpenAIChat, dragoman.Ollama)
	typedBlocks  = of(dragoman.OpenAIChat, dragoman.Anthropic)
)

// requestOf is what a request shows: where its conversation stands, of what
// shape that and its tools are, and which settings it has.
func requestOf(m members) evidence {
	ms := elementsOf(m["messages"])
	conversation := m.has("messages", "contents")
	model := ""
	_ = json.Unmarshal(m["model"], &model)
	return evidence{model: model, groups: [][]fact{
		{
			{gemini, `it has "contents"`, m.has("contents")},
			{gemini, `it has a "generationConfig"`, m.has("generationConfig", "generation_config", "systemInstruction", "system_instruction") && !conversation},
			{responsesAPI, `it has "input"`, m.has("input")},
			{responsesAPI, `it has settings of Responses and no messages`, m.has("previous_response_id", "max_output_tokens", "instructions") && !conversation},
			{withMessages, `it has "messages"`, m.has("messages")},
			{bedrock, `it has "inferenceConfig", "toolConfig" or the like`, bedrockSettings(m) && !m.has("contents", "input")},
		},
		slices.Concat(toolFacts(elementsOf(m["tools"])), messageFacts(ms), []fact{
			{bedrock, `its "system" is made of blocks without a type`, bare(blocksOf(m["system"]))},
		}),
		settingFacts(m),
		// Many servers take these beside their own.
		{
			{of(dragoman.OpenAIChat, dragoman.Ollama), "its first message is the system's", len(ms) > 0 && ms[0].is("role", "system")},
			{typedBlocks, `it has "max_tokens", "temperature", "top_p" or "top_k"`, m.has("max_tokens", "temperature", "top_p", "top_k")},
		},
	}}
}

func bedrockSettings(m members) bool {
	return m.has("inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig")
}

// settingFacts are told by the members of a request that has messages.
func settingFacts(m members) []fact {
	thinking, choice := open(m["thinking"]), open(m["tool_choice"])
	return []fact{
		{of(dragoman.Anthropic, dragoman.Bedrock), `it has "messages" and a "system" beside them`, m.has("system")},
		{anthropic, `it has "stop_sequences", "anthropic_version" or another setting of Anthropic's`, m.has("stop_sequences", "anthropic_version", "anthropic_beta", "mcp_servers", "context_management", "output_config", "output_format")},
		{anthropic, `its "thinking" has a budget`, thinking.has("budget_tokens") || thinking.is("type", "adaptive")},
		{typedBlocks, `it has "thinking"`, len(thinking) > 0},
		{anthropic, `its "tool_choice" is one of Anthropic's`, choice.is("type", "auto") || choice.is("type", "any") || choice.is("type", "tool") || choice.is("type", "none")},
		{chat, `its "tool_choice" is one of Chat Completions'`, isText(m["tool_choice"]) || choice.is("type", "function") || choice.is("type", "allowed_tools")},
		{ollama, `it has "options", "keep_alive", "think" or "format"`, m.has("options", "keep_alive", "think", "format")},
		{chat, "it has settings of Chat Completions", m.has("max_completion_tokens", "response_format", "stream_options", "reasoning_effort", "functions", "function_call", "parallel_tool_calls",
			"logprobs", "top_logprobs", "logit_bias", "n", "stop", "seed", "frequency_penalty", "presence_penalty", "modalities", "prediction", "web_search_options", "verbosity")},
	}
}

// toolFacts are told by the shape of the tools of a request.
func toolFacts(tools []members) []fact {
	return []fact{
		{anthropic, `its tools have an "input_schema"`, some(tools, func(t members) bool { return t.has("input_schema") })},
		{functions, `its tools have a "function"`, some(tools, func(t members) bool { return has(t["function"], "name") })},
		{chat, `it has a "custom" tool`, some(tools, func(t members) bool { return has(t["custom"], "name") })},
	}
}

// messageFacts are told by the shape of messages.
func messageFacts(ms []members) []fact {
	var blocks, calls []members
	texts := 0
	for _, m := range ms {
		blocks = append(blocks, blocksOf(m["content"])...)
		calls = append(calls, elementsOf(m["tool_calls"])...)
		if isText(m["content"]) {
			texts++
		}
	}
	any := func(like func(members) bool) bool { return some(ms, like) }
	block := func(like func(members) bool) bool { return some(blocks, like) }
	return []fact{
		{bedrock, `its blocks have no type, only "toolUse", "toolResult" or "text"`, bare(blocks)},
		{anthropic, "its messages hold blocks of Anthropic's", block(anthropicBlock)},
		{chat, "its messages hold parts of Chat Completions'", block(chatPart)},
		{typedBlocks, "its messages hold parts with a type", block(func(b members) bool { return b.has("type") })},
		{of(dragoman.OpenAIChat, dragoman.Anthropic, dragoman.Ollama), "the content of a message is a text", texts > 0},
		{ollama, "its calls have objects for arguments", some(calls, func(c members) bool { return argumentsStart(c, '{') })},
		{chat, "its calls have texts for arguments", some(calls, func(c members) bool { return argumentsStart(c, '"') || has(c["custom"], "name") })},
		{ollama, `its messages have "images" or a "tool_name"`, any(func(m members) bool { return m.has("tool_name") || isListOfScalars(m["images"]) })},
		{chat, `its messages have a "tool_call_id"`, any(func(m members) bool { return m.has("tool_call_id") && !m.has("tool_name") })},
		{chat, "its messages are those of Chat Completions", any(func(m members) bool {
			return m.is("role", "developer") || m.is("role", "function") || m.has("function_call", "refusal", "reasoning_content", "reasoning_details")
		})},
		{functions, "it has messages of a tool, or calls beside the content", any(func(m members) bool { return m.is("role", "tool") || m.has("tool_calls") })},
	}
}

// messagesOf is what messages that stand alone show.
func messagesOf(ms []members) evidence {
	roles := some(ms, func(m members) bool { return m.has("role") && m.has("content", "tool_calls", "function_call") })
	item := some(ms, responsesItem)
	return evidence{groups: [][]fact{
		{
			{responsesAPI, "it is an item of a response", item},
			{gemini, `it has "parts"`, some(ms, func(m members) bool { return m.has("parts") })},
			{withMessages, "it has a role and content", roles && !item},
		},
		messageFacts(ms),
		{{functions, "it is a message of the system", some(ms, func(m members) bool { return m.is("role", "system") })}},
	}}
}

func responsesItem(m members) bool {
	switch typ := textOf(m["type"]); {
	case typ == "message", typ == "reasoning", typ == "item_reference", typ == "mcp_approval_response",
		strings.HasSuffix(typ, "_call"), strings.HasSuffix(typ, "_call_output"):
		return true
	}
	return m.has("call_id", "encrypted_content") || some(blocksOf(m["content"]), func(b members) bool {
		switch textOf(b["type"]) {
		case "input_text", "output_text", "input_image", "input_file":
			return true
		}
		return false
	})
}

func anthropicBlock(b members) bool {
	typ := textOf(b["type"])
	switch typ {
	case "tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking", "search_result", "container_upload":
		return true
	case "thinking":
		return isText(b["thinking"]) // Mistral's is a list (quirk G6)
	case "image", "document":
		return b.has("source")
	}
	return strings.HasSuffix(typ, "tool_result")
}

func chatPart(b members) bool {
	switch textOf(b["type"]) {
	case "image_url", "input_audio", "video_url", "audio_url", "refusal":
		return true
	case "file":
		return b.has("file")
	}
	return false
}

// bare reports whether one of some blocks is told by its only member, as
// Bedrock's are, and not by a type.
func bare(blocks []members) bool {
	return some(blocks, func(b members) bool {
		return !b.has("type") && b.has("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint", "guardContent", "video")
	})
}

func argumentsStart(call members, c byte) bool {
	args := open(call["function"])["arguments"]
	return len(args) > 0 && args[0] == c
}

// The smallest helpers to look at a value; a wrong type reads as absent.

func some(list []members, like func(members) bool) bool { return slices.ContainsFunc(list, like) }

// elementsOf returns the objects of a list, as far as it can be read.
func elementsOf(raw []byte) []members {
	var out []members
	r := jsonwire.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Array() {
		el := r.Raw()
		if r.Err() != nil {
			break
		}
		if len(el) > 0 && el[0] == '{' {
			out = append(out, open(el))
		}
	}
	return out
}

// blocksOf returns the blocks of content.
func blocksOf(content json.RawMessage) []members { return elementsOf(content) }

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// isListOfScalars reports whether a list begins with a text, a number or a list
// of those.
func isListOfScalars(raw json.RawMessage) bool {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return false
	}
	return list[0][0] != '{' && string(list[0]) != "null"
}

func textOf(raw json.RawMessage) string {
	var s string
	if !isText(raw) || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
