package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// frame is a message in native form: an object around a list of blocks. Merged blocks
// are added to that list, and everything else stays unchanged.
type frame struct {
	raw []byte
	// start and end delimit the list in raw, including its brackets.
	start, end int
}

// Untouched reports whether the turn is a single message in native form.
func (t *Turn) Untouched() bool { return t.frame.raw != nil && len(t.Messages) == 1 }

// Native returns the native form of an untouched turn.
func (t *Turn) Native() []byte { return t.frame.raw }

// replay returns the native form of a message, if it can be sent back: its frame, and a
// block for each part.
func (p *Plan) replay(m *dragoman.Message, at extra.Path) (frame, []Block) {
	raw, ok := p.wire.Replay(m)
	if !ok || len(m.Parts) == 0 || m.Cache != nil {
		return frame{}, nil
	}
	return p.frame(m, raw, at)
}

// frame finds the blocks of a native message. It returns a zero frame if the content is
// a string, or if the blocks do not match the parts of the message. Such a message is
// re-encoded from its first use on, because a string becomes a list when another
// message is merged with it.
func (p *Plan) frame(m *dragoman.Message, raw []byte, at extra.Path) (frame, []Block) {
	r := &p.in
	r.Reset(raw)
	f := frame{}
	var blocks []Block
	for key := range r.Object() {
		if string(key) != p.List {
			r.Skip()
			continue
		}
		blocks = nil // of duplicate fields, the last one counts
		if r.Kind() != '[' {
			r.Skip()
			continue
		}
		f.start = len(raw) - len(r.Rest())
		blocks = p.nativeBlocks(m, at)
		f.end = int(r.Offset())
	}
	end := int(r.Offset())
	if r.End() != nil || len(blocks) != len(m.Parts) {
		return frame{}, nil
	}
	f.raw = raw[:end]
	return f, blocks
}

// nativeBlocks reads the next list: one block for each part, and the cache points
// between them.
func (p *Plan) nativeBlocks(m *dragoman.Message, at extra.Path) []Block {
	blocks := make([]Block, 0, len(m.Parts))
	for range p.in.Array() {
		raw := p.in.Raw()
		n := len(blocks)
		if n > 0 && p.marks(&blocks[n-1], raw) {
			blocks[n-1].Mark = raw
			continue
		}
		if n >= len(m.Parts) {
			blocks = append(blocks, Block{}) // more blocks than parts: not the blocks of this message
			continue
		}
		part := m.Parts[n]
		blocks = append(blocks, Block{Part: part, At: at.Elem("parts", n), Cache: HintOf(part), Raw: raw})
	}
	return blocks
}

// marks reports whether raw is the cache point of the block before it.
func (p *Plan) marks(b *Block, raw []byte) bool {
	return p.CachePoint != nil && b.Cache != nil && b.Mark == nil && p.CachePoint(raw)
}

// Begin writes what precedes the blocks of a turn with the given role.
func (p *Plan) Begin(w *jsonwire.Writer, t *Turn, role string) {
	if f := t.frame; f.raw != nil {
		w.Known(f.raw[:f.start+1])
		return
	}
	w.BeginObject()
	w.StringField("role", role)
	w.Key(p.List)
	w.BeginArray()
}

// End writes what follows the blocks of a turn. If several merged messages have the
// same field, the first one counts. Fields at the given paths were already written.
func (p *Plan) End(w *jsonwire.Writer, t *Turn, paths ...string) {
	w.EndArray()
	messages := t.Messages
	written := map[string]bool{}
	for _, path := range paths {
		written[path] = true
	}
	if f := t.frame; f.raw != nil {
		w.Buf = append(w.Buf, f.raw[f.end:len(f.raw)-1]...)
		for _, field := range messages[0].Extra.For(p.Dialect) {
			written[field.Path] = true
		}
		messages = messages[1:]
	}
	for i, m := range messages {
		extra.WriteBut(w, m.Extra, p.Dialect, "", func(f dragoman.Field) bool { return written[f.Path] })
		if i == len(messages)-1 {
			break
		}
		for _, field := range m.Extra.For(p.Dialect) {
			written[field.Path] = true
		}
	}
	w.EndObject()
}
