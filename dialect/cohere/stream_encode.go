package cohere

import (
	"bytes"
	"cmp"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec]. It writes one block after the
// other: a part that starts while another is open waits. Content and calls have
// separate indexes.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	reg := wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o)
	e := &streamEncoder{
		messageEncoder: messageEncoder{list: "/output", reg: reg, limits: c.Limits(), target: reg.Target(), o: o, rep: new(dragoman.Report)},
	}
	e.Emitter = blockwire.NewEmitter(name, e, e.rep)
	return e
}

type streamEncoder struct {
	messageEncoder
	blockwire.Emitter
	final         wirekit.FinalFields
	first         dragoman.Response // from ResponseStart
	started       bool
	done          bool
	blocks        int64 // number of content blocks
	called        int64
	cited         bool // citation events were passed through
	nextCitation  int64
	pendingLosses wirekit.UnwrittenChunks
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	if e.done {
		return dst, nil
	}
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		for _, event := range sse.Events(e.pendingLosses.Chunk(ev, name, e.o, e.rep)) {
			typ := cmp.Or(string(event.Name), wirekit.EventType(event.Data))
			e.cited = e.cited || typ == eventCitation
			dst = sse.Append(dst, typ, event.Data)
		}
		return dst, nil
	case *dragoman.ResponseStart:
		return e.start(dst, ev.Response, ev.Extra), nil
	case *dragoman.PartStart:
		e.final.Start(ev)
		return e.PartStart(e.start(dst, dragoman.Response{}, nil), ev)
	case *dragoman.PartDelta:
		return e.PartDelta(dst, ev)
	case *dragoman.PartEnd:
		fields, at := e.final.Own(e.rep, name, ev)
		dst, err := e.PartEnd(dst, ev)
		return e.messageFields(dst, fields, at), err
	case *dragoman.ResponseEnd:
		return e.responseEnd(dst, ev)
	case *dragoman.StreamError:
		wirekit.ReportCost(e.rep, ev.Usage, e.first.Usage)
		return e.Fail(dst, ev.Err), nil
	default:
		return dst, nil
	}
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.done {
		return dst, nil
	}
	return e.Fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: dragoman.ErrIncompleteStream.Error()}), nil
}

// messageFields writes the extra fields of a message. A stream only has events
// for citations.
func (e *streamEncoder) messageFields(dst []byte, fields []dragoman.Field, at extra.Path) []byte {
	for _, f := range fields {
		if f.Path != "/citations" {
			e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+f.Path, "a stream cannot carry this field of a message")
			continue
		}
		if e.cited || e.done {
			continue
		}
		r := jsonwire.NewReader(f.Value)
		if r.Kind() != '[' {
			continue
		}
		for range r.Array() {
			citation := r.Raw()
			if r.Err() != nil {
				break
			}
			w := e.frame()
			e.deltaMessage("citations", func() { w.Raw(citation) }, nil)
			w.IntField("index", e.nextCitation)
			dst = e.flush(dst, eventCitation)
			w = e.frame()
			w.IntField("index", e.nextCitation)
			dst = e.flush(dst, eventCited)
			e.nextCitation++
		}
	}
	return dst
}

// frame starts the data of an event. The fields are in the order of the server:
// delta, id or index, type.
func (e *streamEncoder) frame() *jsonwire.Writer {
	e.w.Buf = e.w.Buf[:0]
	e.w.BeginObject()
	return &e.w
}

// flush writes the current event. It replaces line breaks inside native values,
// because they would end the event.
func (e *streamEncoder) flush(dst []byte, typ string) []byte {
	e.w.StringField("type", typ)
	e.w.EndObject()
	return sse.Append(dst, typ, bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, e.w.Buf))
}

// deltaMessage writes the delta field, with one field of its message and the
// unknown fields below it. It also writes the unknown fields of the event
// itself.
func (e *streamEncoder) deltaMessage(field string, value func(), fields *dragoman.Extra) {
	w := &e.w
	w.Key("delta")
	w.BeginObject()
	w.Key("message")
	w.BeginObject()
	w.Key(field)
	value()
	extra.Write(w, fields, name, "/delta/message")
	w.EndObject()
	extra.Write(w, fields, name, "/delta")
	w.EndObject()
	extra.Write(w, fields, name, "")
}

func (e *streamEncoder) start(dst []byte, resp dragoman.Response, fields *dragoman.Extra) []byte {
	if e.started {
		return dst
	}
	e.started, e.first = true, resp
	w := e.frame()
	w.Key("delta")
	w.BeginObject()
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	for _, list := range []string{"content", "tool_calls", "citations"} {
		w.RawField(list, []byte("[]"))
	}
	w.StringField("tool_plan", "")
	extra.Write(w, fields, name, "/delta/message")
	w.EndObject()
	extra.Write(w, fields, name, "/delta")
	w.EndObject()
	w.StringField("id", e.id(resp.ID))
	extra.Write(w, fields, name, "")
	return e.flush(dst, eventStart)
}

