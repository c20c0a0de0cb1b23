package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MinThinkingBudget is the smallest thinking budget that Claude accepts.
const MinThinkingBudget = 1024

// RequestEncoder is a request that is being encoded. Dialects embed it.
type RequestEncoder struct {
	Conversation
	W   jsonwire.Writer
	Req *dragoman.Request
	// Toolbox holds the tools that are offered.
	Toolbox Toolbox
	// Breakpoints selects the cache breakpoints to write. FinalHint is the one at the end of the
	// prompt, or nil.
	Breakpoints Breakpoints
	FinalHint   *dragoman.CacheHint
	// topP is the value that Temperature leaves to TopP.
	topP *dragoman.Number
}

// NewRequestEncoder returns an encoder with an empty buffer.
func NewRequestEncoder(c Conversation, req *dragoman.Request) RequestEncoder {
	e := RequestEncoder{Conversation: c, Req: wirekit.FitSettings(req, c.Options.Target.Caps, c.Rep)}
	e.W.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
	return e
}

// Cache selects the cache breakpoints to write. atEnd is the one that the request has at the end
// of its prompt, or nil.
func (e *RequestEncoder) Cache(marker string, atEnd *dragoman.CacheHint) {
	e.Breakpoints = Breakpoints{Marker: marker, Separate: e.WriteCachePoint != nil, None: e.Target.Caps.NoCacheBreakpoints}
	e.FinalHint = e.Breakpoints.AtEnd(atEnd, e.Rep)
	e.Breakpoints.Plan(e.limits.MaxCacheBreakpoints, e.Toolbox.Specs, e.FinalHint != nil, &e.Plan)
}

// EncodeSettings writes a request with the settings table of its dialect, whose lines
// write to e.
func EncodeSettings[D, E any](e *RequestEncoder, settings *wirekit.Settings[D, E], lines E) error {
	to := &wirekit.RequestWriter{W: &e.W, Req: e.Req, Rep: e.Rep, Caps: &e.Target.Caps}
	return settings.Write(lines, to, nil)
}

// Tools writes the list of tools, unless it is empty.
func (e *RequestEncoder) Tools() error {
	if len(e.Toolbox.Specs) == 0 {
		return nil
	}
	mark := len(e.W.Buf)
	e.W.Key("tools")
	e.W.BeginArray()
	if err := e.Toolbox.Write(&e.W, e.Reg, &e.Breakpoints, e.Rep); err != nil {
		return err
	}
	e.W.EndArray()
	if e.Toolbox.Written == 0 {
		e.W.Buf = e.W.Buf[:mark]
	}
	return nil
}

// SystemPrompt writes the system prompt.
func (e *RequestEncoder) SystemPrompt() error {
	if len(e.System) == 0 {
		return nil
	}
	e.W.Key("system")
	e.W.BeginArray()
	if err := e.writeBlocks(&e.W, e.System, &e.Breakpoints); err != nil {
		return err
	}
	e.W.EndArray()
	return nil
}

// Messages writes the messages. mark is a cache point to write after the last one, or
// nil.
func (e *RequestEncoder) Messages(mark *dragoman.CacheHint) error {
	e.W.Key("messages")
	e.W.BeginArray()
	for i := range e.Turns {
		var last *dragoman.CacheHint
		if i == len(e.Turns)-1 {
			last = mark
		}
		if err := e.WriteTurn(&e.W, &e.Turns[i], &e.Breakpoints, last); err != nil {
			return err
		}
	}
	e.W.EndArray()
	return nil
}

// MayForce reports whether the model accepts a forced tool choice with the thinking
// settings that are sent (quirk E4). It never does with a thinking budget.
func (e *RequestEncoder) MayForce() bool {
	typ := e.Thinks()
	switch {
	case e.Target.Caps.ForcedChoice == codes.ForcedNever, typ == "enabled":
		return false
	case e.Target.Caps.ForcedChoice == codes.ForcedWithoutThinking:
		return typ != "adaptive"
	default:
		return true
	}
}

