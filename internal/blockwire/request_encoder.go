package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/schema"
)

// MinThinkingBudget is the least thinking budget that Claude accepts.
const MinThinkingBudget = 1024

// RequestEncoder is a request that is being written. Dialects embed it.
type RequestEncoder struct {
	Conversation
	W   jsonwire.Writer
	Req *dragoman.Request
	// written lists the fields of the request, which unknown fields must not repeat.
	written []string
}

// NewRequestEncoder returns an encoder that has written nothing.
func NewRequestEncoder(c Conversation, req *dragoman.Request) RequestEncoder {
	e := RequestEncoder{Conversation: c, Req: wirekit.Fit(req, c.Options.Target.Caps, c.Rep), written: make([]string, 0, 16)}
	e.W.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
	return e
}

// Key writes the name of a field of the request.
func (e *RequestEncoder) Key(k string) {
	e.Wrote(k)
	e.W.Key(k)
}

// Wrote takes note of a field of the request.
func (e *RequestEncoder) Wrote(k string) { e.written = append(e.written, k) }

// Field writes a field of the request with write, and takes it back if that is
// false.
func (e *RequestEncoder) Field(k string, write func() (keep bool, err error)) error {
	mark, named := len(e.W.Buf), len(e.written)
	e.Key(k)
	keep, err := write()
	if err == nil && !keep {
		e.W.Buf, e.written = e.W.Buf[:mark], e.written[:named]
	}
	return err
}

// Cache settles which cache breakpoints are written. atEnd, which may be nil, is the
// one that the request wants behind its prompt, and ending the one to write there.
func (e *RequestEncoder) Cache(marker string, tools []dragoman.ToolSpec, atEnd *dragoman.CacheHint) (cache Breakpoints, ending *dragoman.CacheHint) {
	cache = Breakpoints{Marker: marker, Apart: e.WriteCachePoint != nil, None: e.Target.Caps.NoCacheBreakpoints}
	ending = cache.AtEnd(atEnd, e.Rep)
	cache.Plan(e.limits.MaxCacheBreakpoints, tools, ending != nil, &e.Plan)
	return cache, ending
}

// Prompt writes the system prompt and the messages. mark, which may be nil, is a
// cache point behind the last message.
func (e *RequestEncoder) Prompt(cache *Breakpoints, mark *dragoman.CacheHint) error {
	w := &e.W
	if len(e.System) > 0 {
		e.Key("system")
		w.BeginArray()
		if err := e.writeBlocks(w, e.System, cache); err != nil {
			return err
		}
		w.EndArray()
	}
	e.Key("messages")
	w.BeginArray()
	for i := range e.Turns {
		var last *dragoman.CacheHint
		if i == len(e.Turns)-1 {
			last = mark
		}
		if err := e.WriteTurn(w, &e.Turns[i], cache, last); err != nil {
			return err
		}
	}
	w.EndArray()
	return nil
}

// Finish reports settings that the dialect has no field for, and writes the unknown
// fields. unsaid says that the request has the setting at path, which only the other
// of these dialects has.
func (e *RequestEncoder) Finish(unsaid bool, path, detail string) {
	e.Unsaid(e.Req.CacheKey != "", dragoman.Info, "/cache_key", "the API caches by breakpoints, not by key")
	e.Unsaid(unsaid, dragoman.Info, path, detail)
	e.Unsaid(e.Req.Verbosity != "", dragoman.Warn, "/verbosity", "the API has no verbosity")
	e.Unsaid(e.Req.Store != nil && *e.Req.Store, dragoman.Info, "/store", "the API stores no responses")
	extra.WriteUnless(&e.W, e.Req.Extra, e.Dialect, func(path string) bool { return slices.Contains(e.written, path[1:]) })
	extra.Report(e.Rep, e.Req.Extra, e.Dialect, extra.At(""))
	e.W.EndObject()
}

