package provider

import (
	"bytes"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
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
	if head < 0 || !areInstructions(all[:head]) {
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
		if delta := o.Get(place); delta != nil {
			x.deltas = append(x.deltas, bytes.Clone(delta))
		}
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
				bare.Extra = nil // the deltas have the unknown fields in full
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
