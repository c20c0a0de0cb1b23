package bedrock

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// The roles of the wire.
const (
	wireUser      = "user"
	wireAssistant = "assistant"
	wireSystem    = "system"
)

const (
	// openingText is the user message that opens a conversation which has none.
	openingText = "(conversation continues)"
	// besideText stands beside a document that nothing is said about.
	besideText = "(see the attached document)"
)

// conversation arranges canonical messages as this wire wants them: what
// stands before the first turn is the system prompt; messages of one role that
// follow each other are one message; the results of a turn come first in the
// message after it. It is a plan: nothing is written before all of it is known.
type conversation struct {
	reg    *interop.Registry
	limits dragoman.Limits
	target dragoman.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report

	system []block
	turns  []turn
	// after is the message that follows the run of system messages at hand,
	// once it was looked for.
	after int
	// in reads native messages, one after the other.
	in jsonwire.Reader
}

// block is one part in its place, with the cache hint that belongs behind it.
type block struct {
	part  dragoman.Part
	at    extra.Path
	cache *dragoman.CacheHint
	// raw is the block as it came; nil for one that is written from its part.
	// mark is the cache point behind it as it came.
	raw, mark []byte
}

// turn is one message of the wire: messages of one role that follow each other.
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
	for i, p := range req.Instructions {
		c.system = c.add(c.system, nil, p, extra.Elem("/instructions", i), wireSystem, c.rep)
	}
	ms := req.Messages
	first := 0
	for first < len(ms) && systemRole(ms[first].Role) {
		c.leading(&ms[first], first)
		first++
	}
	for i := first; i < len(ms); i++ {
		c.message(ms, i)
	}
	for i := range c.turns {
		t := &c.turns[i]
		switch {
		case t.untouched():
		case t.role == wireUser:
			c.resultsFirst(t, i)
		case t.role == wireAssistant:
			c.callsLast(t)
		}
	}
	c.nameDocuments()
	c.trimPrefill()
	c.open()
}

func systemRole(r dragoman.Role) bool {
	return r == dragoman.RoleSystem || r == dragoman.RoleDeveloper
}

// leading puts a message that stands before the first turn into the system
// prompt.
func (c *conversation) leading(m *dragoman.Message, i int) {
	at := extra.Elem("/messages", i)
	if own(m) || m.Role == dragoman.RoleDeveloper {
		c.rep.Addf(dragoman.Moved, dragoman.Info, at.String(), "a leading %s message written into the system prompt", m.Role)
	}
	c.system = append(c.system, c.blocks(m, at, wireSystem, c.rep)...)
	c.unsaid(m, at)
	for _, f := range m.Extra.For(name) {
		c.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a member of a message that became part of the system prompt")
	}
}

// message adds one message to the plan, to the turn before it where the roles
// agree.
func (c *conversation) message(ms []dragoman.Message, i int) {
	m := &ms[i]
	at := extra.Elem("/messages", i)
	role := c.role(ms, i, at)
	next := turn{role: role, messages: []*dragoman.Message{m}}
	next.frame, next.blocks = c.replay(m, at)
	if next.frame.raw == nil {
		next.blocks = c.blocks(m, at, role, c.rep)
	}
	if len(next.blocks) == 0 {
		c.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		return
	}
	c.unsaid(m, at)
	last := len(c.turns) - 1
	if last < 0 || c.turns[last].role != role || role != wireUser && role != wireAssistant && role != wireSystem {
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
}

// role says which role a message has on the wire. A system message inside the
// conversation keeps its role where the model takes it and the neighbours allow
// it: after a user message, before an assistant's or at the end.
func (c *conversation) role(ms []dragoman.Message, i int, at extra.Path) string {
	m := &ms[i]
	if !systemRole(m.Role) {
		role := plainRole(m)
		switch m.Role {
		case dragoman.RoleUser, dragoman.RoleTool, dragoman.RoleAssistant:
		default:
			if role == wireUser {
				c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "role %.40q written as user", m.Role)
			}
		}
		return role
	}
	if own(m) && m.Role == dragoman.RoleSystem || c.target.Caps.MidSystem && c.fits(ms, i) {
		if m.Role == dragoman.RoleDeveloper {
			c.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a developer message written as a system message")
		}
		return wireSystem
	}
	c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a %s message inside the conversation written as user text", m.Role)
	return wireUser
}