// ChoiceMode returns the mode to write for a tool choice.
func (e *RequestEncoder) ChoiceMode(c *dragoman.ToolChoice) string {
	wirekit.ReportChoice(e.Rep, c, e.Dialect)
	if (c.Mode == dragoman.ChoiceRequired || c.Mode == dragoman.ChoiceTool) && !e.MayForce() {
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the model accepts no forced choice; %s written as auto", c.Mode)
		return dragoman.ChoiceAuto
	}
	return c.Mode
}

// NativeChoice returns the native form of a choice that only its own provider
// understands, or nil.
func (e *RequestEncoder) NativeChoice(c *dragoman.ToolChoice, format dragoman.Format) []byte {
	if c.Native == nil || c.Native.Format != format {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice that only its own provider understands")
		return nil
	}
	return c.Native.JSON
}

// Reasoning returns the settings of the request in the form that the model accepts.
func (e *RequestEncoder) Reasoning() *dragoman.ReasoningSettings {
	return wirekit.Claude(e.Req.Reasoning, e.Target.Caps.ThinkingBudgets)
}

// OwnRequest reports whether the request came from a client of this dialect.
func (e *RequestEncoder) OwnRequest() bool {
	return e.Req.Native != nil && e.Req.Native.Dialect == e.Dialect
}

// ClientSetBudget reports whether a client of this dialect set the thinking budget, instead
// of a conversion from an effort or adaptive thinking.
func (e *RequestEncoder) ClientSetBudget() bool {
	return e.OwnRequest() && e.Req.Reasoning != nil && e.Req.Reasoning.BudgetTokens != nil
}

// Thinks returns Claude's thinking type, or "". A budget must fit below the output
// limit.
func (e *RequestEncoder) Thinks() string {
	most := e.Req.MaxOutputTokens
	return wirekit.ClaudeThinks(e.Reasoning(), most == nil || *most > MinThinkingBudget || e.ClientSetBudget())
}

// ThinkingType is like Thinks, and reports settings that the type does not express.
func (e *RequestEncoder) ThinkingType() string {
	typ := e.Thinks()
	switch s := e.Reasoning(); {
	case s == nil:
	case s.Mode == codes.ReasoningBudget && s.BudgetTokens == nil:
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "a budget without a number written as adaptive")
	case s.Mode == codes.ReasoningBudget && typ == "":
		e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", e.MaxTokens+" leaves no room for the minimum budget of %d", MinThinkingBudget)
	case s.Mode == codes.ReasoningDefault && typ == "disabled":
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort none written as thinking disabled")
	}
	if s := e.Reasoning(); s != nil {
		extra.Report(e.Rep, s.Extra, e.Dialect, extra.At("/reasoning"))
		if typ == "" && s.Summary != "" {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "the thinking display cannot be set without a thinking type")
		}
	}
	return typ
}

// ReportMode reports which reasoning settings are written in another form.
func (e *RequestEncoder) ReportMode() {
	if e.Target.Caps.ThinkingBudgets {
		wirekit.ReportBudget(e.Rep, e.Req.Reasoning)
	}
}

// Thinking writes Claude's thinking settings, without the effort, which is a separate
// field. It also writes the unknown fields of the settings below at.
func (e *RequestEncoder) Thinking(typ, at string) {
	w, s := &e.W, e.Reasoning()
	w.BeginObject()
	w.StringField("type", typ)
	if typ == "enabled" {
		w.IntField("budget_tokens", e.budget(*s.BudgetTokens))
	}
	switch {
	case s.Summary == "":
	case typ == "disabled":
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "there is no thinking to show")
	case s.Summary == "omitted":
		w.StringField("display", "omitted")
	default:
		if s.Summary != "auto" {
			e.Rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/summary", "%q written as summarized", s.Summary)
		}
		w.StringField("display", "summarized")
	}
	extra.Write(w, s.Extra, e.Dialect, at)
	w.EndObject()
}

// budget returns a thinking budget that Claude accepts: at least the minimum, and less
// than the output limit. With interleaved thinking it may be more. A client of this
// dialect may have enabled that in a header, so its own budget is not lowered.
func (e *RequestEncoder) budget(n int64) int64 {
	const at = "/reasoning/budget_tokens"
	if most := e.Req.MaxOutputTokens; most != nil && n >= *most && !e.ClientSetBudget() {
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, at, "a budget of %d lowered below "+e.MaxTokens+", which is %d", n, *most)
		n = *most - 1
	}
	if n < MinThinkingBudget {
		e.Rep.Addf(dragoman.Lowered, dragoman.Info, at, "a budget of %d written as %d, the minimum that "+e.Thinker+" accepts", n, MinThinkingBudget)
		n = MinThinkingBudget
	}
	return n
}

