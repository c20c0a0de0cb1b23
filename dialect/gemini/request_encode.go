package gemini

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// EncodeRequest implements [dialect.Codec]. A request of this dialect that was
// not changed is written byte for byte, regardless of its model and of
// streaming, which are in the URL. The same holds for every unchanged tool and
// message, and for every unchanged part of merged messages.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	if req != nil && (req.Stream || req.StreamUsage) {
		body := *req
		body.Stream, body.StreamUsage = false, false // what the body would decode to
		if enc, ok := replayed(&body, limits, o); ok {
			return enc, nil
		}
	}
	if foreignState(req, limits, o) {
		o.Rebuild = true
	}
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{
			conversation: newConversation(reg, limits, o, rep),
			req:          wirekit.FitSettings(req, o.Target.Caps, rep),
		}
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, true))
		return &e.w, e.encode()
	})
}

// replayed returns an unchanged request with its original body.
func replayed(req *dragoman.Request, limits targets.Limits, o dialect.EncodeOptions) (dialect.Encoded, bool) {
	if req.Native == nil || foreignState(req, limits, o) || req.Validate() != nil {
		return dialect.Encoded{}, false
	}
	body, ok := wirekit.ReplayRequest(req, limits, o)
	if !ok {
		return dialect.Encoded{}, false
	}
	return dialect.Encoded{Body: body, Registry: wirekit.EncodeRegistry(req, limits, toolCodecs, o)}, true
}

// foreignState reports whether the unknown fields of a part contain a signature
// that another model made.
func foreignState(req *dragoman.Request, limits targets.Limits, o dialect.EncodeOptions) bool {
	if req == nil || req.Native == nil {
		return false
	}
	target := o.Target
	target.Dialect = limits.Dialect
	if target.Model == "" {
		target.Model = req.Model
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if slices.ContainsFunc(m.Parts, hidesSignature) && !wirekit.MayReplayReasoning(m, nil, &limits, &target) {
			return true
		}
	}
	return false
}

func hidesSignature(p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Media:
		if p == nil {
			return false
		}
		_, signed := extra.Get(p.Extra, name, "/thoughtSignature")
		return signed
	case *dragoman.Opaque:
		if p == nil || p.Dialect != name {
			return false
		}
		signed, _ := withoutSignature(p.JSON)
		return signed != ""
	default:
		return false
	}
}

type requestEncoder struct {
	conversation
	w   jsonwire.Writer
	req *dragoman.Request
	// cached reports that a cached content holds the instructions and tools.
	cached bool
	// droppedHosted reports that hosted tools were dropped because there are functions.
	droppedHosted bool
	// box holds the offered tools.
	box *toolbox
	// schema is the output schema to write, or nil.
	schema []byte
}

func (e *requestEncoder) encode() error {
	_, e.cached = extra.Get(e.req.Extra, name, "/cachedContent")
	e.arrange(e.req)
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	return settings.Write(e, to, nil)
}

func (e *requestEncoder) contents() error {
	e.w.Key("contents")
	e.w.BeginArray()
	for i := range e.Turns {
		if err := e.write(&e.w, &e.Turns[i]); err != nil {
			return err
		}
	}
	e.w.EndArray()
	return nil
}

// model writes the model if the decoded body named it; otherwise it reports
// that the model is in the URL.
func (e *requestEncoder) model() {
	_, named := extra.Get(e.req.Extra, name, "/model")
	switch {
	case named && e.req.Model != "":
		e.w.StringField("model", e.req.Model)
	case e.req.Model != "":
		e.rep.Add(dragoman.Moved, dragoman.Info, "/model", "the model is in the URL, not in the body")
	}
}

// inCache reports whether a field is omitted because the request names a cached
// content, which must contain it (quirk D37).
func (e *requestEncoder) inCache(path string) bool {
	if e.cached {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, path, "the request uses cached content, which must contain this field itself")
	}
	return e.cached
}

