package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

// settings lists the fields of a request in camel case, in the order in which
// they are written.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name, Same: jsonwire.Camel}, []setting{
	{Field: "model", Canonical: wirekit.Model, Decode: (*requestDecoder).model, Encode: (*requestEncoder).model, Superseded: always},
	{Canonical: wirekit.Stream, Encode: (*requestEncoder).stream},
	{Field: "systemInstruction", Canonical: wirekit.Instructions, Known: turnFields, Decode: (*requestDecoder).system, EncodeOrFail: (*requestEncoder).systemInstruction},
	{Field: "contents", Canonical: wirekit.Messages, Known: turnFields, Decode: (*requestDecoder).contents, EncodeOrFail: (*requestEncoder).contents},
	{Field: "tools", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).tools},
	{Field: "toolConfig", Canonical: wirekit.ToolChoice, Known: configFields, Decode: (*requestDecoder).toolConfig, EncodeOrFail: (*requestEncoder).toolConfig},
	{Field: "generationConfig", Fields: []setting{
		{Field: "temperature", Canonical: wirekit.Temperature},
		{Field: "topP", Canonical: wirekit.TopP},
		{Field: "frequencyPenalty", Canonical: wirekit.FrequencyPenalty},
		{Field: "presencePenalty", Canonical: wirekit.PresencePenalty},
		{Field: "topK", Canonical: wirekit.TopK},
		{Field: "seed", Canonical: wirekit.Seed},
		{Field: "candidateCount", Canonical: wirekit.Candidates},
		{Field: "maxOutputTokens", Canonical: wirekit.MaxOutputTokens},
		{Field: "stopSequences", Canonical: wirekit.Stop, Decode: (*requestDecoder).stop, Encode: (*requestEncoder).stop},
		{Field: "responseMimeType", Canonical: wirekit.Output, Decode: func(d *requestDecoder) { d.output.mime = d.r.Raw() }, Encode: (*requestEncoder).output},
		{Field: "responseSchema", Decode: func(d *requestDecoder) { d.output.schema = d.r.Raw() }, Encode: (*requestEncoder).closedSchema},
		{Field: "responseJsonSchema", Decode: func(d *requestDecoder) { d.output.jsonSchema = d.r.Raw() }, Encode: (*requestEncoder).openSchema},
		{Field: "thinkingConfig", Canonical: wirekit.Reasoning, Known: thinkingFields, Decode: (*requestDecoder).thinking, Encode: (*requestEncoder).thinking},
	}},
	{Field: "serviceTier", Canonical: wirekit.ServiceTier, Decode: (*requestDecoder).serviceTier, Encode: (*requestEncoder).serviceTier},
	{Field: "store", Canonical: wirekit.Store, Encode: (*requestEncoder).store},
	{Canonical: wirekit.Cache, Lost: wirekit.LostInfo("cache breakpoint: the target caches automatically")},
	{Canonical: wirekit.CacheKey, Lost: wirekit.LostInfo("the API has no cache key")},
	{Canonical: wirekit.Metadata, Lost: wirekit.LostInfo("the API does not accept metadata")},
	{Canonical: wirekit.User, Lost: wirekit.LostInfo("the API does not accept a user")},
	{Canonical: wirekit.Verbosity, Lost: wirekit.LostWarn("the API has no such parameter")},
})

func always(*requestEncoder, []byte) bool { return true }

// The known fields of nested values.
var (
	toolFields = jsonwire.Known{"functionDeclarations": {
		"name": nil, "description": nil, "parameters": nil, "parametersJsonSchema": nil, "response": nil, "responseJsonSchema": nil,
	}}
	configFields   = jsonwire.Known{"functionCallingConfig": {"mode": nil, "allowedFunctionNames": nil}}
	thinkingFields = jsonwire.Known{"includeThoughts": nil, "thinkingBudget": nil, "thinkingLevel": nil}
	mediaFields    = jsonwire.Known{"mimeType": nil, "data": nil, "fileUri": nil, "displayName": nil}
	turnFields     = jsonwire.Known{"role": nil, "parts": {
		"text": nil, "thought": nil, "thoughtSignature": nil, "inlineData": mediaFields, "fileData": mediaFields,
		"functionCall": {"id": nil, "name": nil, "args": nil, "partialArgs": nil, "willContinue": nil},
		"functionResponse": {
			"id": nil, "name": nil, "response": nil, "parts": {"inlineData": mediaFields, "fileData": mediaFields},
		},
		"executableCode": nil, "codeExecutionResult": nil, "toolCall": nil, "toolResponse": nil,
	}}
)

func (d *requestDecoder) model() {
	d.req.Model = d.r.String()
	d.keep("", "model", []byte(`""`)) // records that the body names the model
}

func (e *requestEncoder) stream() {
	if e.req.Stream {
		e.rep.Add(dragoman.Moved, dragoman.Info, "/stream", "streaming is selected in the URL, not in the body")
	}
}

// stop reads a list of stop sequences, or a single one without the list.
func (d *requestDecoder) stop() {
	s := &d.req.Sampling
	for range elements(d.r) {
		s.Stop = append(s.Stop, d.r.String())
	}
	if len(s.Stop) == 0 {
		d.keep(tuningPath, "stopSequences", []byte("[]"))
	}
}

func (e *requestEncoder) stop() {
	stop := e.req.Sampling.Stop
	if most := e.limits.MaxStopSequences; len(stop) > most && !e.fromOwnDialect() {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "the API accepts %d stop sequences", most)
		stop = stop[:most]
	}
	if len(stop) > 0 {
		e.w.Key("stopSequences")
		wirekit.WriteTexts(&e.w, stop)
	}
}

func (d *requestDecoder) serviceTier() {
	raw := d.r.Raw()
	switch tier := jsonwire.Unquote(raw); tier {
	case "standard", "flex", "priority":
		d.req.ServiceTier = tier
	default:
		d.keep("", "serviceTier", raw)
	}
}

func (e *requestEncoder) serviceTier() {
	tier := e.req.ServiceTier
	switch tier {
	case "":
		return
	case "standard", "flex", "priority":
	case "default", "standard_only":
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/service_tier", "%q written as \"standard\"", tier)
		tier = "standard"
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Info, "/service_tier", "service tier %.40q", tier)
		return
	}
	e.w.StringField("serviceTier", tier)
}

// store writes the store field if the request came from this dialect: only one
// of the API's two servers knows it.
func (e *requestEncoder) store() {
	v := e.req.Store
	switch {
	case v == nil:
	case e.fromOwnDialect():
		e.w.BoolField("store", *v)
	case *v:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/store", "storage is configured per project, not per request")
	default:
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/store", "storage is configured per project, not per request")
	}
}
