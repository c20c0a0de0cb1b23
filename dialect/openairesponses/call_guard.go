package openairesponses

import (
	"bytes"
	"math"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// callGuard changes responses that a proxy passes through. A call whose arguments are not
// valid JSON makes its item and the response incomplete, as in [Codec.EncodeResponse]
// (quirk B9). Nothing else changes. The input of a custom tool is text and never invalid.
//
// A guard serves one response: call Response, or call Pass for the events of a stream and
// then Close. A stream without calls is not parsed. It is not safe for concurrent use.
type callGuard struct {
	limit  int
	parser sse.Parser
	active bool // the stream has a call
	out    []byte
	// streamed holds the arguments received in deltas, by the index of their item. size is
	// their total length.
	streamed map[int64][]byte
	size     int
	// invalid has the index of each invalid item.
	invalid map[int64]bool
	blocked bool
}

// newCallGuard returns a guard for one response. It uses only the size limit of the
// options.
func newCallGuard(o dialect.DecodeOptions) *callGuard { return &callGuard{limit: o.Limit()} }

// Blocked reports whether the guard changed the response.
func (g *callGuard) Blocked() bool { return g.blocked }

// Response returns a response object as incomplete if it has an invalid call. It returns
// any other body unchanged.
func (g *callGuard) Response(body []byte) []byte {
	if !hasCalls(body) {
		return body
	}
	out, changed := g.response(body)
	if !changed {
		return body
	}
	g.blocked = true
	return out
}

// Pass takes whole events of a stream and returns the bytes to send. While the stream has
// no calls, it returns its argument; otherwise the result is valid until the next call of
// Pass or Close.
func (g *callGuard) Pass(events []byte) []byte {
	if !g.active {
		if !hasCalls(events) {
			return events
		}
		g.active = true
		g.parser.Max = math.MaxInt // the caller bounds an event
		g.streamed, g.invalid = map[int64][]byte{}, map[int64]bool{}
	}
	g.out = g.out[:0]
	_ = g.parser.Feed(events, g.event) // event returns no error
	return g.out
}

// Close returns the bytes left to send after the last event.
func (g *callGuard) Close() []byte {
	if !g.active {
		return nil
	}
	g.out = g.out[:0]
	_ = g.parser.Close(g.event) // event returns no error
	return g.out
}

// hasCalls reports whether a document may have a function call: it contains the type of the
// item, or an escape that may hide it.
func hasCalls(doc []byte) bool {
	return bytes.Contains(doc, []byte("function_call")) || bytes.Contains(doc, []byte(`\u00`))
}

// event handles one event.
func (g *callGuard) event(ev sse.Event) error {
	if !ev.HasData {
		g.out = append(g.out, ev.Raw...)
		return nil
	}
	data, typ, changed := g.change(ev.Data)
	if !changed {
		g.out = append(g.out, ev.Raw...)
		return nil
	}
	g.blocked = true
	if ev.Joined {
		g.out = sse.Append(g.out, typ, data)
		return nil
	}
	at := bytes.LastIndex(ev.Raw, ev.Data)
	g.out = append(g.out, bytes.Replace(ev.Raw[:at], []byte("response.completed"), []byte(typ), 1)...)
	g.out = append(append(g.out, data...), ev.Raw[at+len(ev.Data):]...)
	return nil
}

// guarded holds the fields of an event that a guard reads, and the positions of some of
// them.
type guarded struct {
	typ            string
	index          int64
	delta          string
	arguments      string
	item, response []byte

	typeStart, typeEnd, itemStart, responseStart int64
}

// change returns the data of an event that would complete an invalid call, and the type
// of the changed event.
func (g *callGuard) change(data []byte) (out []byte, typ string, changed bool) {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return nil, "", false
	}
	var e guarded
	for key := range r.Object() {
		switch k := r.Kind(); {
		case string(key) == "type" && k == '"':
			raw := r.Raw()
			e.typeEnd = r.Offset()
			e.typeStart = e.typeEnd - int64(len(raw))
			e.typ = jsonwire.NewReader(raw).String()
		case string(key) == "output_index" && k == '0':
			e.index = r.Int()
		case string(key) == "delta" && k == '"':
			e.delta = r.String()
		case string(key) == "arguments" && k == '"':
			e.arguments = r.String()
		case string(key) == "item" && k == '{':
			e.item = r.Raw()
			e.itemStart = r.Offset() - int64(len(e.item))
		case string(key) == "response" && k == '{':
			e.response = r.Raw()
			e.responseStart = r.Offset() - int64(len(e.response))
		default:
			r.Skip()
		}
	}
	if r.End() != nil {
		return nil, "", false
	}
	switch e.typ {
	case "response.function_call_arguments.delta":
		g.add(e.index, e.delta)
	case "response.function_call_arguments.done":
		if e.arguments != "" {
			g.size -= len(g.streamed[e.index])
			g.streamed[e.index] = nil
			g.add(e.index, e.arguments)
		}
	case "response.output_item.done":
		item, bad := g.item(e.item, e.index)
		if !bad {
			return nil, "", false
		}
		g.invalid[e.index] = true
		return jsonwire.Splice(data, jsonwire.Edit{Start: e.itemStart, End: e.itemStart + int64(len(e.item)), New: item}), e.typ, true
	case "response.completed", "response.incomplete":
		response, bad := g.response(e.response)
		if !bad {
			return nil, "", false
		}
		typ = "response.incomplete"
		return jsonwire.Splice(data,
			jsonwire.Edit{Start: e.typeStart, End: e.typeEnd, New: []byte(`"` + typ + `"`)},
			jsonwire.Edit{Start: e.responseStart, End: e.responseStart + int64(len(e.response)), New: response}), typ, true
	}
	return nil, "", false
}

