package emitcheck_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

const (
	respRest = `"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"top_p":1,"tool_choice":"auto","tools":[]}`
	respOpen = `{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"usage":null,"error":null,"incomplete_details":null,` + respRest
	respUses = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}`

	msgItem = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}`
	fcItem  = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{}"}`
	ctcItem = `{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"g","input":"x","status":"completed"}`
	rsItem  = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"gAA"}`

	created    = `{"type":"response.created","response":` + respOpen + `}`
	inProgress = `{"type":"response.in_progress","response":` + respOpen + `}`
	failed     = `{"type":"response.failed","response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","model":"m","output":[],"usage":null,"error":{"code":"server_error","message":"Broken."},"incomplete_details":null,` + respRest + `}`
	errorEvent = `{"type":"error","code":"server_error","message":"Broken.","param":null}`
)

func response(status string, items ...string) string {
	details := "null"
	if status == "incomplete" {
		details = `{"reason":"max_output_tokens"}`
	}
	return `{"id":"resp_1","object":"response","created_at":1,"status":"` + status + `","model":"m","output":[` + strings.Join(items, ",") + `],` + respUses + `,"error":null,"incomplete_details":` + details + `,` + respRest
}

func completed(items ...string) string {
	return `{"type":"response.completed","response":` + response("completed", items...) + `}`
}

// the events of a message at index 0, of a call, of a custom call and of reasoning.
var (
	msgEvents = []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]}`,
		`{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi","logprobs":[]}`,
		`{"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + msgItem + `}`,
	}
	fcEvents = []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"f","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{}"}`,
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + fcItem + `}`,
	}
	ctcEvents = []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_2","name":"g","input":""}}`,
		`{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":0,"delta":"x"}`,
		`{"type":"response.custom_tool_call_input.done","item_id":"ctc_1","output_index":0,"input":"x"}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + ctcItem + `}`,
	}
	rsEvents = []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAA_first"}}`,
		`{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hm"}`,
		`{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"Hm"}`,
		`{"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"Hm"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + rsItem + `}`,
	}
)

// at moves the events of an item to another index.
func at(n int, evs []string) []string {
	out := slices.Clone(evs)
	for i := range out {
		out[i] = swap(out[i], `"output_index":0`, fmt.Sprintf(`"output_index":%d`, n))
	}
	return out
}

// framed numbers events and frames them, without the final marker.
func framed(events ...[]string) string {
	var b strings.Builder
	for n, data := range slices.Concat(events...) {
		name := strings.SplitN(data, `"`, 5)[3]
		head := `{"type":"` + name + `",`
		fmt.Fprintf(&b, "event: %s\ndata: %s\"sequence_number\":%d,%s\n\n", name, head, n, strings.TrimPrefix(data, head))
	}
	return b.String()
}

const doneMarker = "data: [DONE]\n\n"

func begun(events ...string) []string { return append([]string{created, inProgress}, events...) }

func one(s string) []string { return []string{s} }

// without removes one event.
func without(evs []string, i int) []string { return slices.Delete(slices.Clone(evs), i, i+1) }

// with changes one event.
func with(evs []string, i int, from, to string) []string {
	out := slices.Clone(evs)
	out[i] = swap(out[i], from, to)
	return out
}

