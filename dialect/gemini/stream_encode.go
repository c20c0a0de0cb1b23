package gemini

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// NewStreamEncoder implements [dialect.Codec].
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	reg := wirekit.EncodeRegistry(nil, c.Limits(), o)
	return &streamEncoder{
		answerEncoder: answerEncoder{reg: reg, o: o, rep: new(dragoman.Report)},
		array:         c.Array, asked: c.Array,
		parts: map[[2]int]*sentPart{},
	}
}

// streamEncoder writes chunks. A text goes out as it comes, a call when it is
// whole: the wire has no fragments of calls that every client reads.
type streamEncoder struct {
	final wirekit.FinalFields
	answerEncoder
	w    jsonwire.Writer
	head dragoman.Response
	// array: the stream is one JSON array, which was opened and closed; asked:
	// that is what the caller wants.
	array, asked, opened, closed bool
	native                       bool // the events at hand were already written as a chunk
	// rebuild: no later chunk is written as it is.
	rebuild bool
	parts   map[[2]int]*sentPart
	places  extra.Places
	calls   map[int]int // calls begun, by candidate
	// barred: candidates with a call that must not run, though a client could
	// take what it got of it for one that may; the reason to end them with.
	barred wirekit.Barrings
	last   []byte // the latest chunk that was written as it is
	done   bool
	untold wirekit.Untold
	records
	finishes
}

// sentPart is what the client was told of a part.
type sentPart struct {
	part dragoman.Part
	at   extra.Path
	sent stream.Sent // of its text, or of a call's arguments
	// shown: a native chunk told of the call.
	shown bool
	// signed: a text that its signature belongs to, so that it is written whole.
	signed bool
	mute   bool
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
		e.settle()
		// One chunk that is not ours ends native mode for good.
		e.rebuild = e.rebuild || e.o.Rebuild || ev.Dialect != name || len(ev.Raw) == 0 || !e.framed(ev.Raw)
		if e.native = !e.rebuild; e.native {
			dst = e.chunk(dst, ev.Raw)
		} else {
			e.untold.Lose(ev.Loss, e.rep)
		}
	case *dragoman.ResponseStart:
		e.head = ev.Response
	case *dragoman.PartStart:
		e.final.Start(ev)
		e.partStart(ev)
	case *dragoman.PartDelta:
		dst = e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		if !e.native {
			e.final.End(e.rep, name, ev)
		}
		dst, err = e.partEnd(dst, ev)
	case *dragoman.ResponseEnd:
		dst = e.responseEnd(dst, ev)
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

// framed reports whether native chunks are of the framing that is written: that
// of the first one, unless the caller asked for an array.
func (e *streamEncoder) framed(raw []byte) bool {
	if len(e.last) > 0 || e.opened {
		return true // it was settled by the first
	}
	begun := bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), " \t\r\n")
	list := len(begun) > 0 && begun[0] == '['
	if !e.asked {
		e.array = list
	}
	return list == e.array
}

// chunk writes a native event, with the model that the caller asked for; every
// other byte stays.
func (e *streamEncoder) chunk(dst, raw []byte) []byte {
	e.last = append(e.last[:0], raw...)
	start, end := document(raw, e.array)
	if e.array {
		e.opened = true
		e.closed = e.closed || start == end && bytes.ContainsRune(raw, ']')
	}
	doc := raw[start:end]
	e.see(doc)
	if e.o.Model != "" && len(doc) > 0 {
		if out, err := jsonwire.ReplaceString(doc, e.o.Model, []string{"modelVersion"}, []string{"model_version"}); err == nil {
			doc = out
		}
	}
	dst = append(dst, raw[:start]...)
	dst = append(dst, doc...)
	return append(dst, raw[end:]...)
}

// document finds the JSON of a native event; of server-sent ones, that has one
// line of it.
func document(raw []byte, array bool) (start, end int) {
	if array {
		if i := bytes.IndexByte(raw, '{'); i >= 0 {
			return i, len(raw)
		}
		return 0, 0
	}
	for at := 0; at < len(raw); {
		line := raw[at:]
		if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
			line = line[:i]
		}
		if bytes.HasPrefix(line, []byte("data:")) {
			return at + len("data:"), at + len(line)
		}
		at += len(line) + 1
	}
	return 0, 0
}

// write writes one chunk; fill writes the members before those of every chunk.
func (e *streamEncoder) write(dst []byte, fill func(w *jsonwire.Writer)) []byte {
	if e.native {
		return dst
	}
	if e.head.ID == "" {
		e.head.ID = wirekit.SyntheticID("", e.o.Seed)
		wirekit.ReportMinted(e.rep, e.head.ID)
	}
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	fill(w)
	e.identity(w, &e.head)
	w.EndObject()
	return e.frame(dst, w.Buf)
}

