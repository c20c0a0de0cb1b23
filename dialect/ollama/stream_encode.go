package ollama

import (
	"cmp"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec].
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	reg := wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o)
	return &streamEncoder{
		messageEncoder: messageEncoder{list: "/output", reg: reg, limits: c.Limits(), target: reg.Target(), o: o, rep: new(dragoman.Report)},
		parts:          map[int]*outPart{},
		lastText:       -1,
	}
}

// streamEncoder writes lines. Clients append each line, so if two parts grow at the same time,
// the later one waits for the earlier.
type streamEncoder struct {
	final wirekit.FinalFields
	messageEncoder
	first     dragoman.Response
	fields    wirekit.PendingFields
	parts     map[int]*outPart
	places    extra.Places
	texts     fieldParts
	thoughts  fieldParts
	called    fieldParts
	whole     int // calls that are complete
	lastText  int // the message of the latest text; -1 before the first
	closed    bool
	unwritten wirekit.UnwrittenChunks
	reported  map[string]bool
}

// fieldParts holds the parts that append to one field of the message, in the order of their start.
type fieldParts []*outPart

// outPart is the state of a part that is being written.
type outPart struct {
	begin   dragoman.Part
	at      extra.Path
	message int
	sent    stream.Sent // the text that was sent
	waiting []byte      // text that arrived and was not sent yet
	summary int         // number of the latest summary, from 1
	final   dragoman.Part
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if e.closed {
		return dst, nil // nothing follows the end
	}
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		e.unwritten.Chunk(ev, name, e.o, e.rep)
	case *dragoman.ResponseStart:
		e.first = ev.Response
		return e.queueFields(dst, ev.Extra), nil
	case *dragoman.PartStart:
		if e.firstChoice(ev.Choice) {
			e.final.Start(ev)
			e.partStart(ev)
			return e.queueFields(dst, ev.Extra), nil
		}
	case *dragoman.PartDelta:
		if e.firstChoice(ev.Choice) {
			dst = e.queueFields(dst, ev.Extra)
			if ev.Text == "" && e.fields.Any() {
				return e.fieldsAlone(dst), nil
			}
			return e.partDelta(dst, ev), nil
		}
	case *dragoman.PartEnd:
		if e.firstChoice(ev.Choice) {
			own, _ := e.final.Own(e.rep, name, ev)
			dst, err := e.partEnd(e.queueFields(dst, ev.Extra), ev)
			return e.messageFields(dst, own), err
		}
	case *dragoman.ResponseEnd:
		return e.responseEnd(e.queueFields(dst, ev.Extra), ev)
	case *dragoman.StreamError:
		err := ev.Err
		if err == nil {
			err = incomplete()
		}
		before := len(dst)
		if dst = e.failure(dst, err); len(dst) > before {
			wirekit.ReportCost(e.rep, ev.Usage, dragoman.Usage{})
		}
	}
	return dst, nil
}

// firstChoice reports whether a part belongs to the first candidate, which is the only one on
// this wire.
func (e *streamEncoder) firstChoice(choice int) bool {
	if choice != 0 {
		e.reportOnce(dragoman.Serious, "/alternatives", "further candidates are dropped; Ollama returns one")
	}
	return choice == 0
}

// reportOnce reports a loss that many parts share, once.
func (e *streamEncoder) reportOnce(severity dragoman.Severity, path, detail string) {
	if e.reported[detail] {
		return
	}
	if e.reported == nil {
		e.reported = map[string]bool{}
	}
	e.reported[detail] = true
	e.rep.Add(dragoman.Dropped, severity, path, detail)
}

// queueFields queues the unknown fields of an event. If a field with the same path is already queued,
// the queued fields get their own line first.
func (e *streamEncoder) queueFields(dst []byte, fields *dragoman.Extra) []byte {
	for _, f := range fields.For(name) {
		if e.fields.Has(f.Path) {
			dst = e.fieldsAlone(dst)
		}
		e.fields.Add(f)
	}
	return dst
}

// fieldsAlone writes a line that has only unknown fields.
func (e *streamEncoder) fieldsAlone(dst []byte) []byte {
	return e.message(dst, func(w *jsonwire.Writer) { w.StringField("content", "") })
}

// messageFields writes unknown message fields that no event carried.
func (e *streamEncoder) messageFields(dst []byte, fields []dragoman.Field) []byte {
	fresh := false
	for _, f := range fields {
		if f.Path = "/message" + f.Path; !e.fields.Known(f.Path) {
			e.fields.Add(f)
			fresh = true
		}
	}
	if !fresh {
		return dst
	}
	return e.fieldsAlone(dst)
}