func TestQuirkC23_ResponsesStreams(t *testing.T) {
	turn := framed(begun(), rsEvents, at(1, msgEvents), at(2, fcEvents), at(3, ctcEvents), one(completed(swap(rsItem, "gAA", "gAA_again"), msgItem, fcItem, ctcItem))) + doneMarker
	streamOf := func(evs ...[]string) string { return framed(append([][]string{begun()}, evs...)...) + doneMarker }
	text := streamOf(msgEvents, one(completed(msgItem)))
	cut := swap(fcItem, `"status":"completed","call_id":"call_1","name":"f","arguments":"{}"`, `"status":"incomplete","call_id":"call_1","name":"f","arguments":"{"`)
	streams{dialectname.OpenAIResponses, []string{
		turn, text, framed(begun(errorEvent, failed)) + doneMarker, framed([]string{errorEvent, failed}) + doneMarker, ": ping\n\n" + text,
		streamOf([]string{fcEvents[0], swap(fcEvents[1], "{}", "{"), swap(fcEvents[2], "{}", "{"), swap(fcEvents[3], fcItem, cut)}, one(`{"type":"response.incomplete","response":`+response("incomplete", cut)+`}`)),
	}, []broken{
		{"no end", framed(begun(), msgEvents), "the stream has no end"},
		{"no [DONE]", framed(begun(), msgEvents, one(completed(msgItem))), "the stream ends without [DONE]"},
		{"[DONE] early", framed(begun()) + doneMarker, "event 2: [DONE] before response.completed"},
		{"after the end", streamOf(msgEvents, []string{completed(msgItem), completed(msgItem)}), "event 9 (response.completed): after the end, which was response.completed"},
		{"no created", framed(one(inProgress), msgEvents, one(completed(msgItem))) + doneMarker, "event 0 (response.in_progress): out of order"},
		{"no in_progress", framed(one(created), msgEvents, one(completed(msgItem))) + doneMarker, "event 1 (response.output_item.added): before response.in_progress"},
		{"created twice", framed([]string{created, created}), "event 1 (response.created): out of order"},
		{"a gap in the numbers", swap(text, `"sequence_number":3`, `"sequence_number":4`), "event 3 (response.content_part.added) /sequence_number: 4, want 3"},
		{"no number", swap(text, `"sequence_number":0,`, ""), "event 0 (response.created) /sequence_number: missing"},
		{"another name", swap(text, "event: response.created", "event: response.made"), "event 0 (response.made) /type: \"response.created\" under the name"},
		{"no type", swap(text, `{"type":"response.created",`, `{`), "event 0 (response.created) /type: missing"},
		{"an error field", swap(text, `{"type":"response.created",`, `{"type":"response.created","error":null,`), "event 0 (response.created) /error: clients stop"},
		{"not nested", framed(one(swap(created, `"response":{`, `"data":{`))), "event 0 (response.created) /response: missing"},
		{"no metadata", framed(one(swap(created, `"metadata":{},`, ""))), "event 0 (response.created) /response/metadata: missing"},
		{"output at the start", framed(one(swap(created, `"output":[]`, `"output":[{}]`))), "event 0 (response.created) /response/output: not empty"},
		{"another response", framed([]string{created, swap(inProgress, "resp_1", "resp_2")}), "event 1 (response.in_progress) /response/id: \"resp_2\", but the response started with \"resp_1\""},
		{"a gap in the indexes", streamOf(at(1, msgEvents)), "event 2 (response.output_item.added) /output_index: 1, want 0"},
		{"no item", streamOf(msgEvents[1:]), "event 2 (response.content_part.added) /output_index: item 0 was never added"},
		{"another item id", streamOf(with(msgEvents, 2, "msg_1", "msg_2")), "event 4 (response.output_text.delta) /item_id: \"msg_2\", but the item was added as \"msg_1\""},
		{"another item at the end", streamOf(with(msgEvents, 5, "msg_1", "msg_2")), "event 7 (response.output_item.done) /item: the item was added as message \"msg_1\""},
		{"no item id", streamOf(with(msgEvents, 2, `"item_id":"msg_1",`, "")), "event 4 (response.output_text.delta) /item_id: missing"},
		{"duplicate id", streamOf(msgEvents, at(1, msgEvents)), "event 8 (response.output_item.added) /item/id: duplicate \"msg_1\""},
		{"an id of another kind", streamOf(with(msgEvents, 0, "msg_1", "fc_1")), "event 2 (response.output_item.added) /item/id: \"fc_1\" does not begin with \"msg_\""},
		{"an item added as completed", streamOf(with(msgEvents, 0, "in_progress", "completed")), "event 2 (response.output_item.added) /item/status: \"completed\""},
		{"an item added with content", streamOf(with(fcEvents, 0, `"arguments":""`, `"arguments":"{}"`)), "event 2 (response.output_item.added) /item/arguments: not empty"},
		{"no part", streamOf(without(msgEvents, 1)), "event 3 (response.output_text.delta) /content_index: part 0 is not open"},
		{"an empty delta", streamOf(with(msgEvents, 2, `"Hi"`, `""`)), "event 4 (response.output_text.delta) /delta: empty"},
		{"a delta of another kind", streamOf(with(msgEvents, 2, "output_text", "refusal")), "event 4 (response.refusal.delta) /type: not allowed in a part of type output_text"},
		{"a text differs from its deltas", streamOf(with(msgEvents, 3, `"Hi"`, `"Ho"`)), "event 5 (response.output_text.done) /text: differs from its deltas"},
		{"a part without the end of its text", streamOf(without(msgEvents, 3)), "event 5 (response.content_part.done): done before its text"},
		{"a part differs from its deltas", streamOf(with(msgEvents, 4, `"Hi"`, `"Ho"`)), "event 6 (response.content_part.done) /part: differs from its deltas"},
		{"an item with an open part", streamOf(without(msgEvents, 4)), "event 6 (response.output_item.done) /item/content/0: the part was never done"},
		{"an item differs from its deltas", streamOf(with(msgEvents, 5, `"Hi"`, `"Ho"`)), "event 7 (response.output_item.done) /item/content/0: the output_text differs from its deltas"},
		{"an item without a part", streamOf(with(msgEvents, 5, `{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}`, "")), "/item/content: 0 parts, 1 were streamed"},
		{"arguments differ from their deltas", streamOf(with(fcEvents, 2, "{}", `{\"a\":1}`)), "event 4 (response.function_call_arguments.done) /arguments: differs from its deltas"},
		{"arguments without a done event", streamOf(without(fcEvents, 2)), "event 4 (response.output_item.done) /item/arguments: missing its done event"},
		{"arguments are not an object", streamOf(with(with(with(fcEvents, 1, "{}", ""), 2, "{}", ""), 3, "{}", "")[0:1], with(fcEvents, 2, "{}", "")[2:3], with(fcEvents, 3, `"{}"`, `""`)[3:]), "event 4 (response.output_item.done) /item/arguments: \"\" is not a JSON object"},
		{"a delta after the arguments", streamOf(fcEvents[:3], fcEvents[1:2]), "event 5 (response.function_call_arguments.delta): the arguments is done"},
		{"input for a function", streamOf(fcEvents[:1], []string{swap(ctcEvents[1], "ctc_1", "fc_1")}), "event 3 (response.custom_tool_call_input.delta) /type: not allowed in a function_call"},
		{"another call_id", streamOf(with(fcEvents, 3, "call_1", "call_9")), "event 5 (response.output_item.done) /item/call_id: \"call_9\", but the item was added with \"call_1\""},
		{"after the item", streamOf(msgEvents, msgEvents[2:3]), "event 8 (response.output_text.delta) /output_index: item 0 is done"},
		{"an unknown event", streamOf(one(`{"type":"codex.rate_limits","output_index":0}`)), "event 2 (codex.rate_limits) /output_index: item 0 was never added"},
		{"an item without a done event", streamOf(msgEvents[:5], one(completed(msgItem))), "event 7 (response.completed) /response/output: item 0 was never done"},
		{"an empty output", streamOf(msgEvents, one(completed())), "event 8 (response.completed) /response/output: 0 items, 1 were streamed"},
		{"an output that differs", streamOf(msgEvents, one(completed(swap(msgItem, "Hi", "Ho")))), "event 8 (response.completed) /response/output: item 0 differs from its output_item.done"},
		{"another status", streamOf(msgEvents, one(swap(completed(msgItem), `"status":"completed","model"`, `"status":"failed","model"`))), "/response/status: \"failed\" in response.completed"},
		{"wrong usage total", streamOf(msgEvents, one(swap(completed(msgItem), `"total_tokens":10`, `"total_tokens":9`))), "/response/usage/total_tokens: 9, want 9 + 1"},
		{"more cached than input", streamOf(msgEvents, one(swap(completed(msgItem), `"cached_tokens":0`, `"cached_tokens":10`))), "/response/usage/input_tokens_details/cached_tokens: more than the 9 input tokens"},
		{"more reasoning than output", streamOf(msgEvents, one(swap(completed(msgItem), `"reasoning_tokens":0`, `"reasoning_tokens":2`))), "/response/usage/output_tokens_details/reasoning_tokens: more than the 1 output tokens"},
		{"an incomplete item in a completed response", streamOf(with(msgEvents, 5, "completed", "incomplete"), one(completed(swap(msgItem, "completed", "incomplete")))), "event 8 (response.completed) /response/output/0/status: incomplete in a completed response"},
		{"an unknown reason", streamOf(one(`{"type":"response.incomplete","response":` + swap(response("incomplete"), "max_output_tokens", "end_turn") + `}`)), "/response/incomplete_details/reason: \"end_turn\" is not one of"},
		{"tier of another vendor", streamOf(msgEvents, one(swap(completed(msgItem), `"object"`, `"service_tier":"standard","object"`))), "/response/service_tier: \"standard\" is not one of"},
		{"another name at the end of a call", streamOf(with(fcEvents, 3, `"name":"f"`, `"name":"g"`)), "event 5 (response.output_item.done) /item/name: \"g\", but the item was added as \"f\""},
		{"an invalid id", streamOf(with(msgEvents, 0, "msg_1", "msg_1.x")), "event 2 (response.output_item.added) /item/id: \"msg_1.x\" does not match"},
		{"a part without logprobs", streamOf(with(msgEvents, 1, `,"logprobs":[]`, "")), "event 3 (response.content_part.added) /part/logprobs: missing"},
		{"a delta without logprobs", streamOf(with(msgEvents, 2, `,"logprobs":[]`, "")), "event 4 (response.output_text.delta) /logprobs: missing"},
		{"a text without logprobs", streamOf(with(msgEvents, 3, `"logprobs":[]`, `"logprobs":null`)), "event 5 (response.output_text.done) /logprobs: not an array"},
		{"usage without details", streamOf(msgEvents, one(swap(completed(msgItem), `"input_tokens_details":{"cached_tokens":0},`, ""))), "/response/usage/input_tokens_details: missing"},
		{"incomplete without a reason", streamOf(one(`{"type":"response.incomplete","response":` + swap(response("incomplete"), `{"reason":"max_output_tokens"}`, "null") + `}`)), "/response/incomplete_details: does not match status \"incomplete\""},
		{"failed without an error", streamOf(one(swap(failed, `{"code":"server_error","message":"Broken."}`, "null"))), "event 2 (response.failed) /response/error: does not match status \"failed\""},
		{"failed without a code", streamOf(one(swap(failed, `"code":"server_error",`, ""))), "event 2 (response.failed) /response/error/code: missing"},
		{"completed after an error", streamOf(one(errorEvent), one(completed())), "event 3 (response.completed): after an error"},
		{"an error without response.failed", framed(begun(errorEvent)), "the stream has no end"},
		{"an error without param", streamOf(one(swap(errorEvent, `,"param":null`, ""))), "event 2 (error) /param: missing"},
	}}.run(t)
}

