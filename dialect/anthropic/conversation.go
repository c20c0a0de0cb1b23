package anthropic

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
	wireUser      = "user"
	wireAssistant = "assistant"
	wireSystem    = "system"
)

// openingText is the user message that opens a conversation which has none.
const openingText = "(conversation continues)"

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
	// after is the first message behind the one at hand that is no system
	// message, once it was looked for.
	after int
}

// block is one part in its place, with the cache hint that belongs on it.
type block struct {
	part  dragoman.Part
	at    extra.Path
	cache *dragoman.CacheHint
}

// turn is one message of the wire.
type turn struct {
	role   string
	blocks []block
	// raw is the native form, while the turn is one message that nothing
	// changed.
	raw []byte
	// pending is what writing the turn from its blocks would report.
	pending  dragoman.Report
	messages []*dragoman.Message
}

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
		case t.raw != nil:
		case t.role == wireUser:
			c.resultsFirst(t, i)
		case t.role == wireAssistant:
			c.callsLast(t)
		}
	}
	c.trimPrefill()
	c.open(req)
}

func systemRole(r dragoman.Role) bool {
	return r == dragoman.RoleSystem || r == dragoman.RoleDeveloper
}

// leading puts a message that stands before the first turn into the system
// prompt.
func (c *conversation) leading(m *dragoman.Message, i int) {
	at := extra.Elem("/messages", i)
	if m.Origin != nil && m.Origin.Dialect == name || m.Role == dragoman.RoleDeveloper {
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
	next := turn{role: role, raw: c.replay(m), messages: []*dragoman.Message{m}}
	next.blocks = c.blocks(m, at, role, &next.pending)
	if next.raw == nil && len(next.blocks) == 0 {
		next.pending.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		c.rep.Merge("", next.pending)
		return
	}
	c.unsaid(m, at)
	last := len(c.turns) - 1
	if last < 0 || c.turns[last].role != role || role != wireUser && role != wireAssistant && role != wireSystem {
		c.turns = append(c.turns, next)
		return
	}
	t := &c.turns[last]
	t.raw = nil // what merges is written from the canonical form
	t.pending.Merge("", next.pending)
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
	own := m.Origin != nil && m.Origin.Dialect == name
	switch m.Role {
	case dragoman.RoleUser, dragoman.RoleTool:
		return wireUser
	case dragoman.RoleAssistant:
		return wireAssistant
	case dragoman.RoleSystem, dragoman.RoleDeveloper:
		next := max(c.after, i+1) // found once for a whole run of them
		for next < len(ms) && systemRole(ms[next].Role) {
			next++
		}
		c.after = next
		before := ""
		if n := len(c.turns); n > 0 {
			before = c.turns[n-1].role
		}
		fits := (before == wireUser || before == wireSystem) && (next == len(ms) || ms[next].Role == dragoman.RoleAssistant)
		if own && m.Role == dragoman.RoleSystem || c.target.Caps.MidSystem && fits {
			if m.Role == dragoman.RoleDeveloper {
				c.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a developer message written as a system message")
			}
			return wireSystem
		}
		c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a %s message inside the conversation written as user text", m.Role)
		return wireUser
	default:
		if own {
			return string(m.Role)
		}
		c.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "role %.40q written as user", m.Role)
		return wireUser
	}
}

// replay returns the native form of a message that was not changed and that
// the target may see again as it is.
func (c *conversation) replay(m *dragoman.Message) []byte {
	raw, ok := wirekit.ReplayMessage(m, c.limits, c.target, c.o)
	if !ok || len(m.Parts) == 0 || m.Cache != nil || saysString(m, raw) {
		return nil
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			if !c.mayThink(m, p) {
				return nil
			}
		case *dragoman.Media:
			if c.target.Caps.NoImages {
				return nil
			}
		case *dragoman.ToolCall:
			if p.Synthetic || c.reg.WireID(p.ID) != p.ID {
				return nil
			}
		case *dragoman.ToolResult:
			if c.target.Caps.NoImages && slices.ContainsFunc(p.Content, isMedia) || c.reg.WireID(p.CallID) != p.CallID {
				return nil
			}
		}
	}
	return raw
}

