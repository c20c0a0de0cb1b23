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
		{"behind the end", msgStart + text + end + ping, "event 6 (ping): behind the end, which was message_stop"},
		{"two starts", msgStart + msgStart + text + end, "event 1 (message_start): a second message_start"},
		{"no start", text + end, "event 0 (content_block_start): before message_start"},
		{"no blocks", msgStart + end, "event 1 (message_delta): a message without blocks"},
		{"no message_delta", msgStart + text + msgStop, "event 4 (message_stop): without message_delta"},
		{"two message_deltas", msgStart + text + msgDelta + end, "event 5 (message_delta): behind message_delta"},
		{"a block open at the end", msgStart + textStart + textDelta + end, "event 3 (message_delta): while a block is open"},
		{"an index that is left out", msgStart + swap(text, `"index":0`, `"index":1`) + end, "event 1 (content_block_start) /index: 1, want 0"},
		{"a block inside another", msgStart + textStart + useStart, "event 2 (content_block_start): a block starts inside another"},
		{"a delta of no block", msgStart + textDelta, "event 1 (content_block_delta) /index: block 0 is not open"},
		{"a stop of no block", msgStart + text + stop0, "event 4 (content_block_stop) /index: block 0 is not open"},
		{"a delta of another kind", msgStart + text + useStart + swap(textDelta, `"index":0`, `"index":1`), "event 5 (content_block_delta) /delta/type: text_delta in a tool_use block"},
		{"an empty delta", msgStart + textStart + swap(textDelta, "Hi", ""), "event 2 (content_block_delta) /delta/text: empty"},
		{"a start that is not empty", msgStart + swap(textStart, `"text":""`, `"text":"x"`), "event 1 (content_block_start) /content_block: a text block that does not start empty"},
		{"a start without its field", msgStart + swap(textStart, `,"text":""`, ""), "event 1 (content_block_start) /content_block/text: missing"},
		{"input at the start", msgStart + text + swap(useStart, `"input":{}`, `"input":{"a":1}`), "/content_block/input: not empty"},
		{"a call without id", msgStart + text + swap(useStart, "toolu_1", ""), "event 4 (content_block_start) /content_block/id: empty"},
		{"an id that is no id", msgStart + text + swap(useStart, "toolu_1", "call:1"), "/content_block/id: \"call:1\" does not match"},
		{"a call without name", msgStart + text + swap(useStart, `"name":"f",`, ""), "/content_block/name: missing"},
		{"broken input", msgStart + text + useStart + swap(useDelta, `1}`, ``) + stop1 + called + msgStop, "event 7 (message_delta) /delta/stop_reason: tool_use, and the input of a block is no JSON object"},
		{"no calls", msgStart + text + called + msgStop, "/delta/stop_reason: tool_use without a tool_use block"},
		{"behind the signature", msgStart + thinks + signature + thought, "event 3 (content_block_delta) /delta/type: thinking_delta behind the signature"},
		{"no stop_reason", msgStart + text + swap(msgDelta, `"end_turn"`, `null`) + msgStop, "event 4 (message_delta) /delta/stop_reason: not a string"},
		{"a foreign stop_reason", msgStart + text + swap(msgDelta, `end_turn`, `stop`) + msgStop, "/delta/stop_reason: \"stop\", which is none of"},
		{"a stop_sequence that is none", msgStart + text + swap(msgDelta, `"stop_sequence":null`, `"stop_sequence":"x"`) + msgStop, "/delta/stop_sequence: does not go with end_turn"},
		{"no output tokens", msgStart + text + swap(msgDelta, `,"output_tokens":4`, "") + msgStop, "event 4 (message_delta) /usage/output_tokens: missing"},
		{"no usage at the start", swap(msgStart, `"input_tokens":9,`, "") + text + end, "event 0 (message_start) /message/usage/input_tokens: missing"},
		{"a negative counter", swap(msgStart, `"cache_read_input_tokens":0`, `"cache_read_input_tokens":-1`) + text + end, "/message/usage/cache_read_input_tokens: -1"},
		{"less input than at the start", msgStart + text + swap(msgDelta, `"input_tokens":9`, `"input_tokens":8`) + msgStop, "event 4 (message_delta) /usage/input_tokens: 8, it began with 9"},
		{"less output than at the start", swap(msgStart, `"output_tokens":1`, `"output_tokens":5`) + text + end, "event 4 (message_delta) /usage/output_tokens: 4, it began with 5"},
		{"a cache that was read less", swap(msgStart, `"cache_read_input_tokens":0`, `"cache_read_input_tokens":3`) + text + swap(msgDelta, `"input_tokens":9`, `"cache_read_input_tokens":2`) + msgStop, "/usage/cache_read_input_tokens: 2, it began with 3"},
		{"more thinking than there is", msgStart + text + swap(msgDelta, `"output_tokens":4`, `"output_tokens":4,"output_tokens_details":{"thinking_tokens":5}`) + msgStop, "event 4 (message_delta) /usage/output_tokens_details/thinking_tokens: more than the 4 of the output"},
		{"another vendor's tier", swap(msgStart, `"output_tokens":1`, `"output_tokens":1,"service_tier":"default"`) + text + end, "event 0 (message_start) /message/usage/service_tier: \"default\", which is none of"},
		{"calls behind which nothing follows", msgStart + text + use + end, "event 7 (message_delta) /delta/stop_reason: end_turn behind a tool_use block"},
		{"a refusal without details", msgStart + text + swap(msgDelta, "end_turn", "refusal") + msgStop, "event 4 (message_delta) /delta/stop_details: missing"},
		{"a refusal with none", msgStart + text + swap(declined, `{"type":"refusal","category":null,"explanation":null}`, "null") + msgStop, "/delta/stop_details: not an object"},
		{"a refusal of no kind", msgStart + text + swap(declined, `"type":"refusal",`, "") + msgStop, "/delta/stop_details/type: missing"},
		{"a refusal of a kind of its own", msgStart + text + swap(declined, `"category":null`, `"category":"rude"`) + msgStop, "/delta/stop_details/category: \"rude\", which is none of"},
		{"a refusal without a word", msgStart + text + swap(declined, `,"explanation":null`, "") + msgStop, "/delta/stop_details/explanation: missing"},
		{"content at the start", swap(msgStart, `"content":[]`, `"content":[{}]`) + end, "event 0 (message_start) /message: a message that begins"},
		{"no model", swap(msgStart, `"model":"m",`, ""), "event 0 (message_start) /message/model: missing"},
		{"another name", swap(msgStart, "event: message_start", "event: message"), "event 0 (message) /type: \"message_start\" under the name \"message\""},
		{"no name", swap(msgStart, "event: message_start\n", ""), "event 0: data without the name of its event"},
		{"an unknown event", msgStart + swap(swap(ping, "ping", "pong"), "pong", "pong"), "event 1 (pong) /type: no such event"},
		{"[DONE]", msgStart + text + end + "data: [DONE]\n\n", "event 6: behind the end"},
		{"an error without message", swap(msgError, `,"message":"Overloaded"`, ""), "event 0 (error) /error/message: missing"},
		{"behind an error", msgError + msgStart, "event 1 (message_start): behind the end, which was an error"},
	}}.run(t)
}