func (e *requestEncoder) systemInstruction() error {
	const member = "systemInstruction"
	w := &e.w
	kept := extra.Has(e.req.Extra, name, "/"+member)
	if len(e.System) == 0 && !kept || len(e.System) > 0 && e.inCache("/instructions") {
		return nil
	}
	e.w.Key(member)
	w.BeginObject()
	if len(e.System) > 0 {
		w.Key("parts")
		w.BeginArray()
		for i := range e.System {
			if err := e.writePart(w, &e.System[i]); err != nil {
				return err
			}
		}
		w.EndArray()
	}
	extra.WriteBut(w, e.req.Extra, name, "/"+member, func(f dragoman.Field) bool {
		return f.Path == "/systemInstruction/parts" && len(e.System) > 0
	})
	w.EndObject()
	return nil
}

// toolbox holds the tools that are offered to the model.
type toolbox struct {
	// functions are the positions of the declared functions; lost marks those
	// that could not be written.
	functions []int
	lost      map[int]bool
	specs     []dragoman.ToolSpec
}

// tools writes the tools: all functions in one element, each hosted tool in its
// own (quirk A44).
func (e *requestEncoder) tools() error {
	w := &e.w
	t := &toolbox{specs: e.req.Tools, lost: map[int]bool{}}
	e.box = t
	if err := wirekit.CheckTools("gemini", e.req, e.target.Caps); err != nil {
		return err
	}
	var before, after []int
	for i := range t.specs {
		switch {
		case !hosted(&t.specs[i]):
			if e.allowed(i) {
				t.functions = append(t.functions, i)
			}
		case len(t.functions) == 0:
			before = append(before, i)
		default:
			after = append(after, i)
		}
	}
	if len(t.specs) == 0 || e.inCache("/tools") {
		t.functions = nil
		return nil
	}
	if e.target.Caps.NoMixedTools && len(t.functions) > 0 {
		e.dropHosted(before, after)
		before, after = nil, nil
	}
	mark := len(w.Buf)
	e.w.Key("tools")
	w.BeginArray()
	written := 0
	for _, group := range [][]int{before, t.functions, after} {
		n, err := e.group(t, group)
		if err != nil {
			return fmt.Errorf("gemini: tools: %w", err)
		}
		written += n
	}
	w.EndArray()
	if written == 0 {
		w.Buf = w.Buf[:mark]
	}
	t.functions = slices.DeleteFunc(t.functions, func(i int) bool { return t.lost[i] })
	return nil
}

// dropHosted drops the hosted tools that the model does not accept together with
// functions, and their configuration (quirk A44).
func (e *requestEncoder) dropHosted(groups ...[]int) {
	for _, group := range groups {
		for _, i := range group {
			e.droppedHosted = true
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, extra.Elem("/tools", i).String(), "the model does not accept %s together with functions; the tool and its configuration are dropped", e.req.Tools[i].Name)
		}
	}
}

// hosted reports whether a tool is run by the API.
func hosted(s *dragoman.ToolSpec) bool {
	return s.Kind == codes.ToolHosted && s.Source != nil && strings.HasPrefix(string(s.Source.Format), string(name)+".")
}

// allowed reports whether a tool is sent. If the server does not support a list
// of allowed names, tools that the choice does not allow are omitted (quirk
// E9).
func (e *requestEncoder) allowed(i int) bool {
	c, s := e.req.ToolChoice, &e.req.Tools[i]
	if !e.target.Caps.NoAllowedTools || c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceRequired {
		return true
	}
	if slices.ContainsFunc(c.Tools, func(ref dragoman.ToolRef) bool { return names(ref, s) }) {
		return true
	}
	e.rep.Add(dragoman.Lowered, dragoman.Warn, extra.Elem("/tools", i).String(), "the server does not support allowed tools; this tool is not allowed and not sent")
	return false
}

func names(ref dragoman.ToolRef, s *dragoman.ToolSpec) bool {
	return ref.Native == nil && ref.Name == s.Name && ref.Namespace == s.Namespace
}

// group writes tools of one kind and returns the number of elements it wrote.
func (e *requestEncoder) group(t *toolbox, group []int) (int, error) {
	if len(group) == 0 {
		return 0, nil
	}
	w := &e.w
	specs := make([]dragoman.ToolSpec, len(group))
	for i, at := range group {
		specs[i] = t.specs[at]
	}
	functions := !hosted(&specs[0])
	mark, first := len(w.Buf), len(e.rep.Losses)
	if functions {
		w.BeginObject()
		w.Key("functionDeclarations")
		w.BeginArray()
	}
	n, err := e.reg.WriteTools(w, specs, e.rep)
	if functions {
		w.EndArray()
		w.EndObject()
		if n == 0 {
			w.Buf = w.Buf[:mark]
		}
		n = min(n, 1)
	}
	e.relocateLosses(t, group, first)
	return n, err
}