// Unsaid reports a setting, if it is set, as dropped.
func (e *RequestEncoder) Unsaid(set bool, sev dragoman.Severity, path, detail string) {
	if set {
		e.Rep.Add(dragoman.Dropped, sev, path, detail)
	}
}

// Strings writes a list of texts.
func (e *RequestEncoder) Strings(list []string) {
	e.W.BeginArray()
	for _, v := range list {
		e.W.String(v)
	}
	e.W.EndArray()
}

// MayForce reports whether the model accepts a forced choice of a tool with the
// thinking that is sent (quirk E4). A thinking budget never goes with one.
func (e *RequestEncoder) MayForce() bool {
	typ := e.Thinks()
	switch {
	case e.Target.Caps.ForcedChoice == dragoman.ForcedNever, typ == "enabled":
		return false
	case e.Target.Caps.ForcedChoice == dragoman.ForcedWithoutThinking:
		return typ != "adaptive"
	default:
		return true
	}
}

// ChoiceMode returns the mode to write for a choice of tools.
func (e *RequestEncoder) ChoiceMode(c *dragoman.ToolChoice) dragoman.ChoiceMode {
	wirekit.ReportChoice(e.Rep, c, e.Dialect)
	if (c.Mode == dragoman.ChoiceRequired || c.Mode == dragoman.ChoiceTool) && !e.MayForce() {
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the model takes no forced choice; %s written as auto", c.Mode)
		return dragoman.ChoiceAuto
	}
	return c.Mode
}

// NativeChoice returns a choice that only its own provider understands, or nil.
func (e *RequestEncoder) NativeChoice(c *dragoman.ToolChoice, format dragoman.Format) []byte {
	if c.Native == nil || c.Native.Format != format {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice only its own provider understands")
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

// OwnBudget reports whether a client of this dialect set the thinking budget, not
// the conversion of an effort or of adaptive thinking.
func (e *RequestEncoder) OwnBudget() bool {
	return e.OwnRequest() && e.Req.Reasoning != nil && e.Req.Reasoning.BudgetTokens != nil
}

// Thinks returns Claude's word for how to think, or "". A budget must fit below the
// bound on the response.
func (e *RequestEncoder) Thinks() string {
	most := e.Req.MaxOutputTokens
	return wirekit.ClaudeThinks(e.Reasoning(), most == nil || *most > MinThinkingBudget || e.OwnBudget())
}

// ThinkingType is Thinks with a report of settings that it does not express.
func (e *RequestEncoder) ThinkingType() string {
	typ := e.Thinks()
	switch s := e.Reasoning(); {
	case s == nil:
	case s.Mode == dragoman.ReasoningBudget && s.BudgetTokens == nil:
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "a budget without a number written as adaptive")
	case s.Mode == dragoman.ReasoningBudget && typ == "":
		e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", e.MaxTokens+" leaves no room for the least budget, %d", MinThinkingBudget)
	case s.Mode == dragoman.ReasoningDefault && typ == "disabled":
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort none written as thinking disabled")
	}
	if s := e.Reasoning(); s != nil {
		extra.Report(e.Rep, s.Extra, e.Dialect, extra.At("/reasoning"))
		if typ == "" && s.Summary != "" {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "how thinking is shown cannot be said without saying how to think")
		}
	}
	return typ
}

// ReportMode reports what of the reasoning settings is written in another form.
func (e *RequestEncoder) ReportMode() {
	wirekit.ReportMode(e.Rep, e.Reasoning())
	if e.Target.Caps.ThinkingBudgets {
		wirekit.ReportBudget(e.Rep, e.Req.Reasoning)
	}
}

// Thinking writes the thinking settings of Claude; effort is a field elsewhere.
// Unknown fields of the settings are those below at.
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