func (e *streamEncoder) partStart(ev *dragoman.PartStart) {
	p := &outPart{begin: ev.Part, message: ev.Message, sent: stream.SentOf(ev.Part)}
	e.parts[ev.Index] = p
	var message extra.Path
	if p.at, message = e.places.Next(ev); ev.Header != nil {
		e.reportMessageLosses(ev.Header, message)
	}
	switch ev.Part.(type) {
	case *dragoman.Text, *dragoman.Refusal:
		e.texts = append(e.texts, p)
	case *dragoman.Reasoning:
		e.thoughts = append(e.thoughts, p)
	case *dragoman.ToolCall:
		e.called = append(e.called, p)
	}
}

func (e *streamEncoder) partDelta(dst []byte, ev *dragoman.PartDelta) []byte {
	p := e.parts[ev.Index]
	if p == nil || p.final != nil || p.begin.Kind() == codes.KindToolCall {
		return dst // a call is written when it ends
	}
	if !p.appendDelta(ev) {
		return dst
	}
	switch p.begin.Kind() {
	case codes.KindText, codes.KindRefusal:
		return e.writePending(dst, &e.texts)
	case codes.KindReasoning:
		return e.writePending(dst, &e.thoughts)
	default: // other parts are written when they end
		return dst
	}
}

// appendDelta appends a fragment. If thinking arrives both in full and as summaries, only the
// form that came first is written. Summaries are separated by blank lines.
func (p *outPart) appendDelta(ev *dragoman.PartDelta) bool {
	begun := p.sent.Len()+len(p.waiting) > 0
	if begun && (ev.Summary > 0) != (p.summary > 0) {
		return false
	}
	for ; p.summary < ev.Summary; p.summary++ {
		if p.summary > 0 {
			p.waiting = append(p.waiting, blankLine...)
		}
	}
	p.waiting = append(p.waiting, ev.Text...)
	return true
}

// writePending writes the pending text of the first part of a field, and of later parts while the ones
// before them have ended.
func (e *streamEncoder) writePending(dst []byte, l *fieldParts) []byte {
	for len(*l) > 0 {
		p := (*l)[0]
		dst = e.text(dst, p)
		if p.final == nil {
			break
		}
		*l = (*l)[1:]
	}
	return dst
}

// text writes the pending text of a part.
func (e *streamEncoder) text(dst []byte, p *outPart) []byte {
	if len(p.waiting) == 0 {
		return dst
	}
	text := string(p.waiting)
	p.sent.Add(text)
	p.waiting = p.waiting[:0]
	reasoning := p.begin.Kind() == codes.KindReasoning
	separate := !reasoning && e.lastText >= 0 && e.lastText != p.message
	if !reasoning {
		e.lastText = p.message
	}
	if separate { // as in a non-streamed response
		text = blankLine + text
	}
	return e.message(dst, func(w *jsonwire.Writer) {
		if reasoning {
			w.StringField("content", "")
			w.StringField("thinking", text)
		} else {
			w.StringField("content", text)
		}
	})
}

// message writes a line; fill writes the fields of its message.
func (e *streamEncoder) message(dst []byte, fill func(w *jsonwire.Writer)) []byte {
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	e.head(&e.first)
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	fill(w)
	e.fields.Write(w, "/message")
	w.EndObject()
	w.BoolField("done", false)
	e.fields.Write(w, "")
	w.EndObject()
	return ndjson.Append(dst, e.w.Buf)
}

// partEnd writes the content that the deltas did not contain. Parts may arrive without deltas.
func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) ([]byte, error) {
	p := e.parts[ev.Index]
	if p == nil || p.final != nil {
		return dst, nil
	}
	p.final = ev.Part
	at := p.at
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		e.content(part, at)
		e.queueRest(p, part.Text)
		return e.writePending(dst, &e.texts), nil
	case *dragoman.Refusal:
		e.content(part, at)
		e.queueRest(p, part.Text)
		return e.writePending(dst, &e.texts), nil
	case *dragoman.Reasoning:
		wirekit.ReportReasoning(e.rep, name, part, at)
		e.queueRest(p, wirekit.VisibleReasoning(part))
		return e.writePending(dst, &e.thoughts), nil
	case *dragoman.ToolCall:
		if !wirekit.IsTruncated(part) { // written at the end of the response, if calls may run
			e.whole++
		}
		return dst, nil
	case *dragoman.Opaque:
		if part.Dialect == name && part.Type == typeCall {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "a malformed call is not forwarded")
			return dst, nil
		}
	}
	content := e.content(ev.Part, at)
	if content.empty() {
		return dst, nil
	}
	return e.message(dst, func(w *jsonwire.Writer) { content.write(w, "", at, e.rep) }), nil
}

