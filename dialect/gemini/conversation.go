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
	// wireSystem is the role of the system instruction, which is not one of the
	// contents.
	wireSystem = blockwire.System
)

// unknownTool is the tool name written for a result whose tool is unknown.
const unknownTool = "unknown_tool"

// conversation plans the contents of a request and converts its parts to the
// wire.
type conversation struct {
	blockwire.Plan
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report

	calls map[string]*dragoman.ToolCall // by id; the last one if an id repeats
	bare  map[string]bool               // ids that the decoder synthesized for calls without one
	// spilled holds media that is written after the results it came from.
	spilled []blockwire.Block
	// recorded caches the records of the message at.
	recorded *wirekit.Records
	at       *dragoman.Message
}

// records returns the records of m. It caches them for the current message.
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

// arrange plans the contents and the system instruction of a request.
func (c *conversation) arrange(req *dragoman.Request) {
	c.Arrange(req, c, c.rep)
	c.Open()
}

// Complete implements [blockwire.Wire]. Gemini messages need no completion.
func (c *conversation) Complete(out []blockwire.Block, _ *dragoman.Message, _ extra.Path, _ string, _ *dragoman.Report) []blockwire.Block {
	return out
}

// mayReturn reports whether opaque state of a message may be sent to the
// target. Only the model that made it gets it back (quirk B16).
func (c *conversation) mayReturn(m *dragoman.Message, r *dragoman.Reasoning) bool {
	return m != nil && !c.target.Caps.NoReasoning && wirekit.MayReplayReasoning(m, r, &c.limits, &c.target)
}

// signature returns the signature to send for a part; empty if the target must
// not see it. The placeholder has no origin, so it always passes.
func (c *conversation) signature(m *dragoman.Message, signature string, at extra.Path, rep *dragoman.Report) string {
	if signature == "" || signature == skipSignature || c.mayReturn(m, nil) {
		return signature
	}
	extra.ReportOpaque(rep, at.String()+"/signature")
	return ""
}

// Add implements [blockwire.Wire]. It appends a part in its wire form, or
// reports that the wire has no form for it.
func (c *conversation) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	drop := func(sev dragoman.Severity, format string, args ...any) []blockwire.Block {
		rep.Addf(dragoman.Dropped, sev, at.String(), format, args...)
		return out
	}
	b := blockwire.Block{Part: p, At: at}
	switch p := p.(type) {
	case *dragoman.Text:
		if b.Signature = c.signature(m, p.Signature, at, rep); b.Signature == "" && strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "empty text")
		}
	case *dragoman.Refusal:
		extra.Report(rep, p.Extra, name, at)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "refusal written as text")
		if strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "empty text")
		}
		b.Part = &dragoman.Text{Text: p.Text}
	case *dragoman.Data:
		b.Part = &dragoman.Text{Text: string(p.JSON)}
	case *dragoman.Reasoning:
		if wirekit.VisibleReasoning(p) == "" && !c.target.Caps.NoReasoning && c.records(m).InCalls(p) {
			return out // the calls carry its records
		}
		if role != wireModel || !c.mayReturn(m, p) {
			return drop(dragoman.Warn, "reasoning of another model")
		}
		if wirekit.VisibleReasoning(p) == "" && p.Signature == "" {
			return drop(dragoman.Info, "empty reasoning")
		}
		b.Signature = p.Signature
	case *dragoman.Media:
		return c.media(out, b, m, p, role, rep)
	case *dragoman.ToolCall:
		switch {
		case p.Hosted:
			return drop(dragoman.Serious, "call of %q was executed by its provider", p.Name)
		case role != wireModel:
			return drop(dragoman.Serious, "tool call outside an assistant message")
		}
		if signature, bare := wirekit.ThroughChat(p, c.records(m)); signature != "" && !c.target.Caps.NoReasoning {
			b.Part, b.Signature = bare, signature
			break
		}
		b.Signature = c.signature(m, p.Signature, at, rep)
	case *dragoman.ToolResult:
		if role != wireUser {
			return drop(dragoman.Serious, "tool result in a message of role %s", role)
		}
		b.Part = acceptedResult(p, c.Own(m), at, rep)
	case *dragoman.Opaque:
		if p.Dialect != name {
			return drop(dragoman.Serious, "%s part of dialect %s cannot be expressed in Gemini", p.Type, p.Dialect)
		}
		b.Part = c.opaque(m, p, at, rep)
	default:
		return drop(dragoman.Serious, "part of an unknown kind")
	}
	return append(out, b)
}

// media appends media, or a text note if the target does not accept it (quirk
// D14).
func (c *conversation) media(out []blockwire.Block, b blockwire.Block, m *dragoman.Message, p *dragoman.Media, role string, rep *dragoman.Report) []blockwire.Block {
	why := ""
	switch {
	case role == wireSystem && !c.Own(m) && m != nil:
		why = p.Media + " in a system instruction"
	case p.Text == "" && !c.target.Caps.AcceptsMedia(p.Media):
		why = "the target does not accept " + p.Media + " input"
	case p.Base64 == "" && p.Text == "" && p.URL == "":
		why = p.Media + " that only its own provider can read"
	}
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, b.At.String(), why+"; replaced by a note")
		b.Part = &dragoman.Text{Text: toolwire.Placeholder(p)}
		return append(out, b)
	}
	if !c.Own(m) || hasBadType(p) {
		if b.Part = acceptedMedia(p, b.At, rep); b.Part.Kind() != codes.KindMedia {
			return append(out, b)
		}
	}
	if raw, ok := extra.Get(p.Extra, name, "/thoughtSignature"); ok {
		b.Signature = c.signature(m, jsonwire.Unquote(raw), b.At, rep)
	}
	return append(out, b)
}