// relocateLosses changes the paths of the losses since first from positions in the
// group to positions in the request, and records the tools that were dropped.
func (e *requestEncoder) relocateLosses(t *toolbox, group []int, first int) {
	for i := first; i < len(e.rep.Losses); i++ {
		l := &e.rep.Losses[i]
		num, rest, _ := strings.Cut(strings.TrimPrefix(l.Path, "/tools/"), "/")
		at, err := strconv.Atoi(num)
		if err != nil || at >= len(group) {
			continue
		}
		if rest == "" && l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious {
			t.lost[group[at]] = true
		}
		l.Path = strings.TrimSuffix(extra.Elem("/tools", group[at]).String()+"/"+rest, "/")
	}
}

// holds reports whether a chosen tool was written.
func (t *toolbox) holds(ref dragoman.ToolRef) bool {
	return slices.ContainsFunc(t.functions, func(i int) bool { return names(ref, &t.specs[i]) })
}

// toolConfig writes which functions may be called, if there are functions
// (quirk E3), and the other fields of the same object.
func (e *requestEncoder) toolConfig() error {
	t := e.box
	c, err := e.effectiveChoice(t)
	if err != nil {
		return err
	}
	if e.req.ParallelToolCalls != nil && !*e.req.ParallelToolCalls && len(t.functions) > 0 {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the API cannot forbid several calls at once")
	}
	inCall := len(t.functions) > 0 && extra.Has(e.req.Extra, name, callPath)
	if c == nil && !inCall && !extra.Has(e.req.Extra, name, configPath) || e.cached {
		if c != nil {
			e.inCache("/tool_choice")
		}
		return nil
	}
	w := &e.w
	mark := len(w.Buf)
	e.w.Key("toolConfig")
	w.BeginObject()
	start := len(w.Buf)
	if c != nil || inCall {
		w.Key("functionCallingConfig")
		e.writeChoice(c, t)
	}
	extra.WriteBut(w, e.req.Extra, name, configPath, func(f dragoman.Field) bool {
		return f.Path == callPath && (c != nil || inCall) || e.droppedHosted && configuresHosted(f.Path)
	})
	if e.droppedHosted && len(w.Buf) == start { // it only configured tools that are not sent
		w.Buf = w.Buf[:mark]
		return nil
	}
	w.EndObject()
	return nil
}

// configuresHosted reports whether a field of the tool config configures hosted tools.
func configuresHosted(path string) bool {
	switch string(jsonwire.Camel([]byte(strings.TrimPrefix(path, configPath+"/")))) {
	case "retrievalConfig", "includeServerSideToolInvocations":
		return true
	default:
		return false
	}
}

// effectiveChoice returns the tool choice to write, or nil.
func (e *requestEncoder) effectiveChoice(t *toolbox) (*dragoman.ToolChoice, error) {
	c := e.req.ToolChoice
	if c == nil {
		return nil, nil
	}
	if !wirekit.KnownChoice(c.Mode) {
		return nil, fmt.Errorf("gemini: %w: at /tool_choice: unknown mode %.40q", dragoman.ErrInvalid, c.Mode)
	}
	if c.Mode == dragoman.ChoiceTool && !e.cached && len(e.req.Tools) > 0 {
		// A choice of a missing tool is an error; it never becomes auto (quirk
		// E5).
		if len(c.Tools) != 1 {
			return nil, fmt.Errorf("gemini: tool choice of mode tool names %d tools, want 1: %w", len(c.Tools), dragoman.ErrUnsupported)
		}
		if !t.holds(c.Tools[0]) {
			return nil, fmt.Errorf("gemini: tool choice %q names a tool that is not sent: %w", c.Tools[0].Name, dragoman.ErrUnsupported)
		}
	}
	if !e.cached {
		if err := wirekit.CheckAllowedTools("gemini", e.req, t.holds); err != nil {
			return nil, err
		}
	}
	if len(t.functions) == 0 && !e.cached {
		if c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceNone {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		return nil, nil
	}
	wirekit.ReportChoice(e.rep, c, name)
	if c.Mode == codes.ChoiceOpaque && (c.Native == nil || c.Native.Format != formatChoice) {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "a tool choice that only its own provider understands")
		return nil, nil
	}
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the model does not accept a forced choice; %s written as auto", c.Mode)
		return &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, nil
	}
	return c, nil
}