// own reports whether a message came from this dialect.
func own(m *dragoman.Message) bool { return m.Origin != nil && m.Origin.Dialect == name }

// plainRole is the role of a message that is no system message. One we do not
// know goes back to the dialect it came from.
func plainRole(m *dragoman.Message) string {
	switch m.Role {
	case dragoman.RoleUser, dragoman.RoleTool:
		return wireUser
	case dragoman.RoleAssistant:
		return wireAssistant
	default:
		if own(m) {
			return string(m.Role)
		}
		return wireUser
	}
}

// fits reports whether the neighbours of a message allow it to be a system
// message. What follows counts only if anything of it is written.
func (c *conversation) fits(ms []dragoman.Message, i int) bool {
	if c.after <= i { // looked for once for a whole run of them
		c.after = i + 1
		for c.after < len(ms) && (systemRole(ms[c.after].Role) || c.silent(&ms[c.after])) {
			c.after++
		}
	}
	before := ""
	if n := len(c.turns); n > 0 {
		before = c.turns[n-1].role
	}
	return (before == wireUser || before == wireSystem) && (c.after == len(ms) || ms[c.after].Role == dragoman.RoleAssistant)
}

// silent reports whether nothing of a message that is no system message is
// written.
func (c *conversation) silent(m *dragoman.Message) bool {
	f, _ := c.replay(m, extra.Path{})
	return f.raw == nil && len(c.blocks(m, extra.Path{}, plainRole(m), new(dragoman.Report))) == 0
}

// mayThink reports whether thinking goes back: to its origin only, and only
// with the signature that proves it. Models that sign nothing take no thinking
// back (quirks D23, D24, G9, G12).
func (c *conversation) mayThink(m *dragoman.Message, p *dragoman.Reasoning) bool {
	if m == nil || !wirekit.MayReplayReasoning(m, p, c.limits, c.target) {
		return false
	}
	if p.Redacted {
		return p.Encrypted != ""
	}
	return p.Signature != ""
}

// blocks lists the parts of a message that the wire takes.
func (c *conversation) blocks(m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []block {
	var out []block
	for i, p := range m.Parts {
		out = c.add(out, m, p, at.Elem("parts", i), role, rep)
	}
	// Blank text is rejected, but it may be what keeps two thinking blocks
	// apart (quirk D22).
	if !slices.ContainsFunc(out, isThinking) {
		out = slices.DeleteFunc(out, func(b block) bool {
			t, ok := b.part.(*dragoman.Text)
			if !ok || strings.TrimSpace(t.Text) != "" {
				return false
			}
			rep.Add(dragoman.Dropped, dragoman.Info, b.at.String(), "a text that says nothing")
			return true
		})
	}
	if role == wireUser && c.needsText(out) {
		rep.Addf(dragoman.Synthesised, dragoman.Info, at.String(), "%q: a document needs a text beside it", besideText)
		out = append(out, block{part: &dragoman.Text{Text: besideText}, at: at})
	}
	if m.Cache != nil {
		markBlocks(out, m.Cache, at, rep)
	}
	return out
}

// needsText reports whether blocks hold a document and no text (quirk D38).
func (c *conversation) needsText(blocks []block) bool {
	document := false
	for _, b := range blocks {
		switch p := b.part.(type) {
		case *dragoman.Text:
			return false
		case *dragoman.Media:
			document = document || p.Media == dragoman.MediaFile && c.reg.CanWriteBedrockMedia(p) == ""
		case *dragoman.Opaque:
			document = document || p.Type == "document"
		}
	}
	return document
}

// markBlocks puts the cache hint of a message behind its last block that can
// carry one.
func markBlocks(blocks []block, hint *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	for i := len(blocks) - 1; i >= 0; i-- {
		switch blocks[i].part.(type) {
		case *dragoman.Reasoning, *dragoman.Opaque:
		default:
			if blocks[i].cache == nil {
				blocks[i].cache = hint
			}
			return
		}
	}
	rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "no block of the message can carry a cache breakpoint")
}

