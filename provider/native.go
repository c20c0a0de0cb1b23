package provider

import (
	"bytes"
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// nativePlaces are where a dialect has the messages of a request, and those of a
// whole answer; an empty place is the whole body. A list has one element for each.
var nativePlaces = map[dragoman.Dialect]struct{ request, answer string }{
	dragoman.OpenAIChat:      {"messages", "/choices/0/message"},
	dragoman.OpenAIResponses: {"input", "output"},
	dragoman.Anthropic:       {"messages", ""},
	dragoman.Gemini:          {"contents", "/candidates/0/content"},
	dragoman.Ollama:          {"messages", "message"},
	dragoman.Bedrock:         {"messages", "/output/message"},
}

// toNative lets extensions map the messages of a request into its body.
func (x *exchange) toNative(messages []dragoman.Message, body []byte) ([]byte, error) {
	if !x.extended.Maps() {
		return body, nil
	}
	payload, err := extension.NewObject(body)
	if err != nil {
		return nil, err
	}
	place := nativePlaces[x.limits.Dialect].request
	all := elements(payload.Get(place))
	if !x.limits.GroupedResults {
		messages = oneResultEach(messages)
	}
	// What the wire has before the conversation are the instructions.
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
	if err := payload.Set(place, list(all)); err != nil {
		return nil, err
	}
	return payload.JSON(), nil
}

// fromNative lets extensions map the native form of an answer into its messages.
func (x *exchange) fromNative(resp *dragoman.Response, native []json.RawMessage) error {
	if !x.extended.Maps() || len(native) != len(resp.Output) {
		return nil
	}
	mapped, err := x.extended.FromNative(native, resp.Output)
	if err == nil {
		resp.Output = mapped
	}
	return err
}

// nativeOf is the native form of the messages of a whole answer.
func (x *exchange) nativeOf(body []byte) []json.RawMessage {
	if !x.extended.Maps() {
		return nil
	}
	o, err := extension.NewObject(body)
	if err != nil {
		return nil
	}
	return elements(o.Get(nativePlaces[x.limits.Dialect].answer))
}

// gathered is the native form of the message of a stream: what was gathered of it.
func (x *exchange) gathered() []json.RawMessage {
	if !x.extended.Maps() {
		return nil
	}
	if m := x.extended.Partial().Get("/message"); m != nil {
		return []json.RawMessage{m}
	}
	return []json.RawMessage{json.RawMessage("{}")}
}

// elements are those of a list; any other value is a list of one.
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

// list writes elements as they are.
func list(all []json.RawMessage) json.RawMessage {
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

// oneResultEach are messages of which none has more than one result of a tool.
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
