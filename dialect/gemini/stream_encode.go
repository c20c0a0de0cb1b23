package gemini

import (
	"cmp"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec].
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	reg := wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o)
	return &streamEncoder{
		responseEncoder: responseEncoder{reg: reg, o: o, rep: new(dragoman.Report)},
		array:           c.Array,
		parts:           map[[2]int]*sentPart{},
	}
}

// streamEncoder writes chunks. Texts are written as they arrive. A call is
// written when it is complete, because not every client reads fragments of
// calls.
type streamEncoder struct {
	final wirekit.FinalFields
	responseEncoder
	w    jsonwire.Writer
	head dragoman.Response
	// array selects the JSON array framing; opened reports that its bracket was
	// written.
	array, opened bool

	parts  map[[2]int]*sentPart
	places extra.Places
	calls  map[int]int // calls started, by candidate
	// blockedCalls tracks, per candidate, the calls that must not run although a
	// client could read them as calls that may, and the stop reason to end the
	// candidate with.
	blockedCalls  wirekit.BlockedByChoice
	done          bool
	pendingLosses wirekit.UnwrittenChunks
	fields        wirekit.PendingFields
	records
}

// sentPart is the state of a part that was announced to the client.
type sentPart struct {
	part dragoman.Part
	at   extra.Path
	sent stream.Sent // of its text
	// signed reports a text with a signature. It is written in one chunk.
	signed     bool
	suppressed bool
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	var err error
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		e.pendingLosses.Chunk(ev, name, e.o, e.rep)
	case *dragoman.ResponseStart:
		e.head = ev.Response
		dst = e.queueFields(dst, ev.Extra)
	case *dragoman.PartStart:
		e.final.Start(ev)
		dst = e.queueFields(dst, ev.Extra)
		e.partStart(ev)
	case *dragoman.PartDelta:
		dst = e.queueFields(dst, ev.Extra)
		if ev.Text == "" && e.fields.Any() {
			return e.writeFieldsOnly(dst, ev.Choice), nil
		}
		dst = e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		e.final.End(e.rep, name, ev)
		dst, err = e.partEnd(e.queueFields(dst, ev.Extra), ev)
	case *dragoman.ResponseEnd:
		dst = e.responseEnd(e.queueFields(dst, ev.Extra), ev)
	case *dragoman.StreamError:
		failure := ev.Err
		if failure == nil {
			failure = incomplete()
		}
		before := len(dst)
		if dst = e.failure(dst, failure); len(dst) > before {
			wirekit.ReportCost(e.rep, ev.Usage, dragoman.Usage{})
		}
	}
	return dst, err
}

// queueFields queues the unknown fields of an event. If a field is already queued for
// the same path, it is first written in a chunk of its own.
func (e *streamEncoder) queueFields(dst []byte, fields *dragoman.Extra) []byte {
	for _, f := range fields.For(name) {
		if e.fields.Has(f.Path) {
			dst = e.writeFieldsOnly(dst, candidateOf(f.Path))
		}
		e.fields.Add(f)
	}
	return dst
}

// writeFieldsOnly writes a chunk that has only unknown fields.
func (e *streamEncoder) writeFieldsOnly(dst []byte, choice int) []byte {
	return e.part(dst, choice, func(w *jsonwire.Writer) { writeText(w, "", false, "", nil) })
}

// candidatePath returns the path of a candidate. It uses the index of the
// candidate, not its position in the list.
func candidatePath(i int) string { return "/candidates/" + strconv.Itoa(i) }

// candidateOf returns the candidate index in the path of a field; 0 for a field
// of the chunk.
func candidateOf(path string) int {
	rest, _ := strings.CutPrefix(path, "/candidates/")
	index, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(index)
	return n
}

// write writes one chunk. fill writes the fields that precede the common ones.
func (e *streamEncoder) write(dst []byte, fill func(w *jsonwire.Writer)) []byte {
	if e.head.ID == "" {
		e.head.ID = wirekit.SyntheticID("", e.o.Seed)
		wirekit.ReportNewID(e.rep, e.head.ID)
	}
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	fill(w)
	e.identity(w, &e.head)
	e.fields.Write(w, "")
	w.EndObject()
	return e.frame(dst, w.Buf)
}

