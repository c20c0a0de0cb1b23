package openaichat

import (
	"bytes"
	"cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/go-json-experiment/json/jsontext"
)

// NewStreamEncoder implements [dialect.Codec].
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	o = legacyOptions(o)
	reg := wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o)
	return &streamEncoder{
		messageEncoder: messageEncoder{list: "/output", reg: reg, limits: c.Limits(), target: reg.Target(), o: o, rep: new(dragoman.Report), legacy: o.LegacyFunctions},
		reg:            reg,
		parts:          map[[2]int]*sentPart{},
	}
}

// streamEncoder writes chunks. Fragments of overlapping parts may be interleaved, because every
// call has its own index.
type streamEncoder struct {
	final wirekit.FinalFields
	messageEncoder
	reg    *interop.Registry
	head   dragoman.Response
	tail   *dragoman.Response // set while the last chunk is written
	parts  map[[2]int]*sentPart
	places extra.Places
	calls  map[int]int // started calls, by choice
	cut    map[int]int // truncated calls, by choice
	// blockedCalls tracks the calls of each choice that the client got and must not run.
	blockedCalls wirekit.BlockedByChoice
	roleSent     map[int]bool // choices whose role was written
	textSent     map[int]bool // choices with text
	begun        bool         // a chunk was written
	// opening holds the first fields of every chunk, once one was written.
	opening   []byte
	unwritten wirekit.UnwrittenChunks
	closed    bool
	fields    wirekit.PendingFields
}

