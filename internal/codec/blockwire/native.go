package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// frame is a message as it came: an object around a list of blocks. What is
// merged with it goes into that list, and all that was there stays as it was.
type frame struct {
	raw []byte
	// start and end are where the list stands in raw, brackets included.
	start, end int
}

// Untouched reports whether the turn is one message in the form it came in.
func (t *Turn) Untouched() bool { return t.frame.raw != nil && len(t.Messages) == 1 }

// Native is an untouched turn as it came.
func (t *Turn) Native() []byte { return t.frame.raw }

// replay returns a message in the form it came in, if it can go back so: its
// frame, and a block for each part.
func (p *Plan) replay(m *dragoman.Message, at extra.Path) (frame, []Block) {
	raw, ok := p.wire.Replay(m)
	if !ok || len(m.Parts) == 0 || m.Cache != nil {
		return frame{}, nil
	}
	return p.frame(m, raw, at)
}

// frame finds the blocks of a native message. There is none in one whose
// content is a string, or whose blocks are not the parts of the message: it is
// written anew from the start, because a string becomes a list when another
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
		blocks = nil // of several the last counts
		if r.Kind() != '[' {
			r.Skip()
			continue
		}
		f.start = len(raw) - len(r.Ahead())
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

// nativeBlocks reads the list that comes next, one block to one part, and the
// cache points between them.
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
			blocks = append(blocks, Block{}) // one too many: not this message's
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

// Begin writes all that stands before the blocks of a turn, which is said in a
// role.
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

// End writes all that stands behind the blocks of a turn. Of a member that
// several merged messages have, the first counts; those at the given paths are
// written already.
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