// frame appends a document in the framing of the stream.
func (e *streamEncoder) frame(dst, doc []byte) []byte {
	if !e.array {
		return sse.Append(dst, "", doc)
	}
	if e.opened {
		dst = append(dst, ",\n"...)
	} else {
		dst = append(dst, '[')
	}
	e.opened = true
	return append(dst, doc...)
}

// part writes a chunk with one part.
func (e *streamEncoder) part(dst []byte, choice int, fill func(w *jsonwire.Writer)) []byte {
	return e.write(dst, func(w *jsonwire.Writer) {
		w.Key("candidates")
		w.BeginArray()
		w.BeginObject()
		w.Key("content")
		w.BeginObject()
		w.Key("parts")
		w.BeginArray()
		fill(w)
		w.EndArray()
		w.StringField("role", wireModel)
		e.fields.WriteElem(w, "/candidates", choice, "/content")
		w.EndObject()
		w.IntField("index", int64(choice))
		e.fields.WriteElem(w, "/candidates", choice, "")
		w.EndObject()
		w.EndArray()
	})
}

func (e *streamEncoder) partStart(ev *dragoman.PartStart) {
	p := &sentPart{part: ev.Part, sent: stream.DigestOf(ev.Part)}
	var message extra.Path
	if p.at, message = e.places.Next(ev); ev.Header != nil {
		e.reportMessage(ev.Header, message)
	}
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		p.signed = part.Signature != ""
	case *dragoman.Reasoning:
		p.signed = part.Signature != ""
	}
	e.parts[[2]int{ev.Choice, ev.Index}] = p
	call, ok := ev.Part.(*dragoman.ToolCall)
	if !ok {
		return
	}
	if call.Hosted {
		p.suppressed = true
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "call of %q was executed by its provider", call.Name)
		return
	}
	if e.calls == nil {
		e.calls = map[int]int{}
	}
	e.calls[ev.Choice]++
}

func (e *streamEncoder) partDelta(dst []byte, ev *dragoman.PartDelta) []byte {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.suppressed || ev.Text == "" || p.signed || p.part.Kind() == codes.KindToolCall {
		return dst
	}
	p.sent.Add(ev.Text)
	return e.text(dst, ev.Choice, p, ev.Text, "", nil)
}

// text writes a fragment of a text or a thought.
func (e *streamEncoder) text(dst []byte, choice int, p *sentPart, text, signature string, fields *dragoman.Extra) []byte {
	thought := false
	switch p.part.(type) {
	case *dragoman.Reasoning:
		thought = true
	case *dragoman.Text, *dragoman.Refusal:
	default:
		return dst
	}
	return e.part(dst, choice, func(w *jsonwire.Writer) { writeText(w, text, thought, signature, fields) })
}

// partEnd writes what the deltas left out. A part may arrive without deltas.
func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) ([]byte, error) {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.suppressed {
		return dst, nil
	}
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		extra.Report(e.rep, part.Extra, name, p.at)
		return e.writeRest(dst, ev.Choice, p, part.Text, e.signature(e.head.Origin, part.Signature, p.at), part.Extra), nil
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.at.String(), "refusal written as text")
		extra.Report(e.rep, part.Extra, name, p.at)
		return e.writeRest(dst, ev.Choice, p, part.Text, "", nil), nil
	case *dragoman.Reasoning:
		origin := e.head.Origin
		if part.Origin != nil {
			origin = part.Origin
		}
		e.reportReasoning(part, e.records.hold(ev.Choice, part, p.at), p.at)
		return e.writeRest(dst, ev.Choice, p, wirekit.VisibleReasoning(part), e.signature(origin, part.Signature, p.at), part.Extra), nil
	case *dragoman.ToolCall:
		return e.callEnd(dst, ev.Choice, p, part)
	}
	var whole jsonwire.Writer
	err := e.responseEncoder.part(&whole, e.head.Origin, ev.Part, p.at)
	if err == nil {
		err = whole.Err()
	}
	if err != nil || len(whole.Buf) == 0 {
		return dst, err
	}
	return e.part(dst, ev.Choice, func(w *jsonwire.Writer) { w.Known(whole.Buf) }), nil
}

// callEnd writes a call.
func (e *streamEncoder) callEnd(dst []byte, choice int, p *sentPart, c *dragoman.ToolCall) ([]byte, error) {
	e.blockedCalls.Of(choice).Call(c, wirekit.BlockedReason)
	e.recorded = e.records.recordCall(choice, c)
	var err error
	dst = e.part(dst, choice, func(w *jsonwire.Writer) {
		err = e.call(w, e.head.Origin, c, p.at)
	})
	return dst, err
}

