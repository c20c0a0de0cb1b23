package openairesponses

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeRequest implements [dialect.Codec]. A request that came from this
// dialect and was not changed is written byte for byte, with at most another
// model; so is every item and tool that was not changed.
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
			req: wirekit.Fit(req, o.Target.Caps, rep), written: make([]string, 0, 16), shared: wirekit.SiblingsOf(req, name),
		}
		reg.LimitBreakpoints(e.breakpoints(req.Messages))
		e.w.Buf = make([]byte, 0, wirekit.RequestSize(req, true))
		err := e.encode()
		w := e.w // the encoder is large, and stays behind
		return &w, err
	})
}

type requestEncoder struct {
	itemEncoder
	req     *dragoman.Request
	written []string // members, so that no extra repeats one
	tools   map[toolKey]*dragoman.ToolSpec
	// dropped are those that the wire does not hold.
	dropped map[*dragoman.ToolSpec]bool
	// shared are members of Chat that Responses has as well.
	shared wirekit.Siblings
}

// key writes the name of a top-level member.
func (e *requestEncoder) key(k string) {
	e.w.Key(k)
	e.written = append(e.written, k)
}

func (e *requestEncoder) str(k, v string) {
	if v != "" {
		e.key(k)
		e.w.String(v)
	}
}

func (e *requestEncoder) encode() error {
	w, req := &e.w, e.req
	w.BeginObject()
	e.str("model", req.Model)
	e.instructions()
	if len(req.Messages) > 0 || !e.continues() {
		e.key("input")
		w.BeginArray()
		if err := e.messages(req.Messages); err != nil {
			return err
		}
		w.EndArray()
	}
	tools, err := e.writeTools()
	if err != nil {
		return err
	}
	if err := e.choice(tools); err != nil {
		return err
	}
	e.text()
	e.reasoningSettings()
	e.include()
	if n := req.MaxOutputTokens; n != nil {
		tokens := *n
		if tokens < minOutputTokens && !e.native {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/max_output_tokens", "%d written as %d, the least that the API takes", tokens, minOutputTokens)
			tokens = minOutputTokens
		}
		e.key("max_output_tokens")
		w.Int(tokens)
	}
	e.sampling()
	e.store()
	e.str("previous_response_id", req.PreviousResponseID)
	if len(req.Metadata) > 0 {
		e.key("metadata")
		wirekit.WriteMetadata(w, req.Metadata, e.rep)
	}
	if v, ok := extra.Get(req.Extra, name, "/user"); ok && string(v) == spelledUser {
		e.str("user", req.User)
	} else {
		e.str("safety_identifier", wirekit.SafetyIdentifier(req.User, e.rep))
	}
	e.str("prompt_cache_key", req.CacheKey)
	e.str("service_tier", wirekit.OpenAITier(req.ServiceTier, e.rep))
	if req.Stream {
		e.key("stream")
		w.Bool(true)
	}
	if req.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/cache", "cache breakpoint at the end of the prompt: the target caches by itself")
	}
	e.requestExtras()
	w.EndObject()
	return nil
}

// minOutputTokens is the least that the API takes.
const minOutputTokens = 16

// requestExtras writes the members that are not modelled, except where a
// modelled one was written since.
func (e *requestEncoder) requestExtras() {
	extra.WriteBut(&e.w, e.req.Extra, name, "", func(f dragoman.Field) bool {
		key := f.Path[1:]
		return slices.Contains(e.written, key) ||
			// An empty list goes with what was asked of it (quirk E3).
			key == "tools" && e.req.ToolChoice != nil && !e.toolsElsewhere()
	})
	shared := e.shared
	if shared.Obfuscation != nil {
		e.key("stream_options")
		e.w.BeginObject()
		e.w.RawField("include_obfuscation", shared.Obfuscation)
		e.w.EndObject()
	}
	for _, f := range shared.Members {
		e.key(f.Path[1:])
		e.w.Raw(f.Value)
	}
	extra.Report(e.rep, shared.Lost, name, extra.At(""))
}

// continues reports whether a request may have no input of its own: it goes on
// from what the server keeps.
func (e *requestEncoder) continues() bool {
	return e.req.PreviousResponseID != "" || own(e.req.Extra, "/conversation") || own(e.req.Extra, "/prompt")
}

func (e *requestEncoder) instructions() {
	var texts []string
	for i, p := range e.req.Instructions {
		at := extra.Elem("/instructions", i)
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p.Text)
			if p.Cache != nil {
				e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: instructions have none")
			}
			extra.Report(e.rep, p.Extra, "", at)
		case *dragoman.Data:
			texts = append(texts, string(p.JSON))
		default:
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "instructions are text; a %s part has no place in them", p.Kind())
		}
	}
	if len(texts) > 1 {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/instructions", "%d texts joined into one", len(texts))
	}
	if texts != nil {
		e.key("instructions")
		e.w.String(strings.Join(texts, "\n\n"))
	}
}

