package emitcheck_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

const (
	msgStart  = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n"
	ping      = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	textStart = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	textDelta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
	stop0     = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	useStart  = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{}}}\n\n"
	useDelta  = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n"
	stop1     = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
	thinks    = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"
	thought   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}}\n\n"
	signature = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}}\n\n"
	msgDelta  = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":9,\"output_tokens\":4}}\n\n"
	msgStop   = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	msgError  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_1\"}\n\n"
)

func TestQuirkC20_AnthropicStreams(t *testing.T) {
	text := textStart + textDelta + stop0
	use := useStart + useDelta + stop1
	called := swap(msgDelta, "end_turn", "tool_use")
	end := msgDelta + msgStop
	declined := swap(swap(msgDelta, "end_turn", "refusal"), `"stop_sequence":null`, `"stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":null}`)
	streams{dialectname.Anthropic, []string{
		msgStart + text + declined + msgStop, msgStart + text + swap(swap(declined, `"category":null`, `"category":"cyber"`), `"explanation":null`, `"explanation":"No."`) + msgStop,
		msgStart + ping + text + end, ": keep-alive\n\n" + msgStart + text + use + called + msgStop, msgStart + thinks + thought + signature + stop0 + use + called + msgStop,
		msgStart + textStart + msgError, msgError, msgStart + textStart + stop0 + end,
		msgStart + text + useStart + swap(useDelta, `1}`, ``) + stop1 + swap(msgDelta, "end_turn", "max_tokens") + msgStop,
	}, []broken{
		{"no end", msgStart + text + msgDelta, "the stream has no end"},
		{"after the end", msgStart + text + end + ping, "event 6 (ping): after the end, which was message_stop"},
		{"two starts", msgStart + msgStart + text + end, "event 1 (message_start): a second message_start"},
		{"no start", text + end, "event 0 (content_block_start): before message_start"},
		{"no blocks", msgStart + end, "event 1 (message_delta): a message without blocks"},
		{"no message_delta", msgStart + text + msgStop, "event 4 (message_stop): without message_delta"},
		{"two message_deltas", msgStart + text + msgDelta + end, "event 5 (message_delta): after message_delta"},
		{"a block open at the end", msgStart + textStart + textDelta + end, "event 3 (message_delta): while a block is open"},
		{"a gap in the indexes", msgStart + swap(text, `"index":0`, `"index":1`) + end, "event 1 (content_block_start) /index: 1, want 0"},
		{"a block inside another", msgStart + textStart + useStart, "event 2 (content_block_start): a block starts inside another"},
		{"a delta without a block", msgStart + textDelta, "event 1 (content_block_delta) /index: block 0 is not open"},
		{"a stop without a block", msgStart + text + stop0, "event 4 (content_block_stop) /index: block 0 is not open"},
		{"a delta of another kind", msgStart + text + useStart + swap(textDelta, `"index":0`, `"index":1`), "event 5 (content_block_delta) /delta/type: text_delta in a tool_use block"},
		{"an empty delta", msgStart + textStart + swap(textDelta, "Hi", ""), "event 2 (content_block_delta) /delta/text: empty"},
		{"a start that is not empty", msgStart + swap(textStart, `"text":""`, `"text":"x"`), "event 1 (content_block_start) /content_block: a text block that does not start empty"},
		{"a start without its field", msgStart + swap(textStart, `,"text":""`, ""), "event 1 (content_block_start) /content_block/text: missing"},
		{"input at the start", msgStart + text + swap(useStart, `"input":{}`, `"input":{"a":1}`), "/content_block/input: not empty"},
		{"a call without id", msgStart + text + swap(useStart, "toolu_1", ""), "event 4 (content_block_start) /content_block/id: empty"},
		{"an invalid id", msgStart + text + swap(useStart, "toolu_1", "call:1"), "/content_block/id: \"call:1\" does not match"},
		{"a call without name", msgStart + text + swap(useStart, `"name":"f",`, ""), "/content_block/name: missing"},
		{"broken input", msgStart + text + useStart + swap(useDelta, `1}`, ``) + stop1 + called + msgStop, "event 7 (message_delta) /delta/stop_reason: tool_use, but the input of a block is not a JSON object"},
		{"no calls", msgStart + text + called + msgStop, "/delta/stop_reason: tool_use without a tool_use block"},
		{"after the signature", msgStart + thinks + signature + thought, "event 3 (content_block_delta) /delta/type: thinking_delta after the signature"},
		{"no stop_reason", msgStart + text + swap(msgDelta, `"end_turn"`, `null`) + msgStop, "event 4 (message_delta) /delta/stop_reason: not a string"},
		{"an unknown stop_reason", msgStart + text + swap(msgDelta, `end_turn`, `stop`) + msgStop, "/delta/stop_reason: \"stop\" is not one of"},
		{"an unexpected stop_sequence", msgStart + text + swap(msgDelta, `"stop_sequence":null`, `"stop_sequence":"x"`) + msgStop, "/delta/stop_sequence: does not match end_turn"},
		{"no output tokens", msgStart + text + swap(msgDelta, `,"output_tokens":4`, "") + msgStop, "event 4 (message_delta) /usage/output_tokens: missing"},
		{"no usage at the start", swap(msgStart, `"input_tokens":9,`, "") + text + end, "event 0 (message_start) /message/usage/input_tokens: missing"},
		{"a negative counter", swap(msgStart, `"cache_read_input_tokens":0`, `"cache_read_input_tokens":-1`) + text + end, "/message/usage/cache_read_input_tokens: -1"},
		{"less input than at the start", msgStart + text + swap(msgDelta, `"input_tokens":9`, `"input_tokens":8`) + msgStop, "event 4 (message_delta) /usage/input_tokens: 8 is less than 9 at the start"},
		{"less output than at the start", swap(msgStart, `"output_tokens":1`, `"output_tokens":5`) + text + end, "event 4 (message_delta) /usage/output_tokens: 4 is less than 5 at the start"},
		{"less cached input than at the start", swap(msgStart, `"cache_read_input_tokens":0`, `"cache_read_input_tokens":3`) + text + swap(msgDelta, `"input_tokens":9`, `"cache_read_input_tokens":2`) + msgStop, "/usage/cache_read_input_tokens: 2 is less than 3 at the start"},
		{"more thinking than output", msgStart + text + swap(msgDelta, `"output_tokens":4`, `"output_tokens":4,"output_tokens_details":{"thinking_tokens":5}`) + msgStop, "event 4 (message_delta) /usage/output_tokens_details/thinking_tokens: more than the 4 output tokens"},
		{"tier of another vendor", swap(msgStart, `"output_tokens":1`, `"output_tokens":1,"service_tier":"default"`) + text + end, "event 0 (message_start) /message/usage/service_tier: \"default\" is not one of"},
		{"calls with end_turn", msgStart + text + use + end, "event 7 (message_delta) /delta/stop_reason: end_turn after a tool_use block"},
		{"a refusal without details", msgStart + text + swap(msgDelta, "end_turn", "refusal") + msgStop, "event 4 (message_delta) /delta/stop_details: missing"},
		{"a refusal with null details", msgStart + text + swap(declined, `{"type":"refusal","category":null,"explanation":null}`, "null") + msgStop, "/delta/stop_details: not an object"},
		{"a refusal without type", msgStart + text + swap(declined, `"type":"refusal",`, "") + msgStop, "/delta/stop_details/type: missing"},
		{"a refusal with an unknown category", msgStart + text + swap(declined, `"category":null`, `"category":"rude"`) + msgStop, "/delta/stop_details/category: \"rude\" is not one of"},
		{"a refusal without explanation", msgStart + text + swap(declined, `,"explanation":null`, "") + msgStop, "/delta/stop_details/explanation: missing"},
		{"content at the start", swap(msgStart, `"content":[]`, `"content":[{}]`) + end, "event 0 (message_start) /message: a message that begins"},
		{"no model", swap(msgStart, `"model":"m",`, ""), "event 0 (message_start) /message/model: missing"},
		{"another name", swap(msgStart, "event: message_start", "event: message"), "event 0 (message) /type: \"message_start\" under the name \"message\""},
		{"no name", swap(msgStart, "event: message_start\n", ""), "event 0: data without an event name"},
		{"an unknown event", msgStart + swap(swap(ping, "ping", "pong"), "pong", "pong"), "event 1 (pong) /type: unknown event"},
		{"[DONE]", msgStart + text + end + "data: [DONE]\n\n", "event 6: after the end"},
		{"an error without message", swap(msgError, `,"message":"Overloaded"`, ""), "event 0 (error) /error/message: missing"},
		{"after error", msgError + msgStart, "event 1 (message_start): after the end, which was an error"},
	}}.run(t)
}

