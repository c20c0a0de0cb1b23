package bedrock

import (
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// allowedTools narrows the tools if the choice allows only some or none: this wire
// has neither allowed tools nor a choice of none (quirks E2, E9).
func (e *requestEncoder) allowedTools() (blockwire.Toolbox, error) {
	t := blockwire.Toolbox{API: "bedrock", Specs: e.Req.Tools}
	if err := wirekit.CheckTools("bedrock", e.Req, e.Target.Caps); err != nil {
		return t, err
	}
	if e.Target.Caps.NoCacheBreakpoints {
		e.dropCachePoints(&t)
	}
	c := e.Req.ToolChoice
	e.Reg.AllowOnly(allowed(c))
	switch {
	case c == nil || len(t.Specs) == 0:
	case c.Mode == dragoman.ChoiceNone && e.usesTools():
		// Without tools the API refuses the calls in the conversation.
		e.Rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the API has no choice none, and a conversation with calls requires tools; calls of the response are blocked")
	case c.Mode == dragoman.ChoiceNone:
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/tool_choice", "the API has no choice none; no tools are sent")
		t.Specs = nil
	case c.Tools != nil && (c.Mode == dragoman.ChoiceAuto || c.Mode == dragoman.ChoiceRequired):
		t.Allow(c.Tools, len(e.Req.Tools), e.Rep)
	}
	return t, nil
}

// dropCachePoints drops the cache points in the list of tools that belong to no
// tool (quirk D31).
func (e *requestEncoder) dropCachePoints(t *blockwire.Toolbox) {
	var kept []dragoman.ToolSpec
	places := []int{}
	for i := range t.Specs {
		if s := &t.Specs[i]; s.Kind == codes.ToolHosted && s.Source != nil && blockKey(s.Source.JSON) == keyCache {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem("/tools", i).String(), "cache breakpoint: not supported by the target")
			continue
		}
		kept, places = append(kept, t.Specs[i]), append(places, i)
	}
	t.Keep(kept, places)
}

// allowed returns the tools that a response may call, if the wire cannot
// express it; nil means all.
func allowed(c *dragoman.ToolChoice) []dragoman.ToolRef {
	switch {
	case c == nil:
		return nil
	case c.Mode == dragoman.ChoiceNone:
		return []dragoman.ToolRef{}
	case c.Mode == dragoman.ChoiceAuto || c.Mode == dragoman.ChoiceRequired:
		return c.Tools
	default:
		return nil
	}
}

// usesTools reports whether the conversation contains calls or results.
func (e *requestEncoder) usesTools() bool {
	return slices.ContainsFunc(e.Turns, func(t blockwire.Turn) bool {
		return slices.ContainsFunc(t.Blocks, func(b blockwire.Block) bool {
			switch p := b.Part.(type) {
			case *dragoman.ToolCall, *dragoman.ToolResult:
				return true
			case *dragoman.Opaque:
				return p.Type == keyCall || p.Type == keyResult
			default:
				return false
			}
		})
	})
}

// toolConfig writes the tools and the tool choice.
func (e *requestEncoder) toolConfig() error {
	const at = "/toolConfig"
	w, t := &e.W, &e.Toolbox
	mark := len(w.Buf)
	w.Key("toolConfig")
	w.BeginObject()
	start := len(w.Buf)
	if err := e.tools(); err != nil {
		return err
	}
	if err := e.choice(t); err != nil {
		return err
	}
	extra.WriteBut(w, e.Req.Extra, name, at, func(f dragoman.Field) bool {
		return f.Path == at+"/tools" && t.Written > 0 || f.Path == at+"/toolChoice" && e.Req.ToolChoice != nil
	})
	if len(w.Buf) == start {
		w.Buf = w.Buf[:mark]
		return nil
	}
	w.EndObject()
	return nil
}