// writeTools writes the definitions and returns how many there are. Where the
// target cannot narrow a choice, the tools are narrowed instead (quirk E9).
func (e *requestEncoder) writeTools() (int, error) {
	tools, places := e.req.Tools, []int(nil)
	if len(tools) == 0 {
		return 0, nil
	}
	if err := wirekit.CheckTools("openairesponses", e.req, e.target.Caps); err != nil {
		return 0, err
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
		e.rep.Add(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the target knows no allowed tools; the others are not sent")
	}
	start := len(e.w.Buf)
	e.w.Key("tools")
	e.w.BeginArray()
	told := len(e.rep.Losses)
	n, err := e.reg.WriteTools(&e.w, tools, e.rep)
	wirekit.PlaceTools(e.rep.Losses[told:], places)
	for _, i := range wirekit.LostTools(e.rep.Losses[told:]) {
		if e.dropped == nil {
			e.dropped = make(map[*dragoman.ToolSpec]bool)
		}
		e.dropped[&e.req.Tools[i]] = true
	}
	e.w.EndArray()
	if n == 0 {
		e.w.Buf = e.w.Buf[:start] // no empty list (quirk B34)
	} else {
		e.written = append(e.written, "tools")
	}
	return n, err
}

// text writes the output format and the verbosity, which share a member.
func (e *requestEncoder) text() {
	w, f := &e.w, e.req.Output
	if f != nil && e.target.Caps.NoStructuredOutput {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, "/output", "the target takes no output format")
		f = nil
	}
	if f == nil && e.req.Verbosity == "" && !extra.Has(e.req.Extra, name, "/text") {
		return
	}
	e.key("text")
	w.BeginObject()
	skip := e.req.Extra
	if f != nil {
		w.Key("format")
		e.format(f)
		skip = without(skip, "text/format")
	}
	if e.req.Verbosity != "" {
		w.StringField("verbosity", e.req.Verbosity)
		skip = without(skip, "text/verbosity")
	}
	extra.Write(w, skip, name, "/text")
	w.EndObject()
}

func (e *requestEncoder) format(f *dragoman.OutputFormat) {
	w := &e.w
	w.BeginObject()
	kind := f.Kind
	if kind == "" && f.Schema != nil && f.Dialect != name {
		kind = dragoman.OutputSchema
	}
	switch kind {
	case dragoman.OutputJSON:
		w.StringField("type", "json_object")
	case dragoman.OutputSchema:
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
		w.StringFieldIf("type", string(f.Kind))
	}
	skip := []string{}
	if f.Strict == dragoman.StrictOn {
		skip = append(skip, "strict")
	}
	extra.Write(w, without(f.Extra, skip...), name, "")
	w.EndObject()
	extra.Report(e.rep, f.Extra, name, extra.At("/output"))
}

// include asks for encrypted reasoning and for logprobs where the caller does,
// beside whatever else a native request asked for.
func (e *requestEncoder) include() {
	encrypted := e.req.Reasoning != nil && e.req.Reasoning.Encrypted != nil && *e.req.Reasoning.Encrypted
	list, ok := extra.Get(e.req.Extra, name, "/include")
	if !ok || string(list) == "null" {
		if !encrypted && !e.shared.Logprobs {
			return
		}
		e.key("include")
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
	e.key("include")
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

func (e *requestEncoder) sampling() {
	s := e.req.Sampling
	number := func(key string, n *dragoman.Number) {
		if n != nil && !wirekit.RefusesSampling(e.target.Caps, key, e.rep) {
			e.key(key)
			e.w.Raw([]byte(*n))
		}
	}
	number("temperature", s.Temperature)
	number("top_p", s.TopP)
	drop := func(have bool, key string) {
		if have {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+key, "Responses has no such parameter")
		}
	}
	drop(s.TopK != nil, "top_k")
	drop(s.FrequencyPenalty != nil, "frequency_penalty")
	drop(s.PresencePenalty != nil, "presence_penalty")
	drop(s.Seed != nil, "seed")
	drop(len(s.Stop) > 0, "stop")
	drop(s.Candidates != nil && *s.Candidates > 1, "candidates")
}

// store writes whether the server keeps the response. This wire's default is
// to keep it, that of every other not to: a request from elsewhere says so.
func (e *requestEncoder) store() {
	switch {
	case e.req.Store != nil:
		e.key("store")
		e.w.Bool(*e.req.Store)
	case !e.native && !own(e.req.Extra, "/store"):
		e.rep.Add(dragoman.Synthesized, dragoman.Info, "/store", "false sent explicitly, because Responses stores by default")
		e.key("store")
		e.w.Bool(false)
	}
}
