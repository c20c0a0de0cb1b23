package bedrock

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// frame is a message as it came: an object around a list of blocks. What is
// merged with it goes into that list, and all that was there stays as it was:
// what was sent once must not change when the conversation goes on.
type frame struct {
	raw []byte
	// start and end are where the list stands in raw, brackets included.
	start, end int
}

// replay returns a message that was not changed, and that the target may see
// again as it is, in the form it came in: its frame, and a block for each part.
// An answer is not always a message that the API takes back: it refuses names
// that it would not have let pass itself (quirk A33), arguments that are no
// object, and texts that say nothing.
func (c *conversation) replay(m *dragoman.Message, at extra.Path) (frame, []block) {
	raw, ok := wirekit.ReplayMessage(m, c.limits, c.target, c.o)
	if !ok || len(m.Parts) == 0 || m.Cache != nil {
		return frame{}, nil
	}
	thinks := slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == dragoman.KindReasoning })
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Text:
			if !thinks && strings.TrimSpace(p.Text) == "" {
				return frame{}, nil
			}
		case *dragoman.Reasoning:
			if !c.mayThink(m, p) {
				return frame{}, nil
			}
		case *dragoman.Media:
			if c.target.Caps.NoImages {
				return frame{}, nil
			}
		case *dragoman.ToolCall:
			if !c.acceptable(p) {
				return frame{}, nil
			}
		case *dragoman.ToolResult:
			if c.target.Caps.NoImages && slices.ContainsFunc(p.Content, isMedia) || c.reg.WireID(p.CallID) != p.CallID {
				return frame{}, nil
			}
		}
	}
	return c.frame(m, raw, at)
}

// acceptable reports whether a call can go back in the form it came in.
func (c *conversation) acceptable(call *dragoman.ToolCall) bool {
	_, exact := call.Object()
	return exact && !call.Synthetic && c.reg.WireID(call.ID) == call.ID &&
		c.reg.WireName(call.Namespace, call.Name) == call.Name
}

func isMedia(p dragoman.Part) bool { return p.Kind() == dragoman.KindMedia }

// frame finds the blocks of a native message. There is none in one whose
// content is a string, or whose blocks are not the parts of the message: it is
// written anew from the start, because a string becomes a list when another
// message is merged with it.
func (c *conversation) frame(m *dragoman.Message, raw []byte, at extra.Path) (frame, []block) {
	r := &c.in
	r.Reset(raw)
	f := frame{}
	var blocks []block
	for key := range r.Object() {
		if string(key) != "content" {
			r.Skip()
			continue
		}
		blocks = nil // of several the last counts
		if r.Kind() != '[' {
			r.Skip()
			continue
		}
		f.start = len(raw) - len(r.Ahead())
		blocks = c.nativeBlocks(m, at)
		f.end = int(r.Offset())
	}
	end := int(r.Offset())
	if r.End() != nil || len(blocks) != len(m.Parts) {
		return frame{}, nil
	}
	f.raw = raw[:end]
	return f, blocks
}

// nativeBlocks reads the list that comes next, one block to one part, and the
// cache points between them.
func (c *conversation) nativeBlocks(m *dragoman.Message, at extra.Path) []block {
	blocks := make([]block, 0, len(m.Parts))
	for range c.in.Array() {
		raw := c.in.Raw()
		n := len(blocks)
		if n > 0 && blocks[n-1].cache != nil && blocks[n-1].mark == nil && cacheHint(raw) != nil {
			blocks[n-1].mark = raw
			continue
		}
		if n >= len(m.Parts) {
			blocks = append(blocks, block{}) // one too many: not this message's
			continue
		}
		p := m.Parts[n]
		blocks = append(blocks, block{part: p, at: at.Elem("parts", n), cache: hintOf(p), raw: raw})
	}
	return blocks
}

// write writes one message of the wire; mark, which may be nil, asks for a
// cache point at its end.
func (c *conversation) write(w *jsonwire.Writer, t *turn, cache *cacheBudget, mark *dragoman.CacheHint) error {
	if t.untouched() && mark == nil && !cache.cutsAny(t.blocks) {
		w.Known(t.frame.raw)
		return nil
	}
	t.open(w)
	for i := range t.blocks {
		if err := c.writeBlock(w, &t.blocks[i], cache); err != nil {
			return err
		}
	}
	if mark != nil {
		c.writeMark(w, mark)
	}
	t.close(w)
	return nil
}

// open writes all that stands before the blocks of a turn.
func (t *turn) open(w *jsonwire.Writer) {
	if f := t.frame; f.raw != nil {
		w.Known(f.raw[:f.start+1])
		return
	}
	w.BeginObject()
	w.StringField("role", t.role)
	w.Key("content")
	w.BeginArray()
}

// close writes all that stands behind the blocks of a turn. Of a member that
// several merged messages have, the first counts.
func (t *turn) close(w *jsonwire.Writer) {
	w.EndArray()
	messages := t.messages
	written := map[string]bool{}
	if f := t.frame; f.raw != nil {
		w.Buf = append(w.Buf, f.raw[f.end:len(f.raw)-1]...)
		for _, field := range messages[0].Extra.For(name) {
			written[field.Path] = true
		}
		messages = messages[1:]
	}
	for i, m := range messages {
		writeExtras(w, m.Extra, func(path string) bool { return written[path] })
		if i == len(messages)-1 {
			break
		}
		for _, field := range m.Extra.For(name) {
			written[field.Path] = true
		}
	}
	w.EndObject()
}

// writeExtras writes the top-level extra members, but those to skip. Nested
// ones are written by who writes the object they are in.
func writeExtras(w *jsonwire.Writer, e *dragoman.Extra, skip func(path string) bool) {
	extra.WriteBut(w, e, name, "", func(f dragoman.Field) bool { return skip(f.Path) })
}
