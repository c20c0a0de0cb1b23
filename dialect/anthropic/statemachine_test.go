package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// checkWire reads a stream as the strictest clients do (quirk C20). It knows
// nothing of the encoder: it is a state machine written from the wire
// reference. The end is either message_stop or error.
func checkWire(stream []byte) error {
	type block struct {
		typ    string
		deltas map[string]int
	}
	var (
		started, ended, deltaSeen, failed bool
		open                              *block
		next                              int
		blocks                            int
	)
	if len(stream) > 0 && !strings.HasSuffix(string(stream), "\n\n") {
		return fmt.Errorf("the stream does not end with a blank line")
	}
	for n, ev := range strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if ev == "" {
			continue
		}
		lines := strings.Split(ev, "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "event: ") || !strings.HasPrefix(lines[1], "data: ") {
			return fmt.Errorf("event %d is not one name and one data line: %q", n, ev)
		}
		name, data := lines[0][7:], lines[1][6:]
		var v event
		if err := v.read([]byte(data)); err != nil {
			return fmt.Errorf("event %d: %v", n, err)
		}
		if v.Type != name {
			return fmt.Errorf("event %d: name %q, type %q", n, name, v.Type)
		}
		if ended || failed {
			return fmt.Errorf("event %d: %s after the end", n, name)
		}
		if !started && name != "message_start" && name != "error" && name != "ping" {
			return fmt.Errorf("event %d: %s before message_start", n, name)
		}
		if deltaSeen && name != "message_stop" && name != "error" && name != "message_delta" {
			return fmt.Errorf("event %d: %s after message_delta", n, name)
		}
		switch name {
		case "ping":
		case "message_start":
			if started {
				return fmt.Errorf("event %d: a second message_start", n)
			}
			m := v.Message
			id, _ := m["id"].(string)
			_, named := m["model"].(string)
			content, list := m["content"].([]any)
			if id == "" || m["type"] != "message" || m["role"] != "assistant" || !named || !list || len(content) != 0 || m["stop_reason"] != nil {
				return fmt.Errorf("event %d: bad message_start: %s", n, data)
			}
			usage, _ := m["usage"].(map[string]any)
			for _, k := range []string{"input_tokens", "output_tokens"} {
				if _, ok := usage[k].(json.Number); !ok {
					return fmt.Errorf("event %d: message_start without usage.%s", n, k)
				}
			}
			started = true
		case "content_block_start":
			if open != nil {
				return fmt.Errorf("event %d: block starts inside another", n)
			}
			if v.Index == nil || *v.Index != next {
				return fmt.Errorf("event %d: index is not %d: %s", n, next, data)
			}
			typ, _ := v.ContentBlock["type"].(string)
			empty := map[string]string{"text": "text", "thinking": "thinking"}[typ]
			if s, ok := v.ContentBlock[empty].(string); empty != "" && (!ok || s != "") {
				return fmt.Errorf("event %d: %s block without its empty field: %s", n, typ, data)
			}
			if typ == "tool_use" {
				in, ok := v.ContentBlock["input"].(map[string]any)
				id, _ := v.ContentBlock["id"].(string)
				if !ok || len(in) != 0 || id == "" {
					return fmt.Errorf("event %d: bad tool_use start: %s", n, data)
				}
			}
			if typ == "" {
				return fmt.Errorf("event %d: block without a type", n)
			}
			open = &block{typ: typ, deltas: map[string]int{}}
			blocks++
		case "content_block_delta":
			if open == nil || v.Index == nil || *v.Index != next {
				return fmt.Errorf("event %d: delta of a block that is not open: %s", n, data)
			}
			var d map[string]any
			if err := unmarshal(v.Delta, &d); err != nil {
				return fmt.Errorf("event %d: %v", n, err)
			}
			kind, _ := d["type"].(string)
			allowed := map[string][]string{
				"text": {"text_delta", "citations_delta"}, "thinking": {"thinking_delta", "signature_delta"},
				"tool_use": {"input_json_delta"}, "server_tool_use": {"input_json_delta"}, "mcp_tool_use": {"input_json_delta"},
			}[open.typ]
			if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+kind+" ") {
				return fmt.Errorf("event %d: %s in a %s block", n, kind, open.typ)
			}
			if open.deltas["signature_delta"] > 0 {
				return fmt.Errorf("event %d: %s after the signature", n, kind)
			}
			open.deltas[kind]++
			for k, val := range d {
				if val == "" {
					return fmt.Errorf("event %d: empty %s", n, k)
				}
			}
		case "content_block_stop":
			if open == nil || v.Index == nil || *v.Index != next {
				return fmt.Errorf("event %d: stop of a block that is not open: %s", n, data)
			}
			open = nil
			next++
		case "message_delta":
			var d map[string]any
			if err := unmarshal(v.Delta, &d); err != nil {
				return fmt.Errorf("event %d: %v", n, err)
			}
			if s, _ := d["stop_reason"].(string); s == "" {
				return fmt.Errorf("event %d: message_delta without a stop reason", n)
			}
			if _, ok := v.Usage["output_tokens"].(json.Number); !ok {
				return fmt.Errorf("event %d: message_delta without output tokens", n)
			}
			if open != nil {
				return fmt.Errorf("event %d: message_delta while a block is open", n)
			}
			deltaSeen = true
		case "message_stop":
			if !deltaSeen {
				return fmt.Errorf("event %d: message_stop without message_delta", n)
			}
			if blocks == 0 {
				return fmt.Errorf("event %d: a message without blocks", n)
			}
			ended = true
		case "error":
			if v.Error == nil || v.Error.Type == "" || v.Error.Message == "" {
				return fmt.Errorf("event %d: bad error: %s", n, data)
			}
			failed = true
		default:
			return fmt.Errorf("event %d: unknown event %q", n, name)
		}
	}
	if !ended && !failed {
		return fmt.Errorf("the stream has no end")
	}
	return nil
}

// event is the JSON of one event. Names count by their case, which
// encoding/json would not heed.
type event struct {
	Type                         string
	Index                        *int
	Message, ContentBlock, Usage map[string]any
	Delta                        json.RawMessage
	Error                        *struct{ Type, Message string }
}

func (v *event) read(data []byte) error {
	var members map[string]json.RawMessage
	if err := unmarshal(data, &members); err != nil {
		return err
	}
	v.Delta = members["delta"]
	for name, into := range map[string]any{
		"type": &v.Type, "index": &v.Index, "message": &v.Message, "content_block": &v.ContentBlock, "usage": &v.Usage, "error": &v.Error,
	} {
		if raw, ok := members[name]; ok {
			if err := unmarshal(raw, into); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// unmarshal keeps numbers as text: what a server sends need not fit a float.
func unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
