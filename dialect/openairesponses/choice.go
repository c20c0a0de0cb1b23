package openairesponses

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// choice decodes a tool choice in any of its forms: a mode, a tool by type and name, or a list of
// allowed tools. An unknown form is opaque.
func (d *itemDecoder) choice(raw []byte) (*dragoman.ToolChoice, error) {
	r := jsonwire.NewReader(raw)
	if r.Kind() == '"' {
		switch mode := r.String(); mode {
		case dragoman.ChoiceAuto, dragoman.ChoiceNone, dragoman.ChoiceRequired:
			return &dragoman.ToolChoice{Mode: mode}, nil
		default:
			return opaqueChoice(raw), nil
		}
	}
	c := &dragoman.ToolChoice{}
	ref := dragoman.ToolRef{}
	typ := ""
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type":
			typ = r.String()
		case k == "name" && r.Kind() == '"':
			ref.Name = r.String()
		case k == "mode" && r.Kind() == '"':
			c.Mode = r.String()
		case k == "tools" && r.Kind() == '[':
			c.Tools = []dragoman.ToolRef{}
			for range r.Array() {
				c.Tools = append(c.Tools, d.toolRef(r.Raw()))
			}
		default:
			extra.Add(&c.Extra, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	switch {
	case typ == "allowed_tools" && c.Tools != nil && (c.Mode == dragoman.ChoiceAuto || c.Mode == dragoman.ChoiceRequired):
		return c, nil
	case (typ == "function" || typ == "custom") && ref.Name != "" && c.Mode == "" && c.Tools == nil:
		if typ == "custom" {
			ref.Kind = codes.ToolFreeform
		}
		ref.Namespace, ref.Name, _ = d.reg.PublicName("", ref.Name)
		c.Mode, c.Tools = dragoman.ChoiceTool, []dragoman.ToolRef{ref}
		return c, nil
	default:
		return opaqueChoice(raw), nil
	}
}

func nativeChoice(raw []byte) *dragoman.Native {
	return &dragoman.Native{Format: dragoman.Format(name), JSON: raw}
}

func opaqueChoice(raw []byte) *dragoman.ToolChoice {
	return &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: nativeChoice(raw)}
}

// toolRef decodes one entry of a list of allowed tools. An entry with a name is a reference to a
// tool. An entry without a name, or for a tool that the API runs itself, is kept unchanged.
func (d *itemDecoder) toolRef(raw []byte) dragoman.ToolRef {
	r := jsonwire.NewReader(raw)
	ref, typ := dragoman.ToolRef{}, ""
	if r.Kind() == '{' {
		for key := range r.Object() {
			switch {
			case string(key) == "type" && r.Kind() == '"':
				typ = r.String()
			case string(key) == "name" && r.Kind() == '"':
				ref.Name = r.String()
			default:
				extra.Add(&ref.Extra, name, "", key, r.Raw())
			}
		}
	}
	if ref.Name == "" || typ != "" && typ != "function" && typ != "custom" {
		return dragoman.ToolRef{Name: ref.Name, Kind: codes.ToolHosted, Native: nativeChoice(raw)}
	}
	if typ == "custom" {
		ref.Kind = codes.ToolFreeform
	}
	ref.Namespace, ref.Name, _ = d.reg.PublicName("", ref.Name)
	return ref
}

// choice writes the tool choice, only together with tools (quirk E3).
func (e *requestEncoder) choice() error {
	c := e.req.ToolChoice
	if c != nil && !knownMode(c) {
		return fmt.Errorf("openairesponses: at /tool_choice: unknown mode %q: %w", c.Mode, dragoman.ErrInvalid)
	}
	if !e.hasExternalTools() {
		if err := wirekit.CheckAllowedTools("openairesponses", e.req, e.sends); err != nil {
			return err
		}
	}
	if e.written == 0 && !e.hasExternalTools() {
		if err := wirekit.CheckForcedChoice("openairesponses", e.req); err != nil {
			return err
		}
		if c != nil && c.Mode != dragoman.ChoiceNone && c.Mode != dragoman.ChoiceAuto {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		} else if c != nil {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/tool_choice", "no tools remain to choose from")
		}
		return nil
	}
	if c == nil {
		return nil
	}
	return e.writeChoice(c)
}