// sentPart is the state of a part that is being written.
type sentPart struct {
	part  dragoman.Part
	at    extra.Path
	index int64 // index of a call
	// legacy is set for a call that is written as the older function_call.
	legacy bool
	field  string
	sent   stream.Sent // the text that was sent
	// suppressed is set if the part cannot be written in this dialect.
	suppressed bool
	// wrapped is set for a freeform call that is written as a function, complete, when it ends.
	wrapped bool
	// separate is set for text that belongs to another message than the text before it.
	separate bool
	message  int
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		e.unwritten.Chunk(ev, name, e.o, e.rep) // the dialect has no opaque events
	case *dragoman.ResponseStart:
		e.head, e.opening = ev.Response, nil
		dst = e.queueFields(dst, ev.Extra)
	case *dragoman.PartStart:
		e.final.Start(ev)
		dst = e.partStart(e.queueFields(dst, ev.Extra), ev)
	case *dragoman.PartDelta:
		dst = e.queueFields(dst, ev.Extra)
		if ev.Text == "" && e.fields.Any() {
			return e.write(dst, ev.Choice, "", nil), nil
		}
		dst = e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		own, _ := e.final.Own(e.rep, name, ev)
		dst = e.messageFields(e.partEnd(e.queueFields(dst, ev.Extra), ev), ev.Choice, own)
	case *dragoman.ResponseEnd:
		dst = e.responseEnd(e.queueFields(dst, ev.Extra), ev)
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

func inc(m *map[int]int, k int) int {
	if *m == nil {
		*m = map[int]int{}
	}
	n := (*m)[k]
	(*m)[k] = n + 1
	return n
}

func mark(m *map[int]bool, k int) (was bool) {
	if *m == nil {
		*m = map[int]bool{}
	}
	was = (*m)[k]
	(*m)[k] = true
	return was
}

// write writes one chunk with one delta; fill writes the fields of the delta.
func (e *streamEncoder) write(dst []byte, choice int, finish string, fill func(w *jsonwire.Writer)) []byte {
	first := !mark(&e.roleSent, choice)
	w := e.begin()
	w.Key("choices")
	w.BeginArray()
	w.BeginObject()
	w.IntField("index", int64(choice))
	w.Key("delta")
	w.BeginObject()
	if first {
		w.StringField("role", "assistant")
	}
	if fill != nil {
		fill(w)
	}
	e.fields.WriteElem(w, "/choices", choice, "/delta")
	w.EndObject()
	if finish == "" {
		w.NullField("finish_reason")
	} else {
		w.StringField("finish_reason", finish)
	}
	e.fields.WriteElem(w, "/choices", choice, "")
	if e.tail != nil && choice == 0 {
		extra.WriteBut(w, e.tail.Extra, name, "/choices/0", e.fields.Written)
	}
	w.EndObject()
	w.EndArray()
	e.fields.Write(w, "")
	if e.tail != nil {
		tier, origin := orElse(e.tail.ServiceTier, e.head.ServiceTier), cmp.Or(e.tail.Origin, e.head.Origin)
		w.StringFieldIf("service_tier", wirekit.OpenAITiers(name).ResponseTier(tier, origin, e.rep))
		extra.WriteBut(w, e.tail.Extra, name, "", e.fields.Written)
	}
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
}

// begin starts a chunk. The first fields of all chunks are those of the first one.
func (e *streamEncoder) begin() *jsonwire.Writer {
	if e.opening != nil {
		e.w.Buf = append(e.w.Buf[:0], e.opening...)
		return &e.w
	}
	e.w.Buf = e.w.Buf[:0]
	e.w.BeginObject()
	if !e.begun {
		e.begun = true
		e.identify(&e.head)
	}
	e.messageEncoder.head(&e.head, "chat.completion.chunk")
	e.opening = bytes.Clone(e.w.Buf)
	return &e.w
}

func (e *streamEncoder) partStart(dst []byte, ev *dragoman.PartStart) []byte {
	p := &sentPart{part: ev.Part, message: ev.Message, sent: stream.DigestOf(ev.Part)}
	var message extra.Path
	if p.at, message = e.places.Next(ev); ev.Header != nil {
		e.reportMessageLosses(ev.Header, message, false)
		wirekit.ReportName(e.rep, ev.Header, message)
	}
	e.parts[[2]int{ev.Choice, ev.Index}] = p
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		// Texts of different messages are separated, as in a whole response.
		p.separate = mark(&e.textSent, ev.Choice) && ev.Header != nil && ev.Message > 0
	case *dragoman.Refusal:
	case *dragoman.Reasoning:
		p.field = part.Field
		if p.field == "" {
			p.field = e.target.Caps.ReasoningField
		}
	case *dragoman.ToolCall:
		if part.Hosted {
			p.suppressed = true
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "call of %q was run by its provider; Chat has no hosted calls", part.Name)
			break
		}
		p.wrapped = part.Payload == codes.PayloadText && e.target.Caps.NoCustomTools
		if e.legacy {
			dst = e.functionStart(dst, ev.Choice, p, part)
			break
		}
		p.index = int64(inc(&e.calls, ev.Choice))
		dst = e.write(dst, ev.Choice, "", func(w *jsonwire.Writer) { e.callDelta(w, p, part, "", true) })
	case *dragoman.Opaque:
		p.suppressed = true
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "Chat cannot contain %s block of %s", extra.WithArticle(part.Type), part.Dialect)
	default:
		p.suppressed = true
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.at.String(), "Chat streams cannot contain %s part", extra.WithArticle(ev.Part.Kind()))
	}
	return dst
}

// callDelta writes the tool_calls field of a delta. The name is sent once.
func (e *streamEncoder) callDelta(w *jsonwire.Writer, p *sentPart, c *dragoman.ToolCall, args string, first bool) {
	kind, payload := "function", "arguments"
	if c.Payload == codes.PayloadText && !p.wrapped {
		kind, payload = "custom", "input"
	}
	if p.legacy {
		legacyDelta(w, payload, args)
		return
	}
	w.Key("tool_calls")
	w.BeginArray()
	w.BeginObject()
	w.IntField("index", p.index)
	if first {
		w.StringField("id", e.reg.WireID(c.ID))
		w.StringField("type", kind)
	}
	w.Key(kind)
	w.BeginObject()
	if first {
		w.StringField("name", e.reg.WireName(c.Namespace, c.Name))
	}
	w.StringField(payload, args)
	w.EndObject()
	w.EndObject()
	w.EndArray()
}

func (e *streamEncoder) partDelta(dst []byte, ev *dragoman.PartDelta) []byte {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.suppressed || p.wrapped || ev.Text == "" {
		return dst
	}
	if p.part.Kind() == codes.KindReasoning && p.field == "" {
		return dst // its end shows whether it has a field
	}
	text := ev.Text
	p.sent.Add(text)
	return e.text(dst, ev.Choice, p, text)
}

