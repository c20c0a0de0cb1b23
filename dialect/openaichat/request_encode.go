package openaichat

import (
	"bytes"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request that came from this
// dialect and was not changed is written byte for byte, with at most another
// model; so is every message and tool that was not changed.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			messageEncoder: messageEncoder{list: "/messages", reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep},
			req:            wirekit.Fit(req, o.Target.Caps, rep),
		}
		reg.LimitBreakpoints(wirekit.CountCacheHints(req))
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // the encoder is large, and stays behind
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
	// sent holds the names of the tools that were written, where a choice
	// refers to some.
	sent map[string]bool
	// shared are members of Responses that Chat has as well.
	shared wirekit.Siblings
}

func (e *requestEncoder) encode() error {
	w, req, caps := &e.w, e.req, e.target.Caps
	e.shared = wirekit.SiblingsOf(req, name)
	w.BeginObject()
	w.StringField("model", req.Model)
	w.Key("messages")
	w.BeginArray()
	e.instructions(req.Instructions)
	if err := e.messages(req.Messages); err != nil {
		return err
	}
	w.EndArray()
	tools, err := e.tools()
	if err != nil {
		return err
	}
	if err := e.choice(tools); err != nil {
		return err
	}
	if req.Output != nil {
		e.output(req.Output)
	}
	if n := req.MaxOutputTokens; n != nil {
		if caps.LegacyMaxTokens || e.spelled("/max_tokens") && !wirekit.Refuses(req, &caps, "max_tokens") {
			w.IntField("max_tokens", *n)
		} else {
			w.IntField("max_completion_tokens", *n)
		}
	}
	e.reasoningSettings()
	w.StringFieldIf("verbosity", req.Verbosity)
	if req.Stream {
		w.BoolField("stream", true)
	}
	options := extra.Has(req.Extra, name, "/stream_options") || e.shared.Obfuscation != nil
	if caps.NoStreamOptions && (req.StreamUsage || options) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/stream_usage", "the target rejects stream_options")
	} else if req.StreamUsage && req.Stream || options {
		w.Key("stream_options")
		w.BeginObject()
		if req.StreamUsage {
			w.BoolField("include_usage", true)
		}
		if e.shared.Obfuscation != nil {
			w.RawField("include_obfuscation", e.shared.Obfuscation)
		}
		extra.WriteBut(w, req.Extra, name, "/stream_options", e.noted)
		w.EndObject()
	}
	e.sampling()
	if req.Store != nil {
		w.BoolField("store", *req.Store)
	}
	if len(req.Metadata) > 0 {
		w.Key("metadata")
		wirekit.WriteMetadata(w, req.Metadata, e.rep)
	}
	w.StringFieldIf("service_tier", wirekit.OpenAITier(req.ServiceTier, e.rep))
	w.StringFieldIf("prompt_cache_key", req.CacheKey)
	if req.User != "" {
		if e.spelled("/user") {
			w.StringField("user", req.User)
		} else {
			w.StringField("safety_identifier", wirekit.SafetyIdentifier(req.User, e.rep))
		}
	}
	if req.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/cache", "cache breakpoint at the end of the prompt: the target caches by itself")
	}
	e.extras()
	w.EndObject()
	return nil
}

// spelled reports whether the request came from this dialect with a member in
// the other of two spellings.
func (e *requestEncoder) spelled(path string) bool {
	v, ok := extra.Get(e.req.Extra, name, path)
	return ok && string(v) == "null"
}

// extras writes the members that are not modelled. A note of a spelling is not
// one of them, nor is a null where there is a value by now.
func (e *requestEncoder) extras() {
	extra.WriteBut(&e.w, e.req.Extra, name, "", e.noted)
	top := e.shared.Asks("/top_logprobs")
	if top || e.shared.Logprobs {
		e.w.BoolField("logprobs", true)
	}
	if top && !e.shared.Logprobs {
		e.rep.Add(dragoman.Synthesized, dragoman.Info, "/logprobs", "Chat requires it with top_logprobs; true written")
	}
	for _, f := range e.shared.Members {
		e.w.RawField(f.Path[1:], f.Value)
	}
	extra.Report(e.rep, e.shared.Lost, name, extra.At(""))
}

