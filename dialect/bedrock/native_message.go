package bedrock

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// Replay implements [blockwire.Wire]. An answer is not always a message that the
// API takes back: it refuses names that it would not have let pass itself (quirk
// A33), arguments that are no object, and texts that say nothing.
func (c *conversation) Replay(m *dragoman.Message) ([]byte, bool) {
	raw, ok := wirekit.ReplayMessage(m, &c.limits, &c.target, c.o.Rebuild)
	if !ok {
		return nil, false
	}
	thinks := slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == dragoman.KindReasoning })
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Text:
			if !thinks && strings.TrimSpace(p.Text) == "" {
				return nil, false
			}
		case *dragoman.Reasoning:
			if !c.mayThink(m, p) {
				return nil, false
			}
		case *dragoman.Media:
			if !c.target.Caps.TakesMedia(p.Media) {
				return nil, false
			}
		case *dragoman.Opaque:
			if c.target.Caps.NoCacheBreakpoints && isCachePoint(p) {
				return nil, false
			}
		case *dragoman.ToolCall:
			if !c.acceptable(p) {
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

// acceptable reports whether a call can go back in the form it came in.
func (c *conversation) acceptable(call *dragoman.ToolCall) bool {
	_, exact := call.Object()
	return exact && !call.Synthetic && c.reg.WireID(call.ID) == call.ID &&
		c.reg.WireName(call.Namespace, call.Name) == call.Name
}

// write writes one message of the wire; mark, which may be nil, asks for a
// cache point at its end.
func (c *conversation) write(w *jsonwire.Writer, t *blockwire.Turn, cache *blockwire.Breakpoints, mark *dragoman.CacheHint) error {
	if t.Untouched() && mark == nil && !cache.CutsAny(t.Blocks) {
		w.Known(t.Native())
		return nil
	}
	c.Begin(w, t, t.Role)
	for i := range t.Blocks {
		if err := c.writeBlock(w, &t.Blocks[i], cache); err != nil {
			return err
		}
	}
	if mark != nil {
		c.writeMark(w, mark)
	}
	c.End(w, t)
	return nil
}

// writeExtras writes the top-level extra members, but those to skip. Nested
// ones are written by who writes the object they are in.
func writeExtras(w *jsonwire.Writer, e *dragoman.Extra, skip func(path string) bool) {
	extra.WriteBut(w, e, name, "", func(f dragoman.Field) bool { return skip(f.Path) })
}
