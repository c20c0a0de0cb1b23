package anthropic

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

const absent = "the API has no such parameter"

// settings lists the fields of a request, in the order in which they are
// written.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name}, []setting{
	{Field: "model", Canonical: wirekit.Model},
	{Field: "max_tokens", Canonical: wirekit.MaxOutputTokens, Encode: (*requestEncoder).maxTokens},
	{Field: "tools", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).tools},
	{Field: "tool_choice", Canonical: wirekit.ToolChoice, Known: choiceFields, Decode: (*requestDecoder).choice, EncodeOrFail: (*requestEncoder).choice},
	{Field: "system", Canonical: wirekit.Instructions, Known: blockFields, Decode: (*requestDecoder).system, EncodeOrFail: (*requestEncoder).system},
	{Field: "messages", Canonical: wirekit.Messages, Known: jsonwire.Known{"role": nil, "content": blockFields}, Decode: (*requestDecoder).messages, EncodeOrFail: (*requestEncoder).messages},
	{Field: "thinking", Canonical: wirekit.Reasoning, Known: thinkingFields, Decode: (*requestDecoder).thinking, Encode: (*requestEncoder).thinking},
	{Field: "output_config", Fields: []setting{
		{Field: "effort", Canonical: wirekit.Effort, Loose: true, Decode: (*requestDecoder).effort, Encode: (*requestEncoder).effort},
		{Field: "format", Canonical: wirekit.Output, Known: formatFields, Loose: true, Decode: (*requestDecoder).outputFormat, Encode: (*requestEncoder).outputFormat},
	}},
	{Field: "output_format", Known: formatFields, Decode: (*requestDecoder).betaFormat},
	{Field: "temperature", Canonical: wirekit.Temperature, Encode: (*requestEncoder).temperature},
	{Field: "top_p", Canonical: wirekit.TopP, Encode: func(e *requestEncoder) { e.TopP("top_p") }},
	{Field: "top_k", Canonical: wirekit.TopK, Encode: (*requestEncoder).topK},
	{Canonical: wirekit.FrequencyPenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.PresencePenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Seed, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Candidates, Lost: wirekit.LostWarn(absent)},
	{Field: "stop_sequences", Canonical: wirekit.Stop, Encode: (*requestEncoder).stop},
	{Field: "metadata", Fields: []setting{
		{Field: "user_id", Canonical: wirekit.User, Loose: true, Decode: (*requestDecoder).user},
	}},
	{Field: "service_tier", Canonical: wirekit.ServiceTier, Decode: (*requestDecoder).serviceTier, Encode: (*requestEncoder).serviceTier},
	{Field: "cache_control", Canonical: wirekit.Cache, Known: cacheFields, Decode: (*requestDecoder).cache, Encode: (*requestEncoder).cache},
	{Field: "stream", Canonical: wirekit.Stream},
	{Canonical: wirekit.CacheKey, Lost: wirekit.LostInfo("the API caches by breakpoints, not by key")},
	{Canonical: wirekit.Metadata, Lost: wirekit.LostInfo("the API accepts no metadata except the user")},
	{Canonical: wirekit.Verbosity, Lost: wirekit.LostWarn("the API has no verbosity")},
	{Canonical: wirekit.Store, Lost: wirekit.LostInfo("the API stores no responses")},
})

// The known fields of nested values.
var (
	toolFields = jsonwire.Known{
		"type": nil, "name": nil, "description": nil, "input_schema": nil, "strict": nil,
		"defer_loading": nil, "input_examples": nil, "cache_control": cacheFields,
	}
	choiceFields   = jsonwire.Known{"type": nil, "name": nil, "disable_parallel_tool_use": nil}
	thinkingFields = jsonwire.Known{"type": nil, "budget_tokens": nil, "display": nil}
	cacheFields    = jsonwire.Known{"type": nil, "ttl": nil}
	formatFields   = jsonwire.Known{"type": nil, "schema": nil}
	sourceFields   = jsonwire.Known{"type": nil, "media_type": nil, "data": nil, "url": nil, "file_id": nil}
	// blockFields lists the fields of all kinds of blocks.
	blockFields = jsonwire.Known{
		"type": nil, "text": nil, "thinking": nil, "signature": nil, "data": nil, "cache_control": cacheFields,
		"id": nil, "name": nil, "input": nil, "caller": nil, "source": sourceFields, "title": nil,
		"tool_use_id": nil, "is_error": nil,
		"content": {"type": nil, "text": nil, "source": sourceFields, "title": nil, "cache_control": cacheFields},
	}
)