// noted reports whether a member that was put aside is written elsewhere, or
// must not be written.
func (e *requestEncoder) noted(f dragoman.Field) bool {
	req, s := e.req, &e.req.Sampling
	null := string(f.Value) == "null"
	switch f.Path {
	case "/max_tokens":
		return req.MaxOutputTokens != nil && (null || e.target.Caps.LegacyMaxTokens || wirekit.Refuses(req, &e.target.Caps, "max_tokens"))
	case "/user":
		return null && req.User != ""
	case "/stream":
		return req.Stream
	case "/tools":
		return len(req.Tools) > 0
	case "/functions": // they are among the tools
		return string(f.Value) == notedFunctions
	case "/tool_choice":
		return req.ToolChoice != nil || len(req.Tools) == 0
	case "/parallel_tool_calls":
		return true // null means the default, but not to every server (quirk E7)
	case "/model":
		return true
	case "/max_completion_tokens":
		return req.MaxOutputTokens != nil
	case "/response_format":
		return req.Output != nil
	case "/reasoning_effort":
		return req.Reasoning != nil
	case "/verbosity":
		return req.Verbosity != ""
	case "/stream_options", "/stream_options/include_usage":
		return req.StreamUsage
	case "/temperature":
		return s.Temperature != nil
	case "/top_p":
		return s.TopP != nil
	case "/frequency_penalty":
		return s.FrequencyPenalty != nil
	case "/presence_penalty":
		return s.PresencePenalty != nil
	case "/top_k":
		return s.TopK != nil
	case "/seed":
		return s.Seed != nil
	case "/n":
		return s.Candidates != nil
	case "/stop":
		return len(s.Stop) > 0
	case "/store":
		return req.Store != nil
	case "/metadata":
		return len(req.Metadata) > 0
	case "/service_tier":
		return req.ServiceTier != ""
	case "/prompt_cache_key":
		return req.CacheKey != ""
	case "/safety_identifier":
		return req.User != ""
	default:
		return false
	}
}

// tools writes the definitions and returns how many there are. Where the
// target cannot narrow a choice, the tools are narrowed instead (quirk E9).
func (e *requestEncoder) tools() (int, error) {
	tools, places := e.req.Tools, []int(nil)
	if len(tools) == 0 {
		return 0, nil
	}
	if err := wirekit.CheckTools("openaichat", e.req, e.target.Caps); err != nil {
		return 0, err
	}
	if c := e.req.ToolChoice; c != nil && c.Mode != dragoman.ChoiceTool && c.Tools != nil && e.target.Caps.NoAllowedTools {
		tools, places = wirekit.Narrow(tools, c.Tools)
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target knows no allowed tools; the others are not sent")
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	told := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[told:], places)
	e.w.EndArray()
	if c := e.req.ToolChoice; n > 0 && c != nil && c.Tools != nil {
		e.sent = sentNames(e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	}
	if n > e.limits.MaxTools {
		e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/tools", "%d tools; the API takes %d", n, e.limits.MaxTools)
	}
	return n, err
}

// choice writes the tool choice and the parallel flag, both only beside tools
// (quirk E3).
func (e *requestEncoder) choice(tools int) error {
	w, c := &e.w, e.req.ToolChoice
	if c != nil && !wirekit.KnownChoice(c.Mode) {
		return fmt.Errorf("openaichat: %w: at /tool_choice: no such mode as %.40q", dragoman.ErrInvalid, string(c.Mode))
	}
	if err := wirekit.AllowsNone("openaichat", e.req, e.sends); err != nil {
		return err
	}
	if tools == 0 {
		if err := wirekit.ForcesNone("openaichat", e.req); err != nil {
			return err
		}
		if c != nil && c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		if e.req.ParallelToolCalls != nil {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain")
		}
		return nil
	}
	if c != nil {
		if err := e.writeChoice(c); err != nil {
			return err
		}
	}
	if p := e.req.ParallelToolCalls; p != nil {
		if e.target.Caps.NoParallelFlag {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the target rejects the flag")
		} else {
			w.BoolField("parallel_tool_calls", *p)
		}
	}
	return nil
}

func (e *requestEncoder) writeChoice(c *dragoman.ToolChoice) error {
	w := &e.w
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target takes no forced choice; %s written as auto", c.Mode)
		w.StringField("tool_choice", "auto")
		return nil
	}
	switch {
	case c.Native != nil && c.Native.Format == dragoman.Format(name):
		w.RawField("tool_choice", c.Native.JSON)
	case c.Mode == dragoman.ChoiceOpaque:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice only its own provider understands")
	case c.Mode == dragoman.ChoiceTool:
		if len(c.Tools) != 1 {
			return fmt.Errorf("openaichat: a forced tool choice names %d tools, want one: %w", len(c.Tools), dragoman.ErrUnsupported)
		}
		if !e.declared(c.Tools[0]) {
			return fmt.Errorf("openaichat: tool choice %q names a tool that is not sent: %w", c.Tools[0].Name, dragoman.ErrUnsupported)
		}
		w.Key("tool_choice")
		e.toolRef(c.Tools[0])
	case c.Tools != nil && !e.target.Caps.NoAllowedTools:
		e.allowed(c)
		return nil
	default:
		w.StringField("tool_choice", string(c.Mode))
	}
	wirekit.ReportChoice(e.rep, c, name)
	return nil
}

