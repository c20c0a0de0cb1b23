package anthropic

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
)

// chunk writes a native event as it is; the events up to the next chunk are
// then only noted. One chunk that is not ours ends this for good: from there on
// all is written from events, after what was shown so far.
func (e *streamEncoder) chunk(dst []byte, c *dragoman.Chunk) []byte {
	if e.done {
		return dst // nothing follows the terminal event
	}
	if e.Rebuild || c.Dialect != name || len(c.Raw) == 0 {
		e.untold.Lose(c.Loss, e.rep)
		e.LeaveNative()
		return dst
	}
	e.Native, e.Last = true, nil
	raw := c.Raw
	e.events(c.Raw, func(ev sse.Event) { raw = e.see(raw, bytes.TrimSpace(ev.Data), ev.Name) })
	return append(dst, raw...)
}

// events calls see for the events of a chunk.
func (e *streamEncoder) events(raw []byte, see func(sse.Event)) {
	emit := func(ev sse.Event) error {
		see(ev)
		return nil
	}
	_ = e.sse.Feed(raw, emit)
	_ = e.sse.Close(emit) // the last event of a stream may lack its blank line
}

// see takes from a native event what no canonical one tells in time: the block
// it opens or closes, what it adds to one, the end. It returns what to write:
// raw, but for the model.
func (e *streamEncoder) see(raw, data, event []byte) []byte {
	if len(data) == 0 || string(data) == "[DONE]" {
		return raw
	}
	ev := &e.event
	if ev.read(data, event) != nil {
		return raw // the decoder will say so
	}
	index := ev.index
	switch typ := string(ev.typ); {
	case ev.failure, typ == "message_stop":
		e.done = true
	case typ == "message_start":
		e.started = true
		if e.o.Model != "" {
			return withModel(raw, data, e.o.Model)
		}
	case typ == "content_block_start" && (ev.opening != nil || ev.noBlock):
		e.Last = &blockwire.Out{Index: index}
		e.Show(e.Last)
	case typ == "content_block_delta":
		p := e.Shown(index)
		if p == nil { // the decoder starts a part where the delta tells enough
			e.Last = &blockwire.Out{Index: index}
			break
		}
		if p.Skeleton == nil { // so it does where the block started with nothing
			e.Last = p
		}
		switch string(ev.kind) {
		case "signature_delta":
			if p.Signed.Len() == 0 {
				p.Signed.Add(ev.delta.text)
			}
		case "citations_delta":
			p.Cited++
		case "input_json_delta":
			if !p.Grows() {
				p.Sent.Add(ev.delta.text)
			}
		}
	case typ == "content_block_stop":
		e.Hide(index)
	case typ == "message_delta":
		e.ending = true
	}
	return raw
}

// note keeps the state in step with an event that a chunk has written. It is
// false for an end that no chunk told: that one is left to write.
func (e *streamEncoder) note(ev dragoman.Event) bool {
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		e.started, e.first = true, ev.Response
	case *dragoman.ResponseEnd, *dragoman.StreamError:
		return false
	default:
		e.Note(ev)
	}
	return true
}

// withModel returns a native message_start that names another model; all other
// bytes stay as they are.
func withModel(raw, data []byte, model string) []byte {
	changed, err := jsonwire.ReplaceString(data, model, []string{"message", "model"})
	if err != nil {
		return raw
	}
	if at := bytes.Index(raw, data); at >= 0 {
		return slices.Concat(raw[:at], changed, raw[at+len(data):])
	}
	// JSON over several data lines is written anew in one.
	return sse.Append(nil, "message_start", oneLine(changed))
}
