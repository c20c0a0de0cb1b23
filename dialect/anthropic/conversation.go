package anthropic

import (
	"fmt"
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

// The roles of the wire.
const (
	wireUser      = blockwire.User
	wireAssistant = "assistant"
	wireSystem    = blockwire.System
)

// conversation is the plan of a request's conversation, and says what its parts
// become on this wire.
type conversation struct {
	blockwire.Plan
	reg    *interop.Registry
	limits dragoman.Limits
	target dragoman.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
}

func newConversation(reg *interop.Registry, limits dragoman.Limits, o dialect.EncodeOptions, rep *dragoman.Report) conversation {
	target := reg.Target()
	rules := blockwire.Rules{
		Dialect: name, Assistant: wireAssistant, List: "content",
		Turn: "message", Prompt: "system prompt",
		SystemTurns: true, MidSystem: target.Caps.MidSystem,
	}
	return conversation{Plan: blockwire.Plan{Rules: rules}, reg: reg, limits: limits, target: target, o: o, rep: rep}
}

// arrange plans the whole of a request's conversation.
func (c *conversation) arrange(req *dragoman.Request) {
	_, c.Threaded = extra.Get(req.Extra, name, "/thread")
	c.Arrange(req, c, c.rep)
	c.TrimPrefill()
	c.Open()
}

// Said implements [blockwire.Wire]: a result must follow the calls of a turn.
func (c *conversation) Said(t *blockwire.Turn) { c.CallsLast(t) }

// mayThink reports whether a thinking block goes back: to its origin only, and
// only with the signature that proves it (quirks D23, D24, G12).
func (c *conversation) mayThink(m *dragoman.Message, p *dragoman.Reasoning) bool {
	return m != nil && blockwire.Proven(p) && wirekit.MayReplayReasoning(m, p, &c.limits, &c.target)
}

// Complete implements [blockwire.Wire]: no text is blank, and the last block
// carries the cache hint of the message.
func (c *conversation) Complete(out []blockwire.Block, m *dragoman.Message, at extra.Path, _ string, rep *dragoman.Report) []blockwire.Block {
	out = blockwire.DropBlank(out, rep)
	blockwire.MarkLast(out, m.Cache, at, rep)
	return out
}

// Add implements [blockwire.Wire].
func (c *conversation) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	b, ok := c.Usual(m, p, at, role, rep, c.mayThink)
	if !ok {
		return out
	}
	if t, text := b.Part.(*dragoman.Text); text && role == wireUser {
		if _, cites := extra.Get(t.Extra, name, "/citations"); cites {
			rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/citations", "version 2026-10-21 takes no citations on the text of a user")
			b.Part = uncited(t)
		}
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

// writeBlock writes one part as a block.
func (c *conversation) writeBlock(w *jsonwire.Writer, b *blockwire.Block, cache *blockwire.Breakpoints) error {
	if b.Raw != nil && !cache.Cuts(b) {
		w.Known(b.Raw)
		return nil
	}
	hint := cache.Take(b, c.rep)
	switch p := b.Part.(type) {
	case *dragoman.Text:
		t := *p
		t.Cache = hint
		writeText(w, &t, b.At, c.rep)
	case *dragoman.Media:
		m := *p
		m.Cache = hint
		writeMedia(c.reg.View(), w, &m, b.At, c.rep)
	case *dragoman.ToolCall:
		call := *p
		call.Cache = hint
		if err := c.reg.WriteCall(w, &call, b.At, c.rep); err != nil {
			return fmt.Errorf("anthropic: %s: %w", b.At, err)
		}
	case *dragoman.ToolResult:
		res := *p
		res.Cache = hint
		res.Content = cache.Inside(p.Content, b.At, c.rep)
		if _, err := c.reg.WriteResult(w, &res, b.At, c.rep); err != nil {
			return fmt.Errorf("anthropic: %s: %w", b.At, err)
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
		w.StringField("thinking", blockwire.Visible(p))
		w.StringField("signature", signature)
	}
	extra.Write(w, p.Extra, name, "")
	w.EndObject()
}
