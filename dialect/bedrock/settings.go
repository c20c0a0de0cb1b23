package bedrock

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

const absent = "the API has no such parameter"

// settings lists the fields of a request, in the order in which they are
// written. The model and streaming are in the URL; clients may also send the
// model in the body.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name}, []setting{
	{Field: "modelId", Decode: func(d *requestDecoder) { d.model("modelId") }},
	{Field: "model", Decode: func(d *requestDecoder) { d.model("model") }},
	{Field: "toolConfig", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).toolConfig, EncodeOrFail: (*requestEncoder).toolConfig},
	{Field: "system", Canonical: wirekit.Instructions, Known: blockFields, Decode: (*requestDecoder).system, EncodeOrFail: (*requestEncoder).system},
	{Field: "messages", Canonical: wirekit.Messages, Known: jsonwire.Known{"role": nil, "content": blockFields}, Decode: (*requestDecoder).messages, EncodeOrFail: (*requestEncoder).messages},
	{Field: "inferenceConfig", Loose: true, Fields: []setting{
		{Field: "maxTokens", Canonical: wirekit.MaxOutputTokens, Encode: (*requestEncoder).maxTokens},
		{Field: "temperature", Canonical: wirekit.Temperature, Encode: (*requestEncoder).temperature},
		{Field: "topP", Canonical: wirekit.TopP, Encode: func(e *requestEncoder) { e.TopP("topP") }},
		{Field: "stopSequences", Canonical: wirekit.Stop, Encode: (*requestEncoder).stop},
	}},
	{Canonical: wirekit.TopK, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.FrequencyPenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.PresencePenalty, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Seed, Lost: wirekit.LostWarn(absent)},
	{Canonical: wirekit.Candidates, Lost: wirekit.LostWarn(absent)},
	{Field: "outputConfig", Loose: true, Fields: []setting{
		{Field: "effort", Canonical: wirekit.Effort, Loose: true, Decode: (*requestDecoder).effort, Encode: (*requestEncoder).writeEffort},
		{Field: "textFormat", Canonical: wirekit.Output, Known: formatFields, Loose: true, Decode: (*requestDecoder).textFormat, Encode: (*requestEncoder).textFormat},
	}},
	{Field: "additionalModelRequestFields", Canonical: wirekit.Reasoning, Known: modelFields, Decode: (*requestDecoder).modelFields, Encode: (*requestEncoder).modelFields},
	{Canonical: wirekit.Stop, Encode: (*requestEncoder).responseFieldPaths},
	{Field: "requestMetadata", Canonical: wirekit.Metadata, Encode: (*requestEncoder).metadata},
	{Field: "serviceTier", Canonical: wirekit.ServiceTier, Known: jsonwire.Known{"type": nil}, Decode: (*requestDecoder).tier, Encode: (*requestEncoder).tier},
	{Canonical: wirekit.CacheKey, Lost: wirekit.LostInfo("the API caches by breakpoints, not by key")},
	{Canonical: wirekit.User, Lost: wirekit.LostInfo("the API does not accept a user")},
	{Canonical: wirekit.Verbosity, Lost: wirekit.LostWarn("the API has no verbosity")},
	{Canonical: wirekit.Store, Lost: wirekit.LostInfo("the API stores no responses")},
})

