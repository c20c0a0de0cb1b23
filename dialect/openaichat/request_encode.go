package openaichat

import (
	"bytes"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. An unchanged request from this dialect keeps its
// bytes, except for the model. The same is true for each unchanged message and tool.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			messageEncoder: messageEncoder{list: "/messages", reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep},
			req:            wirekit.FitSettings(req, o.Target.Caps, rep),
		}
		reg.LimitBreakpoints(wirekit.CountCacheHints(req))
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // copied, so that the large encoder can be freed
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
	// sent holds the names of the written tools, if a tool choice refers to tools.
	sent map[string]bool
	// written counts the written tools.
	written int
	// shared holds OpenAI Responses fields that Chat has as well.
	shared wirekit.Siblings
}

func (e *requestEncoder) encode() error {
	e.shared = wirekit.SiblingsOf(e.req, name)
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	return settings.Write(e, to, e.siblings)
}

// conversation writes instructions and messages, which share one list.
func (e *requestEncoder) conversation() error {
	e.w.Key("messages")
	e.w.BeginArray()
	e.instructions(e.req.Instructions)
	if err := e.messages(e.req.Messages); err != nil {
		return err
	}
	e.w.EndArray()
	return nil
}

// usedLegacyName reports whether the client used the older of two field names.
func (e *requestEncoder) usedLegacyName(path string) bool {
	v, ok := extra.Get(e.req.Extra, name, path)
	return ok && string(v) == "null"
}

// siblings writes the fields that Chat shares with OpenAI Responses.
func (e *requestEncoder) siblings() {
	top := e.shared.Asks("/top_logprobs")
	if top || e.shared.Logprobs {
		e.w.BoolField("logprobs", true)
	}
	if top && !e.shared.Logprobs {
		e.rep.Add(dragoman.Synthesized, dragoman.Info, "/logprobs", "Chat requires logprobs with top_logprobs; true is written")
	}
	for _, f := range e.shared.Fields {
		e.w.RawField(f.Path[1:], f.Value)
	}
	extra.Report(e.rep, e.shared.Lost, name, extra.At(""))
}

// tools writes the definitions. If the target has no list of allowed tools, only the allowed
// tools are sent (quirk E9).
func (e *requestEncoder) tools() error {
	tools, places := e.req.Tools, []int(nil)
	if len(tools) == 0 {
		return nil
	}
	if err := wirekit.CheckTools("openaichat", e.req, e.target.Caps); err != nil {
		return err
	}
	if c := e.req.ToolChoice; c != nil && c.Mode != dragoman.ChoiceTool && c.Tools != nil && e.target.Caps.NoAllowedTools {
		tools, places = wirekit.NamedTools(tools, c.Tools)
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target has no list of allowed tools; the other tools are not sent")
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	before := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[before:], places)
	e.w.EndArray()
	if c := e.req.ToolChoice; n > 0 && c != nil && c.Tools != nil {
		e.sent = sentNames(e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	}
	if n > e.limits.MaxTools {
		e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/tools", "%d tools are sent; the API accepts at most %d", n, e.limits.MaxTools)
	}
	e.written = n
	return err
}

// choice writes the tool choice, only together with tools (quirk E3).
func (e *requestEncoder) choice() error {
	c := e.req.ToolChoice
	if c != nil && !wirekit.KnownChoice(c.Mode) {
		return fmt.Errorf("openaichat: %w: at /tool_choice: unknown mode %.40q", dragoman.ErrInvalid, c.Mode)
	}
	if err := wirekit.CheckAllowedTools("openaichat", e.req, e.sends); err != nil {
		return err
	}
	if e.written == 0 {
		if err := wirekit.CheckForcedChoice("openaichat", e.req); err != nil {
			return err
		}
		if c != nil && c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		return nil
	}
	if c == nil {
		return nil
	}
	return e.writeChoice(c)
}

func (e *requestEncoder) choiceSuperseded([]byte) bool {
	return e.req.ToolChoice != nil || len(e.req.Tools) == 0
}

// parallel writes the parallel flag, only together with tools (quirk E3).
func (e *requestEncoder) parallel() {
	p := e.req.ParallelToolCalls
	switch {
	case p == nil:
	case e.written == 0:
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain, so the flag is not sent")
	case e.target.Caps.NoParallelFlag:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the target rejects the flag")
	default:
		e.w.BoolField("parallel_tool_calls", *p)
	}
}

func (e *requestEncoder) writeChoice(c *dragoman.ToolChoice) error {
	w := &e.w
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target does not accept a forced choice; %s is written as auto", c.Mode)
		w.StringField("tool_choice", "auto")
		return nil
	}
	switch {
	case c.Native != nil && c.Native.Format == dragoman.Format(name):
		w.RawField("tool_choice", c.Native.JSON)
	case c.Mode == codes.ChoiceOpaque:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "this tool choice is only valid for its own provider")
	case c.Mode == dragoman.ChoiceTool:
		if len(c.Tools) != 1 {
			return fmt.Errorf("openaichat: at /tool_choice: a forced choice names %d tools, want exactly one: %w", len(c.Tools), dragoman.ErrUnsupported)
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
		w.StringField("tool_choice", c.Mode)
	}
	wirekit.ReportChoice(e.rep, c, name)
	return nil
}

