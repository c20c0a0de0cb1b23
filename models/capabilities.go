package models

import (
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

const (
	// safeEfforts are the efforts that every model with efforts accepts.
	safeEfforts = "low medium high"
	// defaultClaudeOutput is the maximum of output tokens for Claude if a request states none: every
	// model since Claude 4 accepts that many.
	defaultClaudeOutput = 32_000
)

// Capabilities returns the capabilities of the model for requests in a dialect. For an
// unknown model, an OpenAI dialect gets only the efforts that all models share.
func (m Model) Capabilities(d dragoman.Dialect) targets.Capabilities {
	var c targets.Capabilities
	chatlike := d == dialectname.OpenAIChat || d == dialectname.OpenAIResponses
	c.NoThinkLevels = d == dialectname.Ollama
	c.NoThinkingBudgets = chatlike // the budget is mapped to an effort that the model accepts
	if m.How == codes.NotFound {
		if chatlike {
			c.Efforts, c.Refuses = safeEfforts, effortNone
		}
		return c
	}
	if d == dialectname.Gemini && m.Provider == atGemini {
		m.Resold = false // only the vendor's own dialect has that form
	}
	m.reasoning(&c, d)
	if m.Resold && !slices.Contains(closed, m.Provider) {
		return c // the server decides what an open model refuses
	}
	m.refusals(&c, d)
	c.RefusesMedia = m.refusedMedia(d)
	if m.Resold {
		return c
	}
	m.refuseCombinations(&c, d)
	switch m.ForcedChoice {
	case codes.ForcedNever:
		c.ForcedChoice = codes.ForcedNever
	case codes.ForcedWithoutThinking:
		c.ForcedChoice = codes.ForcedWithoutThinking
	}
	if len(m.Temperature) == 2 {
		c.Temperature = decimal(m.Temperature[0]) + " " + decimal(m.Temperature[1])
	}
	c.NoStrict = c.NoStrict || m.Strict == No
	c.NoParallelFlag = c.NoParallelFlag || m.Parallel == No
	if m.Tools == No && d != dialectname.Ollama { // see refusal
		c.NoTools = true
	}
	if m.Schema == No {
		m.noSchema(&c, d)
	}
	if d == dialectname.Anthropic || dialectname.ManyVendors(d) && m.Vendor == "anthropic" {
		switch r := m.Entry.Reasoning; {
		case m.Output > 0:
			c.DefaultMaxTokens = min(m.Output, defaultClaudeOutput)
		case r != nil && r.Adaptive:
			c.DefaultMaxTokens = defaultClaudeOutput
		}
	}
	return c
}

// noSchema sets the capabilities of a model that accepts no output schema. OpenAI Chat and
// Responses still accept JSON output without a schema; the other APIs have no such format.
func (m Model) noSchema(c *targets.Capabilities, d dragoman.Dialect) {
	if d == dialectname.OpenAIChat || d == dialectname.OpenAIResponses {
		c.NoOutputSchema = true
		return
	}
	c.Refuses = strings.TrimSpace(c.Refuses + " response_format")
}

// refusedMedia returns the kinds of media that the model cannot read, in the form of
// [targets.Capabilities.RefusesMedia]. It is empty for models that only match a family,
// because newer models may read more. Files are refused only for text-only models on OpenAI
// Chat and Responses servers: other servers, and resellers, extract the text of files.
func (m Model) refusedMedia(d dragoman.Dialect) string {
	if len(m.Inputs) == 0 || m.How == codes.FoundByFamily {
		return ""
	}
	var kinds []string
	for _, kind := range []string{codes.MediaImage, codes.MediaAudio, codes.MediaVideo} {
		if !slices.Contains(m.Inputs, kind) {
			kinds = append(kinds, kind)
		}
	}
	if chat := d == dialectname.OpenAIChat || d == dialectname.OpenAIResponses; chat && len(m.Inputs) == 1 && !m.Resold {
		kinds = append(kinds, codes.MediaFile)
	}
	return strings.Join(kinds, " ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// reasoning sets the capabilities about reasoning.
func (m Model) reasoning(c *targets.Capabilities, d dragoman.Dialect) {
	r := m.Entry.Reasoning
	if r == nil {
		return
	}
	c.ThinksByDefault = r.ByDefault()
	own := dialectname.ManyVendors(d) && m.Vendor != "anthropic" // the vendor's own request fields
	if own {
		c.EffortField, c.NoThinkingBudgets = r.Field, r.Field != ""
	}
	if !r.Supported || own && r.Field == "" { // no known form
		c.NoThinking = true
		// OpenAI refuses reasoning items for a model that does not reason.
		c.NoReasoning = d == dialectname.OpenAIResponses && m.Provider == atOpenAI
		return
	}
	efforts := slices.Clone(r.Efforts)
	switch {
	case m.How == codes.FoundByFamily && len(efforts) > 0:
		efforts = strings.Fields(safeEfforts)
		if d == dialectname.OpenAIChat && slices.Contains(m.RefusesTogether, "chat:tools+reasoning") {
			efforts = append([]string{"none"}, efforts...) // tools require reasoning off
		}
	case len(efforts) == 0 && (d == dialectname.OpenAIChat || d == dialectname.OpenAIResponses):
		efforts = strings.Fields(safeEfforts)
	case len(efforts) == 0:
	case d == dialectname.Ollama:
		c.NoThinkLevels = false
	case r.Off != "" && (d == dialectname.Anthropic || dialectname.ManyVendors(d) || m.Resold) && !slices.Contains(efforts, "none"):
		efforts = append([]string{"none"}, efforts...) // reasoning can be switched off
	}
	c.Efforts = strings.Join(efforts, " ")
	if b := r.Budget; b != nil && !m.Resold {
		c.ThinkingBudgets = !r.Adaptive
		c.MaxThinkingBudget = b.Max
		if r.AlwaysOn || b.Min > 1 {
			c.MinThinkingBudget = b.Min
		}
		if c.ThinkingBudgets {
			c.Efforts = ""
		}
		if c.ThinkingBudgets && r.AlwaysOn {
			c.Refuses = effortNone
		}
	}
	if d == dialectname.OpenAIChat && !m.Resold && strings.Contains(r.Off, "=") {
		c.ReasoningOff = r.Off
	}
}

// effortNone means that a request to switch reasoning off is refused.
const effortNone = "reasoning_effort=none"

// effortOff means that an effort above high is refused while reasoning is off.
const effortOff = "reasoning_effort=xhigh+off"

// settings lists words of [targets.Capabilities.Refuses] that the table has as well.
var settings = []string{
	"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "stop", "seed", "n",
	"logit_bias", "logprobs", "top_logprobs", "response_format", "reasoning_format",
}

// refusals sets which settings are dropped.
func (m Model) refusals(c *targets.Capabilities, d dragoman.Dialect) {
	refuses, thinking := strings.Fields(c.Refuses), []string(nil)
	for _, word := range slices.Concat(m.Refuses, m.Ignores) {
		if slices.Contains(settings, word) {
			refuses = append(refuses, word)
			continue
		}
		m.refusal(c, d, word, &refuses)
	}
	for _, word := range slices.Concat(m.RefusesReasoning, m.IgnoresReasoning) {
		switch {
		case slices.Contains(settings, word), word == "prefill" && !m.Resold:
			thinking = append(thinking, word)
		case word == "tool_choice=required" && c.ForcedChoice == codes.ForcedAlways && !m.Resold:
			c.ForcedChoice = codes.ForcedWithoutThinking
		}
	}
	c.Refuses, c.RefusesThinking = strings.Join(refuses, " "), strings.Join(thinking, " ")
}

// refusal applies a word that is not the name of a setting.
func (m Model) refusal(c *targets.Capabilities, d dragoman.Dialect, word string, refuses *[]string) {
	if m.Resold {
		return
	}
	switch word {
	case "thinking", "think=true", "reasoning_effort":
		c.NoThinking = true
	case "thinking.budget_tokens", "thinkingBudget":
		c.NoThinkingBudgets = true
	case "thinkingLevel":
		c.ThinkingBudgets = !c.NoThinking
	case "prefill":
		c.NoPrefill = true
	case "cache_points":
		c.NoCacheBreakpoints = true
	case "max_tokens":
		*refuses = append(*refuses, "max_tokens")
	case "max_completion_tokens":
		c.LegacyMaxTokens = true
	case "parallel_tool_calls":
		c.NoParallelFlag = true
	case "stream_options":
		c.NoStreamOptions = true
	case "strict":
		c.NoStrict = true
	case "tool_choice", "tool_choice=required":
		c.ForcedChoice = codes.ForcedNever
	case "response_format=json_schema":
		c.NoOutputSchema = true
	case "tool_search":
		c.NoDeferred = true
	case "call_ids":
		c.NoCallIDs = true
	case "result_media":
		c.NoResultMedia = true
	case "dummy_signature":
		c.NoDummySignature = true
	case "open_schemas":
		c.ClosedSchemas = true
	case "file_parts":
		c.NoFiles = true
	case "tools":
		// The Ollama labels describe its library, and local models may differ; the
		// server refuses tools itself.
		c.NoTools = d != dialectname.Ollama
	}
}

// refuseCombinations applies combinations that the model refuses. It ignores
// thinkingLevel+thinkingBudget, which the Gemini encoder never writes.
func (m Model) refuseCombinations(c *targets.Capabilities, d dragoman.Dialect) {
	for _, word := range m.RefusesTogether {
		switch word {
		case "temperature+top_p":
			c.OneSampler = true
		case "chat:tools":
			c.NoTools = c.NoTools || d == dialectname.OpenAIChat
		case "chat:tools+reasoning":
			c.NoReasoningWithTools = d == dialectname.OpenAIChat
		case "thinking+stream=false":
			c.NoThinkingUnstreamed = d == dialectname.OpenAIChat
		case "thinking.type=disabled+effort:xhigh|max":
			c.Refuses = strings.TrimSpace(c.Refuses + " " + effortOff)
		case "functions+google_search":
			c.NoMixedTools = true
		case "functions+response_schema", "json_schema+tools":
			c.NoOutputWithTools = true
		case "json_schema+stream":
			c.NoOutputSchemaStreamed = true
		}
	}
}