// text writes a fragment of a part.
func (e *streamEncoder) text(dst []byte, choice int, p *sentPart, text string) []byte {
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		switch part := p.part.(type) {
		case *dragoman.Text:
			if p.separate {
				text, p.separate = "\n\n"+text, false
			}
			w.StringField("content", text)
		case *dragoman.Refusal:
			w.StringField("refusal", text)
		case *dragoman.Reasoning:
			if p.field != fieldThinking {
				w.QuotedKey(p.field)
				w.String(text)
				break
			}
			w.Key("content")
			w.BeginArray()
			w.Raw(thinkingRecord(text))
			w.EndArray()
		case *dragoman.ToolCall:
			e.callDelta(w, p, part, text, false)
		}
	})
}

// partEnd writes the content that the deltas did not contain. Parts may arrive without deltas.
func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) []byte {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.suppressed {
		return dst
	}
	full := ""
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		full = part.Text
		extra.Report(e.rep, part.Extra, name, p.at)
		extra.ReportState(e.rep, part.Signature, p.at)
	case *dragoman.Refusal:
		full = part.Text
		extra.Report(e.rep, part.Extra, name, p.at)
	case *dragoman.Reasoning:
		if p.field != "" {
			full = wirekit.VisibleReasoning(part)
			e.reportReasoningLosses(part, p.at)
		} else if part.Details == nil {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, p.at.String(), "Chat streams have no field for reasoning")
		}
		if part.Details != nil && p.field != fieldThinking {
			dst = e.details(e.writeRest(dst, ev.Choice, p, full), ev.Choice, part)
		}
		if part.Signature != "" || part.Encrypted != "" {
			extra.ReportOpaque(e.rep, p.at.String())
		}
	case *dragoman.ToolCall:
		part = wirekit.Checked(part)
		if begun, ok := p.part.(*dragoman.ToolCall); ok && (begun.Name != part.Name || begun.Namespace != part.Namespace) {
			e.blockChoice(ev.Choice, p.at.String(), "the name of a call changed while it was streamed")
		}
		if wirekit.IsTruncated(part) {
			inc(&e.cut, ev.Choice)
		}
		e.blockedCalls.Of(ev.Choice).Call(part, wirekit.BlockedReason)
		full = argumentsOf(p, part)
		wirekit.ReportCall(e.reg, part, p.sent.Len() > 0, p.at, e.rep)
		if part.Extra.For(name) != nil {
			return e.callExtras(e.writeRest(dst, ev.Choice, p, full), ev.Choice, p, part)
		}
	}
	return e.writeRest(dst, ev.Choice, p, full)
}

// argumentsOf returns the arguments of a call, for a client that got the text sent so far.
// Arguments that clients would interpret differently are written as an error text, as in a whole
// response. If a part of them was already sent, the stop reason blocks the call instead.
func argumentsOf(p *sentPart, c *dragoman.ToolCall) string {
	text, why := toolwire.ResponseArguments(c)
	switch {
	case p.wrapped, why != nil && p.sent.Len() == 0:
		return text
	case c.Payload == codes.PayloadObject && p.sent.Len() == 0 && c.Problem == nil:
		obj, _ := c.Object() // no arguments, in the form that all clients accept (quirk B2)
		return string(obj)
	default:
		return c.Arguments
	}
}

// callExtras writes the unknown fields of a call, such as a signature that must be sent back.
func (e *streamEncoder) callExtras(dst []byte, choice int, p *sentPart, c *dragoman.ToolCall) []byte {
	if e.legacy { // the older call has no unknown fields
		e.reportDroppedFields(c, p.at, true)
		return dst
	}
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		w.Key("tool_calls")
		w.BeginArray()
		w.BeginObject()
		w.IntField("index", p.index)
		for _, kind := range []string{"function", "custom"} {
			if extra.Has(c.Extra, name, "/"+kind) {
				w.Key(kind)
				w.BeginObject()
				extra.Write(w, c.Extra, name, "/"+kind)
				w.EndObject()
			}
		}
		extra.Write(w, c.Extra, name, "")
		w.EndObject()
		w.EndArray()
	})
}

