package models

import "fmt"

// Entry holds the facts about one model as one provider serves it. Entries are shared: do not
// change them.
type Entry struct {
	// ID is "provider/name". It is unique.
	ID string `json:"id"`
	// Provider serves the model; it is the name of the built-in provider, if there
	// is one. Vendor made the model.
	Provider string `json:"provider"`
	Vendor   string `json:"vendor,omitempty"`
	// Match lists names in the provider's spelling; * matches any text.
	// Aliases are matched exactly.
	Match   []string `json:"match"`
	Aliases []string `json:"aliases,omitempty"`

	// Limits in tokens; 0 means unknown. Context covers prompt and response
	// together, ContextBeta the same with a beta header. Input limits the
	// prompt if that is less than Context. Output limits the response,
	// including reasoning.
	Context     int64 `json:"context,omitempty"`
	ContextBeta int64 `json:"context_beta,omitempty"`
	Input       int64 `json:"input,omitempty"`
	Output      int64 `json:"output,omitempty"`

	// Inputs lists the kinds of input: text, image, audio, video, pdf.
	Inputs []string `json:"inputs,omitempty"`
	// Tools: the model calls functions. Parallel: it calls several at once and accepts
	// the flag for that. Strict: it accepts strict on a tool. Schema: it accepts a
	// JSON Schema for its response.
	Tools    Fact `json:"tools,omitzero"`
	Parallel Fact `json:"parallel,omitzero"`
	Strict   Fact `json:"strict,omitzero"`
	Schema   Fact `json:"schema,omitzero"`
	// Reasoning describes whether and how the model reasons; nil means unknown.
	Reasoning *Reasoning `json:"reasoning,omitempty"`

	// Refuses lists request fields that the server refuses, and RefusesReasoning those
	// that it refuses while the model reasons. RefusesTogether lists combinations, as in
	// "temperature+top_p". Ignores and IgnoresReasoning list fields that have no effect.
	// Special words:
	//   - "field=value": only that value
	//   - "prefill": an assistant turn at the end
	//   - "call_ids": the ids of calls and results
	//   - "result_media": media in results
	//   - "dummy_signature": a placeholder signature on unsigned calls
	//   - "open_schemas": JSON Schema beyond the closed subset of the dialect
	//   - "tool_search": the tool search of the provider
	//   - prefix "chat:": OpenAI Chat only
	Refuses          []string `json:"refuses,omitempty"`
	RefusesReasoning []string `json:"refuses_reasoning,omitempty"`
	RefusesTogether  []string `json:"refuses_together,omitempty"`
	Ignores          []string `json:"ignores,omitempty"`
	IgnoresReasoning []string `json:"ignores_reasoning,omitempty"`
	// ForcedChoice states when the model accepts a tool choice that forces a call:
	// "never" or "without_thinking". Empty means always.
	ForcedChoice string `json:"forced_choice,omitempty"`
	// Temperature is [min, max] if that is not [0, 2].
	Temperature []float64 `json:"temperature,omitempty"`

	// Floating: the name may refer to newer models later.
	Floating bool `json:"floating,omitempty"`
	// Status is current, deprecated or retired. Retires is the announced date,
	// YYYY-MM-DD.
	Status  string `json:"status,omitempty"`
	Retires string `json:"retires,omitempty"`
	// Price is nil if it is unknown.
	Price *Price `json:"price,omitempty"`
	// Sources names the origins of the facts.
	Sources []string `json:"sources,omitempty"`
}

// Fact is yes, no or unknown.
type Fact int8

// The values of a [Fact]. The zero value is [Unknown].
const (
	Unknown Fact = 0
	Yes     Fact = 1
	No      Fact = -1
)

func (f Fact) String() string {
	switch f {
	case Yes:
		return "yes"
	case No:
		return "no"
	default:
		return "unknown"
	}
}

// UnmarshalJSON reads true, false or null.
func (f *Fact) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "true":
		*f = Yes
	case "false":
		*f = No
	case "null":
		*f = Unknown
	default:
		return fmt.Errorf("want true or false, have %.40s", data)
	}
	return nil
}

