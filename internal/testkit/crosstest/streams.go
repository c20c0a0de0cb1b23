package crosstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
)

// Calling returns the events of a stream with the one call of a response.
func Calling(resp *dragoman.Response) []dragoman.Event {
	call := *resp.ToolCalls()[0]
	start := call
	start.Arguments = ""
	half := len(call.Arguments) / 2
	return []dragoman.Event{
		&dragoman.ResponseStart{Response: *resp},
		&dragoman.PartStart{Part: &start},
		&dragoman.PartDelta{Kind: codes.KindToolCall, Text: call.Arguments[:half]},
		&dragoman.PartDelta{Kind: codes.KindToolCall, Text: call.Arguments[half:]},
		&dragoman.PartEnd{Part: &call},
		&dragoman.ResponseEnd{Stop: resp.Stop},
	}
}

// EventStreamFrame writes one message in the AWS event stream encoding.
func EventStreamFrame(t *testing.T, typ string, payload any) []byte {
	t.Helper()
	out, err := eventstream.Append(nil, []eventstream.Header{
		{Name: ":event-type", Value: eventstream.Text(typ)},
		{Name: ":content-type", Value: eventstream.Text("application/json")},
		{Name: ":message-type", Value: eventstream.Text("event")},
	}, []byte(JSON(payload)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bedrockStreamOf writes the frames of a response, with text, reasoning and arguments in
// fragments.
func bedrockStreamOf(t *testing.T, resp []byte) []byte {
	t.Helper()
	var r struct {
		Output struct {
			Message struct{ Content []map[string]json.RawMessage }
		}
		StopReason string
		Usage      json.RawMessage
		Metrics    json.RawMessage
	}
	Parse(t, resp, &r)
	out := EventStreamFrame(t, "messageStart", map[string]any{"role": "assistant"})
	for i, block := range r.Output.Message.Content {
		delta := func(d any) {
			out = append(out, EventStreamFrame(t, "contentBlockDelta", map[string]any{"contentBlockIndex": i, "delta": d})...)
		}
		switch {
		case block["text"] != nil:
			var s string
			Parse(t, block["text"], &s)
			for _, h := range splitInTwo(s) {
				delta(map[string]any{"text": h})
			}
		case block["reasoningContent"] != nil:
			var c struct {
				ReasoningText   struct{ Text, Signature string }
				RedactedContent string
			}
			Parse(t, block["reasoningContent"], &c)
			thought := func(field, s string) {
				if s != "" {
					delta(map[string]any{"reasoningContent": map[string]any{field: s}})
				}
			}
			for _, h := range splitInTwo(c.ReasoningText.Text) {
				thought("text", h)
			}
			thought("signature", c.ReasoningText.Signature)
			thought("redactedContent", c.RedactedContent)
		case block["toolUse"] != nil:
			var u map[string]json.RawMessage
			Parse(t, block["toolUse"], &u)
			input := string(u["input"])
			delete(u, "input")
			out = append(out, EventStreamFrame(t, "contentBlockStart", map[string]any{"contentBlockIndex": i, "start": map[string]any{"toolUse": u}})...)
			for _, h := range splitInTwo(input) {
				delta(map[string]any{"toolUse": map[string]any{"input": h}})
			}
		default:
			t.Fatalf("no fragments for %s", JSON(block))
		}
		out = append(out, EventStreamFrame(t, "contentBlockStop", map[string]any{"contentBlockIndex": i})...)
	}
	out = append(out, EventStreamFrame(t, "messageStop", map[string]any{"stopReason": r.StopReason})...)
	return append(out, EventStreamFrame(t, "metadata", map[string]any{"usage": r.Usage, "metrics": r.Metrics})...)
}

// GeminiCalls returns a Gemini stream with a functionCall in each chunk.
func GeminiCalls(objects ...string) []byte {
	var b bytes.Buffer
	chunk := func(parts, more string) {
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[%s]}%s}],\"modelVersion\":\"m\"}\n\n", parts, more)
	}
	for _, o := range objects {
		chunk(`{"functionCall":`+o+`}`, "")
	}
	chunk(`{"text":""}`, `,"finishReason":"STOP"`)
	return b.Bytes()
}