// frame writes a document in the framing of the stream.
func (e *streamEncoder) frame(dst, doc []byte) []byte {
	if !e.array {
		if n := len(e.last); n > 0 && !blankLine(e.last) {
			dst = append(dst, "\n\n"...) // the chunk had no end of its own
		}
		e.last = e.last[:0]
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

// blankLine reports whether a native event ends with the blank line that ends
// an event.
func blankLine(raw []byte) bool {
	s := strings.ReplaceAll(string(raw[max(0, len(raw)-4):]), "\r\n", "\n")
	return strings.HasSuffix(s, "\n\n") || strings.HasSuffix(s, "\r\r") || s == "\n"
}

// part writes a chunk with one part.
func (e *streamEncoder) part(dst []byte, choice int, fill func(w *jsonwire.Writer)) []byte {
	e.goesOn(choice)
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
		w.EndObject()
		w.IntField("index", int64(choice))
		w.EndObject()
		w.EndArray()
	})
}

func (e *streamEncoder) partStart(ev *dragoman.PartStart) {
	e.goesOn(ev.Choice)
	p := &sentPart{part: ev.Part, sent: stream.DigestOf(ev.Part)}
	var message extra.Path
	if p.at, message = e.places.Next(ev); ev.Header != nil && !e.native {
		e.unsaid(ev.Header, message)
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
		p.mute = true
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "call of %q was run by its provider", call.Name)
		return
	}
	p.shown = e.native
	if e.calls == nil {
		e.calls = map[int]int{}
	}
	e.calls[ev.Choice]++
}

func (e *streamEncoder) partDelta(dst []byte, ev *dragoman.PartDelta) []byte {
	e.goesOn(ev.Choice)
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.mute || ev.Text == "" || p.signed && !e.native {
		return dst
	}
	if p.part.Kind() == dragoman.KindToolCall {
		if e.native {
			p.sent.Add(ev.Text)
		}
		return dst
	}
	p.sent.Add(ev.Text)
	return e.text(dst, ev.Choice, p, ev.Text, "", nil)
}

// text writes a fragment of a text or a thought.
func (e *streamEncoder) text(dst []byte, choice int, p *sentPart, text, signature string, beside *dragoman.Extra) []byte {
	thought := false
	switch p.part.(type) {
	case *dragoman.Reasoning:
		thought = true
	case *dragoman.Text, *dragoman.Refusal:
	default:
		return dst
	}
	return e.part(dst, choice, func(w *jsonwire.Writer) { writeText(w, text, thought, signature, beside) })
}

// partEnd writes what the deltas left out: parts may come whole.
func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) ([]byte, error) {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.mute || e.native {
		if p != nil && e.native {
			p.mute = true // told to its end
		}
		return dst, nil
	}
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		extra.Report(e.rep, part.Extra, name, p.at)
		return e.rest(dst, ev.Choice, p, part.Text, e.signature(e.head.Origin, part.Signature, p.at), part.Extra), nil
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.at.String(), "a refusal written as text")
		extra.Report(e.rep, part.Extra, name, p.at)
		return e.rest(dst, ev.Choice, p, part.Text, "", nil), nil
	case *dragoman.Reasoning:
		origin := e.head.Origin
		if part.Origin != nil {
			origin = part.Origin
		}
		e.unsaidOfThinking(part, e.records.hold(ev.Choice, part, p.at), p.at)
		return e.rest(dst, ev.Choice, p, blockwire.Visible(part), e.signature(origin, part.Signature, p.at), part.Extra), nil
	case *dragoman.ToolCall:
		return e.callEnd(dst, ev.Choice, p, part)
	}
	var whole jsonwire.Writer
	err := e.answerEncoder.part(&whole, e.head.Origin, ev.Part, p.at)
	if err == nil {
		err = whole.Err()
	}
	if err != nil || len(whole.Buf) == 0 {
		return dst, err
	}
	return e.part(dst, ev.Choice, func(w *jsonwire.Writer) { w.Known(whole.Buf) }), nil
}

// callEnd writes a call. One that a native chunk told of is known: nothing is
// said of it again, but that it must not run.
func (e *streamEncoder) callEnd(dst []byte, choice int, p *sentPart, c *dragoman.ToolCall) ([]byte, error) {
	e.barred.Of(choice).Call(c, wirekit.Barred)
	if p.shown {
		begun := p.part.(*dragoman.ToolCall)
		same := begun.Name == c.Name && begun.Namespace == c.Namespace
		rest, goesOn := p.sent.Rest(c.Arguments)
		if !same || c.Payload != dragoman.PayloadText && (!goesOn || rest != "") || c.Problem != nil {
			e.barred.Of(choice).Bar(dragoman.StopError)
			e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), "a client was told of a call that is another; nothing of this answer may run")
		}
		return dst, nil
	}
	e.recorded = e.records.with(choice, c)
	var err error
	dst = e.part(dst, choice, func(w *jsonwire.Writer) {
		err = e.call(w, e.head.Origin, c, p.at)
	})
	return dst, err
}

