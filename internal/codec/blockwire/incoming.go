package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// Incoming is a block of a stream that is being decoded. Dialects embed it in their own
// block types.
type Incoming struct {
	// Part is nil for a call whose id was seen before. Only its end shows whether it is
	// a separate call.
	Part *stream.Part
	At   int // position among the blocks
	// Raw is the block as it started; the content of deltas is added to it.
	Raw       []byte
	Call      bool
	Hidden    bool   // the fragments must not be emitted as arguments
	Input     []byte // fragments that are not emitted
	Stopped   bool   // the wire marked the block as complete
	Duplicate string // name of a duplicate field in a delta, or ""

	whole bool // a whole value came in place of argument fragments
}

func (b *Incoming) incoming() *Incoming { return b }

// incomer is a block type of a dialect, which embeds an [Incoming].
type incomer interface{ incoming() *Incoming }

// ShowWhole emits the arguments of a call that came with its start (quirk C19).
func (b *Incoming) ShowWhole() {
	if b.Part == nil || b.Hidden || len(b.Part.Text) > 0 {
		return
	}
	if c := b.Part.Value.(*dragoman.ToolCall); c.Arguments != "" && c.Arguments != "{}" {
		b.Part.Append(c.Arguments)
	}
}

// Fragments returns the input of a block that deltas brought.
func (b *Incoming) Fragments() []byte {
	if b.Call && b.Part != nil && !b.Hidden {
		return b.Part.Text
	}
	return b.Input
}

// Joins checks a fragment of arguments before it is added. A whole value in place of a
// fragment is the complete arguments (quirk C7). Joined with other fragments it would
// form arguments that the model never sent, so the call is then treated as having a
// duplicate field.
func (b *Incoming) Joins(text string, whole bool, field string) {
	if (whole || b.whole && text != "") && len(b.Fragments()) > 0 {
		b.Duplicate = field
	}
	b.whole = b.whole || whole
}

// inOrder returns the open blocks in order of their start.
func inOrder[B incomer](open map[int64]B) []B {
	out := make([]B, 0, len(open))
	for _, b := range open {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b B) int { return a.incoming().At - b.incoming().At })
	return out
}

// incompleteCalls returns the calls that the wire did not complete.
func incompleteCalls[B incomer](calls []B) map[*Incoming]bool {
	broken := map[*Incoming]bool{}
	for _, c := range calls {
		if b := c.incoming(); !b.Stopped {
			broken[b] = true
		}
	}
	return broken
}