// budget returns a thinking budget that Claude accepts: not too small, and less
// than the bound on the response. With interleaved thinking it may be more; a client
// of this dialect may have set that in a header, so its own budget is not lowered.
func (e *RequestEncoder) budget(n int64) int64 {
	const at = "/reasoning/budget_tokens"
	if most := e.Req.MaxOutputTokens; most != nil && n >= *most && !e.OwnBudget() {
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, at, "a budget of %d lowered below "+e.MaxTokens+", which is %d", n, *most)
		n = *most - 1
	}
	if n < MinThinkingBudget {
		e.Rep.Addf(dragoman.Lowered, dragoman.Info, at, "a budget of %d written as %d, the least "+e.Thinker+" takes", n, MinThinkingBudget)
		n = MinThinkingBudget
	}
	return n
}

// RoomForBudget returns a bound on the response that leaves room for a thinking
// budget, which counts against it, and for at least the given number of tokens.
func (e *RequestEncoder) RoomForBudget(least int64) int64 {
	if r := e.Reasoning(); r != nil && r.Mode == dragoman.ReasoningBudget && r.BudgetTokens != nil {
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
		return "" // written as thinking disabled, or in the mode
	case "minimal":
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort minimal written as low")
		return "low"
	default:
		return s.Effort
	}
}

// Schema returns the output schema to write, or nil. The subset is that of Claude
// (quirk F3).
func (e *RequestEncoder) Schema() []byte {
	f := e.Req.Output
	if f == nil || f.Kind == dragoman.OutputText {
		return nil
	}
	extra.Report(e.Rep, f.Extra, e.Dialect, extra.At("/output"))
	if e.Target.Caps.NoStructuredOutput {
		e.Rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		return nil
	}
	if f.Kind != dragoman.OutputSchema && f.Kind != "" || f.Schema == nil {
		e.Rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "the API has no format %q without a schema; ask for JSON in the prompt", f.Kind)
		return nil
	}
	if !e.SchemaNames && (f.Name != "" || f.Description != "") {
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/output", "name and description of the output schema")
	}
	profile := e.AnswerSchema()
	if f.Dialect == e.Dialect || schema.StrictFits(f.Schema, profile) {
		return f.Schema
	}
	out, err := wirekit.AnswerSchema(f.Schema, profile, e.Reg, e.Rep)
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

// Samplers returns the temperature and the top_p to write. While the model thinks
// it accepts no temperature but 1 and no top_p below 0.95; Gemini CLI, for one, sends
// both.
func (e *RequestEncoder) Samplers(thinks bool) (temperature, topP *dragoman.Number) {
	temperature, topP = e.Req.Sampling.Temperature, e.Req.Sampling.TopP
	if temperature != nil && e.RefusesSampler("temperature", thinks && !(wirekit.Float(*temperature) >= 1)) { // more is written as 1
		temperature = nil
	}
	if topP != nil && e.RefusesSampler("top_p", thinks && !(wirekit.Float(*topP) >= 0.95)) {
		topP = nil
	}
	return wirekit.Samplers(e.Target.Caps, temperature, topP, e.Rep)
}

// RefusesSampler reports whether a sampling parameter is not written: the model
// accepts none, or not this one while it thinks.
func (e *RequestEncoder) RefusesSampler(key string, whileThinking bool) bool {
	if whileThinking && !e.Target.Caps.NoSampling {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, e.NotWhileThinking)
		return true
	}
	return wirekit.RefusesSampling(e.Target.Caps, key, e.Rep)
}

// UnsaidSampling reports the sampling parameters that these dialects do not have.
func (e *RequestEncoder) UnsaidSampling() {
	s := &e.Req.Sampling
	drop := func(key string, set bool) {
		e.Unsaid(set, dragoman.Warn, "/sampling/"+key, "the API has no such parameter")
	}
	drop("frequency_penalty", s.FrequencyPenalty != nil)
	drop("presence_penalty", s.PresencePenalty != nil)
	drop("seed", s.Seed != nil)
	drop("candidates", s.Candidates != nil && *s.Candidates != 1)
}