// writeChoice writes the function calling config. With a nil choice it omits
// the mode. The API accepts names only with ANY and VALIDATED, so auto with a
// list of tools becomes VALIDATED (quirk E8).
func (e *requestEncoder) writeChoice(c *dragoman.ToolChoice, t *toolbox) {
	w := &e.w
	if c != nil && c.Mode == codes.ChoiceOpaque {
		w.Raw(c.Native.JSON)
		return
	}
	w.BeginObject()
	if c != nil {
		mode, allowed := e.mode(c, t)
		w.StringField("mode", mode)
		if len(allowed) > 0 {
			w.Key("allowedFunctionNames")
			w.BeginArray()
			for _, ref := range allowed {
				w.String(e.reg.WireName(ref.Namespace, ref.Name))
			}
			w.EndArray()
		}
		extra.WriteBut(w, e.req.Extra, name, callPath, func(f dragoman.Field) bool {
			return f.Path == callPath+"/allowedFunctionNames" && len(allowed) > 0
		})
	} else {
		extra.Write(w, e.req.Extra, name, callPath)
	}
	w.EndObject()
}

func (e *requestEncoder) mode(c *dragoman.ToolChoice, t *toolbox) (mode string, allowed []dragoman.ToolRef) {
	if e.target.Caps.NoAllowedTools && c.Mode != dragoman.ChoiceTool {
		c = &dragoman.ToolChoice{Mode: c.Mode, Extra: c.Extra} // the list of tools was filtered instead
	}
	for i, ref := range c.Tools {
		if t.holds(ref) {
			allowed = append(allowed, ref)
			continue
		}
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "tool %.80q is not sent", ref.Name)
	}
	validated, _ := extra.Get(c.Extra, name, "/mode")
	switch {
	case c.Mode == dragoman.ChoiceNone:
		return "NONE", nil
	case c.Tools != nil && len(allowed) == 0: // an empty list would allow all
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "none of the allowed tools is sent; no tool may be called")
		return "NONE", nil
	case c.Mode == dragoman.ChoiceRequired, c.Mode == dragoman.ChoiceTool:
		return "ANY", allowed
	case jsonwire.Unquote(validated) == "VALIDATED":
		return "VALIDATED", allowed
	case len(allowed) > 0:
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "auto with a list of tools written as VALIDATED, which also validates arguments")
		return "VALIDATED", allowed
	default:
		return "AUTO", nil
	}
}

// fromOwnDialect reports whether the request was decoded from this dialect.
func (e *requestEncoder) fromOwnDialect() bool {
	return e.req.Native != nil && e.req.Native.Dialect == name
}

// output writes the MIME type of the output and selects the schema.
func (e *requestEncoder) output() {
	f, w := e.req.Output, &e.w
	if f == nil || f.Kind == codes.OutputText {
		return
	}
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target does not support output formats")
		return
	}
	if f.Name != "" || f.Description != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/output", "name and description of the output schema")
	}
	w.StringField("responseMimeType", "application/json")
	if f.Schema == nil {
		return
	}
	closed := e.target.Caps.ClosedSchemas
	out, profile := f.Schema, openOutput
	if closed {
		profile = closedOutput
	}
	if f.Dialect != name || closed {
		low, err := schema.Lower(f.Schema, profile)
		e.rep.Merge("/output/schema", low.Report)
		if err != nil {
			e.rep.Addf(dragoman.Lowered, dragoman.Serious, "/output/schema", "schema dropped, any JSON requested: %v", err)
			return
		}
		out = low.Schema
	}
	e.schema = out
}

// closedSchema writes the output schema for a target that accepts only the
// closed form.
func (e *requestEncoder) closedSchema() {
	if e.schema != nil && e.target.Caps.ClosedSchemas {
		e.w.RawField("responseSchema", e.schema)
	}
}

func (e *requestEncoder) openSchema() {
	if e.schema != nil && !e.target.Caps.ClosedSchemas {
		e.w.RawField("responseJsonSchema", e.schema)
	}
}