// waiting returns a background response that has not ended.
func waiting(status string, items ...string) string {
	return swap(swap(response(status, items...), respUses, `"usage":null`), `"object"`, `"background":true,"object"`)
}

func TestResponsesInTheBackground(t *testing.T) {
	begins := func(name, status string) string {
		return `{"type":"response.` + name + `","response":` + waiting(status) + `}`
	}
	then := func(events ...string) string {
		return framed(events, msgEvents, one(completed(msgItem))) + doneMarker
	}
	streams{dialectname.OpenAIResponses, []string{
		then(begins("created", "queued"), begins("queued", "queued"), begins("in_progress", "in_progress")),
		then(begins("queued", "queued"), begins("in_progress", "in_progress")),
		then(begins("created", "queued"), begins("in_progress", "in_progress")),
	}, []broken{
		{"queued twice", then(begins("queued", "queued"), begins("queued", "queued")), "event 1 (response.queued): out of order"},
		{"queued after in_progress", then(begins("created", "queued"), begins("in_progress", "in_progress"), begins("queued", "queued")), "event 2 (response.queued): out of order"},
		{"created after queued", then(begins("queued", "queued"), begins("created", "queued")), "event 1 (response.created): out of order"},
		{"queued without in_progress", then(begins("created", "queued"), begins("queued", "queued")), "event 2 (response.output_item.added): before response.in_progress"},
		{"queued in progress", then(begins("queued", "in_progress")), "event 0 (response.queued) /response/status: not queued"},
		{"queued in the foreground", then(swap(begins("queued", "queued"), `"background":true,`, "")), "event 0 (response.queued) /response/status: not queued"},
	}}.run(t)
	half := swap(msgItem, "completed", "in_progress")
	wholes{dialectname.OpenAIResponses, []string{waiting("queued"), waiting("in_progress", half), waiting("in_progress", swap(swap(fcItem, "completed", "in_progress"), `"{}"`, `"{"`))}, []broken{
		{"queued in the foreground", swap(waiting("queued"), `"background":true,`, ""), "/status: \"queued\" in a response that ended"},
		{"an item in progress at the end", response("completed", half), "/output/0/status: \"in_progress\""},
	}}.run(t)
}

