package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// StreamEncoder encodes a stream of a [Format]. Dialects embed it and implement the
// rest of [EventWriter]. It implements [dialect.StreamEncoder].
type StreamEncoder struct {
	ResponseEncoder
	Emitter
	// W is the buffer for the JSON of one event.
	W jsonwire.Writer

	Started, Done bool
	// First is the response at the start of the stream, and Counted the usage that was
	// written then.
	First   dragoman.Response
	Counted dragoman.Usage
	// Err is an error of the framing.
	Err error

	events EventWriter
	final  wirekit.FinalFields
	losses wirekit.UnwrittenChunks
}

// EventWriter writes the events of a dialect. Each method appends to dst.
type EventWriter interface {
	StreamWire
	// WriteUnknown writes events of an unknown type in native form.
	WriteUnknown(dst, raw []byte) []byte
	// WriteStart writes the start of the response.
	WriteStart(dst []byte, resp *dragoman.Response, fields *dragoman.Extra) []byte
	// WriteEnd writes the end of the response, after its blocks.
	WriteEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error)
	// WriteError writes an error that ends the stream.
	WriteError(dst []byte, err *dragoman.APIError) []byte

	// Fragment writes the rest of a text, of thinking or of call arguments, depending
	// on the type of the part.
	Fragment(dst []byte, p *Out, part dragoman.Part, text string) []byte
	// Signature writes the signature of thinking.
	Signature(dst []byte, p *Out, signature string) []byte
	// Redacted writes redacted thinking.
	Redacted(dst []byte, p *Out, r *dragoman.Reasoning) ([]byte, error)
	// Citations returns the sources of a text; Cite writes one of them.
	Citations(t *dragoman.Text) [][]byte
	Cite(dst []byte, p *Out, citation []byte) []byte
	// Opaque writes an opaque block of this dialect.
	Opaque(dst []byte, p *Out, o *dragoman.Opaque) []byte
	// Media writes media. It returns false if a stream cannot contain it.
	Media(dst []byte, p *Out, m *dragoman.Media) ([]byte, bool)
}

// NewStreamEncoder returns an encoder for one stream. The dialect must call Use before
// encoding.
func NewStreamEncoder(f *Format, o dialect.EncodeOptions) StreamEncoder {
	return StreamEncoder{ResponseEncoder: ResponseEncoder{
		Format: f, Reg: wirekit.EncodeRegistry(nil, f.Limits(), f.Tools, o), Options: o, Rep: new(dragoman.Report),
	}}
}

// Use sets the writer for the events.
func (e *StreamEncoder) Use(events EventWriter) {
	e.events = events
	e.Emitter = NewEmitter(e.Format.Dialect, events, e.Rep)
}

// Report implements [dialect.StreamEncoder].
func (e *StreamEncoder) Report() dragoman.Report { return *e.Rep }

// Encode implements [dialect.StreamEncoder].
func (e *StreamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if e.Done {
		return dst, e.Err
	}
	rep := e.Rep
	var err error
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		dst = e.events.WriteUnknown(dst, e.losses.Chunk(ev, e.Dialect, e.Options, rep))
	case *dragoman.ResponseStart:
		dst = e.start(dst, ev.Response, ev.Extra)
	case *dragoman.PartStart:
		e.final.Start(ev)
		dst, err = e.PartStart(e.start(dst, dragoman.Response{}, nil), ev)
	case *dragoman.PartDelta:
		dst, err = e.PartDelta(dst, ev)
	case *dragoman.PartEnd:
		e.final.End(rep, e.Dialect, ev)
		dst, err = e.PartEnd(dst, ev)
	case *dragoman.ResponseEnd:
		dst, err = e.end(dst, ev)
	case *dragoman.StreamError:
		wirekit.ReportCost(rep, ev.Usage, e.Counted)
		dst = e.Fail(dst, ev.Err)
	}
	if err == nil {
		err = e.Err
	}
	return dst, err
}

// Close implements [dialect.StreamEncoder].
func (e *StreamEncoder) Close(dst []byte) ([]byte, error) {
	if e.Done {
		return dst, e.Err
	}
	return e.Fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: dragoman.ErrIncompleteStream.Error()}), e.Err
}

func (e *StreamEncoder) start(dst []byte, resp dragoman.Response, fields *dragoman.Extra) []byte {
	if e.Started {
		return dst
	}
	e.Started, e.First = true, resp
	return e.events.WriteStart(dst, &resp, fields)
}

func (e *StreamEncoder) end(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response, nil)
	dst, err := e.Advance(dst, true)
	if err != nil || e.Done {
		return dst, err
	}
	if dst, err = e.events.WriteEnd(dst, ev); err == nil {
		e.Done = true
	}
	return dst, err
}

