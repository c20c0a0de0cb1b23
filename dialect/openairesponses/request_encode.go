package openairesponses

import (
	"slices"
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
// bytes, except for the model. The same is true for each unchanged item and tool.
func (c Codec) EncodeRequest(req *dragoman.Request, o dialect.EncodeOptions) (dialect.Encoded, error) {
	limits := c.Limits()
	return wirekit.EncodeRequest(req, limits, toolCodecs, messagesAt, o, func(o dialect.EncodeOptions, reg *interop.Registry, rep *dragoman.Report) (*jsonwire.Writer, error) {
		native := req.Native != nil && req.Native.Dialect == name
		stored := native
		if req.Store != nil {
			stored = *req.Store
		}
		e := requestEncoder{
			itemEncoder: itemEncoder{
				reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep,
				tools: req.Tools, native: native, stored: stored,
			},
			req: wirekit.FitSettings(req, o.Target.Caps, rep), shared: wirekit.SiblingsOf(req, name),
		}
		reg.LimitBreakpoints(e.breakpoints(req.Messages))
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, true))
		err := e.encode()
		w := e.w // copied, so that the large encoder can be freed
		return &w, err
	})
}

type requestEncoder struct {
	itemEncoder
	req     *dragoman.Request
	written int // number of written tools
	tools   map[toolKey]*dragoman.ToolSpec
	// dropped are the tools that were not written.
	dropped map[*dragoman.ToolSpec]bool
	// shared holds Chat fields that Responses has as well.
	shared wirekit.Siblings
}

func (e *requestEncoder) encode() error {
	to := &wirekit.RequestWriter{W: &e.w, Req: e.req, Rep: e.rep, Caps: &e.target.Caps}
	return settings.Write(e, to, e.siblings)
}

// siblings writes the fields that Responses shares with OpenAI Chat.
func (e *requestEncoder) siblings() {
	shared := e.shared
	if shared.Obfuscation != nil {
		e.w.Key("stream_options")
		e.w.BeginObject()
		e.w.RawField("include_obfuscation", shared.Obfuscation)
		e.w.EndObject()
	}
	for _, f := range shared.Fields {
		e.w.RawField(f.Path[1:], f.Value)
	}
	extra.Report(e.rep, shared.Lost, name, extra.At(""))
}

func (e *requestEncoder) input() error {
	if len(e.req.Messages) == 0 && e.continues() {
		return nil
	}
	e.w.Key("input")
	e.w.BeginArray()
	if err := e.messages(e.req.Messages); err != nil {
		return err
	}
	e.w.EndArray()
	return nil
}

// continues reports whether a request may have no input, because it continues a conversation that
// the server stores.
func (e *requestEncoder) continues() bool {
	return e.req.PreviousResponseID != "" || hasOwnField(e.req.Extra, "/conversation") || hasOwnField(e.req.Extra, "/prompt")
}

func (e *requestEncoder) instructions() {
	var texts []string
	for i, p := range e.req.Instructions {
		at := extra.Elem("/instructions", i)
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p.Text)
			if p.Cache != nil {
				e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: not possible in instructions")
			}
			extra.Report(e.rep, p.Extra, "", at)
		case *dragoman.Data:
			texts = append(texts, string(p.JSON))
		default:
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "instructions are text; they cannot contain a %s part", p.Kind())
		}
	}
	if len(texts) > 1 {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/instructions", "%d texts are joined with blank lines", len(texts))
	}
	if texts != nil {
		e.w.Key("instructions")
		e.w.String(strings.Join(texts, "\n\n"))
	}
}

// writeTools writes the definitions. If the target has no list of allowed tools, only the allowed
// tools are sent (quirk E9).
func (e *requestEncoder) writeTools() error {
	tools, places := e.req.Tools, []int(nil)
	if len(tools) == 0 {
		return nil
	}
	if err := wirekit.CheckTools("openairesponses", e.req, e.target.Caps); err != nil {
		return err
	}
	if c := e.req.ToolChoice; c != nil && c.Mode != dragoman.ChoiceTool && c.Tools != nil && e.target.Caps.NoAllowedTools {
		tools = nil
		allowed := make(map[toolKey]bool, len(c.Tools))
		for _, ref := range c.Tools {
			allowed[keyOf(ref)] = true
		}
		for i := range e.req.Tools {
			t := &e.req.Tools[i]
			if slices.ContainsFunc(keysOf(t), func(k toolKey) bool { return allowed[k] }) {
				tools, places = append(tools, *t), append(places, i)
			}
		}
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target has no list of allowed tools; the other tools are not sent")
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	before := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[before:], places)
	for _, i := range wirekit.LostTools(e.rep.Losses[before:]) {
		if e.dropped == nil {
			e.dropped = make(map[*dragoman.ToolSpec]bool)
		}
		e.dropped[&e.req.Tools[i]] = true
	}
	e.w.EndArray()
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	}
	e.written = n
	return err
}

// toolsSuperseded reports whether a stored empty list is omitted (quirk E3).
func (e *requestEncoder) toolsSuperseded([]byte) bool {
	return e.written > 0 || e.req.ToolChoice != nil && !e.hasExternalTools()
}

func (e *requestEncoder) format() {
	w, f := &e.w, e.req.Output
	if f == nil {
		return
	}
	if e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target does not accept an output format")
		return
	}
	w.Key("format")
	w.BeginObject()
	kind := f.Kind
	if kind == "" && f.Schema != nil && f.Dialect != name {
		kind = codes.OutputSchema
	}
	switch kind {
	case codes.OutputJSON:
		w.StringField("type", "json_object")
	case codes.OutputSchema:
		out, strict := wirekit.OpenAIOutput(f, name, e.reg, e.rep)
		w.StringField("type", "json_schema")
		w.StringField("name", wirekit.OutputName(f.Name, e.rep))
		w.StringFieldIf("description", f.Description)
		if out != nil {
			w.RawField("schema", out)
		}
		if strict {
			w.BoolField("strict", true)
		}
	default:
		w.StringFieldIf("type", f.Kind)
	}
	skip := []string{}
	if f.Strict == codes.StrictOn {
		skip = append(skip, "strict")
	}
	extra.Write(w, withoutFields(f.Extra, skip...), name, "")
	w.EndObject()
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
}

// include requests encrypted reasoning and logprobs if the caller does, in addition to the stored
// values of a native request.
func (e *requestEncoder) include() {
	encrypted := e.req.Reasoning != nil && e.req.Reasoning.Encrypted != nil && *e.req.Reasoning.Encrypted
	list, ok := extra.Get(e.req.Extra, name, "/include")
	if !ok || string(list) == "null" {
		if !encrypted && !e.shared.Logprobs {
			return
		}
		e.w.Key("include")
		e.w.BeginArray()
		if encrypted {
			e.w.String(encryptedReasoning)
		}
		if e.shared.Logprobs {
			e.w.String(wirekit.IncludeLogprobs)
		}
		e.w.EndArray()
		return
	}
	e.w.Key("include")
	e.w.BeginArray()
	r := jsonwire.NewReader(list)
	for range r.Array() {
		v := r.Raw()
		if string(v) == `"`+encryptedReasoning+`"` {
			if !encrypted {
				continue
			}
			encrypted = false
		}
		e.w.Raw(v)
	}
	if encrypted {
		e.w.String(encryptedReasoning)
	}
	e.w.EndArray()
}
