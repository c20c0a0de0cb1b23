package dragoman

import (
	"strconv"
	"strings"
	"time"
)

// Response is what a model answered.
//
//stored:top response
type Response struct {
	ID    string `json:"id,omitzero"`
	Model string `json:"model,omitzero" hash:"-"`
	// Created is when the provider says it was made; zero means unknown.
	Created time.Time `json:"created,omitzero"`
	// Output is what the model added to the conversation: append it to the
	// history as it is. Dialects that answer in items give several messages.
	Output []Message `json:"output,omitzero"`
	Stop   Stop      `json:"stop,omitzero"`
	Usage  Usage     `json:"usage,omitzero"`
	// Alternatives are further candidates, when more than one was asked for.
	Alternatives []Candidate `json:"alternatives,omitzero"`
	ServiceTier  string      `json:"service_tier,omitzero"`
	// Error is set when the provider reports a failed response in a
	// well-formed answer.
	Error  *APIError `json:"error,omitzero"`
	Origin *Origin   `json:"origin,omitzero" hash:"-"`
	Native *Sidecar  `json:"native,omitzero" hash:"-"`
	Extra  *Extra    `json:"extra,omitzero"`

	// Losses tells what encoding the request and decoding this answer could not
	// keep. A [Model] fills it in, of a stream in its ResponseEnd; those of the
	// request are in its ResponseStart, too. Never stored, never sent.
	Losses Report `json:"-"`

	// Failover reports which model of a chain responded, and why others failed. It is nil
	// if the [Model] is not a chain. It is never stored or sent.
	Failover *Failover `json:"-"`
}

// Failover describes how a chain of models came to a response.
type Failover struct {
	// Model is the chain's name of the model that responded, such as "openai/gpt-5".
	Model string
	// Failed are the models that failed or were skipped, in order. It is empty if the
	// first one responded.
	Failed []FailedModel
}

// FailedModel is a model of a chain that failed or was skipped.
type FailedModel struct {
	Model string
	// Err is the reason.
	Err error
}

// Candidate is one further answer to a request.
//
//stored:value candidate
type Candidate struct {
	// Index is its position, starting at 1.
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

// Usage counts tokens. Input and Output are totals: Input includes what was
// read from and written to a cache, Output includes reasoning.
//
//stored:value usage
type Usage struct {
	Input      Count `json:"input,omitzero"`
	CacheRead  Count `json:"cache_read,omitzero"`
	CacheWrite Count `json:"cache_write,omitzero"`
	Output     Count `json:"output,omitzero"`
	Reasoning  Count `json:"reasoning,omitzero"`
	// Extra holds native counters that are not modelled.
	Extra *Extra `json:"extra,omitzero"`
}

// Count is a number that may be unknown. Unknown is not zero.
type Count struct {
	N     int64
	Known bool
}

// Counted is a known count.
func Counted(n int64) Count { return Count{N: n, Known: true} }

// Or returns the count, or n when it is unknown.
func (c Count) Or(n int64) int64 {
	if c.Known {
		return c.N
	}
	return n
}

// Merge returns u with every counter replaced that v knows.
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

// String is the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.FormatInt(c.N, 10)
}
