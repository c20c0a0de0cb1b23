package openaichat

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

// settings are the fields of a request, in the order in which they are written.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name, KeepUnset: true}, []setting{
	{Field: "model", Canonical: wirekit.Model, Encode: (*requestEncoder).model, Superseded: always},
	{Field: "messages", Canonical: wirekit.Messages, Known: messageFields, Null: true, Decode: (*requestDecoder).messages, EncodeOrFail: (*requestEncoder).conversation},
	{Field: "tools", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).tools},
	{Field: "functions", Known: toolFields["function"], Decode: (*requestDecoder).legacyFunctions, Superseded: isFunctionsMarker},
	{Field: "tool_choice", Canonical: wirekit.ToolChoice, Known: choiceFields, Decode: (*requestDecoder).toolChoice, EncodeOrFail: (*requestEncoder).choice, Superseded: (*requestEncoder).choiceSuperseded},
	{Field: "function_call", Known: named, Decode: (*requestDecoder).functionCall},
	// A null means the default, but not to every server (quirk E7).
	{Field: "parallel_tool_calls", Canonical: wirekit.ParallelToolCalls, Encode: (*requestEncoder).parallel, Superseded: always},
	{Field: "response_format", Canonical: wirekit.Output, Known: outputFields, Decode: (*requestDecoder).output, Encode: (*requestEncoder).output},
	{Field: "max_completion_tokens", Canonical: wirekit.MaxOutputTokens, Decode: (*requestDecoder).maxCompletionTokens, Encode: (*requestEncoder).maxTokens},
	{Field: "max_tokens", Decode: (*requestDecoder).maxTokens, Superseded: (*requestEncoder).maxTokensSuperseded},
	{Field: "reasoning_effort", Canonical: wirekit.Reasoning, Decode: (*requestDecoder).effort, Encode: (*requestEncoder).reasoningSettings},
	{Field: "verbosity", Canonical: wirekit.Verbosity},
	{Field: "stream", Canonical: wirekit.Stream},
	{Field: "stream_options", Canonical: wirekit.StreamUsage, Known: jsonwire.Known{"include_usage": nil}, Decode: (*requestDecoder).streamOptions, Encode: (*requestEncoder).streamOptions},
	{Field: "temperature", Canonical: wirekit.Temperature},
	{Field: "top_p", Canonical: wirekit.TopP},
	{Field: "frequency_penalty", Canonical: wirekit.FrequencyPenalty},
	{Field: "presence_penalty", Canonical: wirekit.PresencePenalty},
	{Field: "top_k", Canonical: wirekit.TopK, Encode: (*requestEncoder).topK},
	{Field: "n", Canonical: wirekit.Candidates},
	{Field: "seed", Canonical: wirekit.Seed},
	{Field: "stop", Canonical: wirekit.Stop, Decode: (*requestDecoder).stop, Encode: (*requestEncoder).stop},
	{Field: "store", Canonical: wirekit.Store},
	{Field: "metadata", Canonical: wirekit.Metadata},
	{Field: "service_tier", Canonical: wirekit.ServiceTier, Decode: (*requestDecoder).serviceTier, Encode: (*requestEncoder).serviceTier},
	{Field: "prompt_cache_key", Canonical: wirekit.CacheKey},
	{Field: "safety_identifier", Canonical: wirekit.User, Decode: (*requestDecoder).safetyIdentifier, Encode: (*requestEncoder).user},
	{Field: "user", Decode: (*requestDecoder).user, Superseded: (*requestEncoder).userSuperseded},
	{Canonical: wirekit.Cache, Lost: wirekit.LostInfo("cache breakpoint at the end of the prompt: the target caches automatically")},
})

func always(*requestEncoder, []byte) bool { return true }

// The known fields of nested values.
var (
	named        = jsonwire.Known{"name": nil}
	choiceFields = jsonwire.Known{
		"type": nil, "name": nil, "function": named, "custom": named,
		"allowed_tools": {"mode": nil, "tools": {"type": nil, "function": named, "custom": named}},
	}
	outputFields = jsonwire.Known{"type": nil, "json_schema": {"name": nil, "description": nil, "schema": nil, "strict": nil}}
	toolFields   = jsonwire.Known{
		"type":     nil,
		"function": {"name": nil, "description": nil, "parameters": nil, "strict": nil},
		"custom":   {"name": nil, "description": nil, "format": grammar},
	}
	grammar = jsonwire.Known{
		"type": nil, "syntax": nil, "definition": nil, "grammar": {"syntax": nil, "definition": nil},
	}
	messageFields = jsonwire.Known{
		"role": nil, "name": nil, "refusal": nil, "tool_call_id": nil, "content": partFields,
		"tool_calls": {
			"id": nil, "type": nil, "function": calledFields, "custom": {"name": nil, "input": nil},
		},
		"function_call":     calledFields,
		"reasoning_content": nil, "reasoning": nil, "reasoning_text": nil,
		"reasoning_details": {"type": nil, "text": nil, "summary": nil, "data": nil},
	}
	calledFields = jsonwire.Known{"name": nil, "arguments": nil}
	partFields   = jsonwire.Known{
		"type": nil, "text": nil, "refusal": nil, "thinking": nil,
		"image_url": {"url": nil, "detail": nil}, "video_url": {"url": nil},
		"input_audio":   {"data": nil, "format": nil},
		"file":          {"filename": nil, "file_data": nil, "file_id": nil},
		"cache_control": {"type": nil, "ttl": nil}, "prompt_cache_breakpoint": {"ttl": nil},
	}
)

