package gemini

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// The roles of the wire.
const (
	wireUser  = "user"
	wireModel = "model"
	// wireSystem is the system instruction, which stands outside the contents.
	wireSystem = "system"
)

// openingText is the user content that opens a conversation which has none.
const openingText = "(conversation continues)"

// unknownTool names the tool of a result where nothing says which it was.
const unknownTool = "unknown_tool"

// conversation arranges canonical messages as this wire wants them: what
// stands before the first turn is the system instruction; messages of one role
// that follow each other are one content; the results of a turn come first in
// the content after it. It is a plan: nothing is written before all of it is
// known.
type conversation struct {
	reg    *interop.Registry
	limits dragoman.Limits
	target dragoman.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report

	system []block
	turns  []turn
	calls  map[string]*dragoman.ToolCall // by id; of several the last
	bare   map[string]bool               // ids that we made, of calls to which the API gave none
	// in reads native messages, one after the other.
	in jsonwire.Reader
}

// block is one part in its place.
type block struct {
	part dragoman.Part
	at   extra.Path
	// signature is the one to write.
	signature string
	// raw is the part as it came; nil for one that is written from our own.
	raw []byte
}

// turn is one content of the wire: messages of one role that follow each other.
type turn struct {
	role     string
	blocks   []block
	messages []*dragoman.Message
	// frame is the first of the messages as it came, or nothing.
	frame frame
}

// untouched reports whether the turn is one message in the form it came in.
func (t *turn) untouched() bool { return t.frame.raw != nil && len(t.messages) == 1 }

// arrange plans the whole of a request's conversation.
func (c *conversation) arrange(req *dragoman.Request) {
	c.calls, c.bare = map[string]*dragoman.ToolCall{}, map[string]bool{}
	for i, p := range req.Instructions {
		c.system = c.add(c.system, nil, p, extra.Elem("/instructions", i), wireSystem)
	}
	ms := req.Messages
	first := 0
	for first < len(ms) && systemRole(ms[first].Role) {
		c.leading(&ms[first], first)
		first++
	}
	for i := first; i < len(ms); i++ {
		c.message(&ms[i], extra.Elem("/messages", i))
	}
	for i := range c.turns {
		t := &c.turns[i]
		switch {
		case t.role == wireModel:
			c.sign(t)
		case !t.untouched():
			c.resultsFirst(t, i)
		}
	}
	c.open()
}

func systemRole(r dragoman.Role) bool {
	return r == dragoman.RoleSystem || r == dragoman.RoleDeveloper
}

// leading puts a message that stands before the first turn into the system
// instruction.
func (c *conversation) leading(m *dragoman.Message, i int) {
	at := extra.Elem("/messages", i)
	if m.Role == dragoman.RoleDeveloper {
		c.rep.Add(dragoman.Moved, dragoman.Info, at.String(), "a leading developer message written into the system instruction")
	}
	for j, p := range m.Parts {
		c.system = c.add(c.system, m, p, at.Elem("parts", j), wireSystem)
	}
	c.unsaid(m, at)
	for _, f := range m.Extra.For(name) {
		c.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a member of a message that became part of the system instruction")
	}
}

// message adds one message to the plan, to the turn before it where they are
// one content.
func (c *conversation) message(m *dragoman.Message, at extra.Path) {
	role := c.role(m, at)
	next := turn{role: role, messages: []*dragoman.Message{m}}
	next.frame, next.blocks = c.replay(m, at)
	if next.frame.raw == nil {
		for i, p := range m.Parts {
			next.blocks = c.add(next.blocks, m, p, at.Elem("parts", i), role)
		}
	}
	for _, call := range m.ToolCalls() {
		c.calls[call.ID], c.bare[call.ID] = call, call.Synthetic && own(m)
	}
	if len(next.blocks) == 0 {
		c.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		return
	}
	c.unsaid(m, at)
	last := len(c.turns) - 1
	if last < 0 || c.turns[last].role != role || role != wireUser && role != wireModel {
		c.turns = append(c.turns, next)
		return
	}
	t := &c.turns[last]
	t.blocks = append(t.blocks, next.blocks...)
	t.messages = append(t.messages, m)
}

