package cohere

import (
	"bytes"
	"fmt"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request of this dialect that was not changed
// is written byte for byte, with at most another model; so is every such message and tool.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		caps := o.Target.Caps
		if req.Output != nil && req.Output.Dialect != name {
			caps.NoOutputWithTools = true // the API refuses both in one request
		}
		e := requestEncoder{
			messageEncoder: messageEncoder{list: "/messages", reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep},
			req:            wirekit.Fit(req, caps, rep),
		}
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // not the whole encoder
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
}

func (e *requestEncoder) encode() error {
	w, req := &e.w, e.req
	w.BeginObject()
	w.StringField("model", req.Model)
	w.Key("messages")
	w.BeginArray()
	e.instructions(req.Instructions)
	if err := e.messages(req.Messages); err != nil {
		return err
	}
	w.EndArray()
	if err := e.tools(); err != nil {
		return err
	}
	if req.Output != nil {
		e.output(req.Output)
	}
	e.thinking()
	if req.Stream {
		w.BoolField("stream", true)
	}
	if n := req.MaxOutputTokens; n != nil {
		w.IntField("max_tokens", *n)
	}
	e.sampling()
	e.unsaid()
	extra.WriteBut(w, req.Extra, name, "", e.written)
	extra.Report(e.rep, req.Extra, name, extra.At(""))
	w.EndObject()
	return nil
}

// written reports whether a kept field is written elsewhere, or must not be written.
func (e *requestEncoder) written(f dragoman.Field) bool {
	req, s := e.req, &e.req.Sampling
	switch f.Path {
	case "/model":
		return true
	case "/tools", "/strict_tools":
		return len(req.Tools) > 0
	case "/tool_choice":
		return req.ToolChoice != nil
	case "/response_format":
		return req.Output != nil
	case "/thinking":
		return req.Reasoning != nil
	case "/stream":
		return req.Stream
	case "/max_tokens":
		return req.MaxOutputTokens != nil
	case "/temperature":
		return s.Temperature != nil
	case "/p":
		return s.TopP != nil
	case "/k":
		return s.TopK != nil
	case "/seed":
		return s.Seed != nil
	case "/frequency_penalty":
		return s.FrequencyPenalty != nil
	case "/presence_penalty":
		return s.PresencePenalty != nil
	case "/stop_sequences":
		return len(s.Stop) > 0
	default:
		return false
	}
}

// tools writes the definitions that the choice allows, strict_tools and the choice.
func (e *requestEncoder) tools() error {
	c := e.req.ToolChoice
	if c != nil && !wirekit.KnownChoice(c.Mode) {
		return fmt.Errorf("cohere: %w: at /tool_choice: unknown mode %.40q", dragoman.ErrInvalid, string(c.Mode))
	}
	tools, places, err := e.allowed()
	if err != nil {
		return err
	}
	if len(tools) > 0 {
		if err := wirekit.CheckTools("cohere", e.req, e.target.Caps); err != nil {
			return err
		}
	}
	before := len(e.rep.Losses)
	tools, strict := e.strict(e.reg.View().Expand(tools, e.rep))
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[before:], places)
	e.w.EndArray()
	if err == nil {
		err = e.missing(e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	}
	if n > 0 && strict {
		e.w.BoolField("strict_tools", true)
	}
	if err != nil {
		return err
	}
	return e.choice(n)
}

// allowed returns the tools that the choice allows, and their places among all.
func (e *requestEncoder) allowed() ([]dragoman.ToolSpec, []int, error) {
	tools, c := e.req.Tools, e.req.ToolChoice
	if c == nil || c.Tools == nil || len(tools) == 0 || c.Mode == dragoman.ChoiceOpaque {
		return tools, nil, nil
	}
	if c.Mode == dragoman.ChoiceTool && len(c.Tools) != 1 {
		return nil, nil, fmt.Errorf("cohere: a forced tool choice names %d tools, want one: %w", len(c.Tools), dragoman.ErrUnsupported)
	}
	e.reg.AllowOnly(c.Tools)
	if c.Mode == dragoman.ChoiceTool {
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "Cohere cannot force one tool; only this one is sent, and a call is required")
	} else {
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Cohere has no list of allowed tools; the others are not sent")
	}
	some, places := wirekit.Narrow(tools, c.Tools)
	return some, places, nil
}