// allowed writes a choice that is narrowed to some tools.
func (e *requestEncoder) allowed(c *dragoman.ToolChoice) {
	w := &e.w
	start := len(w.Buf)
	w.Key("tool_choice")
	w.BeginObject()
	w.StringField("type", "allowed_tools")
	w.Key("allowed_tools")
	w.BeginObject()
	w.StringField("mode", string(c.Mode))
	w.Key("tools")
	w.BeginArray()
	n := 0
	for i, ref := range c.Tools {
		switch {
		case ref.Native != nil && ref.Native.Format == dragoman.Format(name):
			w.Raw(ref.Native.JSON)
		case ref.Native != nil:
			e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "a reference to a provider's own tool")
			continue
		case !e.declared(ref):
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/tool_choice", "allowed tool %q is not sent", ref.Name)
			continue
		default:
			e.toolRef(ref)
		}
		n++
	}
	w.EndArray()
	extra.Write(w, c.Extra, name, "/allowed_tools")
	w.EndObject()
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	wirekit.ReportChoice(e.rep, c, name)
	if n > 0 {
		return
	}
	// Allowing nothing is not the same as allowing everything.
	w.Buf = w.Buf[:start]
	w.StringField("tool_choice", "none")
}

// declared reports whether a chosen tool is among those sent: a choice must
// not name one that lowering or narrowing took away (quirk E5).
func (e *requestEncoder) declared(ref dragoman.ToolRef) bool {
	return ref.Native == nil && e.sent[e.reg.WireName(ref.Namespace, ref.Name)]
}

// sends reports whether a tool that a choice allows is sent, as far as we know it.
func (e *requestEncoder) sends(ref dragoman.ToolRef) bool {
	return ref.Native != nil && ref.Native.Format == dragoman.Format(name) || e.declared(ref)
}

// sentNames reads the names out of the tools member that was just written.
func sentNames(member []byte) map[string]bool {
	names := map[string]bool{}
	r := jsonwire.NewReader(member[bytes.IndexByte(member, '['):])
	for range r.Array() {
		for key := range r.Object() {
			if k := string(key); (k == "function" || k == "custom") && r.Kind() == '{' {
				names[memberName(r)] = true
			} else {
				r.Skip()
			}
		}
	}
	return names
}

func (e *requestEncoder) toolRef(ref dragoman.ToolRef) {
	w := &e.w
	key := "function"
	_, _, spec := e.reg.PublicName("", e.reg.WireName(ref.Namespace, ref.Name))
	freeform := ref.Kind == dragoman.ToolFreeform || spec != nil && spec.Kind == dragoman.ToolFreeform
	if freeform && !e.target.Caps.NoCustomTools {
		key = "custom"
	}
	w.BeginObject()
	w.StringField("type", key)
	w.Key(key)
	w.BeginObject()
	w.StringField("name", e.reg.WireName(ref.Namespace, ref.Name))
	extra.Write(w, ref.Extra, name, "/"+key)
	w.EndObject()
	extra.Write(w, ref.Extra, name, "")
	w.EndObject()
}