// StreamOf writes a whole response as its dialect's server would stream it. It follows the
// wire references and shares no code with the encoders.
func StreamOf(t *testing.T, d dragoman.Dialect, resp []byte) []byte {
	t.Helper()
	switch d {
	case dialectname.OpenAIChat:
		return chatStreamOf(t, resp)
	case dialectname.OpenAIResponses:
		return responsesStreamOf(t, resp)
	case dialectname.Anthropic:
		return anthropicStreamOf(t, resp)
	case dialectname.Gemini:
		return geminiStreamOf(t, resp)
	case dialectname.Ollama:
		return ollamaStreamOf(t, resp)
	case "cohere.chat":
		return cohereStreamOf(t, resp)
	case dialectname.Bedrock:
		return bedrockStreamOf(t, resp)
	default:
		t.Fatalf("no stream writer for %s", d)
		return nil
	}
}

// Parse reads JSON into v.
func Parse(t *testing.T, raw []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

// JSON returns a value as JSON.
func JSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return string(bytes.TrimSpace(b.Bytes()))
}

// splitInTwo splits a text in two, so that every delta is a fragment.
func splitInTwo(s string) []string {
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
	Parse(t, resp, &r)
	var b bytes.Buffer
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":%s,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", JSON(r.ID), r.Created, JSON(r.Model), delta, finish)
	}
	m := r.Choices[0].Message
	chunk(`{"role":"assistant","content":""}`, "null")
	for _, h := range splitInTwo(m.ReasoningContent) {
		if h != "" {
			chunk(`{"reasoning_content":`+JSON(h)+`}`, "null")
		}
	}
	if m.Content != nil {
		for _, h := range splitInTwo(*m.Content) {
			chunk(`{"content":`+JSON(h)+`}`, "null")
		}
	}
	if m.Refusal != nil {
		for _, h := range splitInTwo(*m.Refusal) {
			chunk(`{"refusal":`+JSON(h)+`}`, "null")
		}
	}
	for i, c := range m.ToolCalls {
		kind, payload := "function", "arguments"
		if string(c["type"]) == `"custom"` {
			kind, payload = "custom", "input"
		}
		var f map[string]string
		Parse(t, c[kind], &f)
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"%s","%s":{"name":%s,"%s":""}}]}`, i, c["id"], kind, kind, JSON(f["name"]), payload), "null")
		for _, h := range splitInTwo(f[payload]) {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"%s":{"%s":%s}}]}`, i, kind, payload, JSON(h)), "null")
		}
	}
	chunk(`{}`, JSON(r.Choices[0].FinishReason))
	fmt.Fprintf(&b, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":%s,\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", JSON(r.ID), r.Created, JSON(r.Model), r.Usage)
	return b.Bytes()
}

