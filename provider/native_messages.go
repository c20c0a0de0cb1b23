package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// toNative lets extensions map the messages of a request into its body.
func (x *exchange) toNative(messages []dragoman.Message, body []byte) ([]byte, error) {
	if !x.extended.WritesNative() {
		return body, nil
	}
	payload, err := extension.NewObject(body)
	if err != nil {
		return nil, err
	}
	place := x.wire.Body.Messages
	all := elements(payload.Get(place))
	if !x.limits.GroupedResults {
		messages = oneResultEach(messages)
	}
	// The wire has the instructions before the conversation.
	head := len(all) - len(messages)
	if head < 0 || !areInstructions(all[:head]) || !x.linedUp(messages, all[head:]) {
		return body, nil
	}
	mapped, err := x.extended.ToNative(messages, all[head:])
	if err != nil {
		return nil, err
	}
	for i := range mapped {
		all[head+i] = mapped[i]
	}
	if err := payload.Set(place, writeList(all)); err != nil {
		return nil, err
	}
	return payload.JSON(), nil
}

// linedUp reports whether each native message is the encoded form of the message at the same
// index. Equal counts do not suffice: a dialect may join two messages and add another one,
// such as the images of a result.
func (x *exchange) linedUp(messages []dragoman.Message, native []json.RawMessage) bool {
	for i := range native {
		back, err := x.decodedMessage(native[i])
		if err != nil || !isEncodedFrom(back, &messages[i]) {
			return false
		}
	}
	return true
}

// decodedMessage decodes one native message. Instructions are a system message.
func (x *exchange) decodedMessage(native json.RawMessage) (*dragoman.Message, error) {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("model", x.model)
	w.Key(x.wire.Body.Messages)
	w.Raw(writeList([]json.RawMessage{native}))
	w.EndObject()
	if err := w.Err(); err != nil {
		return nil, err
	}
	req, _, err := x.codec.DecodeRequest(w.Buf, dialect.DecodeOptions{})
	switch {
	case err != nil:
		return nil, err
	case len(req.Messages) == 0 && len(req.Instructions) > 0:
		return &dragoman.Message{Role: dragoman.RoleSystem, Parts: req.Instructions}, nil
	case len(req.Messages) != 1:
		return nil, errNotOneMessage
	}
	return &req.Messages[0], nil
}

var errNotOneMessage = errors.New("provider: a native message is not one message")

// isEncodedFrom reports whether a message that was decoded from the wire has the role, the
// calls, the results and the texts of another. Some dialects write instructions within the
// conversation as text of the user, and thinking as text.
func isEncodedFrom(decoded, m *dragoman.Message) bool {
	if has, want := instructionRole(decoded.Role), instructionRole(m.Role); has != want &&
		(want != dragoman.RoleSystem || has != dragoman.RoleUser) {
		return false
	}
	text, empty, calls, results := decoded.Text(), true, 0, 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Text:
			if !strings.Contains(text, strings.TrimSpace(p.Text)) {
				return false
			}
			empty = empty && p.Text == ""
		case *dragoman.ToolCall:
			calls++
		case *dragoman.ToolResult:
			results++
		case *dragoman.Reasoning:
			empty = empty && (p.Text == "" || !strings.Contains(text, p.Text))
		default:
			empty = false
		}
	}
	if empty && calls+results == 0 && text != "" {
		return false // the text is that of another message
	}
	for _, p := range decoded.Parts {
		switch p.(type) {
		case *dragoman.ToolCall:
			calls--
		case *dragoman.ToolResult:
			results--
		}
	}
	return calls == 0 && results == 0
}

// instructionRole returns the role, with one role for all instructions.
func instructionRole(r dragoman.Role) dragoman.Role {
	if r == dragoman.RoleDeveloper {
		return dragoman.RoleSystem
	}
	return r
}

// fromNative lets extensions map the native form of a response into its messages.
func (x *exchange) fromNative(resp *dragoman.Response, native []json.RawMessage) error {
	if !x.extended.ReadsNative() || len(native) != len(resp.Output) {
		return nil
	}
	mapped, err := x.extended.FromNative(native, resp.Output)
	if err == nil {
		resp.Output = mapped
	}
	return err
}

// nativeMessages returns the native form of the messages of a complete response.
func (x *exchange) nativeMessages(body []byte) []json.RawMessage {
	if !x.extended.ReadsNative() {
		return nil
	}
	o, err := extension.NewObject(body)
	if err != nil {
		return nil
	}
	place := x.wire.Body.Response
	if place == "" {
		return []json.RawMessage{o.JSON()}
	}
	return elements(o.Get(place))
}