func TestAnthropicWholeResponsesAndErrors(t *testing.T) {
	good := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"toolu_1","name":"f","input":{}},{"type":"tool_use","id":"toolu_2","name":"f","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`
	wholes{dialectname.Anthropic, []string{good, swap(good, `"output_tokens":2`, `"output_tokens":2,"service_tier":"batch"`)}, []broken{
		{"no type", swap(good, `"type":"message",`, ""), "/type: missing"},
		{"null content", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":null,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`, "/content: not an array"},
		{"no stop_reason", swap(good, `"stop_reason":"tool_use",`, ""), "/stop_reason: missing"},
		{"no stop_sequence", swap(good, `"stop_sequence":null,`, ""), "/stop_sequence: missing"},
		{"input is a string", swap(good, `"input":{}`, `"input":"{}"`), "/content/2/input: not an object"},
		{"duplicate id", swap(good, "toolu_2", "toolu_1"), "/content/3/id: duplicate \"toolu_1\""},
		{"thinking without signature", swap(good, `,"signature":"s"`, ""), "/content/0/signature: missing"},
		{"no usage", swap(good, `,"usage":{"input_tokens":1,"output_tokens":2}`, ""), "/usage: missing"},
		{"calls with end_turn", swap(good, `"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`), "/stop_reason: end_turn after a tool_use block"},
		{"more thinking than output", swap(good, `"output_tokens":2`, `"output_tokens":2,"output_tokens_details":{"thinking_tokens":3}`), "/usage/output_tokens_details/thinking_tokens: more than the 2 output tokens"},
		{"tier of another vendor", swap(good, `"output_tokens":2`, `"output_tokens":2,"service_tier":"auto"`), "/usage/service_tier: \"auto\""},
		{"a refusal without details", swap(good, `"stop_reason":"tool_use"`, `"stop_reason":"refusal"`), "/stop_details: missing"},
		{"a fraction of a token", swap(good, `"output_tokens":2`, `"output_tokens":2.5`), "/usage/output_tokens: 2.5"},
	}}.run(t)
	errs := `{"type":"error","error":{"type":"not_found_error","message":"model: m"},"request_id":"req_1"}`
	failures{dialectname.Anthropic, 404, []string{errs}, []broken{
		{"no type", swap(errs, `"type":"error",`, ""), "/type: missing"},
		{"no message", swap(errs, "model: m", ""), "/error/message: empty"},
		{"no error type", swap(errs, `"type":"not_found_error",`, ""), "/error/type: missing"},
		{"OpenAI's", `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`, "/type: missing"},
		{"a request id that is a number", swap(errs, `"req_1"`, `1`), "/request_id: not a string"},
	}}.run(t)
}
