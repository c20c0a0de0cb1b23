package openaichat

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// NewStreamEncoder implements [dialect.Codec].
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	reg := wirekit.EncodeRegistry(nil, c.Limits(), o)
	return &streamEncoder{
		messageEncoder: messageEncoder{reg: reg, limits: c.Limits(), target: reg.Target(), o: o, rep: new(dragoman.Report)},
		reg:            reg,
		parts:          map[[2]int]*sentPart{},
	}
}

// streamEncoder writes chunks. Fragments of overlapping parts need no order
// here: every call has its own index.
type streamEncoder struct {
	messageEncoder
	reg    *interop.Registry
	head   dragoman.Response
	chunk  []byte // scratch
	native bool   // the events at hand were already written as a chunk
	parts  map[[2]int]*sentPart
	calls  map[int]int  // calls begun, by choice
	spoke  map[int]bool // choices that had their role
	said   map[int]bool // choices that had text
	closed bool
	done   bool // the terminal marker was written
}

// sentPart is what the client was told of a part.
type sentPart struct {
	part  dragoman.Part
	index int64 // of a call
	field string
	sent  int // bytes of its text
	// mute: the part cannot be shown in this dialect.
	mute bool
	// wrapped: a freeform call that is written as a function, whole, at its end.
	wrapped bool
	// apart: text of another message than the text before it.
	apart   bool
	message int
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		e.native = ev.Dialect == name && !e.o.Rebuild
		if !e.native {
			return dst, nil
		}
		if bytes.Contains(ev.Raw, []byte("[DONE]")) {
			e.done = true
		}
		return e.spliceModel(dst, ev.Raw), nil
	case *dragoman.ResponseStart:
		e.head = ev.Response
	case *dragoman.PartStart:
		dst = e.partStart(dst, ev)
	case *dragoman.PartDelta:
		dst = e.partDelta(dst, ev)
	case *dragoman.PartEnd:
		dst = e.partEnd(dst, ev)
	case *dragoman.ResponseEnd:
		dst = e.responseEnd(dst, ev)
	case *dragoman.StreamError:
		dst = e.failure(dst, ev.Err)
	}
	return dst, nil
}

// spliceModel writes a native event with the model that the caller asked for;
// every other byte stays.
func (e *streamEncoder) spliceModel(dst, raw []byte) []byte {
	if e.o.Model == "" {
		return append(dst, raw...)
	}
	i := bytes.IndexByte(raw, '{')
	j := bytes.LastIndexByte(raw, '}')
	if i < 0 || j < i {
		return append(dst, raw...)
	}
	doc, err := jsonwire.ReplaceString(raw[i:j+1], e.o.Model, []string{"model"})
	if err != nil {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:i]...)
	dst = append(dst, doc...)
	return append(dst, raw[j+1:]...)
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

// write writes one chunk with one delta; fill writes the delta's members.
func (e *streamEncoder) write(dst []byte, choice int, finish string, fill func(w *jsonwire.Writer)) []byte {
	first := !mark(&e.spoke, choice)
	if e.native {
		return dst
	}
	e.w.Buf = e.w.Buf[:0]
	w := &e.w
	w.BeginObject()
	e.messageEncoder.head(&e.head, "chat.completion.chunk")
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
	w.EndObject()
	if finish == "" {
		w.NullField("finish_reason")
	} else {
		w.StringField("finish_reason", finish)
	}
	w.EndObject()
	w.EndArray()
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
}

func (e *streamEncoder) partStart(dst []byte, ev *dragoman.PartStart) []byte {
	p := &sentPart{part: ev.Part, message: ev.Message}
	e.parts[[2]int{ev.Choice, ev.Index}] = p
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		// Texts of different messages are set apart, as in a whole response.
		p.apart = mark(&e.said, ev.Choice) && ev.Header != nil && ev.Message > 0
	case *dragoman.Refusal:
	case *dragoman.Reasoning:
		p.field = part.Field
		if p.field == "" || p.field == fieldThinking {
			p.field = e.target.Caps.ReasoningField
		}
		p.mute = p.field == ""
		if p.mute {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/output", "reasoning has no place in a Chat stream")
		}
	case *dragoman.ToolCall:
		if part.Hosted {
			p.mute = true
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "call of %q was run by its provider", part.Name)
			break
		}
		p.index = int64(inc(&e.calls, ev.Choice))
		p.wrapped = part.Payload == dragoman.PayloadText && e.target.Caps.NoCustomTools
		dst = e.write(dst, ev.Choice, "", func(w *jsonwire.Writer) { e.callDelta(w, p, part, "", true) })
	default:
		p.mute = true
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/output", "a %s part has no place in a Chat stream", ev.Part.Kind())
	}
	return dst
}

