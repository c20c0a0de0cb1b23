package bedrock

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

// EncodeRequest implements [dialect.Codec]. The body holds neither the model
// nor whether to stream; the URL does. A request that came from this dialect and
// was not changed is written byte for byte; so is every tool and every message
// that was not changed. Where messages are merged, so is each of their blocks.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	streams := false
	if req != nil { // what the URL says is no change of the body
		body := *req
		streams = req.Stream
		body.Stream, body.StreamUsage = false, false
		req = &body
	}
	enc, err := wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			conversation: newConversation(reg, limits, o, rep),
			req:          wirekit.Fit(req, o.Target.Caps, rep),
			written:      make([]string, 0, 16),
		}
		e.takeEffort()
		e.inURL(streams)
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		return &e.w, e.encode()
	})
	if err != nil || req.Model == "" {
		return enc, err
	}
	// A client that names the model in the body as well must not name another.
	if extra.Has(req.Extra, name, "") {
		if out, bad := jsonwire.ReplaceString(enc.Body, req.Model, []string{"modelId"}, []string{"model"}); bad == nil {
			enc.Body = out
		}
	}
	return enc, nil
}

// inURL tells what stands in the URL and not in the body.
func (e *requestEncoder) inURL(streams bool) {
	_, id := extra.Get(e.req.Extra, name, "/modelId")
	_, model := extra.Get(e.req.Extra, name, "/model")
	if e.req.Model != "" && !id && !model {
		e.rep.Add(dragoman.Moved, dragoman.Info, "/model", "the model stands in the URL, not in the body")
	}
	if streams {
		e.rep.Add(dragoman.Moved, dragoman.Info, "/stream", "whether to stream stands in the URL, not in the body")
	}
}

type requestEncoder struct {
	conversation
	w   jsonwire.Writer
	req *dragoman.Request
	// effort is set for a model that takes its effort in a separate field.
	effort modelEffort
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
	cache := blockwire.Breakpoints{Marker: keyCache, Apart: true, None: e.target.Caps.NoCacheBreakpoints}
	ending := cache.AtEnd(e.ending(req.Cache), e.rep)
	cache.Plan(e.limits.MaxCacheBreakpoints, tools.Specs, ending != nil, &e.Plan)

	w.BeginObject()
	if err := e.toolConfig(&tools, &cache); err != nil {
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
		var mark *dragoman.CacheHint
		if i == len(e.Turns)-1 {
			mark = ending
		}
		if err := e.write(w, &e.Turns[i], &cache, mark); err != nil {
			return err
		}
	}
	w.EndArray()
	e.inference()
	e.outputConfig()
	e.modelFields()
	e.answerFields()
	e.metadata()
	e.tier()
	e.unsaidSettings()
	writeExtras(w, req.Extra, func(path string) bool { return slices.Contains(e.written, path[1:]) })
	extra.Report(e.rep, req.Extra, name, extra.At(""))
	w.EndObject()
	return nil
}

// answerFields asks for which stop sequence ended the answer: the API tells it among what a
// model says beside, and passes over what a model does not say.
func (e *requestEncoder) answerFields() {
	const member = "additionalModelResponseFieldPaths"
	stops := slices.ContainsFunc(e.req.Sampling.Stop, func(s string) bool { return s != "" })
	if stops && !extra.Has(e.req.Extra, name, "/"+member) {
		e.key(member)
		e.w.Raw([]byte(`["/stop_sequence"]`))
	}
}

// inference writes the bound on the answer and the knobs of the sampler.
func (e *requestEncoder) inference() {
	const at = "/inferenceConfig"
	w, s := &e.w, e.req.Sampling
	mark, named := len(w.Buf), len(e.written)
	e.key("inferenceConfig")
	w.BeginObject()
	start := len(w.Buf)
	if n, ok := e.maxTokens(); ok {
		w.IntField("maxTokens", n)
	}
	typ := e.thinks()
	thinks := typ == "adaptive" && !e.own() || typ == "enabled" && !e.ownBudget()
	// refused reports whether a value is not to be written: the model accepts none, or it
	// accepts only other values while it thinks.
	refused := func(key string, ok bool) bool {
		if thinks && !ok && !e.target.Caps.NoSampling {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, "the model does not accept it while it thinks")
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
		w.RawField("temperature", []byte(*temperature))
	}
	if topP != nil {
		w.RawField("topP", []byte(*topP))
	}
	if stop := e.stopSequences(); len(stop) > 0 {
		w.Key("stopSequences")
		w.BeginArray()
		for _, v := range stop {
			w.String(v)
		}
		w.EndArray()
	}
	extra.Write(w, e.req.Extra, name, at)
	if len(w.Buf) == start { // an empty one is written only where one came
		w.Buf, e.written = w.Buf[:mark], e.written[:named]
	} else {
		w.EndObject()
	}
	drop := func(key string, set bool) {
		if set {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, "the API has no such parameter")
		}
	}
	drop("top_k", s.TopK != nil)
	drop("frequency_penalty", s.FrequencyPenalty != nil)
	drop("presence_penalty", s.PresencePenalty != nil)
	drop("seed", s.Seed != nil)
	drop("candidates", s.Candidates != nil && *s.Candidates != 1)
}