// opaque returns an unknown part to send to the target. It removes a signature
// that another model made.
func (c *conversation) opaque(m *dragoman.Message, p *dragoman.Opaque, at extra.Path, rep *dragoman.Report) *dragoman.Opaque {
	signed, rest := withoutSignature(p.JSON)
	if signed == "" || c.signature(m, signed, at, rep) != "" {
		return p
	}
	bare := *p
	bare.JSON = rest
	return &bare
}

// withoutSignature splits a part into its thought signature and the rest.
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

// FinishTurn implements [blockwire.Wire]. If another model made the turn, it gives
// the first call the placeholder signature (quirk B16). A call that the target
// itself made without a signature stays unsigned.
func (c *conversation) FinishTurn(t *blockwire.Turn) {
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

// source returns the message that a block came from.
func source(t *blockwire.Turn, b *blockwire.Block) *dragoman.Message {
	for _, m := range t.Messages {
		if slices.Contains(m.Parts, b.Part) {
			return m
		}
	}
	return nil
}

// writePart writes one part. Media that a result cannot contain is queued in
// c.spilled.
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
			c.rep.Add(dragoman.Dropped, dragoman.Info, b.At.String()+"/cache", "cache breakpoint: the target caches automatically")
		}
	case *dragoman.Reasoning:
		writeText(w, wirekit.VisibleReasoning(p), true, b.Signature, p.Extra)
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

func writeText(w *jsonwire.Writer, text string, thought bool, signature string, e *dragoman.Extra) {
	w.BeginObject()
	w.StringField("text", text)
	if thought {
		w.BoolField("thought", true)
	}
	w.StringFieldIf("thoughtSignature", signature)
	extra.WriteBut(w, e, name, "", func(f dragoman.Field) bool { return alreadyWritten(f, thought, signature) })
	w.EndObject()
}

// alreadyWritten reports whether writeText already wrote the field f of a part's extra
// fields.
func alreadyWritten(f dragoman.Field, thought bool, signature string) bool {
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

// omitsID reports whether a call is written without its id: the API gave it
// none, or the target does not accept ids (quirk B15).
func (c *conversation) omitsID(id string) bool { return c.target.Caps.NoCallIDs || c.bare[id] }

func (c *conversation) writeCall(w *jsonwire.Writer, b *blockwire.Block, p *dragoman.ToolCall) error {
	call := *p
	call.Signature = ""
	if c.omitsID(call.ID) {
		call.ID = ""
	}
	return writeCallPart(w, c.reg, &call, b.Signature, b.At, c.rep)
}

// writeCallPart writes a part that holds a call, with the other fields of that
// part.
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
// does not fit in it waits until all results of the turn are written.
func (c *conversation) writeResult(w *jsonwire.Writer, b *blockwire.Block, p *dragoman.ToolResult) error {
	res := *p
	if call := c.calls[res.CallID]; res.Name == "" && call != nil {
		res.Namespace, res.Name = call.Namespace, call.Name
	}
	if res.Name == "" {
		res.Name = unknownTool
		c.rep.Addf(dragoman.Synthesized, dragoman.Warn, b.At.String()+"/name", "the API requires a tool name: %q written", unknownTool)
	}
	if c.omitsID(res.CallID) {
		res.CallID = ""
	}
	if wirekit.RefusesAny(&c.target.Caps, res.Content) {
		res.Content = c.replaceMedia(res.Content, b.At)
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
			c.rep.Addf(dragoman.Moved, dragoman.Info, at.String(), "%s moved after the result, which cannot contain it", m.Media)
			c.spilled = append(c.spilled, blockwire.Block{Part: m, At: at})
		}
	}
	return nil
}

// writeSpilled writes the queued media and empties the queue.
func (c *conversation) writeSpilled(w *jsonwire.Writer) {
	for _, b := range c.spilled {
		writeMedia(w, b.Part.(*dragoman.Media), "", b.At, c.rep)
	}
	c.spilled = c.spilled[:0]
}

// isKnownResult reports whether a block is the result of a known call.
func (c *conversation) isKnownResult(b *blockwire.Block) bool {
	res, ok := b.Part.(*dragoman.ToolResult)
	return ok && c.calls[res.CallID] != nil
}

// replaceMedia replaces media that the target does not accept with text notes.
func (c *conversation) replaceMedia(parts []dragoman.Part, at extra.Path) []dragoman.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if m, ok := p.(*dragoman.Media); ok && m.Text == "" && !c.target.Caps.AcceptsMedia(m.Media) {
			c.rep.Addf(dragoman.Dropped, dragoman.Serious, at.Elem("content", i).String(), "the target does not accept %s input; replaced by a note", m.Media)
			parts[i] = &dragoman.Text{Text: toolwire.Placeholder(m)}
		}
	}
	return parts
}

func isMedia(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }
