package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

const absent = "Responses has no such parameter"

// settings are the fields of a request, in the order in which they are written.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name}, []setting{
	{Field: "model", Canonical: wirekit.Model},
	{Field: "instructions", Canonical: wirekit.Instructions, Decode: (*requestDecoder).instructions, Encode: (*requestEncoder).instructions},
	{Field: "input", Canonical: wirekit.Messages, Known: itemFields, Decode: (*requestDecoder).input, EncodeOrFail: (*requestEncoder).input},
	{Field: "tools", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).writeTools, Superseded: (*requestEncoder).toolsSuperseded},
	{Field: "tool_choice", Canonical: wirekit.ToolChoice, Known: choiceFields, Decode: (*requestDecoder).toolChoice, EncodeOrFail: (*requestEncoder).choice},
	{Field: "parallel_tool_calls", Canonical: wirekit.ParallelToolCalls, Encode: (*requestEncoder).parallel},
	{Field: "text", Fields: []setting{
		{Field: "format", Canonical: wirekit.Output, Known: formatFields, Loose: true, Decode: (*requestDecoder).format, Encode: (*requestEncoder).format},
		{Field: "verbosity", Canonical: wirekit.Verbosity, Loose: true},
	}},
	{Field: "reasoning", Canonical: wirekit.Reasoning, Known: jsonwire.Known{"effort": nil, "summary": nil}, Decode: (*requestDecoder).reasoningSettings, Encode: (*requestEncoder).reasoningSettings},
	{Field: "include", Decode: (*requestDecoder).include, Encode: (*requestEncoder).include},
	{Field: "max_output_tokens", Canonical: wirekit.MaxOutputTokens, Encode: (*requestEncoder).maxTokens},
	{Field: "temperature", Canonical: wirekit.Temperature},
	{Field: "top_p", Canonical: wirekit.TopP},
	{Canonical: wirekit.TopK, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.FrequencyPenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.PresencePenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Seed, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Stop, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Candidates, Encode: (*requestEncoder).candidates},
	{Field: "store", Canonical: wirekit.Store, Encode: (*requestEncoder).store},
	{Field: "previous_response_id", Canonical: wirekit.PreviousResponseID},
	{Field: "metadata", Canonical: wirekit.Metadata},
	{Field: "user", Decode: (*requestDecoder).user, Encode: (*requestEncoder).user},
	{Field: "safety_identifier", Canonical: wirekit.User, Decode: (*requestDecoder).safetyIdentifier, Encode: (*requestEncoder).safetyIdentifier},
	{Field: "prompt_cache_key", Canonical: wirekit.CacheKey},
	{Field: "service_tier", Canonical: wirekit.ServiceTier, Decode: (*requestDecoder).serviceTier, Encode: (*requestEncoder).serviceTier},
	{Field: "stream", Canonical: wirekit.Stream},
	{Canonical: wirekit.Cache, Lost: wirekit.LostInfo("cache breakpoint at the end of the prompt: the target caches automatically")},
})

// The known fields of nested values.
var (
	choiceFields = jsonwire.Known{"type": nil, "name": nil, "mode": nil, "tools": {"type": nil, "name": nil}}
	formatFields = jsonwire.Known{"type": nil, "name": nil, "description": nil, "schema": nil, "strict": nil}
	toolFields   = jsonwire.Known{
		"type": nil, "name": nil, "description": nil, "parameters": nil, "strict": nil, "format": grammar,
		"defer_loading": nil, "output_schema": nil,
		"tools": {
			"type": nil, "name": nil, "description": nil, "parameters": nil, "strict": nil, "format": grammar,
			"defer_loading": nil, "output_schema": nil,
		},
	}
	itemFields = jsonwire.Known{
		"type": nil, "id": nil, "call_id": nil, "name": nil, "namespace": nil, "arguments": nil, "input": nil,
		"status": nil, "role": nil, "phase": nil, "encrypted_content": nil, "async": nil, "caller": nil,
		"approval_request_id": nil, "execution": nil, "summary": contentFields, "content": contentFields, "output": contentFields,
	}
	grammar = jsonwire.Known{
		"type": nil, "syntax": nil, "definition": nil, "grammar": {"syntax": nil, "definition": nil},
	}
	contentFields = jsonwire.Known{
		"type": nil, "text": nil, "refusal": nil, "image_url": nil, "file_data": nil, "file_url": nil, "file_id": nil,
		"filename": nil, "detail": nil, "prompt_cache_breakpoint": {"ttl": nil},
	}
)

