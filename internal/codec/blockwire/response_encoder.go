package blockwire

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// ResponseEncoder holds what encoding a response and encoding a stream have in common.
// Dialects embed it.
type ResponseEncoder struct {
	*Format
	Reg     *interop.Registry
	Options dialect.EncodeOptions
	Rep     *dragoman.Report
}

// EncodeResponse encodes a response. write writes it if it is not an error. All
// messages of the output become the content of one message. A response that came from
// this dialect and did not change is written byte for byte.
func (f *Format) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions, write func(e ResponseEncoder, w *jsonwire.Writer) error) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(f.Dialect, o); err != nil {
		return dialect.Encoded{}, err
	}
	limits := f.Limits()
	reg := wirekit.ResponseRegistry(resp, limits, f.Tools, o)
	if body, ok := replay(resp, &limits, o); ok && !wirekit.MustRebuild(resp, wirekit.BlockedReason) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	rep := new(dragoman.Report)
	if resp.Error != nil {
		_, body, lost := f.EncodeError(resp.Error)
		wirekit.ReportFailed(rep, resp, f.Dialect)
		rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *rep, Registry: reg}, nil //nolint:nilerr // the error is what is encoded
	}
	w := jsonwire.Writer{Buf: make([]byte, 0, wirekit.ResponseSize(resp))}
	if err := write(ResponseEncoder{Format: f, Reg: reg, Options: o, Rep: rep}, &w); err != nil {
		return dialect.Encoded{Report: *rep, Registry: reg}, err
	}
	return wirekit.Encoded(f.Dialect, &w, rep, reg, nil)
}

// replay returns the bytes of a response that came from this dialect and did not
// change, except for the model name.
func replay(resp *dragoman.Response, limits *targets.Limits, o dialect.EncodeOptions) ([]byte, bool) {
	if !limits.ModelInURL {
		return wirekit.ReplayResponse(resp, limits.Dialect, o)
	}
	if o.Rebuild || !resp.Native.Current(limits.Dialect, resp.Fingerprint) {
		return nil, false
	}
	return resp.Native.Raw, true
}

// Blocks writes the blocks of a response. It reports whether the response has calls and
// whether it has a refusal.
func (e *ResponseEncoder) Blocks(w *jsonwire.Writer, resp *dragoman.Response) (calls, refused bool, err error) {
	for i := range resp.Output {
		m := &resp.Output[i]
		at := extra.Elem("/output", i)
		ReportHeader(e.Rep, m, e.Dialect, at)
		origin := m.Origin
		if origin == nil {
			origin = resp.Origin
		}
		for j, p := range m.Parts {
			calls = calls || p.Kind() == codes.KindToolCall
			refused = refused || p.Kind() == codes.KindRefusal
			if err := e.block(w, origin, p, at.Elem("parts", j)); err != nil {
				return calls, refused, err
			}
		}
	}
	return calls, refused, nil
}

// block writes one part of a response, or reports that the dialect has no block for it.
func (e *ResponseEncoder) block(w *jsonwire.Writer, origin *dragoman.Origin, p dragoman.Part, at extra.Path) error {
	text := func(t *dragoman.Text) { e.WriteText(e.Reg.View(), w, t, at, e.Rep) }
	switch p := p.(type) {
	case *dragoman.Text:
		text(withHint(p, nil).(*dragoman.Text))
	case *dragoman.Refusal:
		e.Rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		text(&dragoman.Text{Text: p.Text})
		extra.Report(e.Rep, p.Extra, e.Dialect, at)
	case *dragoman.Data:
		text(&dragoman.Text{Text: string(p.JSON)})
	case *dragoman.Reasoning:
		signature := Signature(p, origin, e.Dialect, at, e.Rep)
		if IsShown(p, origin, e.Dialect) {
			e.WriteReasoning(w, p, signature)
		}
		extra.Report(e.Rep, p.Extra, e.Dialect, at)
	case *dragoman.ToolCall:
		if e.hosted(p, at) {
			return nil
		}
		if err := e.Reg.WriteCall(w, e.Identified(p, at), at, e.Rep); err != nil {
			return fmt.Errorf("%s: %s: %w", e.API, at, err)
		}
	case *dragoman.Opaque:
		if !e.Foreign(p, at) {
			w.Raw(p.JSON)
		}
	case *dragoman.Media:
		if e.ResponseMedia {
			e.WriteMedia(e.Reg.View(), w, p, at, e.Rep)
		} else {
			text(e.placeholder(p, at, "a response cannot contain"))
		}
	default:
		e.misplaced(p, at)
	}
	return nil
}

// hosted reports whether its provider ran the call. Such a call cannot be part of a
// response and is reported as lost.
func (e *ResponseEncoder) hosted(c *dragoman.ToolCall, at extra.Path) bool {
	if c.Hosted {
		e.Rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q was run by its provider", c.Name)
	}
	return c.Hosted
}

// Foreign reports whether a block belongs to another dialect. Such a block is reported
// as lost.
func (e *ResponseEncoder) Foreign(o *dragoman.Opaque, at extra.Path) bool {
	if o.Dialect == e.Dialect {
		return false
	}
	e.Rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s cannot be expressed here", extra.WithArticle(o.Type), o.Dialect)
	return true
}

// placeholder reports media that the response cannot contain, and returns a note to
// write instead.
func (e *ResponseEncoder) placeholder(m *dragoman.Media, at extra.Path, refusal string) *dragoman.Text {
	e.Rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), refusal+" %s; replaced by a note", m.Media)
	return &dragoman.Text{Text: toolwire.Placeholder(m)}
}

// misplaced reports a part that a response cannot contain.
func (e *ResponseEncoder) misplaced(p dragoman.Part, at extra.Path) {
	e.Rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s cannot be expressed in a response", extra.WithArticle(p.Kind()))
}

// Identified returns a copy of a call with an id, which the wire requires. The copy has
// no cache hint unless calls of the dialect can have one.
func (e *ResponseEncoder) Identified(c *dragoman.ToolCall, at extra.Path) *dragoman.ToolCall {
	call := *c
	if !e.Tools[0].Traits().OptionalCallFields.Cache {
		call.Cache = nil
	}
	if call.ID == "" {
		call.ID = wirekit.SyntheticID(e.IDPrefix, e.Options.Seed+at.String())
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", call.ID)
	}
	return &call
}

// RefusalStop returns the stop of a response. If the response is a refusal that ended
// normally, it returns reason instead, and reports that as report.
func (e *ResponseEncoder) RefusalStop(s dragoman.Stop, refused bool, reason dragoman.StopReason, report string) dragoman.Stop {
	if !refused || s.Reason != dragoman.StopEnd && s.Reason != dragoman.StopNone {
		return s
	}
	e.Rep.Addf(dragoman.Lowered, dragoman.Info, "/stop", "stop reason %s written as "+report, s.Reason)
	return dragoman.Stop{Reason: reason}
}

// ReportResponse reports the losses of a response. unknown holds its unknown fields except those
// that were written.
func (e *ResponseEncoder) ReportResponse(resp *dragoman.Response, unknown *dragoman.Extra) {
	extra.ReportEcho(e.Rep, unknown, e.Dialect, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.Rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%s; the API returns only one", textkit.Count(n, "further candidate"))
	}
}
