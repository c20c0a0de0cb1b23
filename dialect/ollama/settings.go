package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type setting = wirekit.Setting[*requestDecoder, *requestEncoder]

// settings are the fields of a request, in the order in which they are written. The server is
// written in Go and ignores the case of field names.
var settings = wirekit.NewSettings(wirekit.SettingsOf{Dialect: name, KeepUnset: true}, []setting{
	{Field: "model", Canonical: wirekit.Model, Encode: (*requestEncoder).model, Superseded: always},
	{Field: "messages", Canonical: wirekit.Messages, Known: messageFields, Null: true, Decode: (*requestDecoder).messages, EncodeOrFail: (*requestEncoder).conversation},
	{Field: "tools", Canonical: wirekit.Tools, Known: toolFields, Decode: (*requestDecoder).tools, EncodeOrFail: (*requestEncoder).tools},
	{Canonical: wirekit.ParallelToolCalls, Encode: (*requestEncoder).parallel},
	{Field: "format", Canonical: wirekit.Output, Decode: (*requestDecoder).format, Encode: (*requestEncoder).output},
	{Field: "stream", Canonical: wirekit.Stream, Null: true, Decode: (*requestDecoder).stream, Encode: (*requestEncoder).stream},
	{Field: "think", Canonical: wirekit.Reasoning, Decode: (*requestDecoder).think, Encode: (*requestEncoder).think},
	{Canonical: wirekit.Candidates, Encode: (*requestEncoder).candidates},
	{Field: "options", Superseded: (*requestEncoder).optionsSuperseded, Fields: []setting{
		{Field: "temperature", Canonical: wirekit.Temperature},
		{Field: "top_p", Canonical: wirekit.TopP},
		{Field: "top_k", Canonical: wirekit.TopK},
		{Field: "frequency_penalty", Canonical: wirekit.FrequencyPenalty},
		{Field: "presence_penalty", Canonical: wirekit.PresencePenalty},
		{Field: "seed", Canonical: wirekit.Seed},
		{Field: "num_predict", Canonical: wirekit.MaxOutputTokens, Decode: (*requestDecoder).numPredict},
		{Field: "stop", Canonical: wirekit.Stop, Decode: (*requestDecoder).stop},
	}},
	{Canonical: wirekit.Cache, Lost: wirekit.LostInfo("cache breakpoint at the end of the prompt: Ollama caches automatically")},
	{Canonical: wirekit.CacheKey, Lost: wirekit.LostInfo("Ollama has no cache key")},
	{Canonical: wirekit.Metadata, Lost: wirekit.LostInfo("Ollama does not accept metadata")},
	{Canonical: wirekit.User, Lost: wirekit.LostInfo("Ollama has no user ids")},
	{Canonical: wirekit.ServiceTier, Lost: wirekit.LostInfo("Ollama has no service tiers")},
	{Canonical: wirekit.Verbosity, Lost: wirekit.LostWarn("Ollama has no verbosity setting")},
	{Canonical: wirekit.Store, Lost: wirekit.LostWarn("Ollama does not store responses")},
})

func always(*requestEncoder, []byte) bool { return true }

// The known fields of nested values.
var (
	messageFields = jsonwire.Known{
		"role": nil, "content": nil, "thinking": nil, "images": nil, "tool_name": nil, "tool_call_id": nil,
		"tool_calls": {"id": nil, "type": nil, "function": {"name": nil, "arguments": nil}},
	}
	toolFields = jsonwire.Known{"type": nil, "function": {"name": nil, "description": nil, "parameters": nil}}
)

func (e *requestEncoder) model() { e.w.StringField("model", e.req.Model) }

// stream reads the stream flag; null means the default, which is true.
func (d *requestDecoder) stream() { d.req.Stream = d.r.Null() || d.r.Bool() }

// stream always writes the flag, because the default of this wire is to stream.
func (e *requestEncoder) stream() { e.w.BoolField("stream", e.req.Stream) }

// numPredict reads the limit of output tokens. A negative value means no limit.
func (d *requestDecoder) numPredict() {
	raw := d.r.Raw()
	in := jsonwire.NewReader(raw)
	switch n := in.Integer(); {
	case in.Err() != nil:
		d.lists.Fail(d.r, extra.At("/options/num_predict"), raw, in.Err())
	case n >= 0:
		d.req.MaxOutputTokens = &n
	default:
		extra.Add(&d.req.Extra, name, "/options", []byte("num_predict"), raw)
	}
}

// stop reads one stop sequence or a list of them.
func (d *requestDecoder) stop() {
	r, s := d.r, &d.req.Sampling
	if r.Kind() == '"' {
		s.Stop = []string{r.String()}
		return
	}
	for range r.Array() {
		s.Stop = append(s.Stop, r.String())
	}
	if len(s.Stop) == 0 {
		extra.Add(&d.req.Extra, name, "/options", []byte("stop"), []byte("[]"))
	}
}

func (e *requestEncoder) candidates() {
	if n := e.req.Sampling.Candidates; n != nil && *n != 1 {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/candidates", "Ollama returns one candidate, not %d", *n)
	}
}

// optionsSuperseded reports whether there is an option to write, so that a stored empty object is
// omitted.
func (e *requestEncoder) optionsSuperseded([]byte) bool {
	req, s := e.req, &e.req.Sampling
	return req.MaxOutputTokens != nil || len(s.Stop) > 0 || s.Seed != nil || s.TopK != nil || s.Temperature != nil || s.TopP != nil ||
		s.FrequencyPenalty != nil || s.PresencePenalty != nil || extra.Has(req.Extra, name, "/options")
}

// parallel reports the loss of the parallel flag. The loss of the value true is minor, because
// true is the default.
func (e *requestEncoder) parallel() {
	p := e.req.ParallelToolCalls
	if p == nil {
		return
	}
	severity := dragoman.Info
	if !*p {
		severity = dragoman.Warn
	}
	e.rep.Add(dragoman.Dropped, severity, "/parallel_tool_calls", "Ollama has no parallel flag; a model may call several tools at once")
}