// isPlan reports whether a part is written as tool-plan-delta.
func isPlan(p dragoman.Part) bool {
	r, ok := p.(*dragoman.Reasoning)
	return ok && r.Field == fieldPlan
}

// OpenBlock implements [blockwire.StreamWire].
func (e *streamEncoder) OpenBlock(dst []byte, p *blockwire.Out, part dragoman.Part) ([]byte, error) {
	switch part := part.(type) {
	case *dragoman.ToolCall:
		p.Index = e.called
		e.called++
		c := *part
		c.Arguments, c.Payload, c.Cache, c.Problem = "", codes.PayloadObject, nil, nil
		w := e.frame()
		var failed error
		e.deltaMessage("tool_calls", func() { failed = e.startCall(&c, p.At) }, p.Opening)
		w.IntField("index", p.Index)
		if failed != nil {
			return dst, fmt.Errorf("cohere: %s: %w", p.At, failed)
		}
		return e.flush(dst, eventCall), nil
	case *dragoman.Reasoning:
		if isPlan(part) {
			p.Index = 0 // a plan has no start and end events
			return dst, nil
		}
		return e.openContent(dst, p, "thinking", part.Extra), nil
	default:
		var fields *dragoman.Extra
		if t, ok := part.(*dragoman.Text); ok {
			fields = t.Extra
		}
		return e.openContent(dst, p, "text", fields), nil
	}
}

// startCall writes the object of a call without its arguments.
func (e *streamEncoder) startCall(c *dragoman.ToolCall, at extra.Path) error {
	var obj jsonwire.Writer
	if err := e.reg.WriteCall(&obj, c, at, new(dragoman.Report)); err != nil { // the end of the call reports the losses
		return err
	}
	e.w.Raw(withArguments(obj.Buf, ""))
	return nil
}

func (e *streamEncoder) openContent(dst []byte, p *blockwire.Out, typ string, fields *dragoman.Extra) []byte {
	p.Index = e.blocks
	e.blocks++
	w := e.frame()
	e.deltaMessage("content", func() {
		w.BeginObject()
		w.StringField("type", typ)
		w.StringField(typ, "")
		extra.Write(w, fields, name, "")
		extra.Write(w, p.Opening, name, "/delta/message/content")
		w.EndObject()
	}, p.Opening)
	w.IntField("index", p.Index)
	return e.flush(dst, eventContent)
}

// Delta implements [blockwire.StreamWire].
func (e *streamEncoder) Delta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	w := &e.w
	switch {
	case isPlan(p.Skeleton):
		e.frame()
		e.deltaMessage("tool_plan", func() { w.String(text) }, fields)
		return e.flush(dst, eventPlan)
	case p.Skeleton.Kind() == codes.KindToolCall:
		e.frame()
		e.deltaMessage("tool_calls", func() {
			w.BeginObject()
			w.Key("function")
			w.BeginObject()
			w.StringField("arguments", text)
			extra.Write(w, fields, name, "/delta/message/tool_calls/function")
			w.EndObject()
			extra.Write(w, fields, name, "/delta/message/tool_calls")
			w.EndObject()
		}, fields)
		w.IntField("index", p.Index)
		return e.flush(dst, eventArguments)
	default:
		typ := "text"
		if p.Skeleton.Kind() == codes.KindReasoning {
			typ = "thinking"
		}
		e.frame()
		e.deltaMessage("content", func() {
			w.BeginObject()
			w.StringField(typ, text)
			extra.Write(w, fields, name, "/delta/message/content")
			w.EndObject()
		}, fields)
		w.IntField("index", p.Index)
		return e.flush(dst, eventText)
	}
}

// StopBlock implements [blockwire.StreamWire].
func (e *streamEncoder) StopBlock(dst []byte, p *blockwire.Out) []byte {
	dst = e.Fields(dst, p)
	if isPlan(p.Skeleton) {
		return dst
	}
	typ := eventTextEnd
	if p.Skeleton.Kind() == codes.KindToolCall {
		typ = eventCallEnd
	}
	w := e.frame()
	w.IntField("index", p.Index)
	extra.WriteBelow(w, p.Closing, name, "")
	return e.flush(dst, typ)
}

