package wirekit

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// Keeper keeps what events say beside the texts of parts: it copies, because
// the memory of an event is used again, and asks its bound. The zero value is
// for a document that outlives what is read from it: it does neither.
type Keeper struct{ Bound *stream.Bound }

// memberSize is about what a member costs beside its name and its value. Without
// it a stream of tiny members would take many times its own length.
const memberSize = 64

// Bytes is raw to be kept in the place of old, which is nil for none.
func (k Keeper) Bytes(old, raw []byte) []byte {
	if k.Bound == nil {
		return raw
	}
	k.Bound.Swap(len(old), len(raw))
	return bytes.Clone(raw)
}

// Text is Bytes for a text, which no event uses again.
func (k Keeper) Text(old, text string) string {
	k.Bound.Swap(len(old), len(text))
	return text
}

// Member keeps the member key below prefix in *e, as [extra.Add] does. One that
// is said again takes the place of the first.
func (k Keeper) Member(e **dragoman.Extra, d dragoman.Dialect, prefix string, key, raw []byte) {
	if k.Bound == nil {
		extra.Add(e, d, prefix, key, raw)
		return
	}
	old, again := extra.Replaces(*e, prefix, key)
	if again && bytes.Equal(old, raw) {
		return
	}
	if !again {
		k.Bound.Take(memberSize + len(prefix) + len(key))
	}
	extra.Add(e, d, prefix, key, k.Bytes(old, raw))
}