// Fail implements [StreamWire]. Only an error can end a stream early.
func (e *StreamEncoder) Fail(dst []byte, err *dragoman.APIError) []byte {
	if e.Done {
		return dst
	}
	e.Done = true
	if err == nil {
		err = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	e.W.Buf = e.W.Buf[:0]
	return e.events.WriteError(dst, err)
}

// Finish implements [StreamWire].
func (e *StreamEncoder) Finish(dst []byte, p *Out, final dragoman.Part) ([]byte, error) {
	rep := e.Rep
	switch part := final.(type) {
	case *dragoman.Text:
		return e.FinishText(dst, p, part)
	case *dragoman.Refusal:
		rep.Add(dragoman.Lowered, dragoman.Info, p.At.String(), "a refusal written as text")
		extra.Report(rep, part.Extra, e.Dialect, p.At)
		return e.FinishText(dst, p, &dragoman.Text{Text: part.Text})
	case *dragoman.Data:
		return e.FinishText(dst, p, &dragoman.Text{Text: string(part.JSON)})
	case *dragoman.Reasoning:
		return e.finishReasoning(dst, p, part)
	case *dragoman.ToolCall:
		return e.finishCall(dst, p, part)
	case *dragoman.Opaque:
		if e.Foreign(part, p.At) {
			return dst, nil
		}
		return e.events.Opaque(dst, p, part), nil
	case *dragoman.Media:
		refusal := "a response cannot contain"
		if e.ResponseMedia {
			out, ok := e.events.Media(dst, p, part)
			if ok {
				return out, nil
			}
			refusal = "a stream cannot contain this"
		}
		return e.FinishText(dst, p, e.placeholder(part, p.At, refusal))
	default:
		e.misplaced(part, p.At)
		return dst, nil
	}
}

// FinishText closes a text with its sources. An empty text has no block on a wire
// without text starts.
func (e *StreamEncoder) FinishText(dst []byte, p *Out, t *dragoman.Text) ([]byte, error) {
	rest, cites := e.Remainder(p, t.Text), e.events.Citations(t)
	extra.Report(e.Rep, t.Extra, e.Dialect, p.At)
	extra.ReportState(e.Rep, t.Signature, p.At)
	if !e.BareStart && !p.Opened() && rest == "" && len(cites) == 0 {
		return dst, nil
	}
	dst, err := e.EnsureOpen(dst, p, t)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.events.Fragment(dst, p, t, rest)
	}
	for _, c := range cites {
		dst = e.events.Cite(dst, p, c)
	}
	return e.events.StopBlock(dst, p), nil
}

// finishReasoning closes thinking with its signature. Thinking without visible content
// has no block.
func (e *StreamEncoder) finishReasoning(dst []byte, p *Out, r *dragoman.Reasoning) ([]byte, error) {
	d, rep := e.Dialect, e.Rep
	signature := Signature(r, e.First.Origin, d, p.At, rep)
	extra.Report(rep, r.Extra, d, p.At)
	if !p.Opened() && !IsShown(r, e.First.Origin, d) {
		return dst, nil
	}
	if r.Redacted && !(e.BareStart && p.Opened()) {
		return e.events.Redacted(dst, p, r)
	}
	rest := e.Remainder(p, wirekit.VisibleReasoning(r))
	if !e.BareStart && !p.Opened() && rest == "" && signature == "" {
		return dst, nil
	}
	dst, err := e.EnsureOpen(dst, p, r)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.events.Fragment(dst, p, r, rest)
	}
	if signature != "" {
		dst = e.events.Signature(dst, p, signature)
	}
	return e.events.StopBlock(dst, p), nil
}

// finishCall closes a call. Its arguments are written unchanged, even if they are not
// valid JSON, so the client sees what the model wrote.
func (e *StreamEncoder) finishCall(dst []byte, p *Out, c *dragoman.ToolCall) ([]byte, error) {
	if e.hosted(c, p.At) {
		return dst, nil
	}
	rest := e.callRest(p, c)
	dst, err := e.EnsureOpen(dst, p, c)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.events.Fragment(dst, p, c, rest)
	}
	wirekit.ReportCall(e.Reg, c, p.Sent.Len() > 0, p.At, e.Rep)
	return e.events.StopBlock(dst, p), nil
}

// callRest returns the arguments of a call that were not sent yet. It returns "" for an
// empty object if the start of the block already has one (quirk C19).
func (e *StreamEncoder) callRest(p *Out, c *dragoman.ToolCall) string {
	whole := p.WholeArguments(c)
	if e.BareStart && p.Sent.Len() == 0 && whole == "{}" {
		return ""
	}
	return e.Remainder(p, whole)
}

// Elements returns the elements of a list, or nil for any other value.
func Elements(list []byte, ok bool) (out [][]byte) {
	if !ok || len(list) == 0 || list[0] != '[' {
		return nil
	}
	r := jsonwire.NewReader(list)
	for range r.Array() {
		if v := r.Raw(); r.Err() == nil {
			out = append(out, v)
		}
	}
	return out
}
