package anthropic

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
)

// EncodeRequest implements [dialect.Codec]. A request that came from this
// dialect and was not changed is written byte for byte, with at most another
// model; so is every tool and every message that was not changed, but that a
// string of content becomes a block. Where messages are merged, so is each of
// their blocks.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			conversation: newConversation(reg, limits, o, rep),
			req:          wirekit.Fit(req, o.Target.Caps, rep),
			written:      make([]string, 0, 16),
		}
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		return &e.w, e.encode()
	})
}

type requestEncoder struct {
	conversation
	w   jsonwire.Writer
	req *dragoman.Request
	// written lists the top-level members, which extras must not repeat.
	written []string
}

// key writes the name of a top-level member.
func (e *requestEncoder) key(k string) {
	e.written = append(e.written, k)
	e.w.Key(k)
}

func (e *requestEncoder) encode() error {
	w, req := &e.w, e.req
	e.arrange(req)
	tools, err := e.offered()
	if err != nil {
		return err
	}
	cache := blockwire.Breakpoints{Marker: "cache_control", None: e.target.Caps.NoCacheBreakpoints}
	ending := cache.AtEnd(req.Cache, e.rep)
	cache.Plan(e.limits.MaxCacheBreakpoints, tools.Specs, ending != nil, &e.Plan)

	w.BeginObject()
	if model := req.Model; model != "" {
		e.key("model")
		w.String(model)
	}
	e.maxTokens()
	if f := req.Output; f != nil && !e.target.Caps.NoStructuredOutput {
		e.reg.ReserveStrict(f.Schema)
	}
	if err := e.tools(&tools, &cache); err != nil {
		return err
	}
	if err := e.choice(&tools); err != nil {
		return err
	}
	if len(e.System) > 0 {
		e.key("system")
		w.BeginArray()
		for i := range e.System {
			if err := e.writeBlock(w, &e.System[i], &cache); err != nil {
				return err
			}
		}
		w.EndArray()
	}
	e.key("messages")
	w.BeginArray()
	for i := range e.Turns {
		if err := e.write(w, &e.Turns[i], &cache); err != nil {
			return err
		}
	}
	w.EndArray()
	e.thinking()
	e.outputConfig()
	e.sampling()
	e.identity()
	if ending != nil {
		e.written = append(e.written, "cache_control")
		writeCacheControl(w, ending, extra.At(""), e.rep)
	}
	if req.Stream {
		e.key("stream")
		w.Bool(true)
	}
	e.unsaidSettings()
	writeExtras(w, req.Extra, func(path string) bool { return slices.Contains(e.written, path[1:]) })
	extra.Report(e.rep, req.Extra, name, extra.At(""))
	w.EndObject()
	return nil
}

// maxTokens writes the bound that the wire demands.
func (e *requestEncoder) maxTokens() {
	n := int64(defaultMaxTokens)
	if e.req.MaxOutputTokens != nil {
		n = *e.req.MaxOutputTokens
	} else {
		if r := e.reasoning(); r != nil && r.Mode == dragoman.ReasoningBudget && r.BudgetTokens != nil {
			n = wirekit.Sum(max(*r.BudgetTokens, minThinkingBudget), n) // thinking counts against it
		}
		n = max(n, e.target.Caps.DefaultMaxTokens)
		e.rep.Addf(dragoman.Synthesized, dragoman.Info, "/max_output_tokens", "the API requires max_tokens; %d written", n)
	}
	e.key("max_tokens")
	e.w.Int(n)
}

// offered narrows the tools where the choice allows only some: this wire has
// no allowed_tools (quirk E9).
func (e *requestEncoder) offered() (blockwire.Toolbox, error) {
	t := blockwire.Toolbox{API: "anthropic", Specs: e.req.Tools}
	if err := wirekit.CheckTools("anthropic", e.req, e.target.Caps); err != nil {
		return t, err
	}
	c := e.req.ToolChoice
	if c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceRequired {
		return t, nil
	}
	t.Allow(c.Tools, len(e.req.Tools), e.rep)
	return t, nil
}

