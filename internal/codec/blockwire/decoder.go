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

// Decoder holds what reading any block of a request, a response or a stream
// needs. Dialects embed it in the decoder of their blocks.
type Decoder struct {
	*Format
	Reg     *interop.Registry
	Options dialect.DecodeOptions
	Origin  *dragoman.Origin
	Rep     *dragoman.Report
	// Lost reports what a stream could repeat without end.
	Lost wirekit.Untold
	// Ambiguous: two readers could read two different messages, so that the bytes
	// must not be passed through.
	Ambiguous bool
}

// NewDecoder returns a decoder for one document.
func NewDecoder(f *Format, o dialect.DecodeOptions) *Decoder {
	return &Decoder{
		Format: f, Reg: wirekit.DecodeRegistry(f.Limits(), f.Tools, o), Options: o,
		Origin: wirekit.Origin(f.Dialect, o), Rep: new(dragoman.Report),
	}
}

// Quiet returns a decoder that reports elsewhere.
func (d *Decoder) Quiet() *Decoder {
	return &Decoder{Format: d.Format, Reg: d.Reg, Options: d.Options, Origin: d.Origin, Rep: new(dragoman.Report)}
}

// DropTwins drops unknown fields below prefix that a reader which ignores case
// would take for one of the known fields.
func (d *Decoder) DropTwins(e **dragoman.Extra, prefix, at string, known []string) {
	if wirekit.DropTwins(e, prefix, known) {
		d.Ambiguous = true
		d.Rep.Add(dragoman.Dropped, dragoman.Warn, at, "a member that some readers would take for another; the native form is not kept")
	}
}

// Unreadable returns a blocked call in the place of one that cannot be read:
// clients would see that one all the same.
func (d *Decoder) Unreadable(c *dragoman.ToolCall, err error, at extra.Path) *dragoman.ToolCall {
	d.Rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a call that cannot be read: %v", err)
	c.Problem = &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "the call cannot be read: " + err.Error(), Offset: -1}
	return c
}

// Called takes note of a call that was read. repeated is a field that the call has
// twice, or "".
func (d *Decoder) Called(c *dragoman.ToolCall, repeated string) *dragoman.ToolCall {
	if repeated != "" {
		c.Problem = wirekit.RepeatedMember(repeated)
	}
	if p := c.Problem; p != nil && p.Code == codes.ProblemDuplicateKey && p.Offset < 0 {
		d.Ambiguous = true // the call around the arguments, not they
	}
	return c
}

// Identify gives a call without an id a synthetic one, made from its place (quirk
// B10).
func (d *Decoder) Identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(d.IDPrefix, d.Options.Seed, place...), true
	d.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
}

// Result reads a tool result. One that cannot be read becomes what opaque returns.
func (d *Decoder) Result(raw json.RawMessage, at extra.Path, opaque func() *dragoman.Opaque) dragoman.Part {
	res, err := d.Reg.ReadResult(raw, d.Options.LiftErrors, at, d.Rep)
	if err != nil {
		d.Rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
		return opaque()
	}
	return res
}

// WithoutStrays removes stray fields from a part, and reports whether it had any:
// then its bytes must not be sent (quirk D32).
func (d *Decoder) WithoutStrays(p dragoman.Part, at extra.Path) bool {
	return WithoutStrays(p, d.Dialect, d.StrayFields(p), at, d.Rep)
}

// AllWithoutStrays is WithoutStrays for the parts of a message. content is the
// place of its blocks.
func (d *Decoder) AllWithoutStrays(parts []dragoman.Part, content string) (found bool) {
	for i, p := range parts {
		found = d.WithoutStrays(p, extra.Elem(content, i)) || found
	}
	return found
}

// SettleDuplicates settles calls that share an id within one response: an exact
// repeat is one call, another call gets an id of its own (quirk B11). changed means
// that the response can not be passed through.
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

// OnlyResults reports whether parts are tool results and nothing else.
func OnlyResults(parts []dragoman.Part) bool {
	for _, p := range parts {
		if p.Kind() != codes.KindToolResult {
			return false
		}
	}
	return len(parts) > 0
}