// unsaid reports what a message says that the wire has no member for.
func (c *conversation) unsaid(m *dragoman.Message, at extra.Path) {
	extra.Report(c.rep, m.Extra, name, at)
	if m.Name != "" {
		c.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the name %q of the speaker", m.Name)
	}
	if m.Phase != "" {
		c.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
	if m.Cache != nil {
		c.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
}

// role says which role a message has on the wire, which knows two.
func (c *conversation) role(m *dragoman.Message, at extra.Path) string {
	switch m.Role {
	case dragoman.RoleUser, dragoman.RoleTool:
		return wireUser
	case dragoman.RoleAssistant:
		return wireModel
	case dragoman.RoleSystem, dragoman.RoleDeveloper:
		c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a %s message inside the conversation written as user text", m.Role)
		return wireUser
	default:
		if own(m) {
			return string(m.Role)
		}
		c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "role %.40q written as user", m.Role)
		return wireUser
	}
}

// own reports whether a message came from this dialect.
func own(m *dragoman.Message) bool {
	return m != nil && m.Origin != nil && m.Origin.Dialect == name
}

// mayReturn reports whether opaque state of a message goes to the target: to the
// model that made it and nobody else (quirk B16).
func (c *conversation) mayReturn(m *dragoman.Message, r *dragoman.Reasoning) bool {
	return m != nil && !c.target.Caps.NoReasoning && wirekit.MayReplayReasoning(m, r, c.limits, c.target)
}

// signature is what of a part's signature goes to the target. The one that
// stands for none has no origin.
func (c *conversation) signature(m *dragoman.Message, signature string, at extra.Path) string {
	if signature == "" || signature == skipSignature || c.mayReturn(m, nil) {
		return signature
	}
	c.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/signature", "opaque state belongs to its own provider")
	return ""
}

// add appends a part in the form the wire has for it, or reports that there is
// none. m is nil for the request's instructions.
func (c *conversation) add(out []block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string) []block {
	drop := func(sev dragoman.Severity, format string, args ...any) []block {
		c.rep.Addf(dragoman.Dropped, sev, at.String(), format, args...)
		return out
	}
	b := block{part: p, at: at}
	switch p := p.(type) {
	case *dragoman.Text:
		if b.signature = c.signature(m, p.Signature, at); b.signature == "" && strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
	case *dragoman.Refusal:
		extra.Report(c.rep, p.Extra, name, at)
		c.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		if strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
		b.part = &dragoman.Text{Text: p.Text}
	case *dragoman.Data:
		b.part = &dragoman.Text{Text: string(p.JSON)}
	case *dragoman.Reasoning:
		if role != wireModel || !c.mayReturn(m, p) {
			return drop(dragoman.Warn, "reasoning that this target did not write")
		}
		if thought(p) == "" && p.Signature == "" {
			return drop(dragoman.Info, "reasoning that says nothing")
		}
		b.signature = p.Signature
	case *dragoman.Media:
		return c.media(out, b, m, p, role)
	case *dragoman.ToolCall:
		switch {
		case p.Hosted:
			return drop(dragoman.Serious, "call of %q was run by its provider", p.Name)
		case role != wireModel:
			return drop(dragoman.Serious, "a call outside an assistant message")
		}
		b.signature = c.signature(m, p.Signature, at)
	case *dragoman.ToolResult:
		if role != wireUser {
			return drop(dragoman.Serious, "a tool result inside a message of role %s", role)
		}
	case *dragoman.Opaque:
		if p.Dialect != name {
			return drop(dragoman.Serious, "a %.60s of %s has no place here", p.Type, p.Dialect)
		}
		b.part = c.opaque(m, p, at)
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return append(out, b)
}

// media appends media, or a note where it cannot be sent (quirk D14).
func (c *conversation) media(out []block, b block, m *dragoman.Message, p *dragoman.Media, role string) []block {
	why := ""
	switch {
	case role == wireSystem && !own(m) && m != nil:
		why = "a system instruction takes no " + string(p.Media)
	case c.target.Caps.NoImages && p.Text == "":
		why = "the target takes no " + string(p.Media)
	case p.Base64 == "" && p.Text == "" && p.URL == "":
		why = "a " + string(p.Media) + " that only its own provider can read"
	}
	if why != "" {
		c.rep.Add(dragoman.Dropped, dragoman.Serious, b.at.String(), why+"; a note stands in for it")
		b.part = &dragoman.Text{Text: interop.Placeholder(p)}
		return append(out, b)
	}
	if raw, ok := extra.Get(p.Extra, name, "/thoughtSignature"); ok {
		b.signature = c.signature(m, unquote(raw), b.at)
	}
	return append(out, b)
}

// opaque is a part that we do not know as it goes to the target: without a
// signature that belongs to another model.
func (c *conversation) opaque(m *dragoman.Message, p *dragoman.Opaque, at extra.Path) *dragoman.Opaque {
	signed, rest := withoutSignature(p.JSON)
	if signed == "" || c.signature(m, signed, at) != "" {
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

// thought is the thinking a reader may see.
func thought(p *dragoman.Reasoning) string {
	if len(p.Summary) == 0 {
		return p.Text
	}
	all := p.Summary
	if p.Text != "" {
		all = append([]string{p.Text}, p.Summary...)
	}
	return strings.Join(all, "\n\n")
}

// sign gives the first call of a turn that came from elsewhere the signature
// which the API takes in place of its own (quirk B16). A call that the target
// made without one needs none.
func (c *conversation) sign(t *turn) {
	i := slices.IndexFunc(t.blocks, func(b block) bool { return b.part.Kind() == dragoman.KindToolCall })
	if i < 0 || c.target.Caps.NoDummySignature || t.blocks[i].raw != nil || t.blocks[i].signature != "" {
		return
	}
	b := &t.blocks[i]
	if c.mayReturn(t.source(b), nil) {
		return
	}
	b.signature = skipSignature
	c.rep.Add(dragoman.Synthesised, dragoman.Info, b.at.String()+"/signature", "the API demands a signature on the first call of a turn; the one that stands for none is written")
}

// source is the message that a block came from.
func (t *turn) source(b *block) *dragoman.Message {
	for _, m := range t.messages {
		if slices.Contains(m.Parts, b.part) {
			return m
		}
	}
	return nil
}

// resultsFirst puts the results that answer the turn before first, in the order
// of its calls, one for each call (quirks D3, D4). A result that answers none of
// them stays where it is: the API takes it nowhere, and what was sent before it
// must not change.
func (c *conversation) resultsFirst(t *turn, i int) {
	if !slices.ContainsFunc(t.blocks, isResult) {
		return
	}
	calls := c.numbered(i - 1)
	stay := 0 // how many blocks stay as they came
	if t.frame.raw != nil && answers(t.blocks[:len(t.messages[0].Parts)], calls) {
		stay = len(t.messages[0].Parts)
	}
	t.blocks = c.oneResult(t.blocks, stay)
	rank := func(b block) int {
		if res, ok := b.part.(*dragoman.ToolResult); ok {
			if n, ok := calls[res.CallID]; ok {
				return n
			}
		}
		return len(calls) + 1
	}
	byCall := func(a, b block) int { return rank(a) - rank(b) }
	if rest := t.blocks[stay:]; !slices.IsSortedFunc(rest, byCall) {
		slices.SortStableFunc(rest, byCall)
		c.rep.Add(dragoman.Moved, dragoman.Info, rest[0].at.String(), "the results of a turn written first, in the order of its calls")
	}
}

// numbered numbers the calls of turn i, if that is the model's, by id.
func (c *conversation) numbered(i int) map[string]int {
	calls := map[string]int{}
	if i < 0 || c.turns[i].role != wireModel {
		return calls
	}
	for _, b := range c.turns[i].blocks {
		if call, ok := b.part.(*dragoman.ToolCall); ok {
			if _, twice := calls[call.ID]; !twice {
				calls[call.ID] = len(calls)
			}
		}
	}
	return calls
}

func isResult(b block) bool { return b.part.Kind() == dragoman.KindToolResult }

// answers reports whether blocks hold a result for each of the calls.
func answers(blocks []block, calls map[string]int) bool {
	found := map[string]bool{}
	for _, b := range blocks {
		if res, ok := b.part.(*dragoman.ToolResult); ok {
			if _, asked := calls[res.CallID]; asked {
				found[res.CallID] = true
			}
		}
	}
	return len(found) == len(calls)
}

// oneResult leaves one result for each call: the last, in the place of the
// first. Of the blocks that stay, the first ones, none is taken out.
func (c *conversation) oneResult(blocks []block, stay int) []block {
	place := map[string]int{}
	kept := blocks[:0]
	for i, b := range blocks {
		if res, ok := b.part.(*dragoman.ToolResult); ok && res.CallID != "" {
			first, dup := place[res.CallID]
			if dup && i >= stay {
				c.rep.Addf(dragoman.Dropped, dragoman.Warn, kept[first].at.String(), "call %q has a later result", res.CallID)
				kept[first] = b
				continue
			}
			if !dup {
				place[res.CallID] = len(kept)
			}
		}
		kept = append(kept, b)
	}
	return kept
}

// open makes a conversation start with a user content (quirk D17). One that
// came from this dialect starts as it likes.
func (c *conversation) open() {
	if len(c.turns) > 0 && (c.turns[0].role == wireUser || own(c.turns[0].messages[0])) {
		return
	}
	c.rep.Add(dragoman.Synthesised, dragoman.Warn, "/messages", "a user content to open the conversation")
	opening := turn{role: wireUser, blocks: []block{{part: &dragoman.Text{Text: openingText}, at: extra.At("/messages")}}}
	c.turns = slices.Insert(c.turns, 0, opening)
}

// writePart writes one part, and behind a result the media that has no place in
// it.
func (c *conversation) writePart(w *jsonwire.Writer, b *block) error {
	if b.raw != nil {
		w.Known(b.raw)
		return nil
	}
	switch p := b.part.(type) {
	case *dragoman.Text:
		writeText(w, p.Text, false, b.signature, p.Extra)
		extra.Report(c.rep, p.Extra, name, b.at)
		if p.Cache != nil {
			c.rep.Add(dragoman.Dropped, dragoman.Info, b.at.String()+"/cache", "cache breakpoint: the target caches by itself")
		}
	case *dragoman.Reasoning:
		writeText(w, thought(p), true, b.signature, p.Extra)
		extra.Report(c.rep, p.Extra, name, b.at)
	case *dragoman.Media:
		writeMedia(w, p, b.signature, b.at, c.rep)
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
	interop.WriteGeminiMedia(w, p, at, rep)
	w.StringFieldIf("thoughtSignature", signature)
	extra.WriteBut(w, p.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/thoughtSignature" })
	w.EndObject()
	extra.Report(rep, p.Extra, name, at)
}

// nameless reports whether a call goes without its id: the API gave it none, or
// the target takes none (quirk B15).
func (c *conversation) nameless(id string) bool { return c.target.Caps.NoCallIDs || c.bare[id] }

func (c *conversation) writeCall(w *jsonwire.Writer, b *block, p *dragoman.ToolCall) error {
	call := *p
	call.Signature = ""
	if c.nameless(call.ID) {
		call.ID = ""
	}
	return writeCallPart(w, c.reg, &call, b.signature, b.at, c.rep)
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

// writeResult writes a result, which must name its tool (quirk D15).
func (c *conversation) writeResult(w *jsonwire.Writer, b *block, p *dragoman.ToolResult) error {
	res := *p
	if call := c.calls[res.CallID]; res.Name == "" && call != nil {
		res.Namespace, res.Name = call.Namespace, call.Name
	}
	if res.Name == "" {
		res.Name = unknownTool
		c.rep.Addf(dragoman.Synthesised, dragoman.Warn, b.at.String()+"/name", "the API demands the name of the tool; %q written", unknownTool)
	}
	if c.nameless(res.CallID) {
		res.CallID = ""
	}
	if c.target.Caps.NoImages {
		res.Content = c.noted(res.Content, b.at)
	}
	w.BeginObject()
	w.Key("functionResponse")
	spill, err := c.reg.WriteResult(w, &res, b.at, c.rep)
	if err != nil {
		return fmt.Errorf("gemini: %s: %w", b.at, err)
	}
	extra.Write(w, res.Extra, name, partPrefix)
	w.EndObject()
	for _, s := range spill {
		if m, ok := s.(*dragoman.Media); ok {
			c.rep.Addf(dragoman.Moved, dragoman.Info, b.at.String(), "a %s written beside the result, which takes none", m.Media)
			writeMedia(w, m, "", b.at, c.rep)
		}
	}
	return nil
}

// noted puts notes in place of the media of a result.
func (c *conversation) noted(parts []dragoman.Part, at extra.Path) []dragoman.Part {
	if !slices.ContainsFunc(parts, isMedia) {
		return parts
	}
	parts = slices.Clone(parts)
	for i, p := range parts {
		if m, ok := p.(*dragoman.Media); ok {
			c.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", m.Media)
			parts[i] = &dragoman.Text{Text: interop.Placeholder(m)}
		}
	}
	return parts
}

func isMedia(p dragoman.Part) bool { return p.Kind() == dragoman.KindMedia }