// tools writes the tools and records those that could not be written. A
// conversation with calls requires tools; if none were written, the called
// tools are declared as stubs (quirk D21).
func (e *requestEncoder) tools() error {
	e.ReserveStrict()
	if err := e.Tools(); err != nil || e.Toolbox.Written > 0 || !e.usesTools() {
		return err
	}
	stubs := e.stubs()
	var discarded dragoman.Report
	mark := len(e.W.Buf)
	e.W.Key("tools")
	e.W.BeginArray()
	n, err := e.Reg.WriteTools(&e.W, stubs, &discarded)
	e.W.EndArray()
	if err != nil {
		return fmt.Errorf("bedrock: tools: %w", err)
	}
	if n == 0 {
		e.W.Buf = e.W.Buf[:mark]
		return nil
	}
	e.Rep.Addf(dragoman.Synthesized, dragoman.Warn, "/tools", "%s of earlier calls declared, because the API requires it; the model must not call them", textkit.Count(n, "tool"))
	e.Reg.AllowOnly([]dragoman.ToolRef{}) // the caller did not offer them
	return nil
}

// stubs returns the tools that the conversation calls, each once, in order.
func (e *requestEncoder) stubs() []dragoman.ToolSpec {
	var specs []dragoman.ToolSpec
	seen := map[[2]string]bool{}
	for i := range e.Turns {
		for _, b := range e.Turns[i].Blocks {
			ns, tool := "", ""
			switch p := b.Part.(type) {
			case *dragoman.ToolCall:
				ns, tool = p.Namespace, p.Name
			case *dragoman.ToolResult:
				ns, tool = p.Namespace, p.Name
			}
			if id := [2]string{ns, tool}; tool != "" && !seen[id] {
				seen[id] = true
				specs = append(specs, dragoman.ToolSpec{Namespace: ns, Name: tool})
			}
		}
	}
	if len(specs) == 0 { // only results without their calls
		specs = append(specs, dragoman.ToolSpec{Name: "unknown"})
	}
	return specs
}

// choice writes the tool choice, if there are tools (quirk E3). The wire has no
// parallel flag (quirk E6).
func (e *requestEncoder) choice(t *blockwire.Toolbox) error {
	c := e.Req.ToolChoice
	if err := t.Check(c); err != nil {
		return err
	}
	if err := wirekit.CheckAllowedTools("bedrock", e.Req, t.Holds); err != nil {
		return err
	}
	e.parallel(t)
	if c == nil {
		return nil
	}
	if t.Written == 0 {
		if c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceNone {
			e.Rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		return nil
	}
	e.writeChoice(c, e.ChoiceMode(c))
	return nil
}

func (e *requestEncoder) writeChoice(c *dragoman.ToolChoice, mode string) {
	w := &e.W
	kind := "auto"
	switch mode {
	case codes.ChoiceOpaque:
		if raw := e.NativeChoice(c, formatChoice); raw != nil {
			w.RawField("toolChoice", raw)
		}
		return
	case dragoman.ChoiceNone: // handled by offered
		return
	case dragoman.ChoiceRequired:
		kind = "any"
	case dragoman.ChoiceTool:
		kind = "tool"
	}
	w.Key("toolChoice")
	w.BeginObject()
	w.Key(kind)
	w.BeginObject()
	if mode == dragoman.ChoiceTool {
		w.StringField("name", e.Reg.WireName(c.Tools[0].Namespace, c.Tools[0].Name))
	}
	extra.Write(w, c.Extra, name, "/"+kind)
	w.EndObject()
	w.EndObject()
}

// parallel reports that the parallel flag is dropped. Parallel calls are the
// default of the models.
func (e *requestEncoder) parallel(t *blockwire.Toolbox) {
	switch p := e.Req.ParallelToolCalls; {
	case p == nil:
	case t.Written == 0:
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain")
	case *p:
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "the API has no such flag; parallel calls are its default")
	default:
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the API cannot disable parallel calls")
	}
}
