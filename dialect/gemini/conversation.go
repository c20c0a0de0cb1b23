package gemini

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// The roles of the wire.
const (
	wireUser  = blockwire.User
	wireModel = "model"
	// wireSystem is the system instruction, which stands outside the contents.
	wireSystem = blockwire.System
)

// unknownTool names the tool of a result where nothing says which it was.
const unknownTool = "unknown_tool"

// conversation is the plan of a request's conversation, and says what its parts
// become on this wire.
type conversation struct {
	blockwire.Plan
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report

	calls map[string]*dragoman.ToolCall // by id; of several the last
	bare  map[string]bool               // ids that we made, of calls to which the API gave none
	// spilled is media of results that stands beside them.
	spilled []blockwire.Block
	// recorded are the records of the message at.
	recorded *wirekit.Records
	at       *dragoman.Message
}

// records are those of a message, which are looked for once.
func (c *conversation) records(m *dragoman.Message) *wirekit.Records {
	if m != c.at {
		c.recorded, c.at = nil, m
		if m != nil {
			c.recorded = wirekit.RecordsOf(m.Parts)
		}
	}
	return c.recorded
}

func newConversation(reg *interop.Registry, limits targets.Limits, o dialect.EncodeOptions, rep *dragoman.Report) conversation {
	rules := blockwire.Rules{
		Dialect: name, Assistant: wireModel, List: "parts",
		Turn: "content", Prompt: "system instruction",
		NoCache: true,
	}
	return conversation{
		Plan: blockwire.Plan{Rules: rules}, reg: reg, limits: limits, target: reg.Target(), o: o, rep: rep,
		calls: map[string]*dragoman.ToolCall{}, bare: map[string]bool{},
	}
}

// arrange plans the whole of a request's conversation.
func (c *conversation) arrange(req *dragoman.Request) {
	c.Arrange(req, c, c.rep)
	c.Open()
}

// Complete implements [blockwire.Wire]: there is nothing to settle here.
func (c *conversation) Complete(out []blockwire.Block, _ *dragoman.Message, _ extra.Path, _ string, _ *dragoman.Report) []blockwire.Block {
	return out
}

// mayReturn reports whether opaque state of a message goes to the target: to the
// model that made it and nobody else (quirk B16).
func (c *conversation) mayReturn(m *dragoman.Message, r *dragoman.Reasoning) bool {
	return m != nil && !c.target.Caps.NoReasoning && wirekit.MayReplayReasoning(m, r, &c.limits, &c.target)
}

// signature is what of a part's signature goes to the target. The one that
// stands for none has no origin.
func (c *conversation) signature(m *dragoman.Message, signature string, at extra.Path, rep *dragoman.Report) string {
	if signature == "" || signature == skipSignature || c.mayReturn(m, nil) {
		return signature
	}
	extra.ReportOpaque(rep, at.String()+"/signature")
	return ""
}

// Add implements [blockwire.Wire]: it appends a part in the form the wire has
// for it, or reports that there is none.
func (c *conversation) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	drop := func(sev dragoman.Severity, format string, args ...any) []blockwire.Block {
		rep.Addf(dragoman.Dropped, sev, at.String(), format, args...)
		return out
	}
	b := blockwire.Block{Part: p, At: at}
	switch p := p.(type) {
	case *dragoman.Text:
		if b.Signature = c.signature(m, p.Signature, at, rep); b.Signature == "" && strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
	case *dragoman.Refusal:
		extra.Report(rep, p.Extra, name, at)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		if strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
		b.Part = &dragoman.Text{Text: p.Text}
	case *dragoman.Data:
		b.Part = &dragoman.Text{Text: string(p.JSON)}
	case *dragoman.Reasoning:
		if blockwire.Visible(p) == "" && !c.target.Caps.NoReasoning && c.records(m).Carried(p) {
			return out // the calls carry it
		}
		if role != wireModel || !c.mayReturn(m, p) {
			return drop(dragoman.Warn, "reasoning that this target did not write")
		}
		if blockwire.Visible(p) == "" && p.Signature == "" {
			return drop(dragoman.Info, "reasoning that says nothing")
		}
		b.Signature = p.Signature
	case *dragoman.Media:
		return c.media(out, b, m, p, role, rep)
	case *dragoman.ToolCall:
		switch {
		case p.Hosted:
			return drop(dragoman.Serious, "call of %q was run by its provider", p.Name)
		case role != wireModel:
			return drop(dragoman.Serious, "a call outside an assistant message")
		}
		if signature, bare := wirekit.ThroughChat(p, c.records(m)); signature != "" && !c.target.Caps.NoReasoning {
			b.Part, b.Signature = bare, signature
			break
		}
		b.Signature = c.signature(m, p.Signature, at, rep)
	case *dragoman.ToolResult:
		if role != wireUser {
			return drop(dragoman.Serious, "a tool result inside a message of role %s", role)
		}
		b.Part = typedResult(p, c.Own(m), at, rep)
	case *dragoman.Opaque:
		if p.Dialect != name {
			return drop(dragoman.Serious, "%s of %s has no place here", extra.A(p.Type), p.Dialect)
		}
		b.Part = c.opaque(m, p, at, rep)
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return append(out, b)
}

