package dragoman

import (
	"encoding/json"
	"strconv"
)

// Request asks a model for one turn.
type Request struct {
	Model string
	// Instructions are the system text that stands outside the conversation.
	// Dialects without such a place write it as the first message.
	Instructions []Part
	Messages     []Message
	Tools        []ToolSpec
	// ToolChoice nil means the provider's default.
	ToolChoice *ToolChoice
	// ParallelToolCalls nil means the provider's default.
	ParallelToolCalls *bool
	// Output asks for structured output; nil means text.
	Output    *OutputFormat
	Reasoning *ReasoningSettings
	Sampling  Sampling
	// MaxOutputTokens nil means the provider's default, or the dialect's where
	// the wire demands a number.
	MaxOutputTokens *int64
	// Cache asks for a breakpoint at the end of the prompt, wherever that is.
	Cache    *CacheHint
	CacheKey string
	// Metadata is passed through in order.
	Metadata []KeyValue
	// User identifies the end user to the provider.
	User        string
	ServiceTier string
	// Verbosity is "low", "medium" or "high"; empty means the default.
	Verbosity string
	// Store asks the provider to keep the response; nil means its default where
	// the request came from, and false where it did not: a provider that keeps
	// responses by default must be told.
	Store *bool
	// PreviousResponseID continues a conversation the provider stores.
	PreviousResponseID string
	// Stream asks for events instead of one response.
	Stream bool
	// StreamUsage asks for usage at the end of a stream, where a dialect sends
	// it only on request.
	StreamUsage bool

	// Contributions of the request's tools to the interop registry; their Accepts
	// are ignored. Never stored, never sent.
	Contributions []Contribution

	// Native is the request as it came, for replay to the same dialect.
	Native *Sidecar
	// Extra holds members that are not modelled.
	Extra *Extra
}

// KeyValue is one entry of an ordered map of strings.
type KeyValue struct {
	Key   string
	Value string
}

// OutputKind says what shape an answer must have: [OutputText], [OutputJSON] or
// [OutputSchema].
type OutputKind string

// The kinds of structured output.
const (
	OutputText   OutputKind = "text"
	OutputJSON   OutputKind = "json"
	OutputSchema OutputKind = "json_schema"
)

// OutputFormat asks for structured output.
type OutputFormat struct {
	Kind OutputKind
	// Name of the schema; empty means "response".
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      Strictness
	// Dialect is the one whose wire the schema came from, and to which it goes
	// back unchanged; empty means that it was authored here.
	Dialect Dialect
	Extra   *Extra
}

// ReasoningMode says whether the model may think before it answers:
// [ReasoningDefault], [ReasoningOff], [ReasoningAdaptive] or [ReasoningBudget].
type ReasoningMode string

// The modes of reasoning. The zero value leaves it to the provider.
const (
	ReasoningDefault  ReasoningMode = ""
	ReasoningOff      ReasoningMode = "off"
	ReasoningAdaptive ReasoningMode = "adaptive"
	ReasoningBudget   ReasoningMode = "budget"
)

// ReasoningSettings control a model's thinking.
type ReasoningSettings struct {
	Mode ReasoningMode
	// Effort is "none", "minimal", "low", "medium", "high", "xhigh" or "max";
	// empty means the provider's default.
	Effort string
	// BudgetTokens bounds the thinking with ReasoningBudget.
	BudgetTokens *int64
	// Summary asks for a visible summary: "auto", "concise", "detailed",
	// "omitted"; empty means the default.
	Summary string
	// Encrypted asks for reasoning the caller can replay without a store; nil
	// means the provider's default.
	Encrypted *bool
	Extra     *Extra
}

// Sampling holds the knobs of the sampler. Nil means the provider's default.
// Numbers keep the text they were written in.
type Sampling struct {
	Temperature      *Number
	TopP             *Number
	TopK             *int64
	FrequencyPenalty *Number
	PresencePenalty  *Number
	Seed             *int64
	Stop             []string
	// Candidates is how many answers to make; nil means one.
	Candidates *int64
}

// Number is a JSON number in its own spelling, so that 1.0 stays 1.0.
type Number string

// Num is a number for [Sampling], in its shortest spelling.
func Num(f float64) *Number {
	n := Number(strconv.FormatFloat(f, 'g', -1, 64))
	return &n
}
