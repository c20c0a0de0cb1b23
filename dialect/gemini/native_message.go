package gemini

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Replay implements [blockwire.Wire]. It also records the calls of the message
// for the results that follow.
func (c *conversation) Replay(m *dragoman.Message) ([]byte, bool) {
	raw, ok := wirekit.ReplayMessage(m, &c.limits, &c.target, c.o.Rebuild)
	for i := 0; ok && i < len(m.Parts); i++ {
		ok = c.canReplay(m, m.Parts[i])
	}
	for _, call := range m.ToolCalls() {
		c.calls[call.ID], c.bare[call.ID] = call, call.Synthetic && c.Own(m)
	}
	return raw, ok
}

// canReplay reports whether the target may see a part in its native form.
func (c *conversation) canReplay(m *dragoman.Message, p dragoman.Part) bool {
	caps := c.target.Caps
	switch p := p.(type) {
	case *dragoman.Reasoning:
		return c.mayReturn(m, p)
	case *dragoman.Text:
		return p.Signature == "" || c.mayReturn(m, nil)
	case *dragoman.Media:
		_, signed := extra.Get(p.Extra, name, "/thoughtSignature")
		return caps.AcceptsMedia(p.Media) && (!signed || c.mayReturn(m, nil))
	case *dragoman.ToolCall:
		return (p.Signature == "" || c.mayReturn(m, nil)) && (p.Synthetic || !caps.NoCallIDs && c.reg.WireID(p.ID) == p.ID)
	case *dragoman.ToolResult:
		if caps.NoResultMedia && slices.ContainsFunc(p.Content, isMedia) || wirekit.RefusesAny(&caps, p.Content) {
			return false
		}
		return !caps.NoCallIDs && (c.omitsID(p.CallID) || c.reg.WireID(p.CallID) == p.CallID)
	case *dragoman.Opaque:
		signed, _ := withoutSignature(p.JSON)
		return signed == "" || c.mayReturn(m, nil)
	default:
		return true
	}
}

// write writes one content.
func (c *conversation) write(w *jsonwire.Writer, t *blockwire.Turn) error {
	if t.Untouched() {
		w.Known(t.Native())
		return nil
	}
	role := t.Role
	if len(t.Messages) > 0 {
		if raw, ok := extra.Get(t.Messages[0].Extra, name, "/role"); ok {
			role = jsonwire.Unquote(raw)
		}
	}
	c.Begin(w, t, role)
	for i := range t.Blocks {
		if len(c.spilled) > 0 && !c.isKnownResult(&t.Blocks[i]) {
			c.writeSpilled(w) // results stay together
		}
		if err := c.writePart(w, &t.Blocks[i]); err != nil {
			return err
		}
	}
	c.writeSpilled(w)
	c.End(w, t, "/role")
	return nil
}