func anthropicStreamOf(t *testing.T, resp []byte) []byte {
	var r map[string]json.RawMessage
	Parse(t, resp, &r)
	var blocks []map[string]json.RawMessage
	Parse(t, r["content"], &blocks)
	var b bytes.Buffer
	event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":30,"output_tokens":1}}}`, r["id"], r["model"]))
	event("ping", `{"type":"ping"}`)
	for i, block := range blocks {
		var typ string
		Parse(t, block["type"], &typ)
		start := map[string]json.RawMessage{}
		for k, v := range block {
			start[k] = v
		}
		var deltas []string
		text := func(field, delta string) {
			var s string
			Parse(t, block[field], &s)
			start[field] = json.RawMessage(`""`)
			for _, h := range splitInTwo(s) {
				deltas = append(deltas, fmt.Sprintf(`{"type":"%s","%s":%s}`, delta, field, JSON(h)))
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
				for _, h := range splitInTwo(string(block["input"])) {
					deltas = append(deltas, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, JSON(h)))
				}
			}
		}
		event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, JSON(start)))
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
	Parse(t, resp, &r)
	var items []map[string]json.RawMessage
	Parse(t, r["output"], &items)
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
		return `"response":` + JSON(s)
	}
	event("response.created", snapshot(`"in_progress"`))
	event("response.in_progress", snapshot(`"in_progress"`))
	for i, item := range items {
		var typ string
		Parse(t, item["type"], &typ)
		at := fmt.Sprintf(`"item_id":%s,"output_index":%d`, item["id"], i)
		added := map[string]json.RawMessage{}
		for k, v := range item {
			added[k] = v
		}
		if _, ok := added["status"]; ok {
			added["status"] = json.RawMessage(`"in_progress"`)
		}
		add := func() {
			event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, JSON(added)))
		}
		switch typ {
		case "message":
			added["content"] = json.RawMessage("[]")
			add()
			var parts []map[string]json.RawMessage
			Parse(t, item["content"], &parts)
			for j, p := range parts {
				at := at + fmt.Sprintf(`,"content_index":%d`, j)
				field, name := "text", "output_text"
				if string(p["type"]) == `"refusal"` {
					field, name = "refusal", "refusal"
				}
				empty := map[string]json.RawMessage{}
				for k, v := range p {
					empty[k] = v
				}
				empty[field] = json.RawMessage(`""`)
				var s string
				Parse(t, p[field], &s)
				event("response.content_part.added", at+`,"part":`+JSON(empty))
				for _, h := range splitInTwo(s) {
					event("response."+name+".delta", at+`,"delta":`+JSON(h))
				}
				event("response."+name+".done", at+fmt.Sprintf(`,"%s":%s`, field, JSON(s)))
				event("response.content_part.done", at+`,"part":`+JSON(p))
			}
		case "function_call", "custom_tool_call":
			field, name := "arguments", "function_call_arguments"
			if typ == "custom_tool_call" {
				field, name = "input", "custom_tool_call_input"
			}
			added[field] = json.RawMessage(`""`)
			add()
			var s string
			Parse(t, item[field], &s)
			for _, h := range splitInTwo(s) {
				event("response."+name+".delta", at+`,"delta":`+JSON(h))
			}
			event("response."+name+".done", at+fmt.Sprintf(`,"%s":%s`, field, JSON(s)))
		case "reasoning":
			added["summary"] = json.RawMessage("[]")
			added["encrypted_content"] = json.RawMessage(`"partial"`)
			add()
			var parts []map[string]string
			Parse(t, item["summary"], &parts)
			for j, p := range parts {
				at := at + fmt.Sprintf(`,"summary_index":%d`, j)
				event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
				for _, h := range splitInTwo(p["text"]) {
					event("response.reasoning_summary_text.delta", at+`,"delta":`+JSON(h))
				}
				event("response.reasoning_summary_text.done", at+`,"text":`+JSON(p["text"]))
				event("response.reasoning_summary_part.done", at+`,"part":`+JSON(p))
			}
		default:
			add()
		}
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, JSON(item)))
	}
	event("response.completed", `"response":`+string(resp))
	return b.Bytes()
}

// ollamaStreamOf writes lines, with reasoning and text in fragments and each call whole.
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
		fmt.Fprintln(&b, JSON(map[string]any{"model": r["model"], "created_at": r["created_at"], "message": message, "done": false}))
	}
	message := r["message"].(map[string]any)
	thinking, _ := message["thinking"].(string)
	for _, piece := range splitInTwo(thinking) {
		line(map[string]any{"content": "", "thinking": piece})
	}
	content, _ := message["content"].(string)
	for _, piece := range splitInTwo(content) {
		line(map[string]any{"content": piece})
	}
	calls, _ := message["tool_calls"].([]any)
	for _, c := range calls {
		line(map[string]any{"content": "", "tool_calls": []any{c}})
	}
	r["message"] = map[string]any{"role": "assistant", "content": ""}
	fmt.Fprintln(&b, JSON(r))
	return b.Bytes()
}

