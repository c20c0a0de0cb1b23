package blockwire

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// Conversation is the plan of a request's conversation for a [Format]. It writes the
// turns. Dialects embed it and implement the rest of [Wire].
type Conversation struct {
	Plan
	*Format
	Reg     *interop.Registry
	limits  targets.Limits
	Target  targets.Target
	Options dialect.EncodeOptions
	Rep     *dragoman.Report
}

// assistant is the role of the model in dialects of a [Format].
const assistant = "assistant"

// NewConversation returns an empty plan.
func NewConversation(f *Format, reg *interop.Registry, o dialect.EncodeOptions, rep *dragoman.Report) Conversation {
	target := reg.Target()
	rules := Rules{
		Dialect: f.Dialect, Assistant: assistant, List: "content",
		Turn: "message", Prompt: "system prompt",
		SystemTurns: true, MidSystem: target.Caps.MidSystem, CachePoint: f.IsCachePoint,
	}
	return Conversation{Plan: Plan{Rules: rules}, Format: f, Reg: reg, limits: f.Limits(), Target: target, Options: o, Rep: rep}
}

// FinishTurn implements [Wire]: results must directly follow the calls of a turn.
func (c *Conversation) FinishTurn(t *Turn) { c.CallsLast(t) }

// MayThink reports whether thinking is sent back: only to its origin, and only with the
// signature that proves it. Models that do not sign accept no thinking back (quirks
// D23, D24, G9, G12).
func (c *Conversation) MayThink(m *dragoman.Message, p *dragoman.Reasoning) bool {
	return m != nil && HasProof(p) && wirekit.MayReplayReasoning(m, p, &c.limits, &c.Target)
}

// Native returns the native form of a message, if the target accepts it and refuses is
// false for each part.
func (c *Conversation) Native(m *dragoman.Message, refuses func(p dragoman.Part) bool) ([]byte, bool) {
	raw, ok := wirekit.ReplayMessage(m, &c.limits, &c.Target, c.Options.Rebuild)
	if !ok {
		return nil, false
	}
	for _, p := range m.Parts {
		if !c.replays(m, p) || refuses != nil && refuses(p) {
			return nil, false
		}
	}
	return raw, true
}

func (c *Conversation) replays(m *dragoman.Message, p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Reasoning:
		return c.MayThink(m, p)
	case *dragoman.Media:
		return c.Target.Caps.AcceptsMedia(p.Media)
	case *dragoman.ToolCall:
		return !p.Synthetic && c.Reg.WireID(p.ID) == p.ID
	case *dragoman.ToolResult:
		return !wirekit.RefusesAny(&c.Target.Caps, p.Content) && c.Reg.WireID(p.CallID) == p.CallID
	default:
		return true
	}
}

// WriteTurn writes one message. mark is a cache point to write at its end; it may be
// nil.
func (c *Conversation) WriteTurn(w *jsonwire.Writer, t *Turn, cache *Breakpoints, mark *dragoman.CacheHint) error {
	if t.Untouched() && mark == nil && !cache.WouldDropAny(t.Blocks) {
		w.Known(t.Native())
		return nil
	}
	c.Begin(w, t, t.Role)
	if err := c.writeBlocks(w, t.Blocks, cache); err != nil {
		return err
	}
	if mark != nil {
		c.WriteCachePoint(w, mark, extra.At(""), c.Rep)
	}
	c.End(w, t)
	return nil
}

func (c *Conversation) writeBlocks(w *jsonwire.Writer, blocks []Block, cache *Breakpoints) error {
	write := c.writeBlock
	if c.WriteCachePoint != nil {
		write = c.writeMarked
	}
	for i := range blocks {
		if err := write(w, &blocks[i], cache); err != nil {
			return err
		}
	}
	return nil
}

// writeBlock writes a block that includes its cache hint.
func (c *Conversation) writeBlock(w *jsonwire.Writer, b *Block, cache *Breakpoints) error {
	if b.Raw != nil && !cache.WouldDrop(b) {
		w.Known(b.Raw)
		return nil
	}
	hint := cache.Take(b, c.Rep)
	part := withHint(b.Part, hint)
	if res, ok := part.(*dragoman.ToolResult); ok {
		res.Content = cache.Inside(res.Content, b.At, c.Rep)
	}
	return c.writePart(w, part, b.At)
}

// writeMarked writes a block, followed by its cache point.
func (c *Conversation) writeMarked(w *jsonwire.Writer, b *Block, cache *Breakpoints) error {
	if b.Raw != nil {
		w.Known(b.Raw)
	} else if err := c.writePart(w, withHint(b.Part, nil), b.At); err != nil {
		return err
	}
	hint := cache.Take(b, c.Rep)
	switch {
	case hint == nil:
	case b.Mark != nil:
		w.Known(b.Mark)
	default:
		c.WriteCachePoint(w, hint, b.At, c.Rep)
	}
	return nil
}

// writePart writes a part as a block.
func (c *Conversation) writePart(w *jsonwire.Writer, p dragoman.Part, at extra.Path) (err error) {
	switch p := p.(type) {
	case *dragoman.Text:
		c.WriteText(c.Reg.View(), w, p, at, c.Rep)
	case *dragoman.Media:
		c.WriteMedia(c.Reg.View(), w, p, at, c.Rep)
	case *dragoman.ToolCall:
		err = c.Reg.WriteCall(w, p, at, c.Rep)
	case *dragoman.ToolResult:
		_, err = c.Reg.WriteResult(w, p, at, c.Rep)
	case *dragoman.Reasoning:
		c.WriteReasoning(w, p, p.Signature)
	case *dragoman.Opaque:
		w.Raw(p.JSON)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.API, at, err)
	}
	return nil
}

// withHint returns a copy of a part with the given cache hint. A part that cannot carry
// a hint is returned unchanged.
func withHint(p dragoman.Part, hint *dragoman.CacheHint) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		t := *p
		t.Cache = hint
		return &t
	case *dragoman.Media:
		m := *p
		m.Cache = hint
		return &m
	case *dragoman.ToolCall:
		c := *p
		c.Cache = hint
		return &c
	case *dragoman.ToolResult:
		r := *p
		r.Cache = hint
		return &r
	default:
		return p
	}
}