// Items of hosted tools have events of their own.
func TestResponsesHostedItems(t *testing.T) {
	streamOf := func(items []string, events ...string) string {
		return framed(begun(), events, one(completed(items...))) + doneMarker
	}
	item := func(step, item string) string {
		return `{"type":"response.output_item.` + step + `","output_index":0,"item":` + item + `}`
	}
	shell := `{"id":"sh_1","type":"shell_call","status":"completed","call_id":"call_1","action":{"commands":["ls"]}}`
	command := func(step, member string) string {
		return `{"type":"response.shell_call_command.` + step + `","output_index":0,"command_index":0,` + member + `}`
	}
	runs := []string{item("added", shell), command("added", `"command":""`), command("delta", `"delta":"ls"`), command("done", `"command":"ls"`), item("done", shell)}
	program := swap(fcItem, `"status":"completed"`, `"status":"in_progress","caller":{"type":"program","caller_id":"call_p"}`)
	calls := with(fcEvents, 3, fcItem, program)
	search := `{"id":"tsc_1","type":"tool_search_call","status":"completed","execution":"client","call_id":"call_1","arguments":{}}`
	streams{dialectname.OpenAIResponses, []string{
		streamOf(one(shell), runs...), streamOf(one(program), calls...),
		streamOf(one(search), item("added", swap(search, "call_1", "call_0")), item("done", search)),
		streamOf(nil, `{"type":"response.audio.transcript.delta","delta":"Hi"}`, `{"type":"response.audio.delta","delta":"AAA="}`, `{"type":"response.audio.transcript.done","response_id":"resp_1"}`, `{"type":"response.audio.done","response_id":"resp_1"}`),
	}, []broken{
		{"a command without its index", streamOf(one(shell), runs[0], swap(runs[1], `"command_index":0,`, "")), "event 3 (response.shell_call_command.added) /command_index: missing"},
		{"a command without an item", streamOf(nil, runs[1]), "event 2 (response.shell_call_command.added) /output_index: item 0 was never added"},
		{"output without its item", streamOf(one(shell), runs[0], swap(runs[2], "shell_call_command", "shell_call_output_content")), "event 3 (response.shell_call_output_content.delta) /item_id: missing"},
		{"empty audio", streamOf(nil, `{"type":"response.audio.delta","delta":""}`), "event 2 (response.audio.delta) /delta: empty"},
		{"audio at the start", framed([]string{created, `{"type":"response.audio.delta","delta":"AAA="}`}), "event 1 (response.audio.delta): before response.in_progress"},
		{"a direct call in progress", streamOf(one(program), with(calls, 3, `"type":"program"`, `"type":"direct"`)...), "event 5 (response.output_item.done) /item/status: \"in_progress\""},
		{"incomplete arguments of a program's call", streamOf(one(program), with(with(with(calls, 1, "{}", "{"), 2, "{}", "{"), 3, `"{}"`, `"{"`)...), "event 5 (response.output_item.done) /item/arguments: \"{\" is not a JSON object"},
	}}.run(t)
}

