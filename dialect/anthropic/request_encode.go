package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request of this dialect that was
// not changed is written byte for byte, except for its model. So is every
// unchanged tool and message, except that string content becomes a block, and
// every unchanged block of merged messages.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	return wirekit.EncodeRequest(req, c.Limits(), toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{blockwire.NewRequestEncoder(blockwire.NewConversation(format, reg, o, rep), req)}
		return &e.W, e.encode()
	})
}

type requestEncoder struct{ blockwire.RequestEncoder }

func (e *requestEncoder) encode() error {
	e.arrange(e.Req)
	var err error
	if e.Toolbox, err = e.allowedTools(); err != nil {
		return err
	}
	e.Cache("cache_control", e.Req.Cache)
	return blockwire.EncodeSettings(&e.RequestEncoder, settings, e)
}

// allowedTools narrows the tools if the choice allows only some: this wire has no
// allowed_tools (quirk E9).
func (e *requestEncoder) allowedTools() (blockwire.Toolbox, error) {
	t := blockwire.Toolbox{API: "anthropic", Specs: e.Req.Tools}
	if err := wirekit.CheckTools("anthropic", e.Req, e.Target.Caps); err != nil {
		return t, err
	}
	c := e.Req.ToolChoice
	if c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceRequired {
		return t, nil
	}
	t.Allow(c.Tools, len(e.Req.Tools), e.Rep)
	return t, nil
}

// choice writes the tool choice with the parallel flag inside it, if there are
// tools (quirks E3, E6).
func (e *requestEncoder) choice() error {
	t := &e.Toolbox
	c, parallel := e.Req.ToolChoice, e.Req.ParallelToolCalls
	if err := t.Check(c); err != nil {
		return err
	}
	if err := wirekit.CheckAllowedTools("anthropic", e.Req, t.Holds); err != nil {
		return err
	}
	if t.Written == 0 {
		if c != nil && c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceNone {
			e.Rep.Add(dragoman.Dropped, dragoman.Serious, "/tool_choice", "no tools remain to choose from")
		}
		if parallel != nil {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no tools remain")
		}
		return nil
	}
	if parallel != nil && e.Target.Caps.NoParallelFlag {
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/parallel_tool_calls", "the target rejects the flag")
		parallel = nil
	}
	if c == nil {
		if parallel == nil || *parallel {
			return nil // parallel calls are the default of the API
		}
		c = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}
	}
	mode := e.ChoiceMode(c)
	w := &e.W
	if mode == codes.ChoiceOpaque {
		if raw := e.NativeChoice(c, formatChoice); raw != nil {
			e.W.Key("tool_choice")
			w.Raw(raw)
		}
		return nil
	}
	e.W.Key("tool_choice")
	w.BeginObject()
	switch mode {
	case dragoman.ChoiceRequired:
		w.StringField("type", "any")
	case dragoman.ChoiceNone:
		w.StringField("type", "none")
	case dragoman.ChoiceTool:
		w.StringField("type", "tool")
		w.StringField("name", e.Reg.WireName(c.Tools[0].Namespace, c.Tools[0].Name))
	default:
		w.StringField("type", "auto")
	}
	switch {
	case parallel == nil:
	case mode == dragoman.ChoiceNone:
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "the API rejects the flag with tool choice none")
	default:
		w.BoolField("disable_parallel_tool_use", !*parallel)
	}
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	return nil
}

// thinking writes the thinking settings. The effort is written in
// output_config.
func (e *requestEncoder) thinking() {
	if e.Reasoning() == nil {
		return
	}
	e.ReportMode()
	if typ := e.ThinkingType(); typ != "" {
		e.W.Key("thinking")
		e.Thinking(typ, "/thinking")
	}
}