// parallel writes the parallel flag, only together with tools (quirk E3).
func (e *requestEncoder) parallel() {
	p := e.req.ParallelToolCalls
	switch {
	case p == nil:
	case e.written == 0 && !e.hasExternalTools():
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain, so the flag is not sent")
	case e.target.Caps.NoParallelFlag:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the target rejects the flag")
	default:
		e.w.BoolField("parallel_tool_calls", *p)
	}
}

// knownMode reports whether a choice has a mode that can be written. A native choice of this
// dialect needs no mode.
func knownMode(c *dragoman.ToolChoice) bool {
	return wirekit.KnownChoice(c.Mode) || isNative(c.Native)
}

func isNative(n *dragoman.Native) bool { return n != nil && n.Format == dragoman.Format(name) }

// hasExternalTools reports whether tools come from outside the list: from an input item, or from
// a stored prompt.
func (e *requestEncoder) hasExternalTools() bool {
	if _, ok := extra.Get(e.req.Extra, name, "/prompt"); ok {
		return true
	}
	for i := range e.req.Messages {
		for _, p := range e.req.Messages[i].Parts {
			if o, ok := p.(*dragoman.Opaque); ok && o.Dialect == name && (o.Type == "additional_tools" || o.Type == "tool_search_output") {
				return true
			}
		}
	}
	return false
}

func (e *requestEncoder) writeChoice(c *dragoman.ToolChoice) error {
	w := &e.w
	if wirekit.RefusesForced(e.req, e.target.Caps) {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target does not accept a forced choice; %s is written as auto", c.Mode)
		e.w.Key("tool_choice")
		w.String("auto")
		return nil
	}
	switch {
	case isNative(c.Native):
		e.w.Key("tool_choice")
		w.Raw(c.Native.JSON)
	case c.Mode == codes.ChoiceOpaque:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "this tool choice is only valid for its own provider")
	case c.Mode == dragoman.ChoiceTool:
		if len(c.Tools) != 1 {
			return fmt.Errorf("openairesponses: at /tool_choice: a forced choice names %d tools, want exactly one: %w", len(c.Tools), dragoman.ErrUnsupported)
		}
		return e.forceTool(c)
	case c.Tools != nil && c.Mode != dragoman.ChoiceNone && !e.target.Caps.NoAllowedTools:
		e.allowTools(c)
	default:
		e.w.Key("tool_choice")
		w.String(c.Mode)
	}
	wirekit.ReportChoice(e.rep, c, name)
	return nil
}

func (e *requestEncoder) forceTool(c *dragoman.ToolChoice) error {
	w, ref := &e.w, c.Tools[0]
	spec := e.declared(ref)
	switch {
	case isNative(ref.Native):
		e.w.Key("tool_choice")
		w.Raw(ref.Native.JSON)
		return nil
	case sendsHosted(spec):
	case e.native && (spec == nil || spec.Kind != codes.ToolHosted):
		// The server knows tools that we do not know, such as loaded and stored ones.
	case spec == nil || spec.Kind == codes.ToolHosted:
		// Never lower it to "auto" silently (quirk E5).
		return fmt.Errorf("openairesponses: tool choice %q names a tool that is not sent: %w", ref.Name, dragoman.ErrUnsupported)
	case !e.sends(ref):
		return fmt.Errorf("openairesponses: tool choice %q names a tool that is not sent: %w", ref.Name, dragoman.ErrUnsupported)
	case e.unaddressable(spec):
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "tool %q is namespaced or deferred and cannot be forced by name; any tool is required instead", spec.QualifiedName())
		e.w.Key("tool_choice")
		w.String("required")
		return nil
	}
	e.w.Key("tool_choice")
	w.BeginObject()
	e.toolRef(ref, spec)
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	wirekit.ReportChoice(e.rep, c, name)
	return nil
}

