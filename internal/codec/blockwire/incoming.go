package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// Incoming is a block of a stream that is being decoded. Dialects embed it in
// what they know of a block beyond it.
type Incoming struct {
	// Part is nil for a call whose id was seen before: whether it is a call of
	// its own shows only at its end.
	Part *stream.Part
	At   int // among the blocks
	// Raw is the block as it started; what the deltas brought is put into it.
	Raw     []byte
	Call    bool
	Hidden  bool   // the fragments are no arguments to show
	Input   []byte // fragments that are not shown
	Stopped bool   // the wire said that the block is complete
	Twice   string // a member that a delta had twice

	whole bool // a value came where fragments of arguments belong
}

func (b *Incoming) incoming() *Incoming { return b }

// incomer is a block of a dialect, which embeds an [Incoming].
type incomer interface{ incoming() *Incoming }

// ShowWhole shows the arguments of a call that came with its start (quirk C19).
func (b *Incoming) ShowWhole() {
	if b.Part == nil || b.Hidden || len(b.Part.Text) > 0 {
		return
	}
	if c := b.Part.Value.(*dragoman.ToolCall); c.Arguments != "" && c.Arguments != "{}" {
		b.Part.Append(c.Arguments)
	}
}

// Fragments are what deltas brought of the input of a block.
func (b *Incoming) Fragments() []byte {
	if b.Call && b.Part != nil && !b.Hidden {
		return b.Part.Text
	}
	return b.Input
}

// Joins takes note of a fragment of arguments before it is added. A whole value in
// place of one is all of the arguments (quirk C7): beside others it would be joined
// to arguments that nobody sent, so the call has its member twice then.
func (b *Incoming) Joins(text string, whole bool, member string) {
	if (whole || b.whole && text != "") && len(b.Fragments()) > 0 {
		b.Twice = member
	}
	b.whole = b.whole || whole
}

// inOrder lists open blocks in order of their start.
func inOrder[B incomer](open map[int64]B) []B {
	out := make([]B, 0, len(open))
	for _, b := range open {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b B) int { return a.incoming().At - b.incoming().At })
	return out
}

// brokenOff are the calls among blocks that the wire did not complete.
func brokenOff[B incomer](calls []B) map[*Incoming]bool {
	broken := map[*Incoming]bool{}
	for _, c := range calls {
		if b := c.incoming(); !b.Stopped {
			broken[b] = true
		}
	}
	return broken
}
