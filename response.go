package dragoman

import (
	"strconv"
	"strings"
	"time"
)

// Response is the response of a model.
//
//stored:top response
type Response struct {
	ID    string `json:"id,omitzero"`
	Model string `json:"model,omitzero" hash:"-"`
	// Created is the creation time that the provider reported; zero means unknown.
	Created time.Time `json:"created,omitzero"`
	// Output holds the messages that the model added to the conversation: append them unchanged
	// to the history. Dialects whose responses consist of items produce several messages.
	Output []Message `json:"output,omitzero"`
	Stop   Stop      `json:"stop,omitzero"`
	Usage  Usage     `json:"usage,omitzero"`
	// Alternatives are the further candidates, if the request asked for more than one.
	Alternatives []Candidate `json:"alternatives,omitzero"`
	ServiceTier  string      `json:"service_tier,omitzero"`
	// Error is set if the provider reported a failed response in a well-formed body.
	Error  *APIError `json:"error,omitzero"`
	Origin *Origin   `json:"origin,omitzero" hash:"-"`
	Native *Sidecar  `json:"native,omitzero" hash:"-"`
	Extra  *Extra    `json:"extra,omitzero"`

	// Losses lists the losses of encoding the request and decoding the response. A [Model] sets
	// it; in a stream, the ResponseEnd has all losses and the ResponseStart those of the
	// request. Losses are never stored or sent.
	Losses Report `json:"-"`

	// Failover reports which model of a chain responded, and why others failed. It is nil if
	// the [Model] is not a chain. It is never stored or sent.
	Failover *Failover `json:"-"`
}

// Failover reports which model of a chain responded and which failed before it.
type Failover struct {
	// Model is the name, within the chain, of the model that responded, such as "openai/gpt-5".
	Model string
	// Failed lists the models that failed or were skipped, in order. It is empty if the first
	// one responded.
	Failed []FailedModel
}

// FailedModel is a model of a chain that failed or was skipped.
type FailedModel struct {
	Model string
	// Err is the reason why the model failed or was skipped.
	Err error
}

// Candidate is one alternative response.
//
//stored:value candidate
type Candidate struct {
	// Index is the position of the candidate, starting at 1.
	Index  int       `json:"index,omitzero"`
	Output []Message `json:"output,omitzero"`
	Stop   Stop      `json:"stop,omitzero"`
	Extra  *Extra    `json:"extra,omitzero"`
}

// Text joins the text parts of the output.
func (r *Response) Text() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	for i := range r.Output {
		b.WriteString(r.Output[i].Text())
	}
	return b.String()
}

// ToolCalls returns the calls of the output in the model's order.
func (r *Response) ToolCalls() []*ToolCall {
	if r == nil {
		return nil
	}
	var calls []*ToolCall
	for i := range r.Output {
		calls = append(calls, r.Output[i].ToolCalls()...)
	}
	return calls
}

// Usage holds token counts. Input and Output are totals: Input includes tokens read from and
// written to a cache, Output includes reasoning.
//
//stored:value usage
type Usage struct {
	Input      Count `json:"input,omitzero"`
	CacheRead  Count `json:"cache_read,omitzero"`
	CacheWrite Count `json:"cache_write,omitzero"`
	Output     Count `json:"output,omitzero"`
	Reasoning  Count `json:"reasoning,omitzero"`
	// Extra holds unknown native counters.
	Extra *Extra `json:"extra,omitzero"`
}

// Count is a number that may be unknown. Unknown is not zero.
type Count struct {
	N     int64
	Known bool
}

// Counted returns a known count.
func Counted(n int64) Count { return Count{N: n, Known: true} }

// Or returns the count, or n if it is unknown.
func (c Count) Or(n int64) int64 {
	if c.Known {
		return c.N
	}
	return n
}

// Merge returns u with the known counters of v in place of its own.
func (u Usage) Merge(v Usage) Usage {
	pick := func(a, b Count) Count {
		if b.Known {
			return b
		}
		return a
	}
	u.Input, u.CacheRead, u.CacheWrite = pick(u.Input, v.Input), pick(u.CacheRead, v.CacheRead), pick(u.CacheWrite, v.CacheWrite)
	u.Output, u.Reasoning = pick(u.Output, v.Output), pick(u.Reasoning, v.Reasoning)
	if v.Extra != nil {
		u.Extra = v.Extra
	}
	return u
}

// String returns the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.FormatInt(c.N, 10)
}