// callDelta writes the tool_calls member of a delta. The name is sent once.
func (e *streamEncoder) callDelta(w *jsonwire.Writer, p *sentPart, c *dragoman.ToolCall, args string, first bool) {
	kind, payload := "function", "arguments"
	if c.Payload == dragoman.PayloadText && !p.wrapped {
		kind, payload = "custom", "input"
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
	if p == nil || p.mute || p.wrapped || ev.Text == "" {
		return dst
	}
	text := ev.Text
	p.sent += len(text)
	return e.text(dst, ev.Choice, p, text)
}

// text writes a fragment of a part.
func (e *streamEncoder) text(dst []byte, choice int, p *sentPart, text string) []byte {
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		switch part := p.part.(type) {
		case *dragoman.Text:
			if p.apart {
				text, p.apart = "\n\n"+text, false
			}
			w.StringField("content", text)
		case *dragoman.Refusal:
			w.StringField("refusal", text)
		case *dragoman.Reasoning:
			w.StringField(p.field, text)
		case *dragoman.ToolCall:
			e.callDelta(w, p, part, text, false)
		}
	})
}

// partEnd writes what the deltas left out: parts may come whole.
func (e *streamEncoder) partEnd(dst []byte, ev *dragoman.PartEnd) []byte {
	p := e.parts[[2]int{ev.Choice, ev.Index}]
	if p == nil || p.mute {
		return dst
	}
	full := ""
	switch part := ev.Part.(type) {
	case *dragoman.Text:
		full = part.Text
	case *dragoman.Refusal:
		full = part.Text
	case *dragoman.Reasoning:
		full = visible(part)
		if part.Signature != "" || part.Encrypted != "" {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/output", "opaque reasoning has no place in a Chat stream")
		}
	case *dragoman.ToolCall:
		full = part.Arguments
		if p.wrapped {
			obj, _ := part.Object()
			full = string(obj)
		} else if full == "" && part.Payload == dragoman.PayloadObject && p.sent == 0 {
			full = "{}"
		}
	}
	if p.sent >= len(full) {
		return dst
	}
	rest := full[p.sent:]
	p.sent = len(full)
	return e.text(dst, ev.Choice, p, rest)
}

func (e *streamEncoder) responseEnd(dst []byte, ev *dragoman.ResponseEnd) []byte {
	own := ev.Response.Origin != nil && ev.Response.Origin.Dialect == name
	if !e.native {
		for i, stop := range append([]dragoman.Stop{ev.Stop}, ev.Stops...) {
			word, exact := wordOf(stop, own)
			if !exact {
				e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s written as %q", stop.Reason, word)
			}
			dst = e.write(dst, i, word, nil)
		}
		if e.o.StreamUsage {
			dst = e.usage(dst, ev.Usage)
		}
	}
	e.closed = true
	return e.terminal(dst)
}

func (e *streamEncoder) terminal(dst []byte) []byte {
	if e.native || e.done {
		return dst
	}
	e.done = true
	return sse.Append(dst, "", []byte("[DONE]"))
}

func (e *streamEncoder) usage(dst []byte, u dragoman.Usage) []byte {
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	e.messageEncoder.head(&e.head, "chat.completion.chunk")
	w.Key("choices")
	w.BeginArray()
	w.EndArray()
	w.Key("usage")
	writeUsage(w, u, e.rep)
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
}

// failure writes an error after the stream began. There is no [DONE] after it:
// an error is the end, and there is only one (quirk J3).
func (e *streamEncoder) failure(dst []byte, err *dragoman.APIError) []byte {
	e.closed, e.done = true, true
	if e.native {
		return dst
	}
	w := &e.w
	w.Buf = w.Buf[:0]
	w.BeginObject()
	w.Key("error")
	writeErrorObject(w, err)
	w.EndObject()
	return sse.Append(dst, "", w.Buf)
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	if e.closed {
		return dst, nil
	}
	e.native = false
	return e.failure(dst, &dragoman.APIError{
		Class: dragoman.ErrorServer, Message: "the stream ended before the response was complete",
		Err: dragoman.ErrIncompleteStream,
	}), nil
}