func (e *requestEncoder) output(f *dragoman.OutputFormat) {
	w := &e.w
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = dragoman.OutputSchema // what else would it be for
	}
	w.Key("response_format")
	w.BeginObject()
	switch kind {
	case dragoman.OutputJSON:
		w.StringField("type", "json_object")
	case dragoman.OutputSchema:
		known := len(f.Schema) > 0
		out, strict := []byte(nil), f.Strict == dragoman.StrictOn
		switch {
		case known:
			out, strict = wirekit.OpenAIOutput(f, name, e.reg, e.rep)
		case f.Dialect != name:
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "an output schema is asked for, but there is none")
		}
		w.StringField("type", "json_schema")
		w.Key("json_schema")
		w.BeginObject()
		w.StringField("name", wirekit.OutputName(f.Name, e.rep))
		w.StringFieldIf("description", f.Description)
		if known {
			w.RawField("schema", out)
		}
		if strict {
			w.BoolField("strict", true)
		}
		extra.Write(w, f.Extra, name, "/json_schema")
		w.EndObject()
	default:
		w.StringField("type", string(kind))
	}
	extra.End(w, f.Extra, name, extra.At("/output"), e.rep)
}

func (e *requestEncoder) reasoningSettings() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	effort, budget := s.Effort, s.BudgetTokens
	switch {
	case s.Mode == dragoman.ReasoningOff:
		effort = "none"
		if s.Effort != "" && s.Effort != "none" {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %q contradicts mode off, which wins", s.Effort)
		}
		if budget != nil {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode off, which wins", *budget)
		}
	case budget == nil:
		if s.Mode == dragoman.ReasoningBudget {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode budget names no budget")
		}
	case effort != "":
		e.rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/budget_tokens", "Chat has no budget; effort %q says how much to think", effort)
	case s.Mode == dragoman.ReasoningAdaptive:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode adaptive, which wins", *budget)
	default: // a number alone asks for mode budget
		effort = wirekit.EffortOf(*budget)
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens written as effort %s", *budget, effort)
	}
	if s.Mode == dragoman.ReasoningAdaptive && effort == "" && budget == nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/mode", "adaptive thinking is what the target does by itself")
	}
	wirekit.ReportMode(e.rep, s)
	if effort == "none" && e.target.Caps.ReasoningOff != "" {
		e.switchOff(e.target.Caps.ReasoningOff)
	} else {
		e.w.StringFieldIf("reasoning_effort", effort)
	}
	if s.Summary != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Chat shows no reasoning")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Chat returns no reasoning to replay")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// switchOff writes a switch such as thinking.type=disabled as {"thinking":{"type":"disabled"}}.
func (e *requestEncoder) switchOff(how string) {
	path, value, _ := strings.Cut(how, "=")
	keys := strings.Split(path, ".")
	if extra.Has(e.req.Extra, name, "/"+keys[0]) {
		return // the client said so itself
	}
	w := &e.w
	for i, key := range keys {
		w.Key(key)
		if i < len(keys)-1 {
			w.BeginObject()
		}
	}
	if value == "true" || value == "false" {
		w.Bool(value == "true")
	} else {
		w.String(value)
	}
	for range keys[1:] {
		w.EndObject()
	}
}

func (e *requestEncoder) sampling() {
	s, w := e.req.Sampling, &e.w
	number := func(key string, n *dragoman.Number) {
		if n != nil && !wirekit.RefusesSampling(e.target.Caps, key, e.rep) {
			w.RawField(key, []byte(*n))
		}
	}
	number("temperature", s.Temperature)
	number("top_p", s.TopP)
	number("frequency_penalty", s.FrequencyPenalty)
	number("presence_penalty", s.PresencePenalty)
	if s.TopK != nil {
		// OpenAI has no top_k, most compatible servers do. A client of this
		// dialect knows its server.
		if e.target.Caps.TopK || e.req.Native != nil && e.req.Native.Dialect == name {
			w.IntField("top_k", *s.TopK)
		} else {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/top_k", "Chat has no top_k")
		}
	}
	if s.Candidates != nil {
		w.IntField("n", *s.Candidates)
	}
	if s.Seed != nil {
		w.IntField("seed", *s.Seed)
	}
	if stop := s.Stop; len(stop) > 0 {
		if len(stop) > e.limits.MaxStopSequences {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences beyond the first %d", e.limits.MaxStopSequences)
			stop = stop[:e.limits.MaxStopSequences]
		}
		w.Key("stop")
		w.BeginArray()
		for _, v := range stop {
			w.String(v)
		}
		w.EndArray()
	}
}
