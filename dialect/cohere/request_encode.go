package cohere

import (
	"bytes"
	"fmt"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request of this dialect that was
// not changed is written byte for byte, except for its model; so is every
// unchanged message and tool.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		caps := o.Target.Caps
		if req.Output != nil && req.Output.Dialect != name {
			caps.NoOutputWithTools = true // the API refuses both in one request
		}
		e := requestEncoder{
			messageEncoder: messageEncoder{list: "/messages", reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep},
			req:            wirekit.FitSettings(req, caps, rep),
		}
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // do not retain the encoder
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
	// written counts the tools. allStrict reports that strict_tools applies to
	// them.
	written   int
	allStrict bool
}

func (e *requestEncoder) encode() error {
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	return settings.Write(e, to, nil)
}

// conversation writes instructions and messages, which are one list.
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

// tools writes the tools that the choice allows.
func (e *requestEncoder) tools() error {
	c := e.req.ToolChoice
	if c != nil && !wirekit.KnownChoice(c.Mode) {
		return fmt.Errorf("cohere: %w: at /tool_choice: unknown mode %.40q", dragoman.ErrInvalid, c.Mode)
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
	tools, e.allStrict = e.strict(e.reg.View().Expand(tools, e.rep))
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[before:], places)
	e.w.EndArray()
	if err == nil {
		err = wirekit.CheckChosenTools("cohere", e.req, e.reg, e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	}
	e.written = n
	return err
}

// allowed returns the tools that the choice allows, and their positions among
// all tools.
func (e *requestEncoder) allowed() ([]dragoman.ToolSpec, []int, error) {
	tools, c := e.req.Tools, e.req.ToolChoice
	if c == nil || c.Tools == nil || len(tools) == 0 || c.Mode == codes.ChoiceOpaque {
		return tools, nil, nil
	}
	if c.Mode == dragoman.ChoiceTool && len(c.Tools) != 1 {
		return nil, nil, fmt.Errorf("cohere: tool choice of mode tool names %d tools, want 1: %w", len(c.Tools), dragoman.ErrUnsupported)
	}
	e.reg.AllowOnly(c.Tools)
	if c.Mode == dragoman.ChoiceTool {
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "Cohere cannot force one tool; only this one is sent, and a call is required")
	} else {
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Cohere has no list of allowed tools; the others are not sent")
	}
	some, places := wirekit.NamedTools(tools, c.Tools)
	return some, places, nil
}

// strict returns the tools to write, and whether to write strict_tools. The
// flag applies to all tools: if one cannot be strict, none is.
func (e *requestEncoder) strict(tools []dragoman.ToolSpec) ([]dragoman.ToolSpec, bool) {
	asked, fit, why := false, !e.target.Caps.NoStrict, "the target rejects a strict flag"
	for i := range tools {
		s := &tools[i]
		asked = asked || s.Strict == codes.StrictOn
		switch {
		case !fit:
		case s.Strict != codes.StrictOn && s.Strict != codes.StrictAuto:
			fit, why = false, "strict_tools applies to all tools, and some are not strict"
		case !isOwn(s) && !e.fitsStrict(s):
			fit, why = false, "strict_tools applies to all tools, and the schema of "+strconv.Quote(s.Name)+" does not fit"
		}
	}
	if asked && fit {
		return tools, true
	}
	loose := make([]dragoman.ToolSpec, len(tools))
	for i := range tools {
		if loose[i] = tools[i]; tools[i].Strict == codes.StrictOn {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem("/tools", i).String()+"/strict", "not strict: "+why)
		}
		loose[i].Strict = codes.StrictOff
	}
	return loose, false
}

// isOwn reports whether a tool is written in the form decoded from this dialect.
func isOwn(s *dragoman.ToolSpec) bool {
	return s.Source != nil && s.Source.Format == formatFunction && s.Source.Mirror == s.Fingerprint()
}

// fitsStrict reports whether the schema of a tool can be strict: each object
// must have a required property.
func (e *requestEncoder) fitsStrict(s *dragoman.ToolSpec) bool {
	if s.Kind == codes.ToolFreeform {
		return true // its only argument is required
	}
	if s.Kind != codes.ToolFunction || s.Parameters == nil {
		return false
	}
	low, err := e.reg.View().Adapt(s.Parameters, toolProfile)
	return err == nil && allRequire(low.Schema)
}

