package blockwire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// StreamDecoder decodes a stream of a [Format]. Dialects embed it, read the events, and
// call its methods as blocks start, grow and stop. B is the block type of the dialect.
//
// A call ends only with the response, because only then is it known whether calls may
// run (quirks C13, C34).
type StreamDecoder[B incomer] struct {
	*Decoder
	Response *Response
	Parts    stream.Parts
	// Open holds the open blocks by their index on the wire.
	Open map[int64]B
	// Blocks counts the blocks that have started.
	Blocks        int
	Started, Done bool
	// Failed is why the stream cannot be read further.
	Failed error
	None   wirekit.NotAStream
	// Held collects the canonical events of the current wire event.
	Held  stream.Held
	Bound stream.Bound

	reader  BlockReader[B]
	calls   []B             // in order of start, until they are settled
	ids     map[string]bool // ids of calls that have started
	unknown wirekit.Unknown
	losses  wirekit.UnwrittenChunks
}

// BlockReader reads the blocks of a dialect.
type BlockReader[B incomer] interface {
	// FinishBlock completes the part of a block. It is not called for calls.
	FinishBlock(b B)
	// WholeCall reads a call from its block, in the form of a whole response.
	WholeCall(b B, at extra.Path) *dragoman.ToolCall
	// Usage returns the token counts so far, which must not change later.
	Usage() dragoman.Usage
}

// Init prepares the decoder for a stream.
func (d *StreamDecoder[B]) Init(dec *Decoder, a *Response, reader BlockReader[B]) {
	d.Decoder, d.Response, d.reader = dec, a, reader
	a.Keep = wirekit.Keeper{Bound: &d.Bound}
	d.Bound.Max = dec.Options.Limit()
	d.Parts.DeltasOnly, d.Parts.Bound = dec.Options.DeltasOnly, &d.Bound
	d.Held.Dialect, d.Held.NoFields, d.Held.Rep = dec.Dialect, dec.Options.NoNative, dec.Rep
}

// Report implements [dialect.StreamDecoder].
func (d *StreamDecoder[B]) Report() dragoman.Report { return *d.Rep }

// Clone copies bytes that outlive the current event, and charges them to the bound.
func (d *StreamDecoder[B]) Clone(b []byte) []byte {
	d.Bound.Take(len(b))
	return bytes.Clone(b)
}

// Take charges a text that is stored outside of a part to the bound, and returns it.
func (d *StreamDecoder[B]) Take(text string) string {
	d.Bound.Take(len(text))
	return text
}

// At returns the path of a block in reports.
func (d *StreamDecoder[B]) At(block int) extra.Path { return extra.Elem(d.Content, block) }

// Next returns the next block, which starts with raw. The limit applies to the number
// of blocks, never to an index on the wire (quirk C4).
func (d *StreamDecoder[B]) Next(raw []byte) (Incoming, error) {
	if d.Blocks >= stream.MaxParts {
		return Incoming{}, fmt.Errorf("%w: more than %d content blocks", dragoman.ErrTooLarge, stream.MaxParts)
	}
	b := Incoming{At: d.Blocks, Raw: d.Clone(raw)}
	d.Blocks++
	return b, nil
}

// OpenAt records the open block at an index.
func (d *StreamDecoder[B]) OpenAt(index int64, b B) {
	if d.Open == nil {
		d.Open = make(map[int64]B)
	}
	d.Open[index] = b
}

// StartPart starts the part of a block.
func (d *StreamDecoder[B]) StartPart(skeleton, value dragoman.Part) *stream.Part {
	return d.Parts.Start(0, d.header(), skeleton, value)
}

// header returns the header of the message, for its first part.
func (d *StreamDecoder[B]) header() *dragoman.Message {
	if d.Parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.Origin}
}