// RoomForBudget returns an output limit that leaves room for a thinking budget, which
// counts against it, and for at least the given number of tokens.
func (e *RequestEncoder) RoomForBudget(least int64) int64 {
	if r := e.Reasoning(); r != nil && r.Mode == codes.ReasoningBudget && r.BudgetTokens != nil {
		least = wirekit.Sum(max(*r.BudgetTokens, MinThinkingBudget), least)
	}
	return max(least, e.Target.Caps.DefaultMaxTokens)
}

// Effort returns the effort to write, or "".
func (e *RequestEncoder) Effort() string {
	s := e.Reasoning()
	if s == nil {
		return ""
	}
	switch s.Effort {
	case "none":
		return "" // written as disabled thinking, or in the mode
	case "minimal":
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort minimal written as low")
		return "low"
	default:
		return s.Effort
	}
}

// Schema returns the output schema to write, or nil. It uses Claude's subset of JSON
// Schema (quirk F3).
func (e *RequestEncoder) Schema() []byte {
	f := e.Req.Output
	if f == nil || f.Kind == codes.OutputText {
		return nil
	}
	extra.Report(e.Rep, f.Extra, e.Dialect, extra.At("/output"))
	if e.Target.Caps.NoStructuredOutput {
		e.Rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target accepts no output format")
		return nil
	}
	if f.Kind != codes.OutputSchema && f.Kind != "" || f.Schema == nil {
		e.Rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "the API has no format %q without a schema; ask for JSON in the prompt", f.Kind)
		return nil
	}
	if !e.SchemaNames && (f.Name != "" || f.Description != "") {
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/output", "name and description of the output schema")
	}
	profile := e.ResponseSchema()
	if f.Dialect == e.Dialect || profile.Fits(f.Schema) {
		return f.Schema
	}
	out, err := wirekit.OutputSchema(f.Schema, profile, e.Reg, e.Rep)
	if err != nil {
		e.Rep.Addf(dragoman.Dropped, dragoman.Serious, "/output/schema", "%v", err)
		return nil
	}
	return out
}

// ReserveStrict counts the output schema among the strict schemas of the request.
func (e *RequestEncoder) ReserveStrict() {
	if f := e.Req.Output; f != nil && !e.Target.Caps.NoStructuredOutput {
		e.Reg.ReserveStrict(f.Schema)
	}
}

// Temperature writes the temperature and determines top_p, which depends on it. While
// the model thinks, it accepts no temperature except 1 and no top_p below 0.95; Gemini
// CLI, for example, sends both.
func (e *RequestEncoder) Temperature(field string, thinks bool) {
	temperature, topP := e.Req.Sampling.Temperature, e.Req.Sampling.TopP
	if temperature != nil && e.RefusesSampler("temperature", thinks && !(wirekit.Float(*temperature) >= 1)) { // a higher value is written as 1
		temperature = nil
	}
	if topP != nil && e.RefusesSampler("top_p", thinks && !(wirekit.Float(*topP) >= 0.95)) {
		topP = nil
	}
	temperature, e.topP = wirekit.FitSampling(e.Target.Caps, temperature, topP, e.Rep)
	if temperature != nil {
		e.W.RawField(field, []byte(*temperature))
	}
}

// TopP writes top_p; call it after Temperature.
func (e *RequestEncoder) TopP(field string) {
	if e.topP != nil {
		e.W.RawField(field, []byte(*e.topP))
	}
}

// RefusesSampler reports whether a sampling parameter is dropped: the model accepts
// none, or not this one while it thinks.
func (e *RequestEncoder) RefusesSampler(key string, whileThinking bool) bool {
	if whileThinking && !e.Target.Caps.NoSampling {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, e.NotWhileThinking)
		return true
	}
	return wirekit.RefusesSampling(e.Target.Caps, key, e.Rep)
}