// allRequire reports whether each object of a schema has a required property.
func allRequire(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	ok := objectsRequire(r)
	return ok && r.Err() == nil
}

func objectsRequire(r *jsonwire.Reader) (ok bool) {
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
					ok = objectsRequire(r) && ok
				}
			case "required":
				required = !bytes.HasPrefix(r.Raw(), []byte("[]"))
			case "type":
				object = string(r.Raw()) == `"object"` || object
			case "items", "anyOf", "additionalProperties":
				ok = objectsRequire(r) && ok
			default:
				r.Skip()
			}
		}
		return ok && (!object || required)
	case '[':
		for range r.Array() {
			ok = objectsRequire(r) && ok
		}
	default:
		r.Skip()
	}
	return ok
}

// choice writes the tool choice.
func (e *requestEncoder) choice() error {
	c := e.req.ToolChoice
	if c == nil {
		return nil
	}
	wirekit.ReportChoice(e.rep, c, name)
	if e.written == 0 {
		if err := wirekit.CheckForcedChoice("cohere", e.req); err != nil {
			return err
		}
		if c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		return nil
	}
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target does not accept a forced choice; %s written as auto", c.Mode)
		return nil
	}
	switch c.Mode {
	case dragoman.ChoiceRequired, dragoman.ChoiceTool:
		e.w.StringField("tool_choice", "REQUIRED")
	case dragoman.ChoiceNone:
		e.w.StringField("tool_choice", "NONE")
	case codes.ChoiceOpaque:
		if c.Native != nil && c.Native.Format == dragoman.Format(name) {
			e.w.RawField("tool_choice", c.Native.JSON)
		} else {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a tool choice that only its own provider understands")
		}
	}
	return nil
}

func (e *requestEncoder) output() {
	f := e.req.Output
	if f == nil {
		return
	}
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target does not support output formats")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = codes.OutputSchema
	}
	own := f.Dialect == name
	w := &e.w
	switch kind {
	case codes.OutputJSON:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "json_object")
	case codes.OutputSchema:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "json_object")
		e.outputSchema(f)
	case codes.OutputText:
		w.Key("response_format")
		w.BeginObject()
		w.StringField("type", "text")
	default:
		if !own {
			if kind != "" {
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "Cohere has no output of kind %.40q", kind)
			}
			return
		}
		w.Key("response_format")
		w.BeginObject()
		w.StringFieldIf("type", kind)
	}
	extra.End(w, f.Extra, name, extra.At("/output"), e.rep)
	if f.Name != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/name", "Cohere output formats have no name")
	}
	if f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/description", "Cohere output formats have no description")
	}
}

func (e *requestEncoder) outputSchema(f *dragoman.OutputFormat) {
	if len(f.Schema) == 0 {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "the output schema is missing; any JSON object is requested")
		return
	}
	out := []byte(f.Schema)
	if f.Dialect != name {
		low, err := wirekit.OutputSchema(f.Schema, outputProfile, e.reg, e.rep)
		if err != nil {
			e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "schema sent unchanged: %v", err)
		} else {
			out = low
		}
		if !allRequire(out) {
			e.rep.Add(dragoman.Lowered, dragoman.Warn, "/output/schema", "Cohere requires a required property in each object of a schema")
		}
	}
	e.w.RawField("json_schema", out)
}

// thinking writes whether to reason and the token budget.
func (e *requestEncoder) thinking() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	typ, budget := "enabled", s.BudgetTokens
	off := s.Mode == codes.ReasoningOff || s.Mode == codes.ReasoningDefault && s.Effort == "none"
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
	case budget != nil && s.Mode == codes.ReasoningAdaptive:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens contradicts mode adaptive, which wins", *budget)
		budget = nil
	case budget != nil:
		if s.Effort != "" {
			e.rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/effort", "Cohere has no effort; the budget of %d tokens is used", *budget)
		}
		if *budget < 1 {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens: Cohere accepts 1 or more", *budget)
			budget = nil
		}
	case s.Effort != "" && known && tokens > 0:
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q written as a budget of %d tokens", s.Effort, tokens)
		budget = &tokens
	case s.Effort != "":
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q written as reasoning without a budget", s.Effort)
	case s.Mode == codes.ReasoningBudget:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode budget without a budget")
	case s.Mode == codes.ReasoningDefault:
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
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Cohere returns the full reasoning, not a summary")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Cohere does not encrypt reasoning")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}