func TestResponsesWholeResponses(t *testing.T) {
	good := response("completed", rsItem, msgItem, fcItem, ctcItem)
	half := swap(msgItem, "completed", "incomplete")
	wholes{dialectname.OpenAIResponses, []string{good, response("incomplete", msgItem), response("incomplete", half), swap(good, `"object"`, `"service_tier":"ultrafast","object"`)}, []broken{
		{"an id without its prefix", swap(good, "resp_1", "chatcmpl-1"), "/id: \"chatcmpl-1\" does not match"},
		{"an id with an invalid character", swap(good, "resp_1", "resp_1.2"), "/id: \"resp_1.2\" does not match"},
		{"an id that is too long", swap(good, "resp_1", "resp_"+strings.Repeat("1", 60)), "has more than 64 bytes"},
		{"an incomplete item", response("completed", half), "/output/0/status: incomplete in a completed response"},
		{"incomplete arguments of a completed call", swap(response("incomplete", fcItem), `"{}"`, `"{"`), "/output/0/arguments: \"{\" is not a JSON object"},
		{"an unknown reason", swap(response("incomplete", msgItem), "max_output_tokens", "length"), "/incomplete_details/reason: \"length\""},
		{"no logprobs", swap(good, `,"logprobs":[]`, ""), "/output/1/content/0/logprobs: missing"},
		{"another object", swap(good, `"object":"response"`, `"object":"chat.completion"`), "/object"},
		{"no tools", swap(good, `,"tools":[]`, ""), "/tools: missing"},
		{"null for tools", swap(good, `"tools":[]`, `"tools":null`), "/tools: not an array"},
		{"no error field", swap(good, `"error":null,`, ""), "/error: missing"},
		{"in progress", swap(good, `"status":"completed","model"`, `"status":"in_progress","model"`), "/status: \"in_progress\" in a response that ended"},
		{"a role", swap(good, `"role":"assistant"`, `"role":"user"`), "/output/1/role: \"user\", want \"assistant\""},
		{"no annotations", swap(good, `,"annotations":[]`, ""), "/output/1/content/0/annotations: missing"},
		{"no item status", swap(good, `"role":"assistant","status":"completed",`, `"role":"assistant",`), "/output/1/status: missing"},
		{"no call_id", swap(good, `"call_id":"call_1",`, ""), "/output/2/call_id: missing"},
		{"duplicate call_id", swap(good, "call_2", "call_1"), "/output/3/call_id: duplicate \"call_1\""},
		{"arguments must be an object", swap(good, `"arguments":"{}"`, `"arguments":{}`), "/output/2/arguments: not a string"},
		{"no summary", swap(good, `"summary":[{"type":"summary_text","text":"Hm"}],`, ""), "/output/0/summary: missing"},
		{"empty encrypted content", swap(good, "gAA", ""), "/output/0/encrypted_content: empty"},
	}}.run(t)
}

