package anthropic

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request that came from this
// dialect and was not changed is written byte for byte, with at most another
// model; so is every tool and every message that was not changed, but that a
// string of content becomes a block. Where messages are merged, so is each of
// their blocks.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	return wirekit.EncodeRequest(req, c.Limits(), toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		e := requestEncoder{blockwire.NewRequestEncoder(blockwire.NewConversation(format, reg, o, rep), req)}
		return &e.W, e.encode()
	})
}

type requestEncoder struct{ blockwire.RequestEncoder }

func (e *requestEncoder) encode() error {
	w, req := &e.W, e.Req
	e.arrange(req)
	tools, err := e.offered()
	if err != nil {
		return err
	}
	cache, ending := e.Cache("cache_control", tools.Specs, req.Cache)

	w.BeginObject()
	if model := req.Model; model != "" {
		e.Key("model")
		w.String(model)
	}
	e.maxTokens()
	e.ReserveStrict()
	if err := e.tools(&tools, &cache); err != nil {
		return err
	}
	if err := e.choice(&tools); err != nil {
		return err
	}
	if err := e.Prompt(&cache, nil); err != nil {
		return err
	}
	e.thinking()
	e.outputConfig()
	e.sampling()
	e.identity()
	if ending != nil {
		e.Wrote("cache_control")
		writeCacheControl(w, ending, extra.At(""), e.Rep)
	}
	if req.Stream {
		e.Key("stream")
		w.Bool(true)
	}
	e.Finish(len(req.Metadata) > 0, "/metadata", "the API takes no metadata but the user")
	return nil
}

// maxTokens writes the bound that the wire demands.
func (e *requestEncoder) maxTokens() {
	n := e.Req.MaxOutputTokens
	if n == nil {
		room := e.RoomForBudget(defaultMaxTokens)
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, "/max_output_tokens", "the API requires max_tokens; %d written", room)
		n = &room
	}
	e.Key("max_tokens")
	e.W.Int(*n)
}

// offered narrows the tools where the choice allows only some: this wire has
// no allowed_tools (quirk E9).
func (e *requestEncoder) offered() (blockwire.Toolbox, error) {
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

// tools writes the definitions and takes note of those that got lost.
func (e *requestEncoder) tools(t *blockwire.Toolbox, cache *blockwire.Breakpoints) error {
	if len(t.Specs) == 0 {
		return nil
	}
	return e.Field("tools", func() (bool, error) {
		e.W.BeginArray()
		if err := t.Write(&e.W, e.Reg, cache, e.Rep); err != nil {
			return false, err
		}
		e.W.EndArray()
		return t.Written > 0, nil
	})
}

// choice writes the tool choice with the parallel flag inside it, both only
// beside tools (quirks E3, E6).
func (e *requestEncoder) choice(t *blockwire.Toolbox) error {
	c, parallel := e.Req.ToolChoice, e.Req.ParallelToolCalls
	if err := t.Check(c); err != nil {
		return err
	}
	if err := wirekit.AllowsNone("anthropic", e.Req, t.Holds); err != nil {
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
			return nil // several calls at once are the API's default
		}
		c = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}
	}
	mode := e.ChoiceMode(c)
	w := &e.W
	if mode == dragoman.ChoiceOpaque {
		if raw := e.NativeChoice(c, formatChoice); raw != nil {
			e.Key("tool_choice")
			w.Raw(raw)
		}
		return nil
	}
	e.Key("tool_choice")
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
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "no call may be made, and the flag is illegal beside none")
	default:
		w.BoolField("disable_parallel_tool_use", !*parallel)
	}
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
	return nil
}

// thinking writes the thinking settings; effort has a place of its own.
func (e *requestEncoder) thinking() {
	if e.Reasoning() == nil {
		return
	}
	e.ReportMode()
	if typ := e.ThinkingType(); typ != "" {
		e.Key("thinking")
		e.Thinking(typ, "/thinking")
	}
}

// outputConfig writes effort and the output format.
func (e *requestEncoder) outputConfig() {
	effort, format := e.Effort(), e.Schema()
	if effort == "" && format == nil && !extra.Has(e.Req.Extra, name, "/output_config") {
		return
	}
	w := &e.W
	e.Key("output_config")
	w.BeginObject()
	w.StringFieldIf("effort", effort)
	if format != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "json_schema")
		w.RawField("schema", format)
		extra.Write(w, e.Req.Output.Extra, name, "")
		w.EndObject()
	}
	extra.WriteBut(w, e.Req.Extra, name, "/output_config", func(f dragoman.Field) bool {
		return f.Path == "/output_config/effort" && effort != "" || f.Path == "/output_config/format" && format != nil
	})
	w.EndObject()
}

// sampling writes how tokens are picked. While the model thinks the API takes no top_k,
// no temperature but 1 and no top_p below 0.95; Gemini CLI, for one, sends all of them.
func (e *requestEncoder) sampling() {
	s, w := e.Req.Sampling, &e.W
	typ := e.Thinks()
	thinks := typ != "" && typ != "disabled"
	temperature, topP := e.Samplers(thinks)
	if temperature != nil {
		e.Key("temperature")
		w.Raw([]byte(*temperature))
	}
	if topP != nil {
		e.Key("top_p")
		w.Raw([]byte(*topP))
	}
	if n := s.TopK; n != nil && !e.RefusesSampler("top_k", thinks) {
		e.Key("top_k")
		w.Int(*n)
	}
	e.UnsaidSampling()
	stop := s.Stop
	if slices.ContainsFunc(stop, blank) {
		stop = slices.DeleteFunc(slices.Clone(stop), blank)
		e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/stop", "stop sequences of nothing but white space")
	}
	if len(stop) > 0 {
		e.Key("stop_sequences")
		e.Strings(stop)
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// identity writes who asks and how urgent it is.
func (e *requestEncoder) identity() {
	w, req := &e.W, e.Req
	if req.User != "" || extra.Has(req.Extra, name, "/metadata") {
		e.Key("metadata")
		w.BeginObject()
		w.StringFieldIf("user_id", req.User)
		extra.WriteBut(w, req.Extra, name, "/metadata", func(f dragoman.Field) bool { return f.Path == "/metadata/user_id" && req.User != "" })
		w.EndObject()
	}
	tier := req.ServiceTier
	switch tier {
	case "":
		return
	case "auto", "standard_only":
	case "default":
		tier = "standard_only"
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"default" written as "standard_only"`)
	default:
		e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/service_tier", "the API has no tier %q", tier)
		return
	}
	e.Key("service_tier")
	w.String(tier)
}