func TestAnthropicWholeAnswersAndErrors(t *testing.T) {
	good := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"toolu_1","name":"f","input":{}},{"type":"tool_use","id":"toolu_2","name":"f","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`
	wholes{dialectname.Anthropic, []string{good, swap(good, `"output_tokens":2`, `"output_tokens":2,"service_tier":"batch"`)}, []broken{
		{"no type", swap(good, `"type":"message",`, ""), "/type: missing"},
		{"a null for content", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":null,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`, "/content: not an array"},
		{"no stop_reason", swap(good, `"stop_reason":"tool_use",`, ""), "/stop_reason: missing"},
		{"no stop_sequence", swap(good, `"stop_sequence":null,`, ""), "/stop_sequence: missing"},
		{"a text for input", swap(good, `"input":{}`, `"input":"{}"`), "/content/2/input: not an object"},
		{"an id twice", swap(good, "toolu_2", "toolu_1"), "/content/3/id: \"toolu_1\" a second time"},
		{"thinking without signature", swap(good, `,"signature":"s"`, ""), "/content/0/signature: missing"},
		{"no usage", swap(good, `,"usage":{"input_tokens":1,"output_tokens":2}`, ""), "/usage: missing"},
		{"calls behind which nothing follows", swap(good, `"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`), "/stop_reason: end_turn behind a tool_use block"},
		{"more thinking than there is", swap(good, `"output_tokens":2`, `"output_tokens":2,"output_tokens_details":{"thinking_tokens":3}`), "/usage/output_tokens_details/thinking_tokens: more than the 2 of the output"},
		{"another vendor's tier", swap(good, `"output_tokens":2`, `"output_tokens":2,"service_tier":"auto"`), "/usage/service_tier: \"auto\""},
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