// strict reports whether strict_tools is written, and returns the tools to write. The flag
// holds for all tools: if some cannot be strict, none is.
func (e *requestEncoder) strict(tools []dragoman.ToolSpec) ([]dragoman.ToolSpec, bool) {
	asked, fit, why := false, !e.target.Caps.NoStrict, "the target rejects a strict flag"
	for i := range tools {
		s := &tools[i]
		asked = asked || s.Strict == dragoman.StrictOn
		switch {
		case !fit:
		case s.Strict != dragoman.StrictOn && s.Strict != dragoman.StrictAuto:
			fit, why = false, "strict_tools holds for all tools, and some are not strict"
		case !own(s) && !e.fitsStrict(s):
			fit, why = false, "strict_tools holds for all tools, and the schema of "+strconv.Quote(s.Name)+" does not fit"
		}
	}
	if asked && fit {
		return tools, true
	}
	loose := make([]dragoman.ToolSpec, len(tools))
	for i := range tools {
		if loose[i] = tools[i]; tools[i].Strict == dragoman.StrictOn {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem("/tools", i).String()+"/strict", "not strict: "+why)
		}
		loose[i].Strict = dragoman.StrictOff
	}
	return loose, false
}

// own reports whether a tool is written as it was read from this dialect.
func own(s *dragoman.ToolSpec) bool {
	return s.Source != nil && s.Source.Format == formatFunction && s.Source.Mirror == s.Fingerprint()
}

// fitsStrict reports whether the schema of a tool can be strict: each object must have a
// required property.
func (e *requestEncoder) fitsStrict(s *dragoman.ToolSpec) bool {
	if s.Kind == dragoman.ToolFreeform {
		return true // its one argument is required
	}
	if s.Kind != dragoman.ToolFunction || s.Parameters == nil {
		return false
	}
	low, err := e.reg.View().Adapt(s.Parameters, toolProfile)
	return err == nil && allRequire(low.Schema)
}

// allRequire reports whether each object of a schema has a required property.
func allRequire(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	ok := requires(r)
	return ok && r.Err() == nil
}

func requires(r *jsonwire.Reader) (ok bool) {
	ok = true
	switch r.Kind() {
	case '{':
		object, required := false, false
		for key := range r.Object() {
			switch string(key) {
			case "properties", "$defs":
				object = object || string(key) == "properties"
				if r.Kind() != '{' {
					r.Skip()
					continue
				}
				for range r.Object() {
					ok = requires(r) && ok
				}
			case "required":
				required = !bytes.HasPrefix(r.Raw(), []byte("[]"))
			case "type":
				object = string(r.Raw()) == `"object"` || object
			case "items", "anyOf", "additionalProperties":
				ok = requires(r) && ok
			default:
				r.Skip()
			}
		}
		return ok && (!object || required)
	case '[':
		for range r.Array() {
			ok = requires(r) && ok
		}
	default:
		r.Skip()
	}
	return ok
}

// missing returns an error for a choice that demands a call of tools of which none was
// written (quirk E5).
func (e *requestEncoder) missing(field []byte) error {
	c := e.req.ToolChoice
	if c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceTool && c.Mode != dragoman.ChoiceRequired || len(e.req.Tools) == 0 {
		return nil
	}
	names := sentNames(field)
	sent := func(ref dragoman.ToolRef) bool {
		return ref.Native == nil && names[e.reg.WireName(ref.Namespace, ref.Name)]
	}
	if c.Mode == dragoman.ChoiceTool && !sent(c.Tools[0]) {
		return fmt.Errorf("cohere: tool choice %q names a tool that is not sent: %w", c.Tools[0].Name, dragoman.ErrUnsupported)
	}
	return wirekit.AllowsNone("cohere", e.req, sent)
}