// saysString reports whether the content of a native message is a string. It
// is written as a block then: merged with the next message it would become
// one, and what was sent once must not change later.
func saysString(m *dragoman.Message, raw []byte) bool {
	if len(m.Parts) != 1 || m.Parts[0].Kind() != dragoman.KindText {
		return false
	}
	var r jsonwire.Reader
	r.Reset(raw)
	for key := range r.Object() {
		if string(key) == "content" {
			return r.Kind() == '"'
		}
		r.Skip()
	}
	return false
}

func isMedia(p dragoman.Part) bool { return p.Kind() == dragoman.KindMedia }

// mayThink reports whether a thinking block goes back: to its origin only, and
// only with the signature that proves it (quirks D23, D24, G12).
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
	if m.Cache != nil {
		mark(out, m.Cache, at, rep)
	}
	return out
}

// mark puts the cache hint of a message on its last block that can carry one.
func mark(blocks []block, hint *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
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
	b := block{part: p, at: at}
	switch p := p.(type) {
	case *dragoman.Text:
		b.cache = p.Cache
		if role == wireSystem && strings.TrimSpace(p.Text) == "" {
			return drop(dragoman.Info, "a text that says nothing")
		}
		if _, cites := extra.Get(p.Extra, name, "/citations"); cites && role == wireUser {
			rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/citations", "version 2026-10-21 takes no citations on the text of a user")
			b.part = uncited(p)
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
		b.cache = p.Cache
		switch {
		case role == wireSystem:
			return drop(dragoman.Serious, "a system message takes no %s", p.Media)
		case role == wireAssistant && (m.Origin == nil || m.Origin.Dialect != name):
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an assistant message takes no %s; a note stands in for it", p.Media)
			b.part = &dragoman.Text{Text: interop.Placeholder(p)}
		}
	case *dragoman.ToolCall:
		b.cache = p.Cache
		switch {
		case p.Hosted:
			return drop(dragoman.Serious, "call of %q was run by its provider", p.Name)
		case role != wireAssistant:
			return drop(dragoman.Serious, "a call outside an assistant message")
		}
	case *dragoman.ToolResult:
		b.cache = p.Cache
		if role != wireUser {
			return drop(dragoman.Serious, "a tool result inside a message of role %s", role)
		}
	case *dragoman.Opaque:
		if p.Dialect != name {
			return drop(dragoman.Serious, "a %.60s of %s has no place here", p.Type, p.Dialect)
		}
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return append(out, b)
}

// uncited is a text without its citations.
func uncited(p *dragoman.Text) *dragoman.Text {
	t := *p
	t.Extra = clone(p.Extra)
	t.Extra.Fields = slices.DeleteFunc(t.Extra.Fields, func(f dragoman.Field) bool {
		return f.Path == "/citations" || strings.HasPrefix(f.Path, "/citations/")
	})
	return &t
}

// resultsFirst puts the results of a user turn first, in the order of the calls
// they answer, one for each call (quirks D1, D2, D4, D6).
func (c *conversation) resultsFirst(t *turn, i int) {
	var results, rest []block
	place := map[string]int{}
	moved := false
	for _, b := range t.blocks {
		res, ok := b.part.(*dragoman.ToolResult)
		if !ok {
			rest = append(rest, b)
			continue
		}
		if first, dup := place[res.CallID]; dup && res.CallID != "" {
			c.rep.Addf(dragoman.Dropped, dragoman.Warn, results[first].at.String(), "call %q has a later result", res.CallID)
			results[first] = b
			continue
		}
		moved = moved || len(rest) > 0
		place[res.CallID] = len(results)
		results = append(results, b)
	}
	if len(results) == 0 {
		return
	}
	if i > 0 && len(results) > 1 {
		order := map[string]int{}
		for n, b := range c.turns[i-1].blocks {
			if call, ok := b.part.(*dragoman.ToolCall); ok {
				order[call.ID] = n + 1
			}
		}
		rank := func(b block) int {
			if n := order[b.part.(*dragoman.ToolResult).CallID]; n > 0 {
				return n
			}
			return len(c.turns[i-1].blocks) + 1
		}
		byCall := func(a, b block) int { return rank(a) - rank(b) }
		if !slices.IsSortedFunc(results, byCall) {
			moved = true
			slices.SortStableFunc(results, byCall)
		}
	}
	if moved {
		c.rep.Add(dragoman.Moved, dragoman.Info, results[0].at.String(), "the results of a turn written first, in the order of its calls")
	}
	t.blocks = append(results, rest...)
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

// trimPrefill cuts white space at the end of an answer that the model is to
// continue: the API rejects it there.
func (c *conversation) trimPrefill() {
	if len(c.turns) == 0 {
		return
	}
	t := &c.turns[len(c.turns)-1]
	if t.role != wireAssistant || t.raw != nil || len(t.blocks) == 0 {
		return
	}
	b := &t.blocks[len(t.blocks)-1]
	text, ok := b.part.(*dragoman.Text)
	if !ok {
		return
	}
	cut := strings.TrimRight(text.Text, " \t\r\n")
	if cut == text.Text || cut == "" {
		return
	}
	c.rep.Add(dragoman.Lowered, dragoman.Info, b.at.String(), "white space cut from the end of the assistant's last message")
	trimmed := *text
	trimmed.Text = cut
	b.part = &trimmed
}

// open makes a conversation start with a user message. One that came from this
// dialect starts as it likes: the API takes more than its manual says, and a
// compacted or threaded conversation starts with what the server gave.
func (c *conversation) open(req *dragoman.Request) {
	if len(c.turns) > 0 {
		m := c.turns[0].messages[0]
		if c.turns[0].role == wireUser || m.Origin != nil && m.Origin.Dialect == name {
			return
		}
	} else if _, threaded := extra.Get(req.Extra, name, "/thread"); threaded {
		return
	}
	c.rep.Add(dragoman.Synthesised, dragoman.Warn, "/messages", "a user message to open the conversation")
	opening := turn{role: wireUser, blocks: []block{{part: &dragoman.Text{Text: openingText}, at: extra.At("/messages")}}}
	c.turns = slices.Insert(c.turns, 0, opening)
}

// write writes one message of the wire.
func (c *conversation) write(w *jsonwire.Writer, t *turn, cache *cacheBudget) error {
	if t.raw != nil && !cache.cuts(t.blocks) {
		w.Raw(t.raw)
		return nil
	}
	c.rep.Merge("", t.pending)
	w.BeginObject()
	w.StringField("role", t.role)
	w.Key("content")
	w.BeginArray()
	for i := range t.blocks {
		if err := c.writeBlock(w, &t.blocks[i], cache); err != nil {
			return err
		}
	}
	w.EndArray()
	if len(t.messages) == 1 {
		extra.Write(w, t.messages[0].Extra, name, "")
	} else {
		// Of a member that several merged messages have, the first counts.
		written := map[string]bool{}
		for _, m := range t.messages {
			writeExtras(w, m.Extra, func(path string) bool { return written[path] })
			for _, f := range m.Extra.For(name) {
				written[f.Path] = true
			}
		}
	}
	w.EndObject()
	return nil
}

// writeBlock writes one part as a block.
func (c *conversation) writeBlock(w *jsonwire.Writer, b *block, cache *cacheBudget) error {
	hint := cache.take(b, c.rep)
	switch p := b.part.(type) {
	case *dragoman.Text:
		t := *p
		t.Cache = hint
		interop.WriteAnthropicText(w, &t, b.at, c.rep)
	case *dragoman.Media:
		m := *p
		m.Cache = hint
		c.reg.WriteAnthropicMedia(w, &m, b.at, c.rep)
	case *dragoman.ToolCall:
		call := *p
		call.Cache = hint
		if err := c.reg.WriteCall(w, &call, b.at, c.rep); err != nil {
			return fmt.Errorf("anthropic: %s: %w", b.at, err)
		}
	case *dragoman.ToolResult:
		res := *p
		res.Cache = hint
		res.Content = cache.inside(p.Content, b.at, c.rep)
		if _, err := c.reg.WriteResult(w, &res, b.at, c.rep); err != nil {
			return fmt.Errorf("anthropic: %s: %w", b.at, err)
		}
	case *dragoman.Reasoning:
		writeReasoning(w, p, p.Signature)
	case *dragoman.Opaque:
		w.Raw(p.JSON)
	}
	return nil
}

// writeReasoning writes a thinking block.
func writeReasoning(w *jsonwire.Writer, p *dragoman.Reasoning, signature string) {
	w.BeginObject()
	if p.Redacted {
		w.StringField("type", "redacted_thinking")
		w.StringField("data", p.Encrypted)
	} else {
		w.StringField("type", "thinking")
		w.StringField("thinking", visible(p))
		w.StringField("signature", signature)
	}
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