// media appends media, or a note where it cannot be sent (quirk D14).
func (c *conversation) media(out []blockwire.Block, b blockwire.Block, m *dragoman.Message, p *dragoman.Media, role string, rep *dragoman.Report) []blockwire.Block {
	why := ""
	switch {
	case role == wireSystem && !c.Own(m) && m != nil:
		why = "a system instruction takes no " + p.Media
	case p.Text == "" && !c.target.Caps.TakesMedia(p.Media):
		why = "the target takes no " + p.Media
	case p.Base64 == "" && p.Text == "" && p.URL == "":
		why = extra.A(p.Media) + " that only its own provider can read"
	}
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, b.At.String(), why+"; a note stands in for it")
		b.Part = &dragoman.Text{Text: toolwire.Placeholder(p)}
		return append(out, b)
	}
	if !c.Own(m) || mistyped(p) {
		if b.Part = taken(p, b.At, rep); b.Part.Kind() != codes.KindMedia {
			return append(out, b)
		}
	}
	if raw, ok := extra.Get(p.Extra, name, "/thoughtSignature"); ok {
		b.Signature = c.signature(m, jsonwire.Unquote(raw), b.At, rep)
	}
	return append(out, b)
}

// opaque is a part that we do not know as it goes to the target: without a
// signature that belongs to another model.
func (c *conversation) opaque(m *dragoman.Message, p *dragoman.Opaque, at extra.Path, rep *dragoman.Report) *dragoman.Opaque {
	signed, rest := withoutSignature(p.JSON)
	if signed == "" || c.signature(m, signed, at, rep) != "" {
		return p
	}
	bare := *p
	bare.JSON = rest
	return &bare
}

// withoutSignature takes the signature out of a part.
func withoutSignature(raw []byte) (signature string, rest []byte) {
	var w jsonwire.Writer
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return "", raw
	}
	w.BeginObject()
	for key := range r.Object() {
		if string(jsonwire.Camel(key)) == "thoughtSignature" && r.Kind() == '"' {
			signature = r.String()
			continue
		}
		w.QuotedKey(string(key))
		w.Known(r.Raw())
	}
	w.EndObject()
	return signature, w.Buf
}

// Said implements [blockwire.Wire]: it gives the first call of a turn that came
// from elsewhere the signature which the API takes in place of its own (quirk
// B16). A call that the target made without one needs none.
func (c *conversation) Said(t *blockwire.Turn) {
	i := slices.IndexFunc(t.Blocks, func(b blockwire.Block) bool { return b.Part.Kind() == codes.KindToolCall })
	if i < 0 || c.target.Caps.NoDummySignature || t.Blocks[i].Raw != nil || t.Blocks[i].Signature != "" {
		return
	}
	b := &t.Blocks[i]
	if c.mayReturn(source(t, b), nil) {
		return
	}
	b.Signature = skipSignature
	extra.ReportUnsigned(c.rep, b.At.String()+"/signature")
}

// source is the message that a block came from.
func source(t *blockwire.Turn, b *blockwire.Block) *dragoman.Message {
	for _, m := range t.Messages {
		if slices.Contains(m.Parts, b.Part) {
			return m
		}
	}
	return nil
}

// writePart writes one part, and behind a result the media that has no place in
// it.
func (c *conversation) writePart(w *jsonwire.Writer, b *blockwire.Block) error {
	if b.Raw != nil {
		w.Known(b.Raw)
		return nil
	}
	switch p := b.Part.(type) {
	case *dragoman.Text:
		writeText(w, p.Text, false, b.Signature, p.Extra)
		extra.Report(c.rep, p.Extra, name, b.At)
		if p.Cache != nil {
			c.rep.Add(dragoman.Dropped, dragoman.Info, b.At.String()+"/cache", "cache breakpoint: the target caches by itself")
		}
	case *dragoman.Reasoning:
		writeText(w, blockwire.Visible(p), true, b.Signature, p.Extra)
		extra.Report(c.rep, p.Extra, name, b.At)
	case *dragoman.Media:
		writeMedia(w, p, b.Signature, b.At, c.rep)
	case *dragoman.ToolCall:
		return c.writeCall(w, b, p)
	case *dragoman.ToolResult:
		return c.writeResult(w, b, p)
	case *dragoman.Opaque:
		w.Raw(p.JSON)
	}
	return nil
}