// writeRest writes the remaining text of a part, its extra fields and its signature.
// Like the API, it uses an empty text if none is left.
func (e *streamEncoder) writeRest(dst []byte, choice int, p *sentPart, full, signature string, fields *dragoman.Extra) []byte {
	rest, ok := p.sent.Rest(full)
	if !ok {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), "the final text differs from the streamed text; the client has the streamed one")
		rest = ""
	}
	if rest == "" && signature == "" && !hasSetFields(fields) {
		return dst
	}
	return e.text(dst, choice, p, rest, signature, fields)
}

// responseEnd writes the last chunk: the finish reason of each candidate and
// the usage.
func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) []byte {
	e.done = true
	e.records.report(e.rep)
	e.head.Model = orElse(e.head.Model, ev.Response.Model)
	e.head.ID = orElse(e.head.ID, ev.Response.ID)
	resp := &ev.Response
	stops := append([]dragoman.Stop{ev.Stop}, ev.Stops...)
	dst = e.write(dst, func(w *jsonwire.Writer) {
		if feedback(ev.Stop) == nil || len(e.parts) > 0 {
			w.Key("candidates")
			w.BeginArray()
			for i, stop := range stops {
				e.endCandidate(w, i, stop, resp)
			}
			w.EndArray()
		}
		e.feedback(w, ev.Stop)
		w.Key("usageMetadata")
		tier := orElse(resp.ServiceTier, e.head.ServiceTier)
		writeUsage(w, ev.Usage, responseTiers().ResponseTier(tier, cmp.Or(resp.Origin, e.head.Origin), e.rep), e.rep)
		extra.WriteBut(w, resp.Extra, name, "", func(f dragoman.Field) bool {
			return responseFieldWritten(f, ev.Stop, &e.head.Created) || e.fields.Known(f.Path) && (e.fields.Has(f.Path) || e.fields.Written(f))
		})
	})
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	return e.closeArray(dst)
}

// effectiveStop returns the stop to write for a candidate.
func (e *streamEncoder) effectiveStop(i int, stop dragoman.Stop) dragoman.Stop {
	return e.blockedCalls.Of(i).EffectiveStop(stop)
}

// endCandidate writes the final chunk of one candidate.
func (e *streamEncoder) endCandidate(w *jsonwire.Writer, i int, stop dragoman.Stop, resp *dragoman.Response) {
	if i > 0 {
		wirekit.ReportDetails(e.rep, stop, extra.Choice(i))
	}
	w.BeginObject()
	w.Key("content")
	w.BeginObject()
	w.Key("parts")
	w.BeginArray()
	writeText(w, "", false, "", nil)
	w.EndArray()
	w.StringField("role", wireModel)
	e.fields.WriteElem(w, "/candidates", i, "/content")
	w.EndObject()
	e.finish(w, i, stop, e.effectiveStop(i, stop), resp.Origin, e.calls[i])
	w.IntField("index", int64(i))
	e.fields.WriteElem(w, "/candidates", i, "")
	extra.WriteBut(w, resp.Extra, name, candidatePath(i), e.fields.Written)
	w.EndObject()
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (e *streamEncoder) closeArray(dst []byte) []byte {
	if !e.array {
		return dst
	}
	return append(dst, "]\n"...)
}

// failure writes an error after the stream began. It ends the stream, and only
// one is written (quirk J3).
func (e *streamEncoder) failure(dst []byte, err *dragoman.APIError) []byte {
	e.done = true
	e.records.report(e.rep)
	if raw := nativeError(err); len(raw) > 0 && raw[0] == '{' {
		return e.closeArray(e.frame(dst, raw))
	}
	typ, code := statusOf(err)
	w := &e.w
	w.Buf = w.Buf[:0]
	writeError(w, err, typ, code)
	wirekit.ReportError(e.rep, err, writtenError(typ, code), "/error")
	return e.closeArray(e.frame(dst, w.Buf))
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.done {
		return dst, nil
	}
	return e.failure(dst, incomplete()), nil
}

func incomplete() *dragoman.APIError {
	return &dragoman.APIError{
		Class: dragoman.ErrorServer, Message: "the stream ended before the response was complete",
		Err: dragoman.ErrIncompleteStream,
	}
}