// add appends a fragment to the arguments of an item. Arguments beyond the limit become
// text that is not valid JSON.
func (g *callGuard) add(index int64, text string) {
	if g.size+len(text) > g.limit {
		g.size -= len(g.streamed[index])
		g.streamed[index], text = nil, "too long"
	}
	g.size += len(text)
	g.streamed[index] = append(g.streamed[index], text...)
}

// response returns a response object as incomplete if it has an invalid call.
func (g *callGuard) response(body []byte) (out []byte, invalid bool) {
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return nil, false
	}
	invalid = len(g.invalid) > 0
	var output []byte
	status := "completed"
	for key := range r.Object() {
		switch {
		case string(key) == "status" && r.Kind() == '"':
			status = r.String()
		case string(key) == "output" && r.Kind() == '[':
			var w jsonwire.Writer
			w.BeginArray()
			for i := range r.Array() {
				raw := r.Raw()
				if item, bad := g.item(raw, int64(i)); bad {
					raw, invalid = item, true
				}
				w.Raw(raw)
			}
			w.EndArray()
			output = w.Buf
		default:
			r.Skip()
		}
	}
	if r.End() != nil || !invalid {
		return nil, false
	}
	var set []fieldEdit
	if output != nil {
		set = append(set, fieldEdit{"output", output, false})
	}
	if status == "completed" {
		set = append(set, fieldEdit{"status", []byte(`"incomplete"`), true}, fieldEdit{"incomplete_details", []byte(`{"reason":"content_filter"}`), true}, fieldEdit{"completed_at", []byte("null"), false})
	}
	return withFields(body, set...), true
}

// item returns an item as incomplete if it is a function call with invalid arguments.
// An item without arguments is checked with the arguments of its deltas.
func (g *callGuard) item(raw []byte, index int64) (out []byte, invalid bool) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return nil, false
	}
	typ, status, name, arguments, whole := "", "", "", "", false
	for key := range r.Object() {
		if r.Kind() != '"' {
			whole = whole || string(key) == "arguments" && r.Kind() != 'n'
			r.Skip()
			continue
		}
		switch string(key) {
		case "type":
			typ = r.String()
		case "status":
			status = r.String()
		case "name":
			name = r.String()
		case "arguments":
			arguments = r.String()
		default:
			r.Skip()
		}
	}
	if arguments == "" && !whole {
		arguments = string(g.streamed[index])
	}
	if r.End() != nil || typ != "function_call" || name == "" || status == "incomplete" || !wirekit.InvalidArguments(arguments) {
		return nil, false
	}
	return withFields(raw, fieldEdit{"status", []byte(`"incomplete"`), true}), true
}

// fieldEdit is a field to set. If added is false, it is set only if the object has it.
type fieldEdit struct {
	name  string
	value []byte
	added bool
}

// withFields returns an object with fields set; other fields do not change.
func withFields(object []byte, set ...fieldEdit) []byte {
	found := map[string]bool{}
	var w jsonwire.Writer
	w.BeginObject()
	r := jsonwire.NewReader(object)
	for key := range r.Object() {
		name := string(key)
		value := r.Raw()
		for _, m := range set {
			if m.name == name {
				value, found[name] = m.value, true
			}
		}
		w.RawField(name, value)
	}
	for _, m := range set {
		if m.added && !found[m.name] {
			w.RawField(m.name, m.value)
		}
	}
	w.EndObject()
	return w.Buf
}