// writeRest writes the text of a part that the deltas did not contain.
func (e *streamEncoder) writeRest(dst []byte, choice int, p *sentPart, full string) []byte {
	rest, ok := p.sent.Rest(full)
	if !ok {
		e.reportMismatch(choice, p, full)
		return dst
	}
	p.sent.Add(rest)
	if rest != "" {
		dst = e.text(dst, choice, p, rest)
	}
	return dst
}

// reportMismatch reports that the final value of a part differs from its deltas. Text that was
// sent cannot be taken back, and nothing is appended to it.
func (e *streamEncoder) reportMismatch(choice int, p *sentPart, full string) {
	switch p.part.Kind() {
	case codes.KindReasoning:
		e.rep.Add(dragoman.Lowered, dragoman.Warn, p.at.String(), "the final reasoning differs from the streamed reasoning; the client keeps the streamed one")
	case codes.KindToolCall:
		if r := jsonwire.NewReader(p.sent.Bytes()); r.Kind() == '"' && r.String() == full && r.End() == nil {
			return // the same value, encoded twice (quirk B3)
		}
		e.blockChoice(choice, p.at.String(), "the final arguments of a call differ from the streamed arguments")
	default:
		e.rep.Add(dragoman.Dropped, dragoman.Serious, p.at.String(), "the final text differs from the streamed text; the client keeps the streamed one")
	}
}

// blockChoice blocks the calls of a choice, because the client got one that must not run.
func (e *streamEncoder) blockChoice(choice int, at, detail string) {
	e.blockedCalls.Of(choice).Block(dragoman.StopError)
	e.rep.Add(dragoman.Dropped, dragoman.Serious, at, detail+"; no call of this response may run")
}

// details writes the reasoning records that a client must send back.
func (e *streamEncoder) details(dst []byte, choice int, part *dragoman.Reasoning) []byte {
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		w.Key("reasoning_details")
		w.BeginArray()
		for _, d := range part.Details {
			if len(d) > 0 {
				w.Raw(d)
			}
		}
		w.EndArray()
	})
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) []byte {
	own := ev.Response.Origin != nil && ev.Response.Origin.Dialect == name
	for i, stop := range append([]dragoman.Stop{ev.Stop}, ev.Stops...) {
		calls := callCount{all: e.calls[i], whole: e.calls[i] - e.cut[i]}
		wirekit.ReportDetails(e.rep, stop, extra.Choice(i))
		original := stop
		stop = e.blockedCalls.Of(i).EffectiveStop(stop)
		word, exact := finishReasonOf(stop, own, calls)
		if !exact {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, extra.Choice(i)+"/stop", "stop reason %s is written as %q", stop.Reason, word)
		} else {
			wirekit.ReportBlocked(e.rep, original, stop, word, extra.Choice(i))
		}
		if i == 0 {
			e.tail = &ev.Response
		}
		dst = e.write(dst, i, e.finish(word), nil)
		e.tail = nil
	}
	extra.ReportEcho(e.rep, ev.Response.Extra, name, extra.At(""))
	if e.o.StreamUsage && (ev.Usage.Input.Known || ev.Usage.Output.Known) { // unknown usage is not zero
		dst = e.usage(dst, ev.Usage)
	}
	e.closed = true
	return sse.Append(dst, "", []byte("[DONE]"))
}

func (e *streamEncoder) usage(dst []byte, u dragoman.Usage) []byte {
	w := e.begin()
	w.Key("choices")
	w.BeginArray()
	w.EndArray()
	w.Key("usage")
	writeUsage(w, u, e.rep)
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
}

// failure writes an error after the stream began. It ends the stream: no [DONE] follows, and only
// one error is written (quirk J3).
func (e *streamEncoder) failure(dst []byte, err *dragoman.APIError) []byte {
	e.closed = true
	if raw := jsontext.Value(bytes.Clone(ownError(err))); enveloped(raw) && raw.Compact() == nil {
		return sse.Append(dst, "", raw)
	}
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	w.Key("error")
	wirekit.ReportError(e.rep, err, writeErrorObject(w, err), "/error")
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
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
