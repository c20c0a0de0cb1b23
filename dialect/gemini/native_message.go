package gemini

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// frame is a content as it came: an object around a list of parts. What is
// merged with it goes into that list, and all that was there stays as it was:
// what was sent once must not change when the conversation goes on.
type frame struct {
	raw []byte
	// start and end are where the list stands in raw, brackets included.
	start, end int
}

// replay returns a message that was not changed, and that the target may see
// again as it is, in the form it came in: its frame, and a block for each part.
func (c *conversation) replay(m *dragoman.Message, at extra.Path) (frame, []block) {
	raw, ok := wirekit.ReplayMessage(m, c.limits, c.target, c.o)
	if !ok || len(m.Parts) == 0 || m.Cache != nil {
		return frame{}, nil
	}
	for _, p := range m.Parts {
		if !c.asItCame(m, p) {
			return frame{}, nil
		}
	}
	return c.frame(m, raw, at)
}

// asItCame reports whether the target may see a part in its native form.
func (c *conversation) asItCame(m *dragoman.Message, p dragoman.Part) bool {
	caps := c.target.Caps
	switch p := p.(type) {
	case *dragoman.Reasoning:
		return c.mayReturn(m, p)
	case *dragoman.Text:
		return p.Signature == "" || c.mayReturn(m, nil)
	case *dragoman.Media:
		_, signed := extra.Get(p.Extra, name, "/thoughtSignature")
		return !caps.NoImages && (!signed || c.mayReturn(m, nil))
	case *dragoman.ToolCall:
		return (p.Signature == "" || c.mayReturn(m, nil)) && (p.Synthetic || !caps.NoCallIDs && c.reg.WireID(p.ID) == p.ID)
	case *dragoman.ToolResult:
		if slices.ContainsFunc(p.Content, isMedia) && (caps.NoImages || caps.NoResultMedia) {
			return false
		}
		return !caps.NoCallIDs && (c.nameless(p.CallID) || c.reg.WireID(p.CallID) == p.CallID)
	case *dragoman.Opaque:
		signed, _ := withoutSignature(p.JSON)
		return signed == "" || c.mayReturn(m, nil)
	default:
		return true
	}
}

// frame finds the parts of a native content. There is none in one whose parts
// are not those of the message.
func (c *conversation) frame(m *dragoman.Message, raw []byte, at extra.Path) (frame, []block) {
	r := &c.in
	r.Reset(raw)
	f := frame{}
	var blocks []block
	for key := range r.Object() {
		if string(key) != "parts" {
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

// nativeBlocks reads the list that comes next, one block to one part.
func (c *conversation) nativeBlocks(m *dragoman.Message, at extra.Path) []block {
	blocks := make([]block, 0, len(m.Parts))
	for i := range c.in.Array() {
		raw := c.in.Raw()
		if i >= len(m.Parts) {
			blocks = append(blocks, block{}) // one too many: not this message's
			continue
		}
		blocks = append(blocks, block{part: m.Parts[i], at: at.Elem("parts", i), raw: raw})
	}
	return blocks
}

// write writes one content of the wire.
func (c *conversation) write(w *jsonwire.Writer, t *turn) error {
	if t.untouched() {
		w.Known(t.frame.raw)
		return nil
	}
	t.open(w)
	for i := range t.blocks {
		if err := c.writePart(w, &t.blocks[i]); err != nil {
			return err
		}
	}
	t.close(w)
	return nil
}

// open writes all that stands before the parts of a turn.
func (t *turn) open(w *jsonwire.Writer) {
	if f := t.frame; f.raw != nil {
		w.Known(f.raw[:f.start+1])
		return
	}
	w.BeginObject()
	role := t.role
	if len(t.messages) > 0 {
		if raw, ok := extra.Get(t.messages[0].Extra, name, "/role"); ok {
			role = unquote(raw)
		}
	}
	w.StringField("role", role)
	w.Key("parts")
	w.BeginArray()
}

// close writes all that stands behind the parts of a turn. Of a member that
// several merged messages have, the first counts.
func (t *turn) close(w *jsonwire.Writer) {
	w.EndArray()
	messages := t.messages
	written := map[string]bool{"/role": true}
	if f := t.frame; f.raw != nil {
		w.Buf = append(w.Buf, f.raw[f.end:len(f.raw)-1]...)
		for _, field := range messages[0].Extra.For(name) {
			written[field.Path] = true
		}
		messages = messages[1:]
	}
	for i, m := range messages {
		extra.WriteBut(w, m.Extra, name, "", func(f dragoman.Field) bool { return written[f.Path] })
		if i == len(messages)-1 {
			break
		}
		for _, field := range m.Extra.For(name) {
			written[field.Path] = true
		}
	}
	w.EndObject()
}
