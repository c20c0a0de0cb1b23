package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

// settings lists the fields of a request, in the order in which they are
// written.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name, KeepUnset: true}, []setting{
	{Field: "model", Canonical: wirekit.Model, Encode: (*requestEncoder).model, Superseded: always},
	{Field: "messages", Canonical: wirekit.Messages, Known: requestMessage, Null: true, Decode: (*requestDecoder).messages, EncodeOrFail: (*requestEncoder).conversation},
	{Field: "tools", Canonical: wirekit.Tools, Known: requestTool, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).tools},
	{Field: "strict_tools", Decode: (*requestDecoder).strictTools, Encode: (*requestEncoder).strictTools, Superseded: (*requestEncoder).hasTools},
	{Canonical: wirekit.ParallelToolCalls, Encode: (*requestEncoder).parallel},
	{Field: "tool_choice", Canonical: wirekit.ToolChoice, Decode: (*requestDecoder).choice, EncodeOrFail: (*requestEncoder).choice},
	{Field: "response_format", Canonical: wirekit.Output, Known: jsonwire.Known{"type": nil, "json_schema": nil}, Decode: (*requestDecoder).output, Encode: (*requestEncoder).output},
	{Field: "thinking", Canonical: wirekit.Reasoning, Known: jsonwire.Known{"type": nil, "token_budget": nil}, Decode: (*requestDecoder).thinking, Encode: (*requestEncoder).thinking},
	{Field: "stream", Canonical: wirekit.Stream},
	{Field: "max_tokens", Canonical: wirekit.MaxOutputTokens},
	{Field: "temperature", Canonical: wirekit.Temperature, Encode: func(e *requestEncoder) {
		e.number("temperature", "temperature", e.req.Sampling.Temperature, "0", "1")
	}},
	{Field: "p", Canonical: wirekit.TopP, Encode: func(e *requestEncoder) {
		e.number("p", "top_p", e.req.Sampling.TopP, "0.01", "0.99")
	}},
	{Field: "k", Canonical: wirekit.TopK, Encode: (*requestEncoder).topK},
	{Field: "frequency_penalty", Canonical: wirekit.FrequencyPenalty, Encode: func(e *requestEncoder) {
		e.number("frequency_penalty", "frequency_penalty", e.req.Sampling.FrequencyPenalty, "0", "1")
	}},
	{Field: "presence_penalty", Canonical: wirekit.PresencePenalty, Encode: func(e *requestEncoder) {
		e.number("presence_penalty", "presence_penalty", e.req.Sampling.PresencePenalty, "0", "1")
	}},
	{Field: "seed", Canonical: wirekit.Seed, Encode: (*requestEncoder).seed},
	{Canonical: wirekit.Candidates, Encode: (*requestEncoder).candidates},
	{Field: "stop_sequences", Canonical: wirekit.Stop, Encode: (*requestEncoder).stop},
	{Canonical: wirekit.Cache, Lost: wirekit.LostInfo("cache breakpoint at the end of the prompt: Cohere caches automatically")},
	{Canonical: wirekit.CacheKey, Lost: wirekit.LostInfo("Cohere has no cache key")},
	{Canonical: wirekit.Metadata, Lost: wirekit.LostInfo("Cohere does not accept metadata")},
	{Canonical: wirekit.User, Lost: wirekit.LostInfo("Cohere does not accept a user")},
	{Canonical: wirekit.ServiceTier, Lost: wirekit.LostInfo("Cohere has no service tiers")},
	{Canonical: wirekit.Verbosity, Lost: wirekit.LostWarn("Cohere has no verbosity")},
	{Canonical: wirekit.Store, Lost: wirekit.LostWarn("Cohere does not store responses")},
})

func always(*requestEncoder, []byte) bool { return true }

// The known fields of nested values.
var (
	requestMessage = jsonwire.Known{
		"role": nil, "tool_call_id": nil, "tool_plan": nil,
		"content": {
			"type": nil, "text": nil, "thinking": nil, "image_url": {"url": nil, "detail": nil},
			"document": {"data": nil},
		},
		"tool_calls": {"id": nil, "type": nil, "function": {"name": nil, "arguments": nil}},
	}
	requestTool = jsonwire.Known{"type": nil, "function": {"name": nil, "description": nil, "parameters": nil}}
)

func (e *requestEncoder) model() { e.w.StringField("model", e.req.Model) }

// strictTools reads strict_tools.
func (d *requestDecoder) strictTools() {
	if d.strict = d.r.Bool(); !d.strict {
		extra.Add(&d.req.Extra, name, "", []byte("strict_tools"), []byte("false"))
	}
}

// strictTools writes strict_tools for the tools that were written.
func (e *requestEncoder) strictTools() {
	if e.written > 0 && e.allStrict {
		e.w.BoolField("strict_tools", true)
	}
}

func (e *requestEncoder) hasTools([]byte) bool { return len(e.req.Tools) > 0 }

// parallel reports that the parallel flag is dropped. Dropping true loses
// little, because the API allows several calls.
func (e *requestEncoder) parallel() {
	p := e.req.ParallelToolCalls
	if p == nil {
		return
	}
	severity := dragoman.Info
	if !*p {
		severity = dragoman.Warn
	}
	e.rep.Add(dragoman.Dropped, severity, "/parallel_tool_calls", "Cohere has no such flag; a model may call several tools at once")
}

// fromOwnDialect reports whether the settings of the request are of this dialect. Settings
// of other dialects are clamped to the ranges of the API.
func (e *requestEncoder) fromOwnDialect() bool {
	return e.req.Native != nil && e.req.Native.Dialect == name
}

// number writes a sampling setting.
func (e *requestEncoder) number(key, setting string, n *dragoman.Number, least, most string) {
	if n == nil || wirekit.RefusesSampling(e.target.Caps, setting, e.rep) {
		return
	}
	value := string(*n)
	if f := wirekit.Float(*n); !e.fromOwnDialect() && f < wirekit.Float(dragoman.Number(least)) {
		value = least
	} else if !e.fromOwnDialect() && f > wirekit.Float(dragoman.Number(most)) {
		value = most
	}
	if value != string(*n) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/"+setting, "%.40s written as %s: the API accepts %s to %s", string(*n), value, least, most)
	}
	e.w.RawField(key, []byte(value))
}

func (e *requestEncoder) topK() {
	k := e.req.Sampling.TopK
	if k == nil || wirekit.RefusesSampling(e.target.Caps, "top_k", e.rep) {
		return
	}
	n := *k
	if !e.fromOwnDialect() {
		n = min(max(n, 0), 500)
	}
	if n != *k {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/top_k", "%d written as %d: the API accepts 0 to 500", *k, n)
	}
	e.w.IntField("k", n)
}

func (e *requestEncoder) seed() {
	switch seed := e.req.Sampling.Seed; {
	case seed == nil:
	case *seed < 0 && !e.fromOwnDialect():
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/seed", "seed %d: Cohere does not accept negative seeds", *seed)
	default:
		e.w.IntField("seed", *seed)
	}
}

func (e *requestEncoder) candidates() {
	if n := e.req.Sampling.Candidates; n != nil && *n != 1 {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/candidates", "Cohere returns one response, not %d", *n)
	}
}

func (e *requestEncoder) stop() {
	stop := e.req.Sampling.Stop
	if len(stop) == 0 {
		return
	}
	if most := e.limits.MaxStopSequences; len(stop) > most {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences beyond the first %d", most)
		stop = stop[:most]
	}
	e.w.Key("stop_sequences")
	wirekit.WriteTexts(&e.w, stop)
}