// maxTokens returns the bound to write. A request without one gets one if it has a thinking
// budget: thinking counts against the bound, and the default of Converse is lower than most
// budgets, which the model refuses.
func (e *requestEncoder) maxTokens() (int64, bool) {
	if n := e.req.MaxOutputTokens; n != nil {
		return *n, true
	}
	if e.thinks() != "enabled" || e.ownBudget() {
		return 0, false
	}
	n := wirekit.Sum(max(*e.reasoning().BudgetTokens, minThinkingBudget), defaultMaxTokens)
	n = max(n, e.target.Caps.DefaultMaxTokens)
	e.rep.Addf(dragoman.Synthesized, dragoman.Info, "/max_output_tokens", "the maximum must exceed the thinking budget; %d written", n)
	return n, true
}

// stopSequences are those that the wire takes: none may be empty.
func (e *requestEncoder) stopSequences() []string {
	stop := e.req.Sampling.Stop
	empty := func(s string) bool { return s == "" }
	if !slices.ContainsFunc(stop, empty) {
		return stop
	}
	e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "empty stop sequences")
	return slices.DeleteFunc(slices.Clone(stop), empty)
}

// reasoning are the settings of the request, as the model takes them.
func (e *requestEncoder) reasoning() *dragoman.ReasoningSettings {
	return wirekit.Claude(e.req.Reasoning, e.target.Caps.ThinkingBudgets)
}

// own reports whether the request came from a client of this dialect.
func (e *requestEncoder) own() bool { return e.req.Native != nil && e.req.Native.Dialect == name }

// ownBudget reports whether a Bedrock client set the budget, not the conversion of an effort
// or of adaptive thinking.
func (e *requestEncoder) ownBudget() bool {
	return e.own() && e.req.Reasoning != nil && e.req.Reasoning.BudgetTokens != nil
}

// budget is a thinking budget that Claude takes: not too small, and less than
// maxTokens, but that a client of this dialect may know better.
func (e *requestEncoder) budget(n int64) int64 {
	const at = "/reasoning/budget_tokens"
	if most := e.req.MaxOutputTokens; most != nil && n >= *most && !e.ownBudget() {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, at, "a budget of %d lowered below maxTokens, which is %d", n, *most)
		n = *most - 1
	}
	if n < minThinkingBudget {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, at, "a budget of %d written as %d, the least the model takes", n, minThinkingBudget)
		n = minThinkingBudget
	}
	return n
}

// roomToThink reports whether any budget fits below maxTokens.
func (e *requestEncoder) roomToThink() bool {
	most := e.req.MaxOutputTokens
	return most == nil || *most > minThinkingBudget || e.ownBudget()
}

// thinks is Claude's word for how to think; empty for none.
func (e *requestEncoder) thinks() string { return wirekit.ClaudeThinks(e.reasoning(), e.roomToThink()) }

// thinkingType is what thinks says, with a report of what the request asks for
// beside it. Effort has a place of its own.
func (e *requestEncoder) thinkingType() string {
	typ := e.thinks()
	switch s := e.reasoning(); {
	case s == nil:
	case s.Mode == dragoman.ReasoningBudget && s.BudgetTokens == nil:
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "a budget without a number written as adaptive")
	case s.Mode == dragoman.ReasoningBudget && typ == "":
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "maxTokens leaves no room for the least budget, %d", minThinkingBudget)
	case s.Mode == dragoman.ReasoningDefault && typ == "disabled":
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort none written as thinking disabled")
	}
	return typ
}