// rest writes what the deltas left out of a part's text, what stands beside it,
// and the signature that ends it, as the API does: with an empty text where nothing
// is left.
func (e *streamEncoder) rest(dst []byte, choice int, p *sentPart, full, signature string, beside *dragoman.Extra) []byte {
	rest, ok := p.sent.Rest(full)
	if !ok {
		e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), "a text ended as another than was streamed; the client has the streamed one")
		rest = ""
	}
	if rest == "" && signature == "" && !noted(beside) {
		return dst
	}
	return e.text(dst, choice, p, rest, signature, beside)
}

// responseEnd writes the last chunk: why each candidate ended, and what it cost.
func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) []byte {
	e.done = true
	e.records.report(e.rep)
	if e.native {
		return e.shut(dst)
	}
	e.head.Model = orElse(e.head.Model, ev.Response.Model)
	e.head.ID = orElse(e.head.ID, ev.Response.ID)
	resp := &ev.Response
	stops := append([]dragoman.Stop{ev.Stop}, ev.Stops...)
	if e.allTold(stops) {
		return e.shut(dst)
	}
	dst = e.write(dst, func(w *jsonwire.Writer) {
		if feedback(ev.Stop) == nil || len(e.parts) > 0 {
			w.Key("candidates")
			w.BeginArray()
			for i, stop := range stops {
				e.lastOf(w, i, stop, resp)
			}
			w.EndArray()
		}
		e.feedback(w, ev.Stop)
		w.Key("usageMetadata")
		tier := orElse(resp.ServiceTier, e.head.ServiceTier)
		writeUsage(w, ev.Usage, answerTiers().Answer(tier, cmp.Or(resp.Origin, e.head.Origin), e.rep), e.rep)
		extra.WriteBut(w, resp.Extra, name, "", func(f dragoman.Field) bool { return told(f, ev.Stop, &e.head.Created) })
	})
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	return e.shut(dst)
}

// allTold reports whether native chunks told the end of every candidate, and
// nothing forbids what they told.
func (e *streamEncoder) allTold(stops []dragoman.Stop) bool {
	for i, stop := range stops {
		if !e.told[i] || e.standing(i, stop).Reason != stop.Reason {
			return false
		}
	}
	return true
}

// standing is the stop to write for a candidate.
func (e *streamEncoder) standing(i int, stop dragoman.Stop) dragoman.Stop {
	return e.barred.Of(i).Standing(stop)
}

// lastOf writes the end of one candidate.
func (e *streamEncoder) lastOf(w *jsonwire.Writer, i int, stop dragoman.Stop, resp *dragoman.Response) {
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
	w.EndObject()
	e.finish(w, i, stop, e.standing(i, stop), resp.Origin, e.calls[i])
	w.IntField("index", int64(i))
	extra.Write(w, resp.Extra, name, "/candidates/"+strconv.Itoa(i))
	w.EndObject()
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// shut ends the array.
func (e *streamEncoder) shut(dst []byte) []byte {
	if !e.array || e.closed || e.native {
		return dst
	}
	e.closed = true
	return append(dst, "]\n"...)
}

// failure writes an error after the stream began. An error is the end, and there
// is only one (quirk J3): where the native chunk at hand told it, it is told.
func (e *streamEncoder) failure(dst []byte, err *dragoman.APIError) []byte {
	e.done = true
	e.records.report(e.rep)
	if e.native && e.saidSo(err) {
		return dst
	}
	e.native = false
	if e.array && e.closed {
		return dst // nothing can be said behind the end
	}
	typ, code := wordsOf(err)
	w := &e.w
	w.Buf = w.Buf[:0]
	writeError(w, err, typ, code)
	wirekit.ReportError(e.rep, err, errorSaid(typ, code), "/error")
	return e.shut(e.frame(dst, w.Buf))
}

// saidSo reports whether the latest native chunk is the one the error came in.
func (e *streamEncoder) saidSo(err *dragoman.APIError) bool {
	start, end := document(e.last, e.array)
	doc := bytes.TrimSpace(e.last[start:end])
	if err.Native == nil { // an error that says nothing has only its envelope
		return holdsError(doc)
	}
	return err.Native.Format == formatError && bytes.Equal(doc, bytes.TrimSpace(err.Native.JSON))
}

// holdsError reports whether an event is one of an error.
func holdsError(doc []byte) bool {
	r := jsonwire.NewReader(doc)
	found := false
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Object() {
		found = found || string(key) == "error"
		r.Skip()
	}
	return found && r.Err() == nil
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if !e.done {
		e.native = false
		return e.failure(dst, incomplete()), nil
	}
	if e.rebuild {
		e.native = false
		dst = e.shut(dst)
	}
	return dst, nil
}

func incomplete() *dragoman.APIError {
	return &dragoman.APIError{
		Class: dragoman.ErrorServer, Message: "the stream ended before the response was complete",
		Err: dragoman.ErrIncompleteStream,
	}
}