func isThinking(b block) bool { return b.part.Kind() == dragoman.KindReasoning }

// add appends a part in the form the wire has for it, or reports that there is
// none. m is nil for the request's instructions.
func (c *conversation) add(out []block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []block {
	drop := func(sev dragoman.Severity, format string, args ...any) []block {
		rep.Addf(dragoman.Dropped, sev, at.String(), format, args...)
		return out
	}
	b := block{part: p, at: at, cache: hintOf(p)}
	switch p := p.(type) {
	case *dragoman.Text:
		if role == wireSystem && strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
	case *dragoman.Refusal:
		extra.Report(rep, p.Extra, name, at)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		b.part = &dragoman.Text{Text: p.Text}
	case *dragoman.Data:
		b.part = &dragoman.Text{Text: string(p.JSON)}
	case *dragoman.Reasoning:
		if role != wireAssistant || !c.mayThink(m, p) {
			return drop(dragoman.Warn, "reasoning that this target did not write, or that carries no signature")
		}
	case *dragoman.Media:
		switch {
		case role == wireSystem:
			return drop(dragoman.Serious, "a system message takes no %s", p.Media)
		case role == wireAssistant && !own(m):
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an assistant message takes no %s; a note stands in for it", p.Media)
			b.part = &dragoman.Text{Text: interop.Placeholder(p)}
		}
	case *dragoman.ToolCall:
		switch {
		case p.Hosted:
			return drop(dragoman.Serious, "call of %q was run by its provider", p.Name)
		case role != wireAssistant:
			return drop(dragoman.Serious, "a call outside an assistant message")
		}
	case *dragoman.ToolResult:
		if role != wireUser {
			return drop(dragoman.Serious, "a tool result inside a message of role %s", role)
		}
		b.part, b.cache = hoisted(p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != name {
			return drop(dragoman.Serious, "a %.60s of %s has no place here", p.Type, p.Dialect)
		}
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return append(out, b)
}

// hoisted returns a result without cache hints, and the hint that belongs
// behind it: the wire takes no cache point inside a result (quirk D31).
func hoisted(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, *dragoman.CacheHint) {
	hint, inside := res.Cache, false
	out := *res
	out.Cache = nil
	for i, p := range res.Content {
		h := hintOf(p)
		if h == nil {
			continue
		}
		if !inside {
			out.Content, inside = slices.Clone(res.Content), true
			rep.Add(dragoman.Moved, dragoman.Info, at.String(), "a cache breakpoint inside a result written behind it")
		}
		switch p := p.(type) {
		case *dragoman.Text:
			t := *p
			t.Cache, out.Content[i] = nil, &t
		case *dragoman.Media:
			m := *p
			m.Cache, out.Content[i] = nil, &m
		}
		if hint == nil {
			hint = h
		}
	}
	return &out, hint
}

// resultsFirst puts the results that answer the turn before first, in the order
// of its calls, one for each call (quirks D1, D2, D4, D6). A result that answers
// none of them stays where it is: the API takes it nowhere, and what was sent
// before it must not change (decision 6). Nor does a message that came with all
// the answers there are, in whatever order it has them.
func (c *conversation) resultsFirst(t *turn, i int) {
	if !slices.ContainsFunc(t.blocks, isResult) {
		return
	}
	calls := c.calls(i - 1)
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

// calls numbers the calls of turn i, if that is an assistant's, by id.
func (c *conversation) calls(i int) map[string]int {
	calls := map[string]int{}
	if i < 0 || c.turns[i].role != wireAssistant {
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
				if b.cache == nil { // the breakpoint behind it stays where it was
					b.cache, b.mark = kept[first].cache, kept[first].mark
				}
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

// callsLast puts client calls behind everything else of an assistant turn,
// where a result must follow them (quirks B26, B27). Thinking between calls
// fixes the order: a turn with signatures is replayed as it was (quirk D25).
func (c *conversation) callsLast(t *turn) {
	isCall := func(b block) bool { return b.part.Kind() == dragoman.KindToolCall }
	first := slices.IndexFunc(t.blocks, isCall)
	if first < 0 || slices.ContainsFunc(t.blocks[first:], isThinking) {
		return
	}
	var calls, rest []block
	for _, b := range t.blocks {
		if isCall(b) {
			calls = append(calls, b)
		} else {
			rest = append(rest, b)
		}
	}
	if len(rest) > first {
		c.rep.Add(dragoman.Moved, dragoman.Info, t.blocks[first].at.String(), "calls written behind the rest of their turn")
	}
	t.blocks = append(rest, calls...)
}

// nameDocuments gives every document a name that the API takes and that no
// other of the request has. Names are settled in order, so that a later one
// never changes an earlier.
func (c *conversation) nameDocuments() {
	taken := map[string]int{}
	for i := range c.turns {
		for j := range c.turns[i].blocks {
			b := &c.turns[i].blocks[j]
			switch p := b.part.(type) {
			case *dragoman.Media:
				if m := c.named(p, b.raw != nil, taken, b.at); m != p {
					b.part = m
				}
			case *dragoman.ToolResult:
				copied := false
				for k, part := range p.Content {
					m, ok := part.(*dragoman.Media)
					if !ok {
						continue
					}
					named := c.named(m, b.raw != nil, taken, b.at)
					if named == m {
						continue
					}
					if !copied {
						res := *p
						res.Content, copied = slices.Clone(p.Content), true
						p, b.part = &res, &res
					}
					p.Content[k] = named
				}
			}
		}
	}
}

// named returns a document under the name it has on the wire; any other media
// as it is. One in its native form keeps the name it came with.
func (c *conversation) named(m *dragoman.Media, native bool, taken map[string]int, at extra.Path) *dragoman.Media {
	if m.Media != dragoman.MediaFile || c.reg.CanWriteBedrockMedia(m) != "" {
		return m
	}
	base := interop.BedrockDocumentName(m)
	n := taken[base]
	taken[base]++
	if native {
		return m
	}
	wire := base
	for n > 0 {
		wire = fmt.Sprintf("%s (%d)", base, n+1)
		if _, there := taken[wire]; !there {
			taken[wire] = 1
			break
		}
		n++
	}
	if wire == m.Name {
		return m
	}
	if m.Name != "" {
		c.rep.Addf(dragoman.Renamed, dragoman.Info, at.String()+"/name", "document %.60q written as %q", m.Name, wire)
	} else {
		c.rep.Addf(dragoman.Synthesised, dragoman.Info, at.String()+"/name", "the wire demands a name; %q written", wire)
	}
	out := *m
	out.Name = wire
	return &out
}

// trimPrefill cuts white space at the end of an answer that the model is to
// continue: the API rejects it there. A block in the form it came in is its
// client's own affair.
func (c *conversation) trimPrefill() {
	if len(c.turns) == 0 {
		return
	}
	t := &c.turns[len(c.turns)-1]
	if t.role != wireAssistant || len(t.blocks) == 0 {
		return
	}
	b := &t.blocks[len(t.blocks)-1]
	text, ok := b.part.(*dragoman.Text)
	if !ok || b.raw != nil {
		return
	}
	cut := strings.TrimRightFunc(text.Text, unicode.IsSpace)
	if cut == text.Text || cut == "" {
		return
	}
	c.rep.Add(dragoman.Lowered, dragoman.Info, b.at.String(), "white space cut from the end of the assistant's last message")
	trimmed := *text
	trimmed.Text = cut
	b.part = &trimmed
}

// open makes a conversation start with a user message (quirk D38). One that
// came from this dialect starts as it likes.
func (c *conversation) open() {
	if len(c.turns) > 0 && (c.turns[0].role == wireUser || own(c.turns[0].messages[0])) {
		return
	}
	c.rep.Add(dragoman.Synthesised, dragoman.Warn, "/messages", "a user message to open the conversation")
	opening := turn{role: wireUser, blocks: []block{{part: &dragoman.Text{Text: openingText}, at: extra.At("/messages")}}}
	c.turns = slices.Insert(c.turns, 0, opening)
}

// writeBlock writes one part as a block, and the cache point behind it.
func (c *conversation) writeBlock(w *jsonwire.Writer, b *block, cache *cacheBudget) error {
	if b.raw != nil {
		w.Known(b.raw)
	} else if err := c.writePart(w, b); err != nil {
		return err
	}
	hint := cache.take(b, c.rep)
	switch {
	case hint == nil:
	case b.mark != nil:
		w.Known(b.mark)
	default:
		interop.WriteCachePoint(w, hint, b.at, c.rep)
	}
	return nil
}

// ending is the cache point that a request wants at the end of its prompt; nil
// where one stands there already.
func (c *conversation) ending(hint *dragoman.CacheHint) *dragoman.CacheHint {
	if n := len(c.turns); n > 0 {
		if blocks := c.turns[n-1].blocks; len(blocks) > 0 && blocks[len(blocks)-1].cache != nil {
			return nil
		}
	}
	return hint
}

// writeMark writes the cache point at the end of the prompt.
func (c *conversation) writeMark(w *jsonwire.Writer, hint *dragoman.CacheHint) {
	interop.WriteCachePoint(w, hint, extra.At(""), c.rep)
}

func (c *conversation) writePart(w *jsonwire.Writer, b *block) error {
	switch p := b.part.(type) {
	case *dragoman.Text:
		c.reg.WriteBedrockText(w, p, b.at, c.rep)
	case *dragoman.Media:
		c.reg.WriteBedrockMedia(w, p, b.at, c.rep)
	case *dragoman.ToolCall:
		call := *p
		call.Cache = nil
		if err := c.reg.WriteCall(w, &call, b.at, c.rep); err != nil {
			return fmt.Errorf("bedrock: %s: %w", b.at, err)
		}
	case *dragoman.ToolResult:
		if _, err := c.reg.WriteResult(w, p, b.at, c.rep); err != nil {
			return fmt.Errorf("bedrock: %s: %w", b.at, err)
		}
	case *dragoman.Reasoning:
		writeReasoning(w, p, p.Signature)
	case *dragoman.Opaque:
		w.Raw(p.JSON)
	}
	return nil
}

// writeReasoning writes a block of thinking.
func writeReasoning(w *jsonwire.Writer, p *dragoman.Reasoning, signature string) {
	w.BeginObject()
	w.Key(keyReasoning)
	w.BeginObject()
	if p.Redacted {
		w.StringField("redactedContent", p.Encrypted)
	} else {
		w.Key("reasoningText")
		w.BeginObject()
		w.StringField("text", visible(p))
		w.StringFieldIf("signature", signature)
		extra.WriteBut(w, p.Extra, name, inText, func(f dragoman.Field) bool { return f.Path == inText+"/signature" && signature != "" })
		w.EndObject()
	}
	extra.Write(w, p.Extra, name, inReasoning)
	w.EndObject()
	extra.Write(w, p.Extra, name, "")
	w.EndObject()
}

// visible is the thinking a reader may see.
func visible(p *dragoman.Reasoning) string {
	if len(p.Summary) == 0 {
		return p.Text
	}
	all := p.Summary
	if p.Text != "" {
		all = append([]string{p.Text}, p.Summary...)
	}
	return strings.Join(all, "\n\n")
}