// Finish implements [blockwire.StreamWire].
func (e *streamEncoder) Finish(dst []byte, p *blockwire.Out, final dragoman.Part) ([]byte, error) {
	switch part := final.(type) {
	case *dragoman.Text:
		reportText(part, p.At, e.rep)
		return e.finishText(dst, p, part, part.Text)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, p.At.String(), "refusal written as text")
		extra.Report(e.rep, part.Extra, name, p.At)
		return e.finishText(dst, p, &dragoman.Text{}, part.Text)
	case *dragoman.Data:
		return e.finishText(dst, p, &dragoman.Text{}, string(part.JSON))
	case *dragoman.Media:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "Cohere messages of role assistant cannot contain %s; replaced by a note", part.Media)
		return e.finishText(dst, p, &dragoman.Text{}, toolwire.Placeholder(part))
	case *dragoman.Reasoning:
		wirekit.ReportReasoning(e.rep, name, part, p.At)
		if wirekit.VisibleReasoning(part) == "" && !p.Opened() && (e.first.Origin == nil || e.first.Origin.Dialect != name || isPlan(part)) {
			return dst, nil
		}
		return e.finishText(dst, p, part, wirekit.VisibleReasoning(part))
	case *dragoman.ToolCall:
		return e.finishCall(dst, p, part)
	case *dragoman.Opaque:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "%s of dialect %s cannot be expressed in a Cohere message", extra.TypedNoun(part.Type, "block"), part.Dialect)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "%s part cannot be expressed in a response", part.Kind())
	}
	return dst, nil
}

// finishText writes the rest of a text or of reasoning and ends its block.
func (e *streamEncoder) finishText(dst []byte, p *blockwire.Out, part dragoman.Part, text string) ([]byte, error) {
	rest := e.Remainder(p, text)
	if p.Skeleton.Kind() != part.Kind() && !p.Opened() {
		p.Skeleton = part // a note for another part
	}
	dst, err := e.EnsureOpen(dst, p, part)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.Delta(dst, p, rest, nil)
	}
	return e.StopBlock(dst, p), nil
}

func (e *streamEncoder) finishCall(dst []byte, p *blockwire.Out, c *dragoman.ToolCall) ([]byte, error) {
	if c.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, p.At.String(), "call of %.80q was executed by its provider", c.Name)
		return dst, nil
	}
	rest := e.Remainder(p, p.WholeArguments(c))
	dst, err := e.EnsureOpen(dst, p, c)
	if err != nil {
		return dst, err
	}
	if rest != "" {
		dst = e.Delta(dst, p, rest, nil)
	}
	wirekit.ReportCall(e.reg, c, p.Sent.Len() > 0, p.At, e.rep)
	return e.StopBlock(dst, p), nil
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) ([]byte, error) {
	dst = e.start(dst, ev.Response, nil)
	dst, err := e.Advance(dst, true)
	if err != nil || e.done {
		return dst, err
	}
	e.done = true
	resp := ev.Response
	if resp.Origin == nil {
		resp.Origin = e.first.Origin
	}
	w := e.frame()
	w.Key("delta")
	w.BeginObject()
	calls := e.Ended()
	e.finish(w, ev.Stop, wirekit.EffectiveStop(ev.Stop, calls, wirekit.BlockedReason), ownResponse(&resp), countCalls(calls), nil)
	if usage := e.first.Usage.Merge(ev.Usage); hasUsage(usage) {
		w.Key("usage")
		writeUsage(w, usage, e.rep)
	}
	extra.Write(w, ev.Extra, name, "/delta")
	w.EndObject()
	extra.Write(w, ev.Extra, name, "")
	dst = sse.Append(e.flush(dst, eventEnd), "", []byte("[DONE]"))
	resp.Model = cmp.Or(resp.Model, e.first.Model)
	resp.ServiceTier = cmp.Or(resp.ServiceTier, e.first.ServiceTier)
	if resp.Created.IsZero() {
		resp.Created = e.first.Created
	}
	resp.Alternatives = nil // their parts were reported
	e.reportResponse(&resp)
	return dst, nil
}

// Fail implements [blockwire.StreamWire]. The last event contains the error.
func (e *streamEncoder) Fail(dst []byte, err *dragoman.APIError) []byte {
	if e.done {
		return dst
	}
	dst = e.start(dst, dragoman.Response{}, nil)
	e.done = true
	if err == nil {
		err = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	w := e.frame()
	w.Key("delta")
	w.BeginObject()
	w.StringField("finish_reason", "ERROR")
	w.StringField("error", messageOf(err))
	w.EndObject()
	wirekit.ReportError(e.rep, err, wirekit.WrittenError{}, "/error")
	return sse.Append(e.flush(dst, eventEnd), "", []byte("[DONE]"))
}