// maxTokens writes the maximum, which the wire requires.
func (e *requestEncoder) maxTokens() {
	n := e.Req.MaxOutputTokens
	if n == nil {
		room := e.RoomForBudget(defaultMaxTokens)
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, "/max_output_tokens", "the API requires max_tokens; %d written", room)
		n = &room
	}
	e.W.IntField("max_tokens", *n)
}

func (d *requestDecoder) tools() { d.Tools("", "tools", "/tools", nil) }

func (e *requestEncoder) tools() error {
	e.ReserveStrict()
	return e.Tools()
}

func (e *requestEncoder) system() error { return e.SystemPrompt() }

func (d *requestDecoder) messages() { d.Conversation(d.message) }

func (e *requestEncoder) messages() error { return e.Messages(nil) }

func (d *requestDecoder) effort() { d.Reasoning().Effort = d.R.String() }

func (e *requestEncoder) effort() { e.W.StringFieldIf("effort", e.Effort()) }

func (d *requestDecoder) outputFormat() {
	if raw := d.R.Raw(); !d.format(raw) {
		d.KeepField("/output_config", "format", raw)
	}
}

// betaFormat reads the beta name of output_config.format.
func (d *requestDecoder) betaFormat() {
	raw := d.R.Raw()
	if !d.format(raw) && d.R.Err() == nil {
		d.KeepField("", "output_format", raw)
	}
}

func (e *requestEncoder) outputFormat() {
	schema := e.Schema()
	if schema == nil {
		return
	}
	w := &e.W
	w.Key("format")
	w.BeginObject()
	w.StringField("type", "json_schema")
	w.RawField("schema", schema)
	extra.Write(w, e.Req.Output.Extra, name, "")
	w.EndObject()
}

// thinks reports whether the model thinks. The API then rejects top_k, any
// temperature except 1, and any top_p below 0.95.
func (e *requestEncoder) thinks() bool {
	typ := e.Thinks()
	return typ != "" && typ != "disabled"
}

func (e *requestEncoder) temperature() { e.Temperature("temperature", e.thinks()) }

func (e *requestEncoder) topK() {
	if n := e.Req.Sampling.TopK; n != nil && !e.RefusesSampler("top_k", e.thinks()) {
		e.W.IntField("top_k", *n)
	}
}

func (e *requestEncoder) stop() {
	stop := e.Req.Sampling.Stop
	if slices.ContainsFunc(stop, blank) {
		stop = slices.DeleteFunc(slices.Clone(stop), blank)
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "blank stop sequences")
	}
	if len(stop) > 0 {
		e.W.Key("stop_sequences")
		wirekit.WriteTexts(&e.W, stop)
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (d *requestDecoder) user() {
	if d.Req.User = d.R.String(); d.Req.User == "" {
		d.KeepField("/metadata", "user_id", []byte(`""`))
	}
}

func (d *requestDecoder) serviceTier() {
	raw := d.R.Raw()
	switch tier := jsonwire.Unquote(raw); tier {
	case "auto", "standard_only":
		d.Req.ServiceTier = tier
	default:
		d.KeepField("", "service_tier", raw)
	}
}

func (e *requestEncoder) serviceTier() {
	tier := e.Req.ServiceTier
	switch tier {
	case "":
		return
	case "auto", "standard_only":
	case "default":
		tier = "standard_only"
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"default" written as "standard_only"`)
	default:
		e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/service_tier", "the API has no service tier %q", tier)
		return
	}
	e.W.StringField("service_tier", tier)
}

func (e *requestEncoder) cache() {
	if e.FinalHint != nil {
		writeCacheControl(&e.W, e.FinalHint, extra.At(""), e.Rep)
	}
}
