package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// Replay implements [blockwire.Wire].
func (c *conversation) Replay(m *dragoman.Message) ([]byte, bool) {
	raw, ok := wirekit.ReplayMessage(m, &c.limits, &c.target, c.o.Rebuild)
	if !ok {
		return nil, false
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			if !c.mayThink(m, p) {
				return nil, false
			}
		case *dragoman.Media:
			if !c.target.Caps.TakesMedia(p.Media) {
				return nil, false
			}
		case *dragoman.ToolCall:
			if p.Synthetic || c.reg.WireID(p.ID) != p.ID {
				return nil, false
			}
		case *dragoman.ToolResult:
			if wirekit.RefusesAny(&c.target.Caps, p.Content) || c.reg.WireID(p.CallID) != p.CallID {
				return nil, false
			}
		}
	}
	return raw, true
}

// write writes one message of the wire.
func (c *conversation) write(w *jsonwire.Writer, t *blockwire.Turn, cache *blockwire.Breakpoints) error {
	if t.Untouched() && !cache.CutsAny(t.Blocks) {
		w.Known(t.Native())
		return nil
	}
	c.Begin(w, t, t.Role)
	for i := range t.Blocks {
		if err := c.writeBlock(w, &t.Blocks[i], cache); err != nil {
			return err
		}
	}
	c.End(w, t)
	return nil
}