// cohereStreamOf writes a whole Cohere response as a stream.
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
	Parse(t, resp, &r)
	var b bytes.Buffer
	event := func(typ string, fields map[string]any) {
		fields["type"] = typ
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", typ, JSON(fields))
	}
	message := func(key string, value any) map[string]any {
		return map[string]any{"message": map[string]any{key: value}}
	}
	event("message-start", map[string]any{"id": r.ID, "delta": message("role", "assistant")})
	for _, piece := range splitInTwo(r.Message.Plan) {
		event("tool-plan-delta", map[string]any{"delta": message("tool_plan", piece)})
	}
	for i, c := range r.Message.Content {
		typ := c["type"]
		event("content-start", map[string]any{"index": i, "delta": message("content", map[string]string{"type": typ, typ: ""})})
		for _, piece := range splitInTwo(c[typ]) {
			event("content-delta", map[string]any{"index": i, "delta": message("content", map[string]string{typ: piece})})
		}
		event("content-end", map[string]any{"index": i})
	}
	for i, c := range r.Message.Calls {
		event("tool-call-start", map[string]any{"index": i, "delta": message("tool_calls", map[string]any{
			"id": c.ID, "type": c.Type, "function": map[string]string{"name": c.Function.Name, "arguments": ""},
		})})
		for _, piece := range splitInTwo(c.Function.Arguments) {
			event("tool-call-delta", map[string]any{"index": i, "delta": message("tool_calls", map[string]any{"function": map[string]string{"arguments": piece}})})
		}
		event("tool-call-end", map[string]any{"index": i})
	}
	event("message-end", map[string]any{"delta": map[string]any{"finish_reason": r.Finish, "usage": r.Usage}})
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// OneCallStreams holds streams of one text and one call, event by event. Bedrock events have
// their type before the payload.
var OneCallStreams = map[dragoman.Dialect][]string{
	dialectname.OpenAIChat: {
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	},
	dialectname.OpenAIResponses: {
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":2,"output_index":0,"item_id":"m","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":3,"output_index":0,"item_id":"m","content_index":0,"delta":"hi"}`,
		`{"type":"response.output_text.done","sequence_number":4,"output_index":0,"item_id":"m","content_index":0,"text":"hi"}`,
		`{"type":"response.content_part.done","sequence_number":5,"output_index":0,"item_id":"m","content_index":0,"part":{"type":"output_text","text":"hi","annotations":[]}}`,
		`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}}`,
		`{"type":"response.output_item.added","sequence_number":7,"output_index":1,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":8,"output_index":1,"item_id":"fc","delta":"{}"}`,
		`{"type":"response.function_call_arguments.done","sequence_number":9,"output_index":1,"item_id":"fc","arguments":"{}"}`,
		`{"type":"response.output_item.done","sequence_number":10,"output_index":1,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}}`,
		`{"type":"response.completed","sequence_number":11,"response":{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]},{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}]}}`,
	},
	dialectname.Anthropic: {
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_1","name":"f","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	},
	dialectname.Gemini: {
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"so","thought":true}]},"index":0}],"modelVersion":"m","responseId":"r"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"index":0}],"modelVersion":"m","responseId":"r"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"f","args":{}},"thoughtSignature":"c2ln"}]},"index":0}],"modelVersion":"m","responseId":"r"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`,
	},
	"cohere.chat": {
		`{"type":"message-start","id":"r","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
		`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"so"}}}`,
		`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"hi"}}}}`,
		`{"type":"content-end","index":0}`,
		`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"call_1","type":"function","function":{"name":"f","arguments":""}}}}}`,
		`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}`,
		`{"type":"tool-call-end","index":0}`,
		`{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}`,
	},
	dialectname.Ollama: {
		`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"so"},"done":false}`,
		`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},"done":false}`,
		`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":{}}}]},"done":false}`,
		`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`,
	},
	dialectname.Bedrock: {
		`messageStart {"role":"assistant"}`,
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"so"}}}`,
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}`,
		`contentBlockStop {"contentBlockIndex":0}`,
		`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"hi"}}`,
		`contentBlockStop {"contentBlockIndex":1}`,
		`contentBlockStart {"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"call_1","name":"f"}}}`,
		`contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":"{}"}}}`,
		`contentBlockStop {"contentBlockIndex":2}`,
		`messageStop {"stopReason":"tool_use"}`,
		`metadata {"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
	},
}

// OnWire writes events in the framing of a dialect.
func OnWire(t *testing.T, d dragoman.Dialect, events []string) []byte {
	var b bytes.Buffer
	for _, ev := range events {
		switch d {
		case dialectname.Ollama:
			b.WriteString(ev + "\n")
		case dialectname.Bedrock:
			typ, payload, _ := strings.Cut(ev, " ")
			b.Write(EventStreamFrame(t, typ, json.RawMessage(payload)))
		default:
			b.WriteString("data: " + ev + "\n\n")
		}
	}
	if d == dialectname.OpenAIChat {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// ConvertStream converts a stream with two codecs.
func ConvertStream(in, out dialect.Codec, wire []byte) ([]byte, dragoman.Report) {
	var w bytes.Buffer
	from, to := in.NewStreamDecoder(dialect.DecodeOptions{}), out.NewStreamEncoder(dialect.EncodeOptions{})
	_ = dialect.Translate(&w, to, from, bytes.NewReader(wire)) // a broken stream is written up to its error
	rep := from.Report()
	rep.Losses = append(rep.Losses, to.Report().Losses...)
	return w.Bytes(), rep
}
