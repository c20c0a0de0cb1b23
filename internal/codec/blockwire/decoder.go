package blockwire

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// Decoder holds what is needed to read a block of a request, a response or a stream.
// Dialects embed it in the decoder of their blocks.
type Decoder struct {
	*Format
	Reg     *interop.Registry
	Options dialect.DecodeOptions
	Origin  *dragoman.Origin
	Rep     *dragoman.Report
	// Lost reports losses that a stream could repeat without end.
	Lost wirekit.UnwrittenChunks
	// Ambiguous means that two readers could understand the message differently, so its
	// bytes must not be passed through.
	Ambiguous bool
}

// NewDecoder returns a decoder for one document.
func NewDecoder(f *Format, o dialect.DecodeOptions) *Decoder {
	return &Decoder{
		Format: f, Reg: wirekit.DecodeRegistry(f.Limits(), f.Tools, o), Options: o,
		Origin: wirekit.Origin(f.Dialect, o), Rep: new(dragoman.Report),
	}
}

// WithoutReport returns a decoder with a separate report.
func (d *Decoder) WithoutReport() *Decoder {
	return &Decoder{Format: d.Format, Reg: d.Reg, Options: d.Options, Origin: d.Origin, Rep: new(dragoman.Report)}
}

// DropCaseVariants drops unknown fields below prefix that differ from a known field only in
// case, because a reader that ignores case would confuse them.
func (d *Decoder) DropCaseVariants(e **dragoman.Extra, prefix, at string, known []string) {
	if wirekit.DropCaseVariants(e, prefix, known) {
		d.Ambiguous = true
		d.Rep.Add(dragoman.Dropped, dragoman.Warn, at, "the name differs from a known field only in case; the native form is not kept")
	}
}

// Unreadable returns a blocked call in place of one that cannot be read. Dropping it is
// no option, because clients would still see the original.
func (d *Decoder) Unreadable(c *dragoman.ToolCall, err error, at extra.Path) *dragoman.ToolCall {
	d.Rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a call that cannot be read: %v", err)
	c.Problem = &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "the call cannot be read: " + err.Error(), Offset: -1}
	return c
}

// Called checks a call that was read. repeated is the name of a duplicate field in the
// call, or "".
func (d *Decoder) Called(c *dragoman.ToolCall, repeated string) *dragoman.ToolCall {
	if repeated != "" {
		c.Problem = wirekit.RepeatedField(repeated)
	}
	if p := c.Problem; p != nil && p.Code == codes.ProblemDuplicateKey && p.Offset < 0 {
		d.Ambiguous = true // the duplicate is in the call, not in its arguments
	}
	return c
}

// Identify gives a call without an id a synthetic one, made from its position (quirk
// B10).
func (d *Decoder) Identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(d.IDPrefix, d.Options.Seed, place...), true
	d.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
}

// Result reads a tool result. If it cannot be read, Result returns the part that opaque
// returns.
func (d *Decoder) Result(raw json.RawMessage, at extra.Path, opaque func() *dragoman.Opaque) dragoman.Part {
	res, err := d.Reg.ReadResult(raw, d.Options.LiftErrors, at, d.Rep)
	if err != nil {
		d.Rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept unchanged: %v", err)
		return opaque()
	}
	return res
}

// DropUnsendable removes fields from a part that a request must not have. It reports
// whether the part had any; its bytes must not be sent then (quirk D32).
func (d *Decoder) DropUnsendable(p dragoman.Part, at extra.Path) bool {
	return WithoutUnknown(p, d.Dialect, d.UnsendableFields(p), at, d.Rep)
}

// DropAllUnsendable is DropUnsendable for the parts of a message. content is the pointer
// of its blocks.
func (d *Decoder) DropAllUnsendable(parts []dragoman.Part, content string) (found bool) {
	for i, p := range parts {
		found = d.DropUnsendable(p, extra.Elem(content, i)) || found
	}
	return found
}

// SettleDuplicates resolves calls that share an id within one response: it drops an
// exact repeat and gives a different call an id of its own (quirk B11). changed means
// that the response must not be passed through.
func (d *Decoder) SettleDuplicates(parts []dragoman.Part) (kept []dragoman.Part, changed bool) {
	kept, clash := wirekit.SettleCalls(parts, d.Content, d.Rep, func(i int, old string) string {
		return wirekit.SyntheticID(d.IDPrefix, d.Options.Seed+old, i)
	})
	d.Ambiguous = d.Ambiguous || clash
	return kept, clash || slices.ContainsFunc(kept, func(p dragoman.Part) bool {
		c, ok := p.(*dragoman.ToolCall)
		return ok && c.Synthetic
	})
}

// OnlyResults reports whether all parts are tool results, and there is at least one.
func OnlyResults(parts []dragoman.Part) bool {
	for _, p := range parts {
		if p.Kind() != codes.KindToolResult {
			return false
		}
	}
	return len(parts) > 0
}