// tools writes the definitions and takes note of those that got lost.
func (e *requestEncoder) tools(t *blockwire.Toolbox, cache *blockwire.Breakpoints) error {
	if len(t.Specs) == 0 {
		return nil
	}
	mark, named := len(e.w.Buf), len(e.written)
	e.key("tools")
	e.w.BeginArray()
	if err := t.Write(&e.w, e.reg, cache, e.rep); err != nil {
		return err
	}
	e.w.EndArray()
	if t.Written == 0 {
		e.w.Buf, e.written = e.w.Buf[:mark], e.written[:named]
	}
	return nil
}

// choice writes the tool choice with the parallel flag inside it, both only
// beside tools (quirks E3, E6).
func (e *requestEncoder) choice(t *blockwire.Toolbox) error {
	c, parallel := e.req.ToolChoice, e.req.ParallelToolCalls
	if err := t.Check(c); err != nil {
		return err
	}
	if err := wirekit.AllowsNone("anthropic", e.req, t.Holds); err != nil {
		return err
	}
	if t.Written == 0 {
		if c != nil && c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceNone {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		if parallel != nil {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain")
		}
		return nil
	}
	if parallel != nil && e.target.Caps.NoParallelFlag {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the target rejects the flag")
		parallel = nil
	}
	if c == nil {
		if parallel == nil || *parallel {
			return nil // several calls at once are the API's default
		}
		c = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}
	}
	wirekit.ReportChoice(e.rep, c, name)
	mode := c.Mode
	if (mode == dragoman.ChoiceRequired || mode == dragoman.ChoiceTool) && !e.mayForce() {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the model takes no forced choice; %s written as auto", mode)
		mode = dragoman.ChoiceAuto
	}
	w := &e.w
	if mode == dragoman.ChoiceOpaque {
		if c.Native == nil || c.Native.Format != formatChoice {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice only its own provider understands")
			return nil
		}
		e.key("tool_choice")
		w.Raw(c.Native.JSON)
		return nil
	}
	e.key("tool_choice")
	w.BeginObject()
	switch mode {
	case dragoman.ChoiceRequired:
		w.StringField("type", "any")
	case dragoman.ChoiceNone:
		w.StringField("type", "none")
	case dragoman.ChoiceTool:
		w.StringField("type", "tool")
		w.StringField("name", e.reg.WireName(c.Tools[0].Namespace, c.Tools[0].Name))
	default:
		w.StringField("type", "auto")
	}
	switch {
	case parallel == nil:
	case mode == dragoman.ChoiceNone:
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no call may be made, and the flag is illegal beside none")
	default:
		w.BoolField("disable_parallel_tool_use", !*parallel)
	}
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	return nil
}

// mayForce reports whether the model takes a forced choice beside the thinking
// that is sent (quirk E4). A thinking budget never goes with one.
func (e *requestEncoder) mayForce() bool {
	typ := e.thinks()
	switch {
	case e.target.Caps.ForcedChoice == dragoman.ForcedNever, typ == "enabled":
		return false
	case e.target.Caps.ForcedChoice == dragoman.ForcedWithoutThinking:
		return typ != "adaptive"
	default:
		return true
	}
}

// reasoning are the settings of the request, as the model takes them.
func (e *requestEncoder) reasoning() *dragoman.ReasoningSettings {
	return wirekit.Claude(e.req.Reasoning, e.target.Caps.ThinkingBudgets)
}

// budget returns a thinking budget that the API accepts: not too small, and less than
// max_tokens. With interleaved thinking it may be more; an Anthropic client may have
// set that in a header, so its own budget is not lowered.
func (e *requestEncoder) budget(n int64) int64 {
	const at = "/reasoning/budget_tokens"
	if most := e.req.MaxOutputTokens; most != nil && n >= *most && !e.ownBudget() {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, at, "a budget of %d lowered below max_tokens, which is %d", n, *most)
		n = *most - 1
	}
	if n < minThinkingBudget {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, at, "a budget of %d written as %d, the least the API takes", n, minThinkingBudget)
		n = minThinkingBudget
	}
	return n
}

