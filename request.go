package dragoman

import (
	"encoding/json"
	"strconv"
)

// Request asks a model for one turn.
//
//stored:top request
type Request struct {
	Model string `json:"model,omitzero" hash:"-"`
	// Instructions are the system text that stands outside the conversation.
	// Dialects without such a place write it as the first message.
	Instructions []Part     `json:"instructions,omitzero"`
	Messages     []Message  `json:"messages,omitzero" hash:"after=Extra"`
	Tools        []ToolSpec `json:"tools,omitzero" hash:"after=Messages"`
	// ToolChoice nil means the provider's default.
	ToolChoice *ToolChoice `json:"tool_choice,omitzero"`
	// ParallelToolCalls nil means the provider's default.
	ParallelToolCalls *bool `json:"parallel_tool_calls,omitzero"`
	// Output asks for structured output; nil means text.
	Output    *OutputFormat      `json:"output,omitzero"`
	Reasoning *ReasoningSettings `json:"reasoning,omitzero"`
	Sampling  Sampling           `json:"sampling,omitzero"`
	// MaxOutputTokens nil means the provider's default, or the dialect's where
	// the wire demands a number.
	MaxOutputTokens *int64 `json:"max_output_tokens,omitzero"`
	// Cache asks for a breakpoint at the end of the prompt, wherever that is.
	Cache    *CacheHint `json:"cache,omitzero"`
	CacheKey string     `json:"cache_key,omitzero"`
	// Metadata is passed through in order.
	Metadata []KeyValue `json:"metadata,omitzero"`
	// User identifies the end user to the provider.
	User        string `json:"user,omitzero"`
	ServiceTier string `json:"service_tier,omitzero"`
	// Verbosity is "low", "medium" or "high"; empty means the default.
	Verbosity string `json:"verbosity,omitzero"`
	// Store asks the provider to keep the response; nil means its default where
	// the request came from, and false where it did not: a provider that keeps
	// responses by default must be told.
	Store *bool `json:"store,omitzero"`
	// PreviousResponseID continues a conversation the provider stores.
	PreviousResponseID string `json:"previous_response_id,omitzero"`
	// Stream asks for events instead of one response.
	Stream bool `json:"stream,omitzero"`
	// StreamUsage asks for usage at the end of a stream, where a dialect sends
	// it only on request.
	StreamUsage bool `json:"stream_usage,omitzero"`

	// Contributions of the request's tools to the interop registry; their Accepts
	// are ignored. Never stored, never sent.
	Contributions []Contribution `json:"-"`

	// Native is the request as it came, for replay to the same dialect.
	Native *Sidecar `json:"native,omitzero" hash:"-"`
	// Extra holds members that are not modelled.
	Extra *Extra `json:"extra,omitzero"`
}

// KeyValue is one entry of an ordered map of strings.
//
//stored:value metadata
type KeyValue struct {
	Key   string `json:"key,omitzero"`
	Value string `json:"value,omitzero"`
}

// OutputFormat asks for structured output.
//
//stored:value output format
type OutputFormat struct {
	// Kind is "text", "json" or "json_schema".
	Kind string `json:"kind,omitzero"`
	// Name of the schema; empty means "response".
	Name        string          `json:"name,omitzero"`
	Description string          `json:"description,omitzero"`
	Schema      json.RawMessage `json:"schema,omitzero"`
	// Strict is as in [ToolSpec].
	Strict string `json:"strict,omitzero"`
	// Dialect is the one whose wire the schema came from, and to which it goes
	// back unchanged; empty means that it was authored here.
	Dialect Dialect `json:"dialect,omitzero"`
	Extra   *Extra  `json:"extra,omitzero"`
}

// ReasoningSettings control a model's thinking.
//
//stored:value reasoning settings
type ReasoningSettings struct {
	// Mode is "off", "adaptive", "budget" or empty, which leaves it to the provider.
	Mode string `json:"mode,omitzero"`
	// Effort is "none", "minimal", "low", "medium", "high", "xhigh" or "max";
	// empty means the provider's default.
	Effort string `json:"effort,omitzero"`
	// BudgetTokens bounds the thinking in mode "budget".
	BudgetTokens *int64 `json:"budget_tokens,omitzero"`
	// Summary asks for a visible summary: "auto", "concise", "detailed",
	// "omitted"; empty means the default.
	Summary string `json:"summary,omitzero"`
	// Encrypted asks for reasoning the caller can replay without a store; nil
	// means the provider's default.
	Encrypted *bool  `json:"encrypted,omitzero"`
	Extra     *Extra `json:"extra,omitzero"`
}

// Sampling holds the knobs of the sampler. Nil means the provider's default.
// Numbers keep the text they were written in.
//
//stored:value sampling
type Sampling struct {
	Temperature      *Number  `json:"temperature,omitzero"`
	TopP             *Number  `json:"top_p,omitzero"`
	TopK             *int64   `json:"top_k,omitzero"`
	FrequencyPenalty *Number  `json:"frequency_penalty,omitzero"`
	PresencePenalty  *Number  `json:"presence_penalty,omitzero"`
	Seed             *int64   `json:"seed,omitzero"`
	Stop             []string `json:"stop,omitzero"`
	// Candidates is how many answers to make; nil means one.
	Candidates *int64 `json:"candidates,omitzero"`
}

// Number is a JSON number with its original spelling: 1.0 stays 1.0. It is
// stored as a string.
type Number string

// Num is a number for [Sampling], in its shortest spelling.
func Num(f float64) *Number {
	n := Number(strconv.FormatFloat(f, 'g', -1, 64))
	return &n
}
