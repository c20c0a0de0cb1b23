package openaichat

import (
	"bytes"
	"errors"
	"math"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// callGuard changes responses that a proxy passes through. A choice with a call whose arguments
// are not valid JSON gets the finish reason content_filter, as in [Codec.EncodeResponse] (quirk
// B9). Nothing else changes. The input of a custom tool is text and never invalid.
//
// A guard serves one response: call Response, or call Pass for the events of a stream and then
// Close. A stream without calls is not parsed. It is not safe for concurrent use.
type callGuard struct {
	o       dialect.DecodeOptions
	parser  sse.Parser
	decoder *streamDecoder // nil until the stream has a call
	out     []byte
	// held are the events since a choice finished with a call that is not valid yet: more
	// of its arguments may follow (quirk C12).
	held []byte
	// recheck is the length of held at which the calls are checked again. It doubles, so
	// that the checks stay linear in the length of the stream.
	recheck int
	// unreadable is set if the decoder cannot read the stream, oversized if the arguments
	// exceed its bound.
	unreadable, oversized bool
	// ended is set after the last event.
	ended   bool
	blocked bool
}

// newCallGuard returns a guard for one response. It uses only the size limit of the
// options.
func newCallGuard(o dialect.DecodeOptions) *callGuard {
	return &callGuard{o: dialect.DecodeOptions{MaxBytes: o.MaxBytes, NoNative: true, DeltasOnly: true}}
}

// Blocked reports whether the guard changed the response.
func (g *callGuard) Blocked() bool { return g.blocked }

// Response returns a whole response in which each choice with an invalid call has the new
// finish reason. It returns any other body unchanged.
func (g *callGuard) Response(body []byte) []byte {
	if !hasCalls(body) {
		return body
	}
	edits := finishEdits(body, func(int64) bool { return false })
	if len(edits) == 0 {
		return body
	}
	g.blocked = true
	return jsonwire.Splice(body, edits...)
}

// Pass takes whole events of a stream and returns the bytes to send. While the stream has
// no calls, it returns its argument; otherwise the result is valid until the next call of
// Pass or Close.
func (g *callGuard) Pass(events []byte) []byte {
	if g.decoder == nil {
		if !hasCalls(events) {
			return events
		}
		g.decoder, _ = Codec{}.NewStreamDecoder(g.o).(*streamDecoder)
		if g.decoder == nil {
			return events
		}
		g.parser.Max = math.MaxInt // the caller bounds an event
	}
	g.out = g.out[:0]
	_ = g.parser.Feed(events, g.event) // event returns no error
	return g.out
}

// Close returns the bytes left to send after the last event.
func (g *callGuard) Close() []byte {
	if g.decoder == nil {
		return nil
	}
	g.out = g.out[:0]
	_ = g.parser.Close(g.event) // event returns no error
	g.release(true)
	return g.out
}

// maxHeld bounds the events that are held after a finish reason.
const maxHeld = 1 << 20

// event handles one event.
func (g *callGuard) event(ev sse.Event) error {
	switch {
	case !ev.HasData || g.ended:
	case string(bytes.TrimSpace(ev.Data)) == "[DONE]":
		g.ended = true
		g.release(true)
		g.finishOpen()
	case !g.unreadable && !g.oversized:
		err := g.decoder.Feed(ev.Raw, func(dragoman.Event) error { return nil })
		g.oversized = errors.Is(err, dragoman.ErrTooLarge)
		g.unreadable = err != nil && !g.oversized
	}
	g.held = append(g.held, ev.Raw...)
	switch {
	case g.ended:
		g.release(false)
	case len(g.held) < g.recheck:
	case !g.waits():
		g.release(false)
	case g.oversized || len(g.held) > maxHeld:
		g.release(true)
	default:
		g.recheck = 2 * len(g.held)
	}
	return nil
}

// waits reports whether a choice with an invalid call has finished.
func (g *callGuard) waits() bool {
	for i, c := range g.decoder.choices {
		if c != nil && c.finish != "" && mayRun(c.finish) && g.invalid(int64(i)) {
			return true
		}
	}
	return false
}

// invalid reports whether a choice has a call that is not valid yet.
func (g *callGuard) invalid(index int64) bool {
	if index < 0 || index >= int64(len(g.decoder.choices)) || g.decoder.choices[index] == nil {
		return false
	}
	for _, k := range g.decoder.choices[index].calls {
		if k.payload == codes.PayloadText || len(k.name) == 0 || k.repeats() {
			continue
		}
		if g.oversized || wirekit.InvalidArguments(string(k.text())) {
			return true
		}
	}
	return false
}

// release sends the held events. If block is set, choices with an invalid call end with
// content_filter.
func (g *callGuard) release(block bool) {
	g.recheck = 0
	if !block {
		g.out, g.held = append(g.out, g.held...), g.held[:0]
		return
	}
	var p sse.Parser
	p.Max = len(g.held) + 1
	write := func(ev sse.Event) error {
		g.out = append(g.out, g.blockEvent(ev)...)
		return nil
	}
	_ = p.Feed(g.held, write) // write returns no error
	_ = p.Close(write)
	g.held = g.held[:0]
}

// blockEvent returns an event in which choices with an invalid call have the new finish
// reason.
func (g *callGuard) blockEvent(ev sse.Event) []byte {
	edits := finishEdits(ev.Data, g.invalid)
	if len(edits) == 0 {
		return ev.Raw
	}
	g.blocked = true
	data := jsonwire.Splice(ev.Data, edits...)
	if ev.Joined {
		return sse.Append(nil, string(ev.Name), data)
	}
	at := bytes.LastIndex(ev.Raw, ev.Data)
	return append(append(bytes.Clone(ev.Raw[:at]), data...), ev.Raw[at+len(ev.Data):]...)
}

// finishOpen writes a finish reason for each choice that has an invalid call and ended
// without a finish reason.
func (g *callGuard) finishOpen() {
	for i, c := range g.decoder.choices {
		if c == nil || c.finish != "" || !g.invalid(int64(i)) {
			continue
		}
		g.blocked = true
		resp, created := &g.decoder.resp, int64(0)
		if !resp.Created.IsZero() {
			created = resp.Created.Unix()
		}
		var w jsonwire.Writer
		w.BeginObject()
		w.StringField("id", resp.ID)
		w.StringField("object", "chat.completion.chunk")
		w.IntField("created", created)
		w.StringField("model", resp.Model)
		w.Key("choices")
		w.BeginArray()
		w.BeginObject()
		w.IntField("index", int64(i))
		w.RawField("delta", []byte("{}"))
		w.StringField("finish_reason", blockedReason)
		w.EndObject()
		w.EndArray()
		w.EndObject()
		g.out = sse.Append(g.out, "", w.Buf)
	}
}

// blockedReason is the finish reason of a choice with a blocked call.
const blockedReason = "content_filter"

// finishEdits returns edits that set blockedReason in a response or chunk, for choices
// whose message has an invalid call and for choices whose index invalid reports. It returns
// no edits for a document that it cannot read.
func finishEdits(doc []byte, invalid func(index int64) bool) []jsonwire.Edit {
	var edits []jsonwire.Edit
	r := jsonwire.NewReader(doc)
	if r.Kind() != '{' {
		return nil
	}
	for key := range r.Object() {
		if string(key) != "choices" || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for i := range r.Array() {
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			index, bad := int64(i), false
			var reasons []jsonwire.Edit
			for key := range r.Object() {
				switch {
				case string(key) == "index" && r.Kind() == '0':
					if n := r.Int(); n >= 0 {
						index = n
					}
				case string(key) == "finish_reason" && r.Kind() == '"':
					word := r.Raw()
					if end := r.Offset(); r.Err() == nil && mayRun(jsonwire.NewReader(word).String()) && string(word) != `""` {
						reasons = append(reasons, jsonwire.Edit{Start: end - int64(len(word)), End: end, New: []byte(`"` + blockedReason + `"`)})
					}
				case string(key) == "message" && r.Kind() == '{':
					bad = messageIsInvalid(r) || bad
				default:
					r.Skip()
				}
			}
			if len(reasons) > 0 && (bad || invalid(index)) {
				edits = append(edits, reasons...)
			}
		}
	}
	if r.Err() != nil {
		return nil
	}
	return edits
}

// messageIsInvalid consumes a message and reports whether it has an invalid call.
func messageIsInvalid(r *jsonwire.Reader) (invalid bool) {
	for key := range r.Object() {
		switch {
		case string(key) == "function_call" && r.Kind() == '{':
			invalid = functionIsInvalid(r) || invalid
		case string(key) == "tool_calls" && r.Kind() == '[':
			for range r.Array() {
				if r.Kind() != '{' {
					r.Skip()
					continue
				}
				for key := range r.Object() {
					if string(key) == "function" && r.Kind() == '{' {
						invalid = functionIsInvalid(r) || invalid
					} else {
						r.Skip()
					}
				}
			}
		default:
			r.Skip()
		}
	}
	return invalid
}

// functionIsInvalid consumes the function of a call and reports whether its arguments are
// not valid JSON. A function without a name cannot run, so it counts as valid.
func functionIsInvalid(r *jsonwire.Reader) bool {
	named, arguments := false, ""
	for key := range r.Object() {
		switch {
		case string(key) == "name" && r.Kind() == '"':
			named = r.String() != ""
		case string(key) == "arguments" && r.Kind() == '"':
			arguments = r.String()
		default:
			r.Skip()
		}
	}
	return named && wirekit.InvalidArguments(arguments)
}

// hasCalls reports whether a document may have a call: it has a tool_calls or function_call
// field with a value, or an escape that may hide one. Within a text, the quote after a name
// has a backslash.
func hasCalls(doc []byte) bool {
	if bytes.Contains(doc, []byte("_call")) && (hasValue(doc, `tool_calls"`, '[') || hasValue(doc, `function_call"`, '{')) {
		return true
	}
	return bytes.Contains(doc, []byte(`\u00`))
}

// hasValue reports whether a field, given without its first quote, has a value that begins
// with open and is not empty.
func hasValue(doc []byte, field string, open byte) bool {
	const space = " \t\r\n"
	for {
		_, rest, ok := bytes.Cut(doc, []byte(field))
		if !ok {
			return false
		}
		doc = rest
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, space), []byte{':'}); !ok {
			continue
		}
		if rest = bytes.TrimLeft(rest, space); len(rest) == 0 || rest[0] != open {
			continue
		}
		if rest = bytes.TrimLeft(rest[1:], space); len(rest) == 0 || rest[0] != open+2 { // ] follows [ by two, } follows {
			return true
		}
	}
}