// sentNames reads the names in the tools field that was just written.
func sentNames(field []byte) map[string]bool {
	names := map[string]bool{}
	r := jsonwire.NewReader(field[bytes.IndexByte(field, '['):])
	for range r.Array() {
		for key := range r.Object() {
			if string(key) != "function" || r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) == "name" && r.Kind() == '"' {
					names[r.String()] = true
				} else {
					r.Skip()
				}
			}
		}
	}
	return names
}

// choice writes the tool choice. tools is the number of tools that were written.
func (e *requestEncoder) choice(tools int) error {
	if p := e.req.ParallelToolCalls; p != nil {
		severity := dragoman.Info // the API allows several calls
		if !*p {
			severity = dragoman.Warn
		}
		e.rep.Add(dragoman.Dropped, severity, "/parallel_tool_calls", "Cohere has no such flag; a model may call several tools at once")
	}
	c := e.req.ToolChoice
	if c == nil {
		return nil
	}
	wirekit.ReportChoice(e.rep, c, name)
	if tools == 0 {
		if err := wirekit.ForcesNone("cohere", e.req); err != nil {
			return err
		}
		if c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		return nil
	}
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target takes no forced choice; %s written as auto", c.Mode)
		return nil
	}
	switch c.Mode {
	case dragoman.ChoiceRequired, dragoman.ChoiceTool:
		e.w.StringField("tool_choice", "REQUIRED")
	case dragoman.ChoiceNone:
		e.w.StringField("tool_choice", "NONE")
	case dragoman.ChoiceOpaque:
		if c.Native != nil && c.Native.Format == dragoman.Format(name) {
			e.w.RawField("tool_choice", c.Native.JSON)
		} else {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice only its own provider understands")
		}
	}
	return nil
}

func (e *requestEncoder) output(f *dragoman.OutputFormat) {
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = dragoman.OutputSchema
	}
	own := f.Dialect == name
	w := &e.w
	switch kind {
	case dragoman.OutputJSON:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "json_object")
	case dragoman.OutputSchema:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "json_object")
		e.outputSchema(f)
	case dragoman.OutputText:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "text")
	default:
		if !own {
			if kind != "" {
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "Cohere has no output of kind %.40q", string(kind))
			}
			return
		}
		w.Key("response_format")
		w.BeginObject()
		w.StringFieldIf("type", string(kind))
	}
	extra.End(w, f.Extra, name, extra.At("/output"), e.rep)
	if f.Name != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/name", "the format has no name")
	}
	if f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/description", "the format has no description")
	}
}

func (e *requestEncoder) outputSchema(f *dragoman.OutputFormat) {
	if len(f.Schema) == 0 {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "an output schema is asked for, but there is none; any JSON object is accepted")
		return
	}
	out := []byte(f.Schema)
	if f.Dialect != name {
		low, err := wirekit.AnswerSchema(f.Schema, outputProfile, e.reg, e.rep)
		if err != nil {
			e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "sent as it is: %v", err)
		} else {
			out = low
		}
		if !allRequire(out) {
			e.rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", "Cohere requires a required property in each object of a schema")
		}
	}
	e.w.RawField("json_schema", out)
}

// thinking writes whether to reason, and how many tokens at most.
func (e *requestEncoder) thinking() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	wirekit.ReportMode(e.rep, s)
	typ, budget := "enabled", s.BudgetTokens
	off := s.Mode == dragoman.ReasoningOff || s.Mode == dragoman.ReasoningDefault && s.Effort == "none"
	switch tokens, known := wirekit.EffortBudget(s.Effort); {
	case off:
		typ = "disabled"
		if s.Effort != "" && s.Effort != "none" {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %.40q contradicts mode off, which wins", s.Effort)
		}
		if budget != nil {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode off, which wins", *budget)
		}
		budget = nil
	case budget != nil && s.Mode == dragoman.ReasoningAdaptive:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode adaptive, which wins", *budget)
		budget = nil
	case budget != nil:
		if s.Effort != "" {
			e.rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/effort", "Cohere has no effort; the budget of %d tokens says how much to reason", *budget)
		}
		if *budget < 1 {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens: Cohere takes one token or more", *budget)
			budget = nil
		}
	case s.Effort != "" && known && tokens > 0:
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q written as a budget of %d tokens", s.Effort, tokens)
		budget = &tokens
	case s.Effort != "":
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q written as reasoning without a budget", s.Effort)
	case s.Mode == dragoman.ReasoningBudget:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode budget names no budget")
	case s.Mode == dragoman.ReasoningDefault:
		typ = ""
	}
	if typ != "" || extra.Has(s.Extra, name, "") {
		w := &e.w
		w.Key("thinking")
		w.BeginObject()
		w.StringFieldIf("type", typ)
		if budget != nil {
			w.IntField("token_budget", *budget)
		}
		extra.Write(w, s.Extra, name, "")
		w.EndObject()
	}
	if s.Summary != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Cohere shows the reasoning itself")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Cohere encrypts no reasoning")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// sampling writes the sampling settings. Settings of other APIs are moved into the ranges
