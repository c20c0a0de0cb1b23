package ollama

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
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
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // the encoder is large, and stays behind
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
	// written counts the tools.
	written int
}

func (e *requestEncoder) encode() error {
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	e.w.BeginObject()
	if err := settings.Encode(e, to); err != nil {
		return err
	}
	settings.WriteKept(e, to)
	extra.Report(e.rep, e.req.Extra, name, extra.At(""))
	e.w.EndObject()
	return nil
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

// tools writes the definitions that the choice leaves. The wire has no choice (quirk E1): the
// tools are narrowed to what it allows (quirks E2, E9), and the registry remembers that.
func (e *requestEncoder) tools() error {
	allowed, err := e.allowed()
	if err != nil {
		return err
	}
	e.reg.AllowOnly(allowed)
	tools, places := e.req.Tools, []int(nil)
	if allowed != nil {
		tools, places = wirekit.Narrow(tools, allowed)
	}
	if len(tools) > 0 {
		if err := wirekit.CheckTools("ollama", e.req, e.target.Caps); err != nil {
			return err
		}
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	told := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[told:], places)
	e.w.EndArray()
	if err == nil {
		err = wirekit.ChoosesUnsent("ollama", e.req, e.reg, e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
		e.choiceOfNothing()
	}
	e.written = n
	return err
}

// allowed returns the tools that the choice leaves to the model; nil means all.
func (e *requestEncoder) allowed() ([]dragoman.ToolRef, error) {
	c := e.req.ToolChoice
	if c == nil {
		return nil, nil
	}
	if !wirekit.KnownChoice(c.Mode) {
		return nil, fmt.Errorf("ollama: %w: at /tool_choice: no such mode as %.40q", dragoman.ErrInvalid, c.Mode)
	}
	wirekit.ReportChoice(e.rep, c, name)
	if len(e.req.Tools) == 0 {
		return nil, nil
	}
	switch c.Mode {
	case dragoman.ChoiceNone:
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "Ollama has no choice of none; no tools are sent")
		return []dragoman.ToolRef{}, nil
	case dragoman.ChoiceTool:
		if len(c.Tools) != 1 {
			return nil, fmt.Errorf("ollama: a forced tool choice names %d tools, want one: %w", len(c.Tools), dragoman.ErrUnsupported)
		}
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama cannot force a call; the one tool is sent, and the model may answer without it")
	case dragoman.ChoiceRequired:
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama cannot force a call; the model may answer without one")
	case codes.ChoiceOpaque:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a choice only its own provider understands")
		return nil, nil
	}
	if c.Tools != nil && c.Mode != dragoman.ChoiceTool {
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama knows no allowed tools; the others are not sent")
	}
	return c.Tools, nil
}

// choiceOfNothing reports a choice among tools where none is sent (quirk E3).
func (e *requestEncoder) choiceOfNothing() {
	c := e.req.ToolChoice
	if c != nil && len(e.req.Tools) == 0 && c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
	}
}

func (e *requestEncoder) output() {
	f := e.req.Output
	if f == nil {
		return
	}
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = codes.OutputSchema // what else would it be for
	}
	switch kind {
	case codes.OutputJSON:
		e.w.StringField("format", "json")
	case codes.OutputSchema:
		e.outputSchema(f)
	case codes.OutputText, "":
		return
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "Ollama has no output of kind %.40q", kind)
		return
	}
	if e.written > 0 && f.Dialect != name { // quirk F9
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "Ollama holds every answer to the format, so that a model may call no tool")
	}
	if f.Name != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/name", "the format has no name")
	}
	if f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/description", "the format has no description")
	}
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
}

func (e *requestEncoder) outputSchema(f *dragoman.OutputFormat) {
	if len(f.Schema) == 0 {
		e.w.StringField("format", "json")
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "an output schema is asked for, but there is none; any JSON will do")
		return
	}
	out := []byte(f.Schema)
	if f.Dialect != name {
		lowered, err := schema.Lower(f.Schema, formatProfile)
		e.rep.Merge("/output/schema", lowered.Report)
		if err != nil {
			e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "sent as it is: %v", err)
		} else {
			out = lowered.Schema
		}
	}
	e.w.RawField("format", out)
}

// think writes whether, or how much, to think.
func (e *requestEncoder) think() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	switch level := e.level(s); {
	case s.Mode == codes.ReasoningOff, s.Effort == "none":
		e.w.BoolField("think", false)
	case level != "" && e.target.Caps.NoThinkLevels && !e.own():
		// Servers before levels, and models without them, refuse a string.
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "%s written as true: the model is not known to take levels", level)
		e.w.BoolField("think", true)
	case level != "":
		e.w.StringField("think", level)
	case s.Mode == codes.ReasoningAdaptive, s.Effort != "":
		e.w.BoolField("think", true)
	}
	if s.Summary != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Ollama shows the thinking itself")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Ollama encrypts no thinking")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// own reports whether the request came from a client of this dialect.
func (e *requestEncoder) own() bool { return e.req.Native != nil && e.req.Native.Dialect == name }

// level is how much to think, in Ollama's words; empty where nothing says so.
func (e *requestEncoder) level(s *dragoman.ReasoningSettings) string {
	off := s.Mode == codes.ReasoningOff || s.Effort == "none"
	budget := s.BudgetTokens
	switch {
	case off && s.Effort != "" && s.Effort != "none":
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %.40q contradicts mode off, which wins", s.Effort)
	case budget == nil && s.Mode == codes.ReasoningBudget:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode budget names no budget")
	}
	if budget != nil && (off || s.Effort != "" || s.Mode == codes.ReasoningAdaptive) {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "Ollama has no budget of %d tokens", *budget)
		budget = nil
	}
	switch effort := s.Effort; {
	case off:
		return ""
	case budget != nil:
		level := wirekit.EffortOf(*budget)
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/budget_tokens", "a budget of %d tokens written as %q", *budget, level)
		return level
	case effort == "", knownLevel(effort):
		return effort
	default:
		level := map[string]string{"minimal": "low", "xhigh": "max"}[effort]
		written := level
		if level == "" {
			written = "true"
		}
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q written as %s", effort, written)
		return level
	}
}