// MarshalJSON writes true, false or null.
func (f Fact) MarshalJSON() ([]byte, error) {
	switch f {
	case Yes:
		return []byte("true"), nil
	case No:
		return []byte("false"), nil
	default:
		return []byte("null"), nil
	}
}

// Reasoning describes how a model reasons.
type Reasoning struct {
	Supported bool `json:"supported"`
	// Efforts lists the efforts on the wire, including "none" if the model accepts it;
	// empty means that they are unknown or that the model has no efforts.
	Efforts []string `json:"efforts,omitempty"`
	// Budget limits a thinking budget; nil means that it is unknown, or that the
	// model accepts no budget.
	Budget *Budget `json:"budget,omitempty"`
	// Off is the setting that switches reasoning off, such as "none",
	// "thinking.type=disabled" or "enable_thinking=false"; empty means unknown
	// or, with AlwaysOn, that it cannot be switched off.
	Off      string `json:"off,omitempty"`
	AlwaysOn bool   `json:"always_on,omitempty"`
	// Adaptive: the model decides how much it reasons.
	Adaptive bool `json:"adaptive,omitempty"`
	// Field is the field for the effort, on a server whose models differ in that:
	// "reasoning_effort" or "reasoningConfig" in additionalModelRequestFields. Empty means the
	// form of Claude for its models, and unknown for others.
	Field string `json:"field,omitempty"`
	// Default applies to requests that do not set reasoning: "off", "none", "on",
	// "dynamic" or an effort. Effort is the effort that applies then.
	Default string `json:"default,omitempty"`
	Effort  string `json:"effort,omitempty"`
}

// ByDefault reports whether the model reasons for a request that does not set
// reasoning.
func (r *Reasoning) ByDefault() bool {
	return r != nil && r.Supported && (r.AlwaysOn || r.Default != "" && r.Default != "off" && r.Default != "none")
}

// Budget limits a thinking budget in tokens. Max is 0 if only the output limit
// applies.
type Budget struct {
	Min int64 `json:"min"`
	Max int64 `json:"max,omitempty"`
}

// Price is in USD per million tokens. A nil field is unknown.
type Price struct {
	In  *float64 `json:"in"`
	Out *float64 `json:"out"`
	// CacheRead is the price of cached prompt tokens. CacheWrite is the price of
	// writing to a cache, for five minutes if the provider has several lifetimes;
	// CacheWrite1h is the price for an hour.
	CacheRead    *float64 `json:"cache_read,omitempty"`
	CacheWrite   *float64 `json:"cache_write,omitempty"`
	CacheWrite1h *float64 `json:"cache_write_1h,omitempty"`
	AudioIn      *float64 `json:"audio_in,omitempty"`
	// Tiers replace the prices of a whole request with a long prompt, in ascending
	// order.
	Tiers []Tier `json:"tiers,omitempty"`
	// Factors apply to every token price. Do not multiply them with each other.
	Batch    *float64 `json:"batch,omitempty"`
	Flex     *float64 `json:"flex,omitempty"`
	Priority *float64 `json:"priority,omitempty"`
	Fast     *float64 `json:"fast,omitempty"`
	Regional *float64 `json:"regional,omitempty"`
	// WebSearch is the price of one search in USD.
	WebSearch *float64 `json:"web_search,omitempty"`
}

// Tier holds the prices of requests whose prompt has more than Above tokens.
type Tier struct {
	Above      int64    `json:"above"`
	In         *float64 `json:"in"`
	Out        *float64 `json:"out"`
	CacheRead  *float64 `json:"cache_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
}

// For returns the prices of a request with a prompt of that many tokens: those of the
// highest tier that the prompt exceeds. A price that the tier does not have is unknown
// there.
func (p *Price) For(prompt int64) *Price {
	if p == nil {
		return nil
	}
	out := p
	for _, t := range p.Tiers {
		if prompt <= t.Above {
			break
		}
		tiered := *p
		tiered.In, tiered.Out, tiered.CacheRead, tiered.CacheWrite = t.In, t.Out, t.CacheRead, t.CacheWrite
		tiered.CacheWrite1h, tiered.AudioIn = nil, nil
		out = &tiered
	}
	return out
}
