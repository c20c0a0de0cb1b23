package wirekit

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// Keeper stores the content of events except for the texts of parts. It copies the bytes, because
// the memory of an event is reused, and charges them to its bound. The zero value does neither:
// use it for a document that outlives the values read from it.
type Keeper struct{ Bound *stream.Bound }

// fieldOverhead is the approximate cost of a field in addition to its name and value.
// Without it, a stream of tiny fields would take many times its own length in memory.
const fieldOverhead = 64

// Bytes returns raw, stored in place of old; old may be nil.
func (k Keeper) Bytes(old, raw []byte) []byte {
	if k.Bound == nil {
		return raw
	}
	k.Bound.Swap(len(old), len(raw))
	return bytes.Clone(raw)
}

// Text is like Bytes for a string, which no event reuses.
func (k Keeper) Text(old, text string) string {
	k.Bound.Swap(len(old), len(text))
	return text
}

// Field stores the field key below prefix in *e, as [extra.Add] does. A repeated field
// replaces the earlier one.
func (k Keeper) Field(e **dragoman.Extra, d dragoman.Dialect, prefix string, key, raw []byte) {
	if k.Bound == nil {
		extra.Add(e, d, prefix, key, raw)
		return
	}
	old, again := extra.Replaces(*e, prefix, key)
	if again && bytes.Equal(old, raw) {
		return
	}
	if !again {
		k.Bound.Take(fieldOverhead + len(prefix) + len(key))
	}
	extra.Add(e, d, prefix, key, k.Bytes(old, raw))
}
