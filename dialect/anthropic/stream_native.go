package anthropic

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
)

// nativeRun knows which events a native chunk has already written. Events
// beyond those are written from their canonical form: whoever changes an event
// removes the chunk before it, and the one before that must not hide it.
type nativeRun struct {
	starts, deltas, ends int
	response, finish     bool
	// mixed says that blocks were written from events, so that the indexes of
	// chunks can no longer be trusted unseen.
	mixed bool
}

const plenty = 1 << 30

// covers takes an event off what the last chunk has written.
func (n *nativeRun) covers(ev dragoman.Event) bool {
	take := func(left *int) bool {
		if *left > 0 {
			*left--
			return true
		}
		return false
	}
	switch ev.(type) {
	case *dragoman.ResponseStart:
		return n.response
	case *dragoman.PartStart:
		return take(&n.starts)
	case *dragoman.PartDelta:
		return take(&n.deltas)
	case *dragoman.PartEnd:
		return take(&n.ends)
	case *dragoman.ResponseEnd, *dragoman.StreamError:
		return n.finish
	default:
		return false
	}
}

// chunk writes a native event as it is, and settles which canonical events it
// stands for.
func (e *streamEncoder) chunk(dst []byte, c *dragoman.Chunk) ([]byte, error) {
	e.native = nativeRun{mixed: e.native.mixed}
	if c.Dialect != name || len(c.Raw) == 0 {
		return dst, nil
	}
	typ, data := chunkType(c.Raw)
	if e.native.mixed && (e.done || !e.fits(string(typ), data)) {
		return dst, nil
	}
	if bytes.Contains(data, []byte(`"error"`)) && tellsError(data) {
		typ = []byte("error") // whatever the event is called
	}
	n := &e.native
	regular := e.started && len(e.queue) <= 1
	n.response = len(data) > 0 && !e.started
	switch string(typ) {
	case "message_start":
		e.started = true
		if !bytes.Contains(data, []byte(`"content":[]`)) {
			n.all()
		}
		if e.o.Model != "" {
			return append(dst, e.withModel(c.Raw, data)...), nil
		}
	case "content_block_start":
		if !regular || len(e.queue) > 0 {
			n.all()
			break
		}
		n.starts = 1
		if !bytes.Contains(data, []byte(`"text":""`)) && !bytes.Contains(data, []byte(`"thinking":""`)) {
			n.deltas = 1
		}
	case "content_block_delta":
		if !regular || len(e.queue) == 0 {
			n.all()
			break
		}
		n.starts = 1 // of a block that nothing started
		if !silent(data) {
			n.deltas = 1
		}
		e.queue[0].noted = true
	case "content_block_stop":
		if !regular || len(e.queue) == 0 {
			n.all()
			break
		}
		n.deltas, n.ends = 1, 1
		e.queue[0].noted = true
		e.queue = e.queue[1:]
	case "message_delta":
		e.ending = true
	case "message_stop", "error":
		n.all()
		n.finish, e.done = true, true
	}
	return append(dst, c.Raw...), nil
}

// all makes the run cover every part event up to the next chunk: the stream is
// not one whose chunks we can count by.
func (n *nativeRun) all() { n.starts, n.deltas, n.ends = plenty, plenty, plenty }

// tellsError reports whether an event has an error to tell, as the decoder
// sees it.
func tellsError(data []byte) bool {
	r := jsonwire.NewReader(data)
	found := false
	for key := range r.Object() {
		if string(key) == "error" {
			found = r.Kind() != 'n'
		}
		r.Skip()
	}
	return found && r.Err() == nil
}

// silent reports whether a delta shows nothing, in the spelling of the API.
func silent(data []byte) bool {
	for _, s := range []string{
		`"delta":{"type":"signature_delta"`, `"delta":{"type":"citations_delta"`,
		`"delta":{"type":"input_json_delta","partial_json":""}`, `"delta":{"type":"text_delta","text":""}`,
	} {
		if bytes.Contains(data, []byte(s)) {
			return true
		}
	}
	return false
}