// collectDelta stores the part of the message in a chunk.
func (x *exchange) collectDelta(chunk json.RawMessage) {
	if !x.extended.ReadsNative() {
		return
	}
	o, err := extension.NewObject(chunk)
	if err != nil {
		return
	}
	for _, place := range x.wire.Body.Chunk {
		delta := bytes.Clone(o.Get(place))
		if delta == nil {
			continue
		}
		if len(x.wire.Body.ChunkReads) > 0 {
			if delta = withoutFields(delta, x.wire.Body.ChunkReads); delta == nil {
				continue
			}
		}
		x.deltas = append(x.deltas, delta)
	}
}

// streamedNative assembles the native messages of a stream: each as its dialect encodes it, the
// last one with the fields that only the chunks had, and with what extensions collected below
// "/message".
func (x *exchange) streamedNative(resp *dragoman.Response) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(resp.Output))
	for i := range resp.Output {
		m := &resp.Output[i]
		switch {
		case m.Native != nil && m.Native.Dialect == x.limits.Dialect:
			out[i] = m.Native.Raw
		case len(m.Parts) == 0:
			out[i] = json.RawMessage("{}")
		default:
			bare := *m
			if i == len(out)-1 && len(x.deltas) > 0 {
				bare.Extra = x.extraWithoutDeltas(bare.Extra) // the deltas have the unknown fields in full
			}
			enc, err := x.codec.EncodeRequest(&dragoman.Request{Model: x.model, Messages: []dragoman.Message{bare}}, dialect.EncodeOptions{Target: x.target, Registry: x.registry})
			if err != nil {
				return nil, err
			}
			body, err := extension.NewObject(enc.Body)
			if err != nil {
				return nil, err
			}
			all := elements(body.Get(x.wire.Body.Messages))
			if len(all) != 1 { // not a single native message: they cannot be matched
				return nil, nil
			}
			out[i] = all[0]
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	last, err := extension.NewObject(out[len(out)-1])
	if err != nil {
		return nil, err
	}
	unknown, err := joinDeltas(x.deltas, func(name string) bool { return last.Get(fieldPointer(name)) != nil })
	if err != nil {
		return nil, err
	}
	for _, m := range unknown {
		if err := last.Set(fieldPointer(m.name), m.value); err != nil {
			return nil, err
		}
	}
	if gathered := x.extended.Partial().Get(collectedMessage); gathered != nil {
		if err := last.Merge(gathered); err != nil {
			return nil, err
		}
	}
	out[len(out)-1] = last.JSON()
	return out, nil
}

// withoutFields returns an object without some fields, or nil if it is not an object or if none
// of its fields is left.
func withoutFields(raw json.RawMessage, names []string) json.RawMessage {
	o, err := extension.NewObject(raw)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if o.Delete(name) != nil {
			return nil
		}
	}
	if out := o.JSON(); string(out) != "{}" {
		return out
	}
	return nil
}

// extraWithoutDeltas returns the unknown fields of a message that no delta has.
func (x *exchange) extraWithoutDeltas(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	out := *e
	out.Fields = slices.DeleteFunc(slices.Clone(e.Fields), func(f dragoman.Field) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "/"), "/")
		return slices.ContainsFunc(x.deltas, func(delta json.RawMessage) bool {
			o, err := extension.NewObject(delta)
			return err == nil && o.Get("/"+name) != nil
		})
	})
	return &out
}

// elements returns the elements of a list; any other value is a list of one.
func elements(raw json.RawMessage) []json.RawMessage {
	if raw == nil {
		return nil
	}
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) == 0 || t[0] != '[' {
		return []json.RawMessage{raw}
	}
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// writeList returns a JSON list of the elements, unchanged.
func writeList(all []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, e := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// areInstructions reports whether all of some native messages are instructions.
func areInstructions(native []json.RawMessage) bool {
	for _, raw := range native {
		var m struct{ Role dragoman.Role }
		if json.Unmarshal(raw, &m) != nil || m.Role != dragoman.RoleSystem && m.Role != dragoman.RoleDeveloper {
			return false
		}
	}
	return true
}

// oneResultEach splits messages so that none has more than one tool result.
func oneResultEach(messages []dragoman.Message) []dragoman.Message {
	var out []dragoman.Message
	for i := range messages {
		m := &messages[i]
		if m.Role != dragoman.RoleTool || len(m.Parts) < 2 {
			out = append(out, *m)
			continue
		}
		for _, p := range m.Parts {
			one := *m
			one.Parts = []dragoman.Part{p}
			out = append(out, one)
		}
	}
	return out
}
