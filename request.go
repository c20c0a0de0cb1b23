package dragoman

import (
	"encoding/json"
	"strconv"
)

// Request is a request to a model for one turn.
//
//stored:top request
type Request struct {
	Model string `json:"model,omitzero" hash:"-"`
	// Instructions are the system text outside the conversation. Encoders of dialects without
	// such a field write it as the first message.
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
	// MaxOutputTokens limits the output. Nil means the provider's default, or the codec's
	// default if the wire format requires a number.
	MaxOutputTokens *int64 `json:"max_output_tokens,omitzero"`
	// Cache asks for a cache breakpoint at the end of the prompt.
	Cache    *CacheHint `json:"cache,omitzero"`
	CacheKey string     `json:"cache_key,omitzero"`
	// Metadata is passed through in order.
	Metadata []KeyValue `json:"metadata,omitzero"`
	// User identifies the end user to the provider.
	User        string `json:"user,omitzero"`
	ServiceTier string `json:"service_tier,omitzero"`
	// Verbosity is "low", "medium" or "high"; empty means the default.
	Verbosity string `json:"verbosity,omitzero"`
	// Store asks the provider to store the response. Nil means the provider's default in the
	// dialect that the request came from, and false in other dialects, where a provider that
	// stores responses by default is asked not to.
	Store *bool `json:"store,omitzero"`
	// PreviousResponseID continues a conversation that the provider stores.
	PreviousResponseID string `json:"previous_response_id,omitzero"`
	// Stream asks for events instead of one response.
	Stream bool `json:"stream,omitzero"`
	// StreamUsage asks for token counts at the end of a stream, in dialects that send them only
	// on request.
	StreamUsage bool `json:"stream_usage,omitzero"`

	// Contributions are what the request's tools add to the interop registry. Their Accepts
	// fields are ignored. Contributions are never stored or sent.
	Contributions []Contribution `json:"-"`

	// Native is the original wire request, for replay to the same dialect.
	Native *Sidecar `json:"native,omitzero" hash:"-"`
	// Extra holds unknown fields.
	Extra *Extra `json:"extra,omitzero"`
}

// KeyValue is one entry of an ordered map of strings.
//
//stored:value metadata
type KeyValue struct {
	Key   string `json:"key,omitzero"`
	Value string `json:"value,omitzero"`
}

// OutputFormat describes the requested structured output.
//
//stored:value output format
type OutputFormat struct {
	// Kind is "text", "json" or "json_schema".
	Kind string `json:"kind,omitzero"`
	// Name is the name of the schema; empty means "response".
	Name        string          `json:"name,omitzero"`
	Description string          `json:"description,omitzero"`
	Schema      json.RawMessage `json:"schema,omitzero"`
	// Strict has the values of [ToolSpec.Strict].
	Strict string `json:"strict,omitzero"`
	// Dialect is the dialect that the schema was decoded from. The schema is sent back to that
	// dialect unchanged. Empty means that the schema was written locally.
	Dialect Dialect `json:"dialect,omitzero"`
	Extra   *Extra  `json:"extra,omitzero"`
}

// ReasoningSettings controls the thinking of a model.
//
//stored:value reasoning settings
type ReasoningSettings struct {
	// Mode is "off", "adaptive", "budget" or empty, which means the provider's default.
	Mode string `json:"mode,omitzero"`
	// Effort is "none", "minimal", "low", "medium", "high", "xhigh" or "max";
	// empty means the provider's default.
	Effort string `json:"effort,omitzero"`
	// BudgetTokens limits the thinking in mode "budget".
	BudgetTokens *int64 `json:"budget_tokens,omitzero"`
	// Summary asks for a visible summary: "auto", "concise", "detailed",
	// "omitted"; empty means the default.
	Summary string `json:"summary,omitzero"`
	// Encrypted asks for reasoning that the caller can replay when the provider stores nothing;
	// nil means the provider's default.
	Encrypted *bool  `json:"encrypted,omitzero"`
	Extra     *Extra `json:"extra,omitzero"`
}

// Sampling holds the sampling parameters. Nil means the provider's default. Numbers keep their
// original text.
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
	// Candidates is the number of responses to generate; nil means one.
	Candidates *int64 `json:"candidates,omitzero"`
}

// Number is a JSON number with its original text: 1.0 stays 1.0. It is stored as a string.
type Number string

// Num returns a number for [Sampling] in its shortest form.
func Num(f float64) *Number {
	n := Number(strconv.FormatFloat(f, 'g', -1, 64))
	return &n
}