// own reports whether the request came from a client of this dialect.
func (e *requestEncoder) own() bool { return e.req.Native != nil && e.req.Native.Dialect == name }

// ownBudget reports whether an Anthropic client set the budget, not the conversion of an
// effort or of adaptive thinking.
func (e *requestEncoder) ownBudget() bool {
	return e.own() && e.req.Reasoning != nil && e.req.Reasoning.BudgetTokens != nil
}

// roomToThink reports whether any budget fits below max_tokens.
func (e *requestEncoder) roomToThink() bool {
	most := e.req.MaxOutputTokens
	return most == nil || *most > minThinkingBudget || e.ownBudget()
}

// thinks is the API's word for how to think; empty for none.
func (e *requestEncoder) thinks() string { return wirekit.ClaudeThinks(e.reasoning(), e.roomToThink()) }

// thinking writes the thinking settings; effort has a place of its own.
func (e *requestEncoder) thinking() {
	s := e.reasoning()
	if s == nil {
		return
	}
	wirekit.ReportMode(e.rep, s)
	if e.target.Caps.ThinkingBudgets {
		wirekit.ReportBudget(e.rep, e.req.Reasoning)
	}
	typ := e.thinks()
	switch {
	case s.Mode == dragoman.ReasoningBudget && s.BudgetTokens == nil:
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "a budget without a number written as adaptive")
	case s.Mode == dragoman.ReasoningBudget && typ == "":
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "max_tokens leaves no room for the least budget, %d", minThinkingBudget)
	case s.Mode == dragoman.ReasoningDefault && typ == "disabled":
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort none written as thinking disabled")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
	if typ == "" {
		if s.Summary != "" {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "how thinking is shown cannot be said without saying how to think")
		}
		return
	}
	w := &e.w
	e.key("thinking")
	w.BeginObject()
	w.StringField("type", typ)
	if typ == "enabled" {
		w.IntField("budget_tokens", e.budget(*s.BudgetTokens))
	}
	switch {
	case s.Summary == "":
	case typ == "disabled":
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "there is no thinking to show")
	case s.Summary == "omitted":
		w.StringField("display", "omitted")
	default:
		if s.Summary != "auto" {
			e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/summary", "%q written as summarized", s.Summary)
		}
		w.StringField("display", "summarized")
	}
	extra.Write(w, s.Extra, name, "/thinking")
	w.EndObject()
}

// outputConfig writes effort and the output format.
func (e *requestEncoder) outputConfig() {
	effort := ""
	if s := e.reasoning(); s != nil {
		switch effort = s.Effort; effort {
		case "none":
			effort = "" // told as thinking disabled, or by the mode
		case "minimal":
			effort = "low"
			e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort minimal written as low")
		}
	}
	format := e.schema()
	if effort == "" && format == nil && !extra.Has(e.req.Extra, name, "/output_config") {
		return
	}
	w := &e.w
	e.key("output_config")
	w.BeginObject()
	w.StringFieldIf("effort", effort)
	if format != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "json_schema")
		w.RawField("schema", format)
		extra.Write(w, e.req.Output.Extra, name, "")
		w.EndObject()
	}
	extra.WriteBut(w, e.req.Extra, name, "/output_config", func(f dragoman.Field) bool {
		return f.Path == "/output_config/effort" && effort != "" || f.Path == "/output_config/format" && format != nil
	})
	w.EndObject()
}

// schema is the output schema for the wire, nil for none.
func (e *requestEncoder) schema() []byte {
	f := e.req.Output
	if f == nil || f.Kind == dragoman.OutputText {
		return nil
	}
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		return nil
	}
	if f.Kind != dragoman.OutputSchema && f.Kind != "" || f.Schema == nil {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "the API has no format %q without a schema; ask for JSON in the prompt", f.Kind)
		return nil
	}
	if f.Name != "" || f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output", "name and description of the output schema")
	}
	profile := strictProfile.ForAnswers()
	if f.Dialect == name || schema.StrictFits(f.Schema, profile) {
		return f.Schema
	}
	out, err := wirekit.AnswerSchema(f.Schema, profile, e.reg, e.rep)
	if err != nil {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output/schema", "%v", err)
		return nil
	}
	return out
}