func (e *requestEncoder) model() { e.w.StringField("model", e.req.Model) }

func (d *requestDecoder) maxCompletionTokens() {
	if d.req.MaxOutputTokens != nil { // both are set: the newer is used, the older is kept
		extra.Add(&d.req.Extra, name, "", []byte("max_tokens"), number(*d.req.MaxOutputTokens))
	}
	d.req.MaxOutputTokens = ptr(d.r.Integer())
}

func (d *requestDecoder) maxTokens() {
	if d.req.MaxOutputTokens != nil {
		d.keep("max_tokens")
		return
	}
	d.req.MaxOutputTokens = ptr(d.r.Integer())
	d.recordName("max_tokens")
}

// maxTokens writes the limit under the field name that the client used and the target accepts.
func (e *requestEncoder) maxTokens() {
	n := e.req.MaxOutputTokens
	switch {
	case n == nil:
	case e.target.Caps.LegacyMaxTokens || e.usedLegacyName("/max_tokens") && !wirekit.Refuses(e.req, &e.target.Caps, "max_tokens"):
		e.w.IntField("max_tokens", *n)
	default:
		e.w.IntField("max_completion_tokens", *n)
	}
}

func (e *requestEncoder) maxTokensSuperseded(kept []byte) bool {
	return e.req.MaxOutputTokens != nil &&
		(string(kept) == "null" || e.target.Caps.LegacyMaxTokens || wirekit.Refuses(e.req, &e.target.Caps, "max_tokens"))
}

func (d *requestDecoder) effort() {
	if d.req.Reasoning == nil {
		d.req.Reasoning = new(dragoman.ReasoningSettings)
	}
	d.req.Reasoning.Effort = d.r.String()
}

func (d *requestDecoder) streamOptions() {
	r, req := d.r, d.req
	for key := range r.Object() {
		if string(key) == "include_usage" && r.Kind() == 't' {
			req.StreamUsage = r.Bool()
		} else {
			extra.Add(&req.Extra, name, "/stream_options", key, r.Raw())
		}
	}
}

func (e *requestEncoder) streamOptions() {
	w, req := &e.w, e.req
	options := extra.Has(req.Extra, name, "/stream_options") || e.shared.Obfuscation != nil
	if e.target.Caps.NoStreamOptions && (req.StreamUsage || options) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/stream_usage", "the target rejects stream_options")
	} else if req.StreamUsage && req.Stream || options {
		w.Key("stream_options")
		w.BeginObject()
		if req.StreamUsage {
			w.BoolField("include_usage", true)
		}
		if e.shared.Obfuscation != nil {
			w.RawField("include_obfuscation", e.shared.Obfuscation)
		}
		extra.WriteBut(w, req.Extra, name, "/stream_options", func(f dragoman.Field) bool {
			return req.StreamUsage && f.Path == "/stream_options/include_usage"
		})
		w.EndObject()
	}
}

// topK writes top_k, which OpenAI does not have and most compatible servers do. A client of this
// dialect may send it, because it knows its server.
func (e *requestEncoder) topK() {
	k := e.req.Sampling.TopK
	switch {
	case k == nil:
	case e.target.Caps.TopK || e.req.Native != nil && e.req.Native.Dialect == name:
		e.w.IntField("top_k", *k)
	default:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/top_k", "Chat has no top_k")
	}
}

func (d *requestDecoder) stop() {
	r, s := d.r, &d.req.Sampling
	if r.Kind() == '"' {
		s.Stop = []string{r.String()}
		return
	}
	for range r.Array() {
		s.Stop = append(s.Stop, r.String())
	}
}

func (e *requestEncoder) stop() {
	stop := e.req.Sampling.Stop
	if len(stop) == 0 {
		return
	}
	if most := e.limits.MaxStopSequences; len(stop) > most {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences after the first %d are dropped", most)
		stop = stop[:most]
	}
	e.w.Key("stop")
	wirekit.WriteTexts(&e.w, stop)
}

func (d *requestDecoder) serviceTier() {
	raw := d.r.Raw()
	if tier, plain := looseText(raw); plain && wirekit.KnownTier(tier) {
		d.req.ServiceTier = tier
	} else {
		extra.Add(&d.req.Extra, name, "", []byte("service_tier"), raw)
	}
}

func (e *requestEncoder) serviceTier() {
	e.w.StringFieldIf("service_tier", wirekit.OpenAITier(e.req.ServiceTier, e.rep))
}

func (d *requestDecoder) safetyIdentifier() {
	req := d.req
	if req.User != "" { // the older name came first: both are kept
		var w jsonwire.Writer
		w.String(req.User)
		req.Extra.Fields = slices.DeleteFunc(req.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/user" })
		extra.Add(&req.Extra, name, "", []byte("user"), w.Buf)
	}
	req.User = d.r.String()
}

func (d *requestDecoder) user() {
	if d.req.User != "" {
		d.keep("user")
		return
	}
	d.req.User = d.r.String()
	d.recordName("user")
}

// user writes the user under the field name that the client used.
func (e *requestEncoder) user() {
	switch {
	case e.req.User == "":
	case e.usedLegacyName("/user"):
		e.w.StringField("user", e.req.User)
	default:
		e.w.StringField("safety_identifier", wirekit.SafetyIdentifier(e.req.User, e.rep))
	}
}

func (e *requestEncoder) userSuperseded(kept []byte) bool {
	return string(kept) == "null" && e.req.User != ""
}