func (e *requestEncoder) allowTools(c *dragoman.ToolChoice) {
	w := &e.w
	start := len(w.Buf)
	e.w.Key("tool_choice")
	w.BeginObject()
	w.StringField("type", "allowed_tools")
	w.StringField("mode", c.Mode)
	w.Key("tools")
	w.BeginArray()
	n, sent := 0, 0
	for i, ref := range c.Tools {
		spec := e.declared(ref)
		if e.sends(ref) {
			sent++
		}
		switch {
		case isNative(ref.Native):
			w.Raw(ref.Native.JSON)
		case ref.Native != nil:
			e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "this reference is only valid for its own provider")
			continue
		case !e.native && spec != nil && e.unaddressable(spec):
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "tool %q is namespaced or deferred and cannot be listed as allowed", spec.QualifiedName())
			continue
		case !sendsHosted(spec) && (spec != nil && spec.Kind == codes.ToolHosted || spec == nil && ref.Kind == codes.ToolHosted && !e.native):
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "tool %q is not sent", ref.Name)
			continue
		case !e.sends(ref) && !e.hasExternalTools():
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/tool_choice/tools", i).String(), "tool %q is not sent", ref.Name)
			continue
		default:
			w.BeginObject()
			e.toolRef(ref, spec)
			extra.Write(w, ref.Extra, name, "")
			w.EndObject()
		}
		n++
	}
	w.EndArray()
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	switch {
	case n > 0 || len(c.Tools) == 0:
	case sent == 0 && !e.hasExternalTools(): // an empty list of allowed tools must not allow all tools
		w.Buf = w.Buf[:start]
		w.StringField("tool_choice", "none")
	default:
		e.rep.Add(dragoman.Lowered, dragoman.Serious, "/tool_choice", "none of the allowed tools can be listed; all tools are allowed")
		w.Buf = w.Buf[:start]
		w.StringField("tool_choice", c.Mode)
	}
}

// sends reports whether a chosen tool is sent. For a native request, unknown tools count as sent,
// because the server knows loaded and stored tools that we do not.
func (e *requestEncoder) sends(ref dragoman.ToolRef) bool {
	spec := e.declared(ref)
	switch {
	case ref.Native != nil:
		return isNative(ref.Native)
	case spec == nil:
		return e.native
	case spec.Kind == codes.ToolHosted:
		return sendsHosted(spec)
	default:
		return e.native || !e.dropped[spec]
	}
}

// toolRef writes the fields that identify a tool.
func (e *requestEncoder) toolRef(ref dragoman.ToolRef, spec *dragoman.ToolSpec) {
	if ref.Kind == codes.ToolHosted || sendsHosted(spec) {
		h := hostedTool{typ: ref.Name}
		if spec != nil {
			h = readHosted(spec)
		}
		e.w.StringField("type", h.typ)
		e.w.StringFieldIf("server_label", h.label)
		return
	}
	typ := "function"
	freeform := ref.Kind == codes.ToolFreeform || spec != nil && spec.Kind == codes.ToolFreeform
	if freeform && !e.target.Caps.NoCustomTools {
		typ = "custom"
	}
	e.w.StringField("type", typ)
	e.w.StringField("name", e.reg.WireName(ref.Namespace, ref.Name))
}

// declared returns the definition of a referenced tool; the first one if there are several.
func (e *requestEncoder) declared(ref dragoman.ToolRef) *dragoman.ToolSpec {
	if e.tools == nil { // a map, because both lists may be long
		e.tools = make(map[toolKey]*dragoman.ToolSpec, len(e.req.Tools))
		for i := range e.req.Tools {
			t := &e.req.Tools[i]
			for _, k := range keysOf(t) {
				if _, taken := e.tools[k]; !taken {
					e.tools[k] = t
				}
			}
		}
	}
	return e.tools[keyOf(ref)]
}

// unaddressable reports whether a choice cannot name a tool: it can only name top-level tools
// that are loaded.
func (e *requestEncoder) unaddressable(s *dragoman.ToolSpec) bool {
	return s.Namespace != "" && !e.target.Caps.NoNamespaces || s.Deferred && !e.target.Caps.NoDeferred
}