// content reports the losses of a part and returns its content.
func (e *streamEncoder) content(p dragoman.Part, at extra.Path) *messageContent {
	var c messageContent
	c.add(e.reg.View(), p, at, e.rep)
	return &c
}

// queueRest queues the text that the deltas of a part did not contain. Text that was sent cannot be
// taken back if the final text does not continue it.
func (e *streamEncoder) queueRest(p *outPart, full string) {
	rest, ok := p.sent.Rest(full)
	if ok && full != "" {
		rest, ok = strings.CutPrefix(rest, string(p.waiting))
	}
	switch {
	case ok:
		p.waiting = append(p.waiting, rest...)
	case p.sent.Len() == 0: // no fragment was sent
		p.waiting = append(p.waiting[:0], full...)
	case p.begin.Kind() == codes.KindReasoning:
		e.rep.Add(dragoman.Lowered, dragoman.Warn, p.at.String(), "the final reasoning differs from the streamed reasoning; the client keeps the streamed one")
	default:
		p.waiting = p.waiting[:0]
		e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), "the final text differs from the streamed text; the client keeps the streamed one")
	}
}

// writeCalls writes the calls, each complete (quirk C32), in the order in which the model started
// them. A call without an end is not written.
func (e *streamEncoder) writeCalls(dst []byte) ([]byte, error) {
	var t assistantContent
	m := dragoman.Message{Origin: e.first.Origin}
	for _, p := range e.called {
		if c, ok := p.final.(*dragoman.ToolCall); ok {
			if c.Payload == codes.PayloadObject && strings.ContainsAny(c.Arguments, "\r\n") {
				e.rep.Add(dragoman.Lowered, dragoman.Info, p.at.String()+"/arguments", "line breaks between the tokens of arguments are written as spaces")
			}
			t.addCall(&e.messageEncoder, c, placedPart{c, &m, p.at})
		}
	}
	var failed error
	for _, c := range t.calls {
		dst = e.message(dst, func(w *jsonwire.Writer) {
			w.StringField("content", "")
			w.Key("tool_calls")
			w.BeginArray()
			failed = cmp.Or(failed, e.call(c))
			w.EndArray()
		})
	}
	return dst, failed
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	e.closed = true
	e.callsBlocked = blocksCalls(ev.Stop)
	dst, err := e.writeCalls(e.writeUnfinished(dst))
	if err != nil {
		return dst, err
	}
	resp := ev.Response
	resp.Model = cmp.Or(resp.Model, e.first.Model)
	if resp.Created.IsZero() {
		resp.Created = e.first.Created
	}
	if resp.Origin == nil {
		resp.Origin = e.first.Origin
	}
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	e.head(&resp)
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	w.StringField("content", "")
	e.fields.Write(w, "/message")
	w.EndObject()
	e.fields.Write(w, "")
	resp.Extra = e.fields.Unwritten(resp.Extra, name)
	e.tail(ev.Stop, ownResponse(&resp), e.whole, e.first.Usage.Merge(ev.Usage), &resp)
	w.EndObject()
	resp.ID, resp.Stop = cmp.Or(resp.ID, e.first.ID), ev.Stop
	resp.ServiceTier = cmp.Or(resp.ServiceTier, e.first.ServiceTier)
	e.reportResponseLosses(&resp)
	return ndjson.Append(dst, e.w.Buf), nil
}

// writeUnfinished writes the pending text of parts that never ended.
func (e *streamEncoder) writeUnfinished(dst []byte) []byte {
	for _, l := range []fieldParts{e.thoughts, e.texts} {
		for _, p := range l {
			dst = e.text(dst, p)
		}
	}
	e.thoughts, e.texts = nil, nil
	return dst
}

// failure writes an error after the stream began. It ends the stream; only one is written (quirk
// J3).
func (e *streamEncoder) failure(dst []byte, err *dragoman.APIError) []byte {
	e.closed = true
	dst = e.writeUnfinished(dst)
	if len(e.called) > 0 {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, "/output", "calls of a failed response are not sent")
	}
	if raw := ownError(err); raw != nil {
		e.w.Buf = append(e.w.Buf[:0], raw...)
		oneLine(e.w.Buf)
		return ndjson.Append(dst, e.w.Buf)
	}
	e.w.Buf = e.w.Buf[:0]
	writeError(&e.w, err)
	wirekit.ReportError(e.rep, err, wirekit.WrittenError{}, "/error")
	return ndjson.Append(dst, e.w.Buf)
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.closed {
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