func (d *requestDecoder) instructions() {
	if d.r.Kind() != '"' {
		d.keep("instructions", d.r.Raw())
		return
	}
	d.req.Instructions = []dragoman.Part{&dragoman.Text{Text: d.r.String()}}
}

func (d *requestDecoder) toolChoice() {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	c, err := d.choice(raw)
	if err != nil {
		d.err = jsonwire.PlaceAt("/tool_choice", d.r.Offset()-int64(len(raw)), err)
	}
	d.req.ToolChoice = c
}

// minOutputTokens is the smallest limit that the API accepts.
const minOutputTokens = 16

func (e *requestEncoder) maxTokens() {
	n := e.req.MaxOutputTokens
	if n == nil {
		return
	}
	tokens := *n
	if tokens < minOutputTokens && !e.native {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/max_output_tokens", "%d is written as %d, the minimum of the API", tokens, minOutputTokens)
		tokens = minOutputTokens
	}
	e.w.IntField("max_output_tokens", tokens)
}

func (e *requestEncoder) candidates() {
	if n := e.req.Sampling.Candidates; n != nil && *n > 1 {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/candidates", absent)
	}
}

// store writes whether the server stores the response. By default this API stores it and other
// APIs do not, so a request from another dialect gets an explicit false.
func (e *requestEncoder) store() {
	switch {
	case e.req.Store != nil:
		e.w.BoolField("store", *e.req.Store)
	case !e.native && !hasOwnField(e.req.Extra, "/store"):
		e.rep.Add(dragoman.Synthesized, dragoman.Info, "/store", "false is sent explicitly, because Responses stores by default")
		e.w.BoolField("store", false)
	}
}

// legacyUserMarker is stored for a user that was sent as "user", the older name of
// "safety_identifier", so that the same field is written back.
const legacyUserMarker = `""`

func (d *requestDecoder) safetyIdentifier() {
	if d.req.User != "" { // the older name came first: both are kept
		var w jsonwire.Writer
		w.String(d.req.User)
		d.keep("user", w.Buf)
	}
	d.req.User = d.r.String()
}

func (d *requestDecoder) user() {
	if d.req.User != "" {
		d.keep("user", d.r.Raw())
		return
	}
	d.req.User = d.r.String()
	d.keep("user", []byte(legacyUserMarker))
}

func (e *requestEncoder) user() {
	if e.usesLegacyUser() {
		e.w.StringFieldIf("user", e.req.User)
	}
}

func (e *requestEncoder) safetyIdentifier() {
	if !e.usesLegacyUser() {
		e.w.StringFieldIf("safety_identifier", wirekit.SafetyIdentifier(e.req.User, e.rep))
	}
}

// usesLegacyUser reports whether the client sent the user as "user".
func (e *requestEncoder) usesLegacyUser() bool {
	v, ok := extra.Get(e.req.Extra, name, "/user")
	return ok && string(v) == legacyUserMarker
}

func (d *requestDecoder) serviceTier() {
	raw := d.r.Raw()
	if tier := jsonwire.NewReader(raw); tier.Kind() == '"' {
		d.req.ServiceTier = tier.String()
	}
	if !wirekit.KnownTier(d.req.ServiceTier) {
		d.req.ServiceTier = ""
		d.keep("service_tier", raw)
	}
}

func (e *requestEncoder) serviceTier() {
	e.w.StringFieldIf("service_tier", wirekit.OpenAITier(e.req.ServiceTier, e.rep))
}