// StartCall starts the part of a call, unless its id was seen before.
func (d *StreamDecoder[B]) StartCall(block B, c *dragoman.ToolCall) {
	d.calls = append(d.calls, block)
	b := block.incoming()
	b.Call = true
	b.Hidden = c.Payload == codes.PayloadText || d.Reg.Translates(c.Namespace, c.Name)
	if d.ids[c.ID] {
		return
	}
	if d.ids == nil {
		d.ids = make(map[string]bool)
	}
	d.ids[c.ID] = true
	skeleton := *c
	skeleton.Arguments, skeleton.Problem = "", nil
	b.Part = d.StartPart(&skeleton, c)
}

// Input adds a fragment of arguments to a block. whole means that it is a complete
// value in place of fragments; field is the name of its field.
func (d *StreamDecoder[B]) Input(block B, text string, whole bool, field string) {
	b := block.incoming()
	b.Joins(text, whole, field)
	if b.Call && b.Part != nil && !b.Hidden {
		b.Part.Append(text)
	} else {
		b.Input = append(b.Input, d.Take(text)...)
	}
}

// ReportWhole reports arguments that came as a JSON value.
func (d *StreamDecoder[B]) ReportWhole(block B) {
	d.Lost.Addf(d.Rep, dragoman.Lowered, dragoman.Info, d.At(block.incoming().At).String(), "arguments came as a JSON value instead of text fragments")
}

// Stop ends the open block at an index, if any.
func (d *StreamDecoder[B]) Stop(index int64) {
	block, ok := d.Open[index]
	if !ok {
		return
	}
	delete(d.Open, index)
	if b := block.incoming(); b.Call && b.Part != nil { // the part ends later
		b.Part.Extra = d.Held.TakeFields()
	}
	d.Finish(block)
}

// Finish ends a block. A call stays open, because calls must not run before the
// response is known to be complete.
func (d *StreamDecoder[B]) Finish(block B) {
	b := block.incoming()
	if b.Stopped {
		return
	}
	b.Stopped = true
	if b.Call {
		b.ShowWhole()
		b.Part.Complete()
		return
	}
	d.reader.FinishBlock(block)
	b.Part.End()
}

// Start emits the first event, unless it was already emitted.
func (d *StreamDecoder[B]) Start() {
	if d.Started {
		return
	}
	d.Started = true
	resp := d.Response.Resp
	resp.Extra, resp.Usage = extra.Clone(resp.Extra), d.reader.Usage()
	d.Parts.Send(&dragoman.ResponseStart{Response: resp})
}

// End ends the response.
func (d *StreamDecoder[B]) End() {
	d.Start()
	stop := d.settle(true)
	resp := d.Response.Resp
	resp.Extra = extra.Clone(resp.Extra)
	d.Parts.Send(&dragoman.ResponseEnd{Stop: stop, Usage: d.reader.Usage(), Response: resp})
	d.Done = true
}

// Break ends the stream with an error.
func (d *StreamDecoder[B]) Break(err *dragoman.APIError) {
	d.Start()
	d.settle(false)
	d.Parts.Send(&dragoman.StreamError{Err: err, Usage: d.reader.Usage()})
	d.Done = true
}

// Cut ends a stream that has no end event. broken is why it could not be read, or nil.
func (d *StreamDecoder[B]) Cut(broken error) error {
	d.Failed = dragoman.ErrIncompleteStream
	cut := d.cutError(broken)
	d.Break(cut)
	if err := d.Parts.Err(); err != nil {
		return err
	}
	return wirekit.Incomplete(cut)
}