// writeText writes a text or a thought.
func writeText(w *jsonwire.Writer, text string, thought bool, signature string, e *dragoman.Extra) {
	w.BeginObject()
	w.StringField("text", text)
	if thought {
		w.BoolField("thought", true)
	}
	w.StringFieldIf("thoughtSignature", signature)
	extra.WriteBut(w, e, name, "", func(f dragoman.Field) bool { return said(f, thought, signature) })
	w.EndObject()
}

// said reports whether a member that was kept aside was written already.
func said(f dragoman.Field, thought bool, signature string) bool {
	return f.Path == "/thought" && thought || f.Path == "/thoughtSignature" && signature != ""
}

func writeMedia(w *jsonwire.Writer, p *dragoman.Media, signature string, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	writeMediaField(w, p, at, rep)
	w.StringFieldIf("thoughtSignature", signature)
	extra.WriteBut(w, p.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/thoughtSignature" })
	w.EndObject()
	extra.Report(rep, p.Extra, name, at)
}

// nameless reports whether a call goes without its id: the API gave it none, or
// the target takes none (quirk B15).
func (c *conversation) nameless(id string) bool { return c.target.Caps.NoCallIDs || c.bare[id] }

func (c *conversation) writeCall(w *jsonwire.Writer, b *blockwire.Block, p *dragoman.ToolCall) error {
	call := *p
	call.Signature = ""
	if c.nameless(call.ID) {
		call.ID = ""
	}
	return writeCallPart(w, c.reg, &call, b.Signature, b.At, c.rep)
}

// writeCallPart writes a call and what stands beside it in its part.
func writeCallPart(w *jsonwire.Writer, reg *interop.Registry, call *dragoman.ToolCall, signature string, at extra.Path, rep *dragoman.Report) error {
	w.BeginObject()
	w.Key("functionCall")
	if err := reg.WriteCall(w, call, at, rep); err != nil {
		return fmt.Errorf("gemini: %s: %w", at, err)
	}
	w.StringFieldIf("thoughtSignature", signature)
	extra.Write(w, call.Extra, name, partPrefix)
	w.EndObject()
	return nil
}

// writeResult writes a result, which must name its tool (quirk D15). Media that
// has no place in it waits until the results of the turn are written.
func (c *conversation) writeResult(w *jsonwire.Writer, b *blockwire.Block, p *dragoman.ToolResult) error {
	res := *p
	if call := c.calls[res.CallID]; res.Name == "" && call != nil {
		res.Namespace, res.Name = call.Namespace, call.Name
	}
	if res.Name == "" {
		res.Name = unknownTool
		c.rep.Addf(dragoman.Synthesized, dragoman.Warn, b.At.String()+"/name", "the API requires the name of the tool; %q written", unknownTool)
	}
	if c.nameless(res.CallID) {
		res.CallID = ""
	}
	if wirekit.RefusesAny(&c.target.Caps, res.Content) {
		res.Content = c.noted(res.Content, b.At)
	}
	w.BeginObject()
	w.Key("functionResponse")
	spill, err := c.reg.WriteResult(w, &res, b.At, c.rep)
	if err != nil {
		return fmt.Errorf("gemini: %s: %w", b.At, err)
	}
	extra.Write(w, res.Extra, name, partPrefix)
	w.EndObject()
	for _, s := range spill {
		if m, ok := s.(*dragoman.Media); ok {
			at := b.At.Elem("content", slices.Index(res.Content, s))
			c.rep.Addf(dragoman.Moved, dragoman.Info, at.String(), "%s written beside the result, which does not take it", extra.A(m.Media))
			c.spilled = append(c.spilled, blockwire.Block{Part: m, At: at})
		}
	}
	return nil
}

// writeSpilled writes the media that waits.
func (c *conversation) writeSpilled(w *jsonwire.Writer) {
	for _, b := range c.spilled {
		writeMedia(w, b.Part.(*dragoman.Media), "", b.At, c.rep)
	}
	c.spilled = c.spilled[:0]
}

// answers reports whether a block is a result of a call that is known.
func (c *conversation) answers(b *blockwire.Block) bool {
	res, ok := b.Part.(*dragoman.ToolResult)
	return ok && c.calls[res.CallID] != nil
}

// noted puts notes in place of the media of a result.
func (c *conversation) noted(parts []dragoman.Part, at extra.Path) []dragoman.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if m, ok := p.(*dragoman.Media); ok && m.Text == "" && !c.target.Caps.TakesMedia(m.Media) {
			c.rep.Addf(dragoman.Dropped, dragoman.Serious, at.Elem("content", i).String(), "the target takes no %s; a note stands in for it", m.Media)
			parts[i] = &dragoman.Text{Text: toolwire.Placeholder(m)}
		}
	}
	return parts
}

func isMedia(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }
