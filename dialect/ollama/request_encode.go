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

// EncodeRequest implements [dialect.Codec]. An unchanged request from this dialect keeps its
// bytes, except for the model. The same is true for each unchanged message and tool.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			messageEncoder: messageEncoder{list: "/messages", reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep},
			req:            wirekit.FitSettings(req, o.Target.Caps, rep),
		}
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, false))
		err := e.encode()
		w := e.w // copied, so that the large encoder can be freed
		return &w, err
	})
}

type requestEncoder struct {
	messageEncoder
	req *dragoman.Request
	// written counts the written tools.
	written int
}

func (e *requestEncoder) encode() error {
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	return settings.Write(e, to, nil)
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

// tools writes the definitions that the tool choice allows. The wire has no tool choice (quirk
// E1): only the allowed tools are sent (quirks E2, E9), and the registry stores them.
func (e *requestEncoder) tools() error {
	allowed, err := e.allowed()
	if err != nil {
		return err
	}
	e.reg.AllowOnly(allowed)
	tools, places := e.req.Tools, []int(nil)
	if allowed != nil {
		tools, places = wirekit.NamedTools(tools, allowed)
	}
	if len(tools) > 0 {
		if err := wirekit.CheckTools("ollama", e.req, e.target.Caps); err != nil {
			return err
		}
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	before := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[before:], places)
	e.w.EndArray()
	if err == nil {
		err = wirekit.CheckChosenTools("ollama", e.req, e.reg, e.w.Buf[start:])
	}
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
		e.reportUnusableChoice()
	}
	e.written = n
	return err
}

// allowed returns the tools that the tool choice allows; nil means all.
func (e *requestEncoder) allowed() ([]dragoman.ToolRef, error) {
	c := e.req.ToolChoice
	if c == nil {
		return nil, nil
	}
	if !wirekit.KnownChoice(c.Mode) {
		return nil, fmt.Errorf("ollama: %w: at /tool_choice: unknown mode %.40q", dragoman.ErrInvalid, c.Mode)
	}
	wirekit.ReportChoice(e.rep, c, name)
	if len(e.req.Tools) == 0 {
		return nil, nil
	}
	switch c.Mode {
	case dragoman.ChoiceNone:
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "Ollama has no tool choice \"none\"; no tools are sent")
		return []dragoman.ToolRef{}, nil
	case dragoman.ChoiceTool:
		if len(c.Tools) != 1 {
			return nil, fmt.Errorf("ollama: at /tool_choice: a forced choice names %d tools, want exactly one: %w", len(c.Tools), dragoman.ErrUnsupported)
		}
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama cannot force a call; only this tool is sent, and the model may answer without calling it")
	case dragoman.ChoiceRequired:
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama cannot force a call; the model may answer without calling a tool")
	case codes.ChoiceOpaque:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "this tool choice is only valid for its own provider")
		return nil, nil
	}
	if c.Tools != nil && c.Mode != dragoman.ChoiceTool {
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "Ollama has no list of allowed tools; the other tools are not sent")
	}
	return c.Tools, nil
}

// reportUnusableChoice reports a tool choice that has no tools to choose from (quirk E3).
func (e *requestEncoder) reportUnusableChoice() {
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
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target does not accept an output format")
		return
	}
	kind := f.Kind
	if kind == "" && len(f.Schema) > 0 {
		kind = codes.OutputSchema // a schema implies the kind
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
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/output", "Ollama enforces the format on every response, so the model may not call tools")
	}
	if f.Name != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/name", "Ollama output formats have no name")
	}
	if f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output/description", "Ollama output formats have no description")
	}
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
}

func (e *requestEncoder) outputSchema(f *dragoman.OutputFormat) {
	if len(f.Schema) == 0 {
		e.w.StringField("format", "json")
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output/schema", "the output kind is schema, but there is no schema; any JSON is accepted")
		return
	}
	out := []byte(f.Schema)
	if f.Dialect != name {
		lowered, err := schema.Lower(f.Schema, formatProfile)
		e.rep.Merge("/output/schema", lowered.Report)
		if err != nil {
			e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "sent unchanged: %v", err)
		} else {
			out = lowered.Schema
		}
	}
	e.w.RawField("format", out)
}

// think writes whether to think, or how much.
func (e *requestEncoder) think() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	switch level := e.level(s); {
	case s.Mode == codes.ReasoningOff, s.Effort == "none":
		e.w.BoolField("think", false)
	case level != "" && e.target.Caps.NoThinkLevels && !e.fromOwnDialect():
		// Older servers, and models without levels, refuse a string.
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %s is written as true: the model is not known to accept levels", level)
		e.w.BoolField("think", true)
	case level != "":
		e.w.StringField("think", level)
	case s.Mode == codes.ReasoningAdaptive, s.Effort != "":
		e.w.BoolField("think", true)
	}
	if s.Summary != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "Ollama returns the thinking itself, not a summary")
	}
	if s.Encrypted != nil && *s.Encrypted {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/encrypted", "Ollama does not encrypt thinking")
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// fromOwnDialect reports whether the request came from an Ollama client.
func (e *requestEncoder) fromOwnDialect() bool {
	return e.req.Native != nil && e.req.Native.Dialect == name
}

// level returns the thinking level in Ollama's terms; empty if unspecified.
func (e *requestEncoder) level(s *dragoman.ReasoningSettings) string {
	off := s.Mode == codes.ReasoningOff || s.Effort == "none"
	budget := s.BudgetTokens
	switch {
	case off && s.Effort != "" && s.Effort != "none":
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %.40q contradicts mode off; mode off is used", s.Effort)
	case budget == nil && s.Mode == codes.ReasoningBudget:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode is budget, but no budget is set")
	}
	if budget != nil && (off || s.Effort != "" || s.Mode == codes.ReasoningAdaptive) {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "Ollama has no token budgets; the budget of %d is dropped", *budget)
		budget = nil
	}
	switch effort := s.Effort; {
	case off:
		return ""
	case budget != nil:
		level := wirekit.EffortOf(*budget)
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/budget_tokens", "budget of %d tokens is written as effort %q", *budget, level)
		return level
	case effort == "", knownLevel(effort):
		return effort
	default:
		level := map[string]string{"minimal": "low", "xhigh": "max"}[effort]
		written := level
		if level == "" {
			written = "true"
		}
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %.40q is written as %s", effort, written)
		return level
	}
}