// allowed writes a tool choice that is narrowed to some tools.
func (e *requestEncoder) allowed(c *dragoman.ToolChoice) {
	w := &e.w
	start := len(w.Buf)
	w.Key("tool_choice")
	w.BeginObject()
	w.StringField("type", "allowed_tools")
	w.Key("allowed_tools")
	w.BeginObject()
	w.StringField("mode", c.Mode)
	w.Key("tools")
	w.BeginArray()
	n := 0
	for i, ref := range c.Tools {
		switch {
		case ref.Native != nil && ref.Native.Format == dragoman.Format(name):
			w.Raw(ref.Native.JSON)
		case ref.Native != nil:
			e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "this reference is only valid for its own provider")
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
	// An empty list of allowed tools must not become a choice of all tools.
	w.Buf = w.Buf[:start]
	w.StringField("tool_choice", "none")
}

// declared reports whether a chosen tool is sent. A choice must not name a tool that lowering or
// narrowing removed (quirk E5).
func (e *requestEncoder) declared(ref dragoman.ToolRef) bool {
	return ref.Native == nil && e.sent[e.reg.WireName(ref.Namespace, ref.Name)]
}

// sends reports whether an allowed tool is sent. A native reference of this dialect counts as
// sent.
func (e *requestEncoder) sends(ref dragoman.ToolRef) bool {
	return ref.Native != nil && ref.Native.Format == dragoman.Format(name) || e.declared(ref)
}

// sentNames reads the names of the tools from the tools field that was just written.
func sentNames(member []byte) map[string]bool {
	names := map[string]bool{}
	r := jsonwire.NewReader(member[bytes.IndexByte(member, '['):])
	for range r.Array() {
		for key := range r.Object() {
			if k := string(key); (k == "function" || k == "custom") && r.Kind() == '{' {
				names[nameField(r)] = true
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
	freeform := ref.Kind == codes.ToolFreeform || spec != nil && spec.Kind == codes.ToolFreeform
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

func (e *requestEncoder) output() {
	w, f := &e.w, e.req.Output
	if f == nil {
		return
	}
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target does not accept an output format")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = codes.OutputSchema // a schema implies the kind
	}
	w.Key("response_format")
	w.BeginObject()
	switch kind {
	case codes.OutputJSON:
		w.StringField("type", "json_object")
	case codes.OutputSchema:
		known := len(f.Schema) > 0
		out, strict := []byte(nil), f.Strict == codes.StrictOn
		switch {
		case known:
			out, strict = wirekit.OpenAIOutput(f, name, e.reg, e.rep)
		case f.Dialect != name:
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "the output kind is schema, but there is no schema")
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
		w.StringField("type", kind)
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
	case s.Mode == codes.ReasoningOff:
		effort = "none"
		if s.Effort != "" && s.Effort != "none" {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %q contradicts mode off; mode off is used", s.Effort)
		}
		if budget != nil {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode off; mode off is used", *budget)
		}
	case budget == nil:
		if s.Mode == codes.ReasoningBudget {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode is budget, but no budget is set")
		}
	case effort != "":
		e.rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/budget_tokens", "Chat has no token budgets; effort %q is used", effort)
	case s.Mode == codes.ReasoningAdaptive:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode adaptive; mode adaptive is used", *budget)
	default: // a budget alone implies mode budget
		effort = wirekit.EffortOf(*budget)
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/budget_tokens", "budget of %d tokens is written as effort %s", *budget, effort)
	}
	if s.Mode == codes.ReasoningAdaptive && effort == "" && budget == nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/mode", "adaptive thinking is the default of the target")
	}
	if effort == "none" && e.target.Caps.ReasoningOff != "" {
		e.switchOff(e.target.Caps.ReasoningOff)
	} else {
		e.w.StringFieldIf("reasoning_effort", effort)
	}
	if s.Summary != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Chat has no reasoning summaries")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Chat does not return encrypted reasoning")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// switchOff writes a switch: "thinking.type=disabled" becomes {"thinking":{"type":"disabled"}}.
func (e *requestEncoder) switchOff(how string) {
	path, value, _ := strings.Cut(how, "=")
	keys := strings.Split(path, ".")
	if extra.Has(e.req.Extra, name, "/"+keys[0]) {
		return // the client set it itself
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