// modelFields writes the fields of the model itself: Converse has no field for reasoning.
func (e *requestEncoder) modelFields() {
	const member, at = "additionalModelRequestFields", "/additionalModelRequestFields"
	typ := e.thinkingType()
	s := e.reasoning()
	if s != nil {
		extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
		if typ == "" && s.Summary != "" {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "how thinking is shown cannot be said without saying how to think")
		}
	}
	if typ == "" && e.effort.field == "" && !extra.Has(e.req.Extra, name, at) {
		return
	}
	w := &e.w
	e.key(member)
	w.BeginObject()
	if typ != "" {
		e.thinking(typ, s, at+"/thinking")
	}
	e.effort.write(w)
	extra.WriteBut(w, e.req.Extra, name, at, func(f dragoman.Field) bool {
		return f.Path == at+"/thinking" && typ != "" || e.effort.field != "" && f.Path == at+"/"+e.effort.field
	})
	w.EndObject()
}

func (e *requestEncoder) thinking(typ string, s *dragoman.ReasoningSettings, at string) {
	w := &e.w
	w.Key("thinking")
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
	extra.Write(w, s.Extra, name, at)
	w.EndObject()
}

// outputConfig writes effort and the output format.
func (e *requestEncoder) outputConfig() {
	const at = "/outputConfig"
	effort := ""
	if s := e.reasoning(); s != nil {
		wirekit.ReportMode(e.rep, s)
		if e.target.Caps.ThinkingBudgets {
			wirekit.ReportBudget(e.rep, e.req.Reasoning)
		}
		switch effort = s.Effort; effort {
		case "none":
			effort = "" // told as thinking disabled, or by the mode
		case "minimal":
			effort = "low"
			e.rep.Add(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort minimal written as low")
		}
	}
	format := e.schema()
	if effort == "" && format == nil && !extra.Has(e.req.Extra, name, at) {
		return
	}
	w := &e.w
	e.key("outputConfig")
	w.BeginObject()
	w.StringFieldIf("effort", effort)
	if format != nil {
		e.textFormat(format)
	}
	extra.WriteBut(w, e.req.Extra, name, at, func(f dragoman.Field) bool {
		return f.Path == at+"/effort" && effort != "" || f.Path == at+"/textFormat" && format != nil
	})
	w.EndObject()
}

// textFormat writes the output format; the schema goes into a string.
func (e *requestEncoder) textFormat(format []byte) {
	w, f := &e.w, e.req.Output
	w.Key("textFormat")
	w.BeginObject()
	w.StringField("type", "json_schema")
	w.Key("structure")
	w.BeginObject()
	w.Key("jsonSchema")
	w.BeginObject()
	w.StringField("schema", string(format))
	if f.Name != "" || f.Dialect != name {
		w.StringField("name", wirekit.OutputName(f.Name, e.rep))
	}
	w.StringFieldIf("description", f.Description)
	extra.Write(w, f.Extra, name, "/structure/jsonSchema")
	w.EndObject()
	extra.Write(w, f.Extra, name, "/structure")
	w.EndObject()
	extra.Write(w, f.Extra, name, "")
	w.EndObject()
}

// schema is the output schema for the wire, nil for none. The subset is that of
// Claude (quirk F3).
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

// metadata writes what is said about the request, as far as the API takes it.
func (e *requestEncoder) metadata() {
	const most = 16
	kept := make([]dragoman.KeyValue, 0, len(e.req.Metadata))
	for _, kv := range e.req.Metadata {
		switch {
		case kv.Key == "" || !plainMetadata(kv.Key) || !plainMetadata(kv.Value):
			e.rep.Addf(dragoman.Dropped, dragoman.Info, "/metadata", "%.40q: the API takes up to 256 plain characters", kv.Key)
		case len(kept) == most:
			e.rep.Addf(dragoman.Dropped, dragoman.Info, "/metadata", "%.40q: the API takes %d", kv.Key, most)
		default:
			kept = append(kept, kv)
		}
	}
	if len(kept) == 0 {
		return
	}
	e.key("requestMetadata")
	wirekit.WriteMetadata(&e.w, kept, e.rep)
}

// plainMetadata reports whether metadata takes a text.
func plainMetadata(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(" \t\n:_@$#=/+,-.", c):
		default:
			return false
		}
	}
	return len(s) <= 256
}

// tier writes how urgent the request is.
func (e *requestEncoder) tier() {
	tier := e.req.ServiceTier
	switch {
	case tier == "":
		return
	case knownTier(tier):
	case tier == "standard_only": // Anthropic's word
		tier = "default"
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/service_tier", "the API has no tier %.40q", tier)
		return
	}
	e.key("serviceTier")
	e.w.BeginObject()
	e.w.StringField("type", tier)
	e.w.EndObject()
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
	drop(req.User != "", dragoman.Info, "/user", "the API takes no user")
	drop(req.Verbosity != "", dragoman.Warn, "/verbosity", "the API has no verbosity")
	drop(req.Store != nil && *req.Store, dragoman.Info, "/store", "the API stores no responses")
}
