package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/stream"
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

// InOrder lists open blocks in order of their start.
func InOrder[B incomer](open map[int64]B) []B {
	out := make([]B, 0, len(open))
	for _, b := range open {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b B) int { return a.incoming().At - b.incoming().At })
	return out
}

// BrokenOff are the calls among blocks that the wire did not complete.
func BrokenOff[B incomer](calls []B) map[*Incoming]bool {
	broken := map[*Incoming]bool{}
	for _, c := range calls {
		if b := c.incoming(); !b.Stopped {
			broken[b] = true
		}
	}
	return broken
}

// Settling is how a decoder settles the calls of its stream.
type Settling[B incomer] struct {
	Parts  *stream.Parts
	Header func() *dragoman.Message
	// Broken are those in which the stream broke off.
	Broken map[*Incoming]bool
	// Whole reads a call from its block as the API would have sent it whole.
	Whole func(B) *dragoman.ToolCall
	// Fresh settles the id of a call that is the block at; it is false for an
	// exact repeat of another.
	Fresh func(c *dragoman.ToolCall, at int) bool
}

// Settle gives the calls of a stream, and their parts, which are still to be
// ended: only the verdict on the whole response says whether they may run.
func (s Settling[B]) Settle(blocks []B) (calls []*dragoman.ToolCall, ending []*stream.Part) {
	for _, block := range blocks {
		b, c := block.incoming(), s.Whole(block)
		if s.Broken[b] && (c.Problem == nil || c.Problem.Code == dragoman.ProblemInvalidJSON) {
			c.Problem = &dragoman.CallProblem{Code: dragoman.ProblemTruncated, Message: "the stream broke off inside the call", Offset: -1}
			if c.Payload == dragoman.PayloadObject && c.Arguments == "{}" && len(b.Fragments()) == 0 {
				c.Arguments = "" // the start of a block says {} before anything is known
			}
		}
		fresh := s.Fresh(c, b.At)
		switch {
		case b.Part == nil && !fresh:
			continue
		case b.Part == nil:
			skeleton := *c
			skeleton.Arguments, skeleton.Problem = "", nil
			b.Part = s.Parts.Start(0, s.Header(), &skeleton, c)
			b.Part.Append(c.Arguments)
		case b.Hidden:
			b.Part.Append(c.Arguments)
		}
		b.Part.Value, b.Part.Text, b.Input, b.Raw = c, nil, nil, nil // the call has them
		calls, ending = append(calls, c), append(ending, b.Part)
	}
	return calls, ending
}
