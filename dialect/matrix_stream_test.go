package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// streamOf writes a whole response as its dialect's own server would stream
// it. It is written from the wire references and shares no code with the
// encoders.
func streamOf(t *testing.T, d dragoman.Dialect, resp []byte) []byte {
	t.Helper()
	switch d {
	case dragoman.OpenAIChat:
		return chatStreamOf(t, resp)
	case dragoman.OpenAIResponses:
		return responsesStreamOf(t, resp)
	case dragoman.Anthropic:
		return anthropicStreamOf(t, resp)
	case dragoman.Gemini:
		return geminiStreamOf(t, resp)
	case dragoman.Ollama:
		return ollamaStreamOf(t, resp)
	case "cohere.chat":
		return cohereStreamOf(t, resp)
	case dragoman.Bedrock:
		return bedrockStreamOf(t, resp)
	default:
		t.Fatalf("no stream writer for %s", d)
		return nil
	}
}

func parse(t *testing.T, raw []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

func js(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return string(bytes.TrimSpace(b.Bytes()))
}

// halves cuts a text in two, so that every delta is a fragment.
func halves(s string) []string {
	if len(s) < 2 {
		return []string{s}
	}
	r := []rune(s)
	return []string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

func chatStreamOf(t *testing.T, resp []byte) []byte {
	var r struct {
		ID      string
		Created int64
		Model   string
		Usage   json.RawMessage
		Choices []struct {
			Message struct {
				Content          *string
				Refusal          *string
				ReasoningContent string                       `json:"reasoning_content"`
				ToolCalls        []map[string]json.RawMessage `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	parse(t, resp, &r)
	var b bytes.Buffer
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":%s,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", js(r.ID), r.Created, js(r.Model), delta, finish)
	}
	m := r.Choices[0].Message
	chunk(`{"role":"assistant","content":""}`, "null")
	for _, h := range halves(m.ReasoningContent) {
		if h != "" {
			chunk(`{"reasoning_content":`+js(h)+`}`, "null")
		}
	}
	if m.Content != nil {
		for _, h := range halves(*m.Content) {
			chunk(`{"content":`+js(h)+`}`, "null")
		}
	}
	if m.Refusal != nil {
		for _, h := range halves(*m.Refusal) {
			chunk(`{"refusal":`+js(h)+`}`, "null")
		}
	}
	for i, c := range m.ToolCalls {
		kind, payload := "function", "arguments"
		if string(c["type"]) == `"custom"` {
			kind, payload = "custom", "input"
		}
		var f map[string]string
		parse(t, c[kind], &f)
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"%s","%s":{"name":%s,"%s":""}}]}`, i, c["id"], kind, kind, js(f["name"]), payload), "null")
		for _, h := range halves(f[payload]) {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"%s":{"%s":%s}}]}`, i, kind, payload, js(h)), "null")
		}
	}
	chunk(`{}`, js(r.Choices[0].FinishReason))
	fmt.Fprintf(&b, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":%s,\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", js(r.ID), r.Created, js(r.Model), r.Usage)
	return b.Bytes()
}

func anthropicStreamOf(t *testing.T, resp []byte) []byte {
	var r map[string]json.RawMessage
	parse(t, resp, &r)
	var blocks []map[string]json.RawMessage
	parse(t, r["content"], &blocks)
	var b bytes.Buffer
	event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":30,"output_tokens":1}}}`, r["id"], r["model"]))
	event("ping", `{"type":"ping"}`)
	for i, block := range blocks {
		var typ string
		parse(t, block["type"], &typ)
		start := map[string]json.RawMessage{}
		for k, v := range block {
			start[k] = v
		}
		var deltas []string
		text := func(member, delta string) {
			var s string
			parse(t, block[member], &s)
			start[member] = json.RawMessage(`""`)
			for _, h := range halves(s) {
				deltas = append(deltas, fmt.Sprintf(`{"type":"%s","%s":%s}`, delta, member, js(h)))
			}
		}
		switch typ {
		case "text":
			text("text", "text_delta")
		case "thinking":
			text("thinking", "thinking_delta")
			deltas = append(deltas, fmt.Sprintf(`{"type":"signature_delta","signature":%s}`, block["signature"]))
			start["signature"] = json.RawMessage(`""`)
		case "tool_use", "server_tool_use":
			start["input"] = json.RawMessage(`{}`)
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":""}`)
			if string(block["input"]) != "{}" {
				for _, h := range halves(string(block["input"])) {
					deltas = append(deltas, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, js(h)))
				}
			}
		}
		event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, js(start)))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
		}
		event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	details := ""
	if d, ok := r["stop_details"]; ok {
		details = `,"stop_details":` + string(d)
	}
	event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null%s},"usage":{"output_tokens":12}}`, r["stop_reason"], details))
	event("message_stop", `{"type":"message_stop"}`)
	return b.Bytes()
}

func responsesStreamOf(t *testing.T, resp []byte) []byte {
	var r map[string]json.RawMessage
	parse(t, resp, &r)
	var items []map[string]json.RawMessage
	parse(t, r["output"], &items)
	var b bytes.Buffer
	seq := 0
	event := func(typ, rest string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}\n\n", typ, typ, seq, rest)
		seq++
	}
	snapshot := func(status string) string {
		s := map[string]json.RawMessage{}
		for k, v := range r {
			s[k] = v
		}
		s["status"], s["output"], s["usage"] = json.RawMessage(status), json.RawMessage("[]"), json.RawMessage("null")
		return `"response":` + js(s)
	}
	event("response.created", snapshot(`"in_progress"`))
	event("response.in_progress", snapshot(`"in_progress"`))
	for i, item := range items {
		var typ string
		parse(t, item["type"], &typ)
		at := fmt.Sprintf(`"item_id":%s,"output_index":%d`, item["id"], i)
		added := map[string]json.RawMessage{}
		for k, v := range item {
			added[k] = v
		}
		if _, ok := added["status"]; ok {
			added["status"] = json.RawMessage(`"in_progress"`)
		}
		add := func() { event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, js(added))) }
		switch typ {
		case "message":
			added["content"] = json.RawMessage("[]")
			add()
			var parts []map[string]json.RawMessage
			parse(t, item["content"], &parts)
			for j, p := range parts {
				at := at + fmt.Sprintf(`,"content_index":%d`, j)
				member, name := "text", "output_text"
				if string(p["type"]) == `"refusal"` {
					member, name = "refusal", "refusal"
				}
				empty := map[string]json.RawMessage{}
				for k, v := range p {
					empty[k] = v
				}
				empty[member] = json.RawMessage(`""`)
				var s string
				parse(t, p[member], &s)
				event("response.content_part.added", at+`,"part":`+js(empty))
				for _, h := range halves(s) {
					event("response."+name+".delta", at+`,"delta":`+js(h))
				}
				event("response."+name+".done", at+fmt.Sprintf(`,"%s":%s`, member, js(s)))
				event("response.content_part.done", at+`,"part":`+js(p))
			}
		case "function_call", "custom_tool_call":
			member, name := "arguments", "function_call_arguments"
			if typ == "custom_tool_call" {
				member, name = "input", "custom_tool_call_input"
			}
			added[member] = json.RawMessage(`""`)
			add()
			var s string
			parse(t, item[member], &s)
			for _, h := range halves(s) {
				event("response."+name+".delta", at+`,"delta":`+js(h))
			}
			event("response."+name+".done", at+fmt.Sprintf(`,"%s":%s`, member, js(s)))
		case "reasoning":
			added["summary"] = json.RawMessage("[]")
			added["encrypted_content"] = json.RawMessage(`"partial"`)
			add()
			var parts []map[string]string
			parse(t, item["summary"], &parts)
			for j, p := range parts {
				at := at + fmt.Sprintf(`,"summary_index":%d`, j)
				event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
				for _, h := range halves(p["text"]) {
					event("response.reasoning_summary_text.delta", at+`,"delta":`+js(h))
				}
				event("response.reasoning_summary_text.done", at+`,"text":`+js(p["text"]))
				event("response.reasoning_summary_part.done", at+`,"part":`+js(p))
			}
		default:
			add()
		}
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, js(item)))
	}
	event("response.completed", `"response":`+string(resp))
	return b.Bytes()
}

// ollamaStreamOf writes lines: thinking and text in fragments, each call whole.
func ollamaStreamOf(t *testing.T, resp []byte) []byte {
	var r map[string]any
	dec := json.NewDecoder(bytes.NewReader(resp))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, resp)
	}
	var b bytes.Buffer
	line := func(message map[string]any) {
		message["role"] = "assistant"
		fmt.Fprintln(&b, js(map[string]any{"model": r["model"], "created_at": r["created_at"], "message": message, "done": false}))
	}
	message := r["message"].(map[string]any)
	thinking, _ := message["thinking"].(string)
	for _, piece := range halves(thinking) {
		line(map[string]any{"content": "", "thinking": piece})
	}
	content, _ := message["content"].(string)
	for _, piece := range halves(content) {
		line(map[string]any{"content": piece})
	}
	calls, _ := message["tool_calls"].([]any)
	for _, c := range calls {
		line(map[string]any{"content": "", "tool_calls": []any{c}})
	}
	r["message"] = map[string]any{"role": "assistant", "content": ""}
	fmt.Fprintln(&b, js(r))
	return b.Bytes()
}

// cohereStreamOf writes a whole response of Cohere as a stream.
func cohereStreamOf(t *testing.T, resp []byte) []byte {
	var r struct {
		ID      string
		Message struct {
			Plan    string `json:"tool_plan"`
			Content []map[string]string
			Calls   []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish string          `json:"finish_reason"`
		Usage  json.RawMessage `json:"usage"`
	}
	parse(t, resp, &r)
	var b bytes.Buffer
	event := func(typ string, members map[string]any) {
		members["type"] = typ
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", typ, js(members))
	}
	says := func(key string, value any) map[string]any {
		return map[string]any{"message": map[string]any{key: value}}
	}
	event("message-start", map[string]any{"id": r.ID, "delta": says("role", "assistant")})
	for _, piece := range halves(r.Message.Plan) {
		event("tool-plan-delta", map[string]any{"delta": says("tool_plan", piece)})
	}
	for i, c := range r.Message.Content {
		typ := c["type"]
		event("content-start", map[string]any{"index": i, "delta": says("content", map[string]string{"type": typ, typ: ""})})
		for _, piece := range halves(c[typ]) {
			event("content-delta", map[string]any{"index": i, "delta": says("content", map[string]string{typ: piece})})
		}
		event("content-end", map[string]any{"index": i})
	}
	for i, c := range r.Message.Calls {
		event("tool-call-start", map[string]any{"index": i, "delta": says("tool_calls", map[string]any{
			"id": c.ID, "type": c.Type, "function": map[string]string{"name": c.Function.Name, "arguments": ""},
		})})
		for _, piece := range halves(c.Function.Arguments) {
			event("tool-call-delta", map[string]any{"index": i, "delta": says("tool_calls", map[string]any{"function": map[string]string{"arguments": piece}})})
		}
		event("tool-call-end", map[string]any{"index": i})
	}
	event("message-end", map[string]any{"delta": map[string]any{"finish_reason": r.Finish, "usage": r.Usage}})
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}