// fits reports whether a chunk may follow what was written from events: its
// index must be the one our own count has reached.
func (e *streamEncoder) fits(typ string, data []byte) bool {
	var index int64
	r := jsonwire.NewReader(data)
	for key := range r.Object() {
		if string(key) == "index" {
			index = r.Int()
		} else {
			r.Skip()
		}
	}
	switch typ {
	case "content_block_start":
		return len(e.queue) == 0 && index == int64(e.next)
	case "content_block_delta", "content_block_stop":
		return len(e.queue) == 1 && e.queue[0].block == int(index) && len(e.queue[0].waiting) == 0
	case "message_delta", "message_stop":
		return len(e.queue) == 0 && e.next > 0 && (typ == "message_delta" || e.ending)
	case "message_start":
		return !e.started
	default:
		return true
	}
}

// note keeps the state in step with an event that a chunk has written.
func (e *streamEncoder) note(ev dragoman.Event) {
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		e.first, e.started = ev.Response, true
	case *dragoman.PartStart:
		if ev.Part == nil {
			return
		}
		if p := e.track(ev); p != nil {
			p.block, p.noted = e.next, true
			e.next++
		}
		if k := ev.Part.Kind(); k != dragoman.KindText && k != dragoman.KindReasoning && e.native.deltas == 1 && e.native.ends == 0 {
			e.native.deltas = 0 // only these show what their start brings
		}
	case *dragoman.PartEnd:
		if p := e.parts[ev.Index]; ev.Choice == 0 && p != nil {
			p.final = ev.Part
			e.queue = slices.DeleteFunc(e.queue, func(q *outPart) bool { return q == p })
		}
	}
}

// chunkType finds the type of a native event and its JSON.
func chunkType(raw []byte) (typ, data []byte) {
	// As the API spells it, which is nearly always.
	if rest, ok := bytes.CutPrefix(raw, []byte("event: ")); ok && bytes.HasSuffix(raw, []byte("\n\n")) {
		name, line, _ := bytes.Cut(rest[:len(rest)-2], []byte{'\n'})
		json, ok := bytes.CutPrefix(line, []byte("data: "))
		if ok && !bytes.ContainsAny(line, "\r\n") && bytes.HasPrefix(json, []byte(`{"type":"`)) && bytes.HasPrefix(json[9:], name) &&
			bytes.HasPrefix(json[9+len(name):], []byte{'"'}) {
			return name, json
		}
	}
	var p sse.Parser
	read := func(ev sse.Event) error {
		typ, data = bytes.Clone(ev.Name), bytes.TrimSpace(bytes.Clone(ev.Data))
		if t := frameType(data); t != nil {
			typ = t
		}
		return nil
	}
	_ = p.Feed(raw, read)
	_ = p.Close(read)
	if string(data) == "[DONE]" {
		return nil, nil
	}
	return typ, data
}

// frameType reads the type of an event as the decoder does: the first counts.
func frameType(data []byte) (typ []byte) {
	r := jsonwire.NewReader(data)
	if len(data) == 0 || r.Kind() != '{' {
		return nil
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' && typ == nil {
			typ = r.AppendString([]byte{})
		} else {
			r.Skip()
		}
	}
	return typ
}

// withModel returns a native message_start that names another model; all other
// bytes stay as they are.
func (e *streamEncoder) withModel(raw, data []byte) []byte {
	path := []string{"message", "model"}
	changed, err := jsonwire.ReplaceString(data, e.o.Model, path)
	if err != nil {
		return raw
	}
	if at := bytes.Index(raw, data); at >= 0 {
		out := make([]byte, 0, len(raw)+len(changed)-len(data))
		return append(append(append(out, raw[:at]...), changed...), raw[at+len(data):]...)
	}
	// JSON over several data lines is written anew in one.
	return sse.Append(nil, "message_start", oneLine(changed))
}