// cutError returns the error for a stream without an end, including the cause if it is
// known.
func (d *StreamDecoder[B]) cutError(broken error) *dragoman.APIError {
	err := fmt.Errorf("%s stream: %w", d.Dialect, dragoman.ErrIncompleteStream)
	if broken != nil {
		err = fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, broken) // broken names the dialect
	} else if e := d.None.Failure(d.DecodeError); e != nil {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// ErrSpliced is the error for a stream with two responses.
var ErrSpliced = errors.New("a second message starts inside the first: two responses were spliced together")

// settle ends the open blocks, then the calls, which depend on how the whole response
// ended.
func (d *StreamDecoder[B]) settle(terminal bool) dragoman.Stop {
	var broken map[*Incoming]bool
	if !terminal {
		broken = incompleteCalls(d.calls)
	}
	for _, b := range inOrder(d.Open) {
		d.Finish(b)
	}
	d.Open = nil
	var calls []*dragoman.ToolCall
	var ending []*stream.Part
	var ids wirekit.CallIDs
	for _, block := range d.calls {
		c := d.wholeCall(block, broken[block.incoming()], &ids)
		if c != nil {
			calls, ending = append(calls, c), append(ending, block.incoming().Part)
		}
	}
	stop := d.Response.Stop(terminal, calls)
	d.calls = nil
	for _, p := range ending {
		p.End()
	}
	d.Parts.EndAll()
	return stop
}

// wholeCall returns the call of a block, whose part the caller must end. It returns nil
// for an exact repeat of another call.
func (d *StreamDecoder[B]) wholeCall(block B, broken bool, ids *wirekit.CallIDs) *dragoman.ToolCall {
	b := block.incoming()
	at := d.At(b.At)
	c := d.reader.WholeCall(block, at)
	d.DropUnsendable(c, at)
	d.Identify(c, at, append(slices.Clip(d.CallPlace), b.At)...)
	if broken && (c.Problem == nil || c.Problem.Code == codes.ProblemInvalidJSON) {
		c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the stream broke off inside the call", Offset: -1}
		if c.Payload == codes.PayloadObject && c.Arguments == "{}" && len(b.Fragments()) == 0 {
			c.Arguments = "" // the block started with {} before any arguments came
		}
	}
	fresh, _ := ids.Settle(c, at, d.Rep, func(old string) string {
		return wirekit.SyntheticID(d.IDPrefix, d.Options.Seed+old, b.At)
	})
	switch {
	case b.Part == nil && !fresh:
		return nil
	case b.Part == nil:
		skeleton := *c
		skeleton.Arguments, skeleton.Problem = "", nil
		b.Part = d.StartPart(&skeleton, c)
		b.Part.Append(c.Arguments)
	case b.Hidden:
		b.Part.Append(c.Arguments)
	}
	b.Part.Value, b.Part.Text, b.Input, b.Raw = c, nil, nil, nil // the call holds them now
	return c
}

// UnknownField is an unknown field of an event. Place is the JSON pointer of its
// parent, or "".
type UnknownField struct {
	Place, Name string
	Raw         []byte
}

// AddUnknown stores the content of an event that has no canonical form (quirk J7): its
// unknown fields, or a whole unknown event, which loss describes. If chunk is nil, the
// loss is reported.
func (d *StreamDecoder[B]) AddUnknown(chunk *dragoman.Chunk, loss *dragoman.Loss, fields []UnknownField) {
	for _, f := range fields {
		d.Held.Field(f.Place, []byte(f.Name), f.Raw)
	}
	if chunk == nil {
		d.losses.Drop(loss, d.Rep)
	} else {
		chunk.Loss = loss
	}
}

// UnknownEvent returns the loss for an event of an unknown type.
func (d *StreamDecoder[B]) UnknownEvent(typ []byte) *dragoman.Loss { return d.unknown.Of(typ) }

// UnknownFields returns the loss for the unknown fields of an event.
func (d *StreamDecoder[B]) UnknownFields(typ []byte, fields *wirekit.UnknownKeys) *dragoman.Loss {
	return d.unknown.Fields(typ, fields)
}

// Chunk returns a chunk with the bytes of an event, or nil if native forms are
// disabled.
func (d *StreamDecoder[B]) Chunk(raw []byte) *dragoman.Chunk {
	if d.Options.NoNative {
		return nil
	}
	return &dragoman.Chunk{Dialect: d.Dialect, Raw: raw}
}