func TestOpenResponsesDocument(t *testing.T) {
	d := emitcheck.OpenResponses(t)
	bad := []byte(response("completed", msgItem)) // lacks fields that only the document requires
	if d.Absent() {
		t.Skip("the document is absent")
	}
	if err := d.Whole(bad); err == nil || !strings.Contains(err.Error(), "'truncation'") {
		t.Error(err)
	}
	good := swap(string(bad), `"instructions"`, `"completed_at":2,"previous_response_id":null,"truncation":"disabled","text":{"format":{"type":"text"}},"presence_penalty":0,"frequency_penalty":0,`+
		`"top_logprobs":0,"reasoning":null,"max_output_tokens":null,"max_tool_calls":null,"store":false,"background":false,"service_tier":"default","safety_identifier":null,"prompt_cache_key":null,"instructions"`)
	if err := d.Whole([]byte(good)); err != nil {
		t.Error(err)
	}
	if err := d.Stream([]byte(framed(one(`{"type":"response.completed","response":`+good+`}`)) + doneMarker)); err != nil {
		t.Error(err)
	}
	if err := d.Stream([]byte(framed(one(completed(msgItem))) + doneMarker)); err == nil {
		t.Error("the end of a stream is not looked at")
	}
	if err := d.Stream([]byte(doneMarker)); err == nil {
		t.Error("a stream without an end passes")
	}
}