// The known fields of nested values.
var (
	toolFields = jsonwire.Known{
		"tools": {
			"toolSpec":   {"name": nil, "description": nil, "inputSchema": {"json": nil}, "strict": nil},
			"systemTool": {"name": nil}, "cachePoint": cacheFields,
		},
		"toolChoice": {"auto": nil, "any": nil, "tool": {"name": nil}},
	}
	formatFields = jsonwire.Known{"type": nil, "structure": {"jsonSchema": {"schema": nil, "name": nil, "description": nil}}}
	modelFields  = jsonwire.Known{"thinking": {"type": nil, "budget_tokens": nil, "display": nil}}
	cacheFields  = jsonwire.Known{"type": nil, "ttl": nil}
	mediaFields  = jsonwire.Known{
		"format": nil, "name": nil, "source": {"bytes": nil, "text": nil, "s3Location": {"uri": nil}},
	}
	// blockFields lists the fields of all kinds of blocks.
	blockFields = jsonwire.Known{
		"text": nil, "image": mediaFields, "document": mediaFields, "video": mediaFields, "audio": mediaFields,
		keyCall: {"toolUseId": nil, "name": nil, "input": nil, "type": nil},
		keyResult: {
			"toolUseId": nil, "status": nil,
			"content": {
				"text": nil, "json": nil, "image": mediaFields, "document": mediaFields, "video": mediaFields, "audio": mediaFields,
			},
		},
		keyReasoning: {"reasoningText": {"text": nil, "signature": nil}, "redactedContent": nil},
		keyCache:     cacheFields, "citationsContent": {"content": {"text": nil}, "citations": nil},
		"guardContent": nil, "searchResult": nil, "toolAddition": nil, "toolRemoval": nil,
	}
)

func (d *requestDecoder) toolConfig() { d.object("toolConfig", d.toolField) }

func (e *requestEncoder) system() error { return e.SystemPrompt() }

func (d *requestDecoder) messages() { d.Conversation(d.message) }

func (e *requestEncoder) messages() error { return e.Messages(e.FinalHint) }

// maxTokens writes the output limit. A request with a thinking budget but no
// limit gets one: thinking counts against the limit, and the Converse default
// is lower than most budgets, which the model refuses.
func (e *requestEncoder) maxTokens() {
	switch n := e.Req.MaxOutputTokens; {
	case n != nil:
		e.W.IntField("maxTokens", *n)
	case e.Thinks() == "enabled" && !e.ClientSetBudget():
		room := e.RoomForBudget(defaultMaxTokens)
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, "/max_output_tokens", "maxTokens must exceed the thinking budget: %d written", room)
		e.W.IntField("maxTokens", room)
	}
}

func (e *requestEncoder) temperature() {
	typ := e.Thinks()
	e.Temperature("temperature", typ == "adaptive" && !e.OwnRequest() || typ == "enabled" && !e.ClientSetBudget())
}

// stop writes the stop sequences. Empty ones are dropped.
func (e *requestEncoder) stop() {
	stop := e.Req.Sampling.Stop
	empty := func(s string) bool { return s == "" }
	if slices.ContainsFunc(stop, empty) {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "empty stop sequences")
		stop = slices.DeleteFunc(slices.Clone(stop), empty)
	}
	if len(stop) > 0 {
		e.W.Key("stopSequences")
		wirekit.WriteTexts(&e.W, stop)
	}
}

func (d *requestDecoder) effort() {
	if effort := d.R.String(); effort != "" {
		d.Reasoning().Effort = effort
		return
	}
	d.KeepField("/outputConfig", "effort", []byte(`""`))
}

func (e *requestEncoder) writeEffort() {
	if e.Reasoning() != nil {
		e.ReportMode()
	}
	e.W.StringFieldIf("effort", e.Effort())
}

func (d *requestDecoder) textFormat() {
	raw := d.R.Raw()
	if d.R.Err() == nil && !d.format(raw) {
		d.KeepField("/outputConfig", "textFormat", raw)
	}
}

func (d *requestDecoder) modelFields() { d.object("additionalModelRequestFields", d.modelField) }

// responseFieldPaths asks the model to return the matched stop sequence, unless the
// client asks for its own fields: the API returns it among the fields of the
// model.
func (e *requestEncoder) responseFieldPaths() {
	const field = "additionalModelResponseFieldPaths"
	stops := slices.ContainsFunc(e.Req.Sampling.Stop, func(s string) bool { return s != "" })
	if _, kept := extra.Get(e.Req.Extra, name, "/"+field); stops && !kept {
		e.W.RawField(field, []byte(`["/stop_sequence"]`))
	}
}