// sampling writes how tokens are picked. While the model thinks the API takes no top_k,
// no temperature but 1 and no top_p below 0.95; Gemini CLI, for one, sends all of them.
func (e *requestEncoder) sampling() {
	s, w := e.req.Sampling, &e.w
	typ := e.thinks()
	thinks := typ != "" && typ != "disabled"
	// refused reports whether a value is not to be written: the model takes none, or it
	// takes none but those of ok while it thinks.
	refused := func(key string, ok bool) bool {
		if thinks && !ok && !e.target.Caps.NoSampling {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, "the API does not take it while the model thinks")
			return true
		}
		return wirekit.RefusesSampling(e.target.Caps, key, e.rep)
	}
	temperature, topP := s.Temperature, s.TopP
	if temperature != nil && refused("temperature", wirekit.Float(*temperature) >= 1) { // more is written as 1
		temperature = nil
	}
	if topP != nil && refused("top_p", wirekit.Float(*topP) >= 0.95) {
		topP = nil
	}
	temperature, topP = wirekit.Samplers(e.target.Caps, temperature, topP, e.rep)
	if temperature != nil {
		e.key("temperature")
		w.Raw([]byte(*temperature))
	}
	if topP != nil {
		e.key("top_p")
		w.Raw([]byte(*topP))
	}
	if n := s.TopK; n != nil && !refused("top_k", false) {
		e.key("top_k")
		w.Int(*n)
	}
	drop := func(key string, set bool) {
		if set {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, "the API has no such parameter")
		}
	}
	drop("frequency_penalty", s.FrequencyPenalty != nil)
	drop("presence_penalty", s.PresencePenalty != nil)
	drop("seed", s.Seed != nil)
	drop("candidates", s.Candidates != nil && *s.Candidates != 1)
	stop := s.Stop
	if slices.ContainsFunc(stop, blank) {
		stop = slices.DeleteFunc(slices.Clone(stop), blank)
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences of nothing but white space")
	}
	if len(stop) > 0 {
		e.key("stop_sequences")
		w.BeginArray()
		for _, v := range stop {
			w.String(v)
		}
		w.EndArray()
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// identity writes who asks and how urgent it is.
func (e *requestEncoder) identity() {
	w, req := &e.w, e.req
	if req.User != "" || extra.Has(req.Extra, name, "/metadata") {
		e.key("metadata")
		w.BeginObject()
		w.StringFieldIf("user_id", req.User)
		extra.WriteBut(w, req.Extra, name, "/metadata", func(f dragoman.Field) bool { return f.Path == "/metadata/user_id" && req.User != "" })
		w.EndObject()
	}
	tier := req.ServiceTier
	switch tier {
	case "":
		return
	case "auto", "standard_only":
	case "default":
		tier = "standard_only"
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"default" written as "standard_only"`)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/service_tier", "the API has no tier %q", tier)
		return
	}
	e.key("service_tier")
	w.String(tier)
}

// unsaidSettings reports the settings that the wire has no member for.
func (e *requestEncoder) unsaidSettings() {
	req := e.req
	drop := func(set bool, sev dragoman.Severity, path, detail string) {
		if set {
			e.rep.Add(dragoman.Dropped, sev, path, detail)
		}
	}
	drop(req.CacheKey != "", dragoman.Info, "/cache_key", "the API caches by breakpoints, not by key")
	drop(len(req.Metadata) > 0, dragoman.Info, "/metadata", "the API takes no metadata but the user")
	drop(req.Verbosity != "", dragoman.Warn, "/verbosity", "the API has no verbosity")
	drop(req.Store != nil && *req.Store, dragoman.Info, "/store", "the API stores no responses")
}