// of this one.
func (e *requestEncoder) sampling() {
	s, w := e.req.Sampling, &e.w
	own := e.req.Native != nil && e.req.Native.Dialect == name
	number := func(key, setting string, n *dragoman.Number, least, most string) {
		if n == nil || wirekit.RefusesSampling(e.target.Caps, setting, e.rep) {
			return
		}
		value := string(*n)
		if f := wirekit.Float(*n); !own && f < wirekit.Float(dragoman.Number(least)) {
			value = least
		} else if !own && f > wirekit.Float(dragoman.Number(most)) {
			value = most
		}
		if value != string(*n) {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/"+setting, "%.40s written as %s: the API takes %s to %s", string(*n), value, least, most)
		}
		w.RawField(key, []byte(value))
	}
	number("temperature", "temperature", s.Temperature, "0", "1")
	number("p", "top_p", s.TopP, "0.01", "0.99")
	if k := s.TopK; k != nil && !wirekit.RefusesSampling(e.target.Caps, "top_k", e.rep) {
		n := *k
		if !own {
			n = min(max(n, 0), 500)
		}
		if n != *k {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/sampling/top_k", "%d written as %d: the API takes 0 to 500", *k, n)
		}
		w.IntField("k", n)
	}
	number("frequency_penalty", "frequency_penalty", s.FrequencyPenalty, "0", "1")
	number("presence_penalty", "presence_penalty", s.PresencePenalty, "0", "1")
	switch {
	case s.Seed == nil:
	case *s.Seed < 0 && !own:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/seed", "the seed %d: Cohere takes none below 0", *s.Seed)
	default:
		w.IntField("seed", *s.Seed)
	}
	if n := s.Candidates; n != nil && *n != 1 {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/candidates", "Cohere returns one response, not %d", *n)
	}
	if stop := s.Stop; len(stop) > 0 {
		if most := e.limits.MaxStopSequences; len(stop) > most {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences beyond the first %d", most)
			stop = stop[:most]
		}
		w.Key("stop_sequences")
		w.BeginArray()
		for _, v := range stop {
			w.String(v)
		}
		w.EndArray()
	}
}

// unsaid reports the settings that the API has no field for.
func (e *requestEncoder) unsaid() {
	req := e.req
	drop := func(set bool, severity dragoman.Severity, path, detail string) {
		if set {
			e.rep.Add(dragoman.Dropped, severity, path, detail)
		}
	}
	drop(req.Cache != nil, dragoman.Info, "/cache", "cache breakpoint at the end of the prompt: Cohere caches by itself")
	drop(req.CacheKey != "", dragoman.Info, "/cache_key", "Cohere has no cache key")
	drop(len(req.Metadata) > 0, dragoman.Info, "/metadata", "Cohere takes no metadata")
	drop(req.User != "", dragoman.Info, "/user", "Cohere takes no user")
	drop(req.ServiceTier != "", dragoman.Info, "/service_tier", "Cohere has no service tiers")
	drop(req.Verbosity != "", dragoman.Warn, "/verbosity", "Cohere has no verbosity")
	drop(req.Store != nil && *req.Store, dragoman.Warn, "/store", "Cohere stores no responses")
}
