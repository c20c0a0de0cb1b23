package emitcheck_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

const (
	chatHead = `"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m"`
	chatRole = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chatText = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"
	chatCall = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}` + "\n\n"
	chatArgs = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
	chatStop = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatTool = `data: {` + chatHead + `,"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	chatUses = `data: {` + chatHead + `,"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}` + "\n\n"
	chatDone = "data: [DONE]\n\n"
	chatErr  = `data: {"error":{"message":"Slow down.","type":"requests","param":null,"code":"rate_limit_exceeded"}}` + "\n\n"
)

func TestChatStreams(t *testing.T) {
	hello := chatRole + chatText + chatStop + chatDone
	calls := chatRole + chatCall + chatArgs + chatTool + chatUses + chatDone
	streams{dialectname.OpenAIChat, []string{
		hello, calls, chatRole + chatText + chatErr, chatErr, ": ping\n\n" + hello,
		chatRole + chatCall + swap(chatArgs, "{}", "{") + swap(chatStop, "stop", "error") + chatDone,
	}, []broken{
		{"no end", chatRole + chatText + chatStop, "the stream has no end"},
		{"no finish", chatRole + chatText + chatDone, "event 2: [DONE] before the finish_reason of choice 0"},
		{"two finishes", chatRole + chatText + chatStop + chatStop + chatDone, "event 3 /choices/0: choice 0 continues after its finish_reason"},
		{"after the end", hello + chatText, "event 4: after the end, which was [DONE]"},
		{"a role missing", chatText + chatStop + chatDone, "event 0 /choices/0/delta/role: missing"},
		{"a second role", chatRole + chatRole + chatStop + chatDone, "event 1 /choices/0/delta/role: not in the first delta"},
		{"a missing choice", swap(chatRole+chatStop, `"index":0`, `"index":1`) + chatDone, "event 2: [DONE] before the finish_reason of choice 0"},
		{"too many choices", swap(chatRole, `"index":0`, `"index":128`), "event 0 /choices/0/index: 128, want at most 128"},
		{"another id", chatRole + swap(chatText, "chatcmpl-1", "chatcmpl-2") + chatStop + chatDone, "event 1 /id: \"chatcmpl-2\", but the first chunk has"},
		{"another model", chatRole + swap(chatText, `"m"`, `"n"`) + chatStop + chatDone, "event 1: model or created differ"},
		{"object of a whole response", chatRole + swap(chatText, ".chunk", "") + chatStop + chatDone, "event 1 /object"},
		{"null error", chatRole + swap(chatText, `"model"`, `"error":null,"model"`) + chatStop + chatDone, "event 1 /error: not an object"},
		{"an error without code", swap(chatErr, `,"code":"rate_limit_exceeded"`, ""), "event 0 /error/code: missing"},
		{"a chunk after an error", chatErr + chatRole, "event 1: a chunk after an error"},
		{"no finish_reason", chatRole + swap(chatText, `,"finish_reason":null`, "") + chatStop + chatDone, "event 1 /choices/0/finish_reason: missing"},
		{"unknown finish", chatRole + chatText + swap(chatStop, "stop", "eos") + chatDone, "event 2 /choices/0/finish_reason: \"eos\""},
		{"tool_calls without calls", chatRole + chatTool + chatDone, "event 1 /choices/0/finish_reason: tool_calls without calls"},
		{"a call without id", chatRole + swap(chatCall, `"id":"call_1",`, "") + chatArgs + chatTool + chatDone, "event 1 /choices/0/delta/tool_calls/0/id: missing"},
		{"a call without name", chatRole + swap(chatCall, `"name":"f",`, "") + chatArgs + chatTool + chatDone, "/tool_calls/0/function/name: missing"},
		{"a repeated name", chatRole + chatCall + swap(chatArgs, `"arguments"`, `"name":"f","arguments"`) + chatTool + chatDone, "event 2 /choices/0/delta/tool_calls/0/function/name: repeated"},
		{"no index", chatRole + swap(chatCall, `{"index":0,"id"`, `{"id"`) + chatArgs + chatTool + chatDone, "/tool_calls/0/index: missing"},
		{"an empty call fragment", chatRole + chatCall + swap(chatArgs, `,"function":{"arguments":"{}"}`, "") + chatTool + chatDone, "event 2 /choices/0/delta/tool_calls/0: is empty"},
		{"a gap in the calls", chatRole + swap(chatCall, `{"index":0,"id"`, `{"index":1,"id"`) + chatTool + chatDone, "/tool_calls/0/index: 1, want at most 0"},
		{"broken arguments", chatRole + chatCall + swap(chatArgs, "{}", "{") + chatTool + chatDone, "event 3 /choices/0: the arguments of call 0"},
		{"usage with choices", chatRole + swap(chatStop, `]}`+"\n", `],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`+"\n") + chatDone, "event 1 /usage: together with choices"},
		{"usage before the end", chatRole + chatUses + chatStop + chatDone, "event 1 /usage: before the finish_reason"},
		{"wrong usage total", chatRole + chatStop + swap(chatUses, `"total_tokens":10`, `"total_tokens":11`) + chatDone, "event 2 /usage/total_tokens: 11, want 9 + 1"},
		{"usage twice", chatRole + chatStop + chatUses + chatUses + chatDone, "event 3: a chunk after the usage"},
		{"no choices", chatRole + swap(chatUses, `,"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}`, "") + chatStop + chatDone, "event 1 /choices: empty"},
		{"more reasoning than output", chatRole + chatStop + swap(chatUses, `"total_tokens":10`, `"total_tokens":10,"completion_tokens_details":{"reasoning_tokens":2}`) + chatDone, "/usage/completion_tokens_details/reasoning_tokens: more than the 1 completion tokens"},
		{"more cached than input", chatRole + chatStop + swap(chatUses, `"total_tokens":10`, `"total_tokens":10,"prompt_tokens_details":{"cached_tokens":10}`) + chatDone, "/usage/prompt_tokens_details/cached_tokens: more than the 9 prompt tokens"},
		{"tier of another vendor", chatRole + swap(chatText, `"model":"m"`, `"model":"m","service_tier":"on_demand"`) + chatStop + chatDone, "event 1 /service_tier: \"on_demand\" is not one of"},
		{"an event name", "event: message\n" + hello, "event 0: event name \"message\" in a dialect without event names"},
		{"a comment inside", "data: {}\n: ping\n\n", "event 0: a comment inside an event"},
		{"two lines of data", "data: {}\ndata: {}\n\n", "event 0: more than one line of data"},
		{"CR LF", swap(hello, "\n", "\r\n"), "a carriage return in a line"},
		{"an id line", "id: 1\n" + hello, "event 0: unknown field \"id\""},
		{"cut inside", hello[:len(hello)-1], "the stream ends inside an event"},
		{"a duplicate field", chatRole + swap(chatText, `"model":"m"`, `"model":"m","model":"m"`) + chatStop + chatDone, "event 1: not JSON: jsontext: duplicate"},
	}}.run(t)
}

// The call format before tools has no ids and no list.
func TestChatFunctionCalls(t *testing.T) {
	delta := func(call string) string {
		return swap(chatText, `"content":"Hi"`, `"function_call":`+call)
	}
	named, args, end := delta(`{"name":"f","arguments":""}`), delta(`{"arguments":"{}"}`), swap(chatStop, "stop", "function_call")
	streams{dialectname.OpenAIChat, []string{
		chatRole + named + args + end + chatDone, chatRole + named + args + chatStop + chatDone,
		chatRole + named + delta(`{"arguments":"{"}`) + swap(chatStop, "stop", "length") + chatDone,
	}, []broken{
		{"no name", chatRole + args + end + chatDone, "event 1 /choices/0/delta/function_call/name: missing"},
		{"a repeated name", chatRole + named + named + end + chatDone, "event 2 /choices/0/delta/function_call/name: repeated"},
		{"arguments must be an object", chatRole + delta(`{"name":"f","arguments":{}}`) + end + chatDone, "event 1 /choices/0/delta/function_call/arguments: not a string"},
		{"no call", chatRole + end + chatDone, "event 1 /choices/0/finish_reason: function_call without a call"},
		{"a function_call with tool_calls", chatRole + chatCall + chatArgs + named + args + chatTool + chatDone, "event 5 /choices/0: a function_call together with tool_calls"},
		{"another end", chatRole + named + args + chatTool + chatDone, "event 3 /choices/0/finish_reason: \"tool_calls\" together with a function_call"},
		{"incomplete arguments", chatRole + named + delta(`{"arguments":"{"}`) + end + chatDone, "event 3 /choices/0: the arguments of the function_call"},
	}}.run(t)
	whole := `{"id":"c","object":"chat.completion","created":1,"model":"m","service_tier":null,"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"function_call":{"name":"f","arguments":"{}"}},"logprobs":null,"finish_reason":"function_call"}]}`
	wholes{dialectname.OpenAIChat, []string{whole, swap(whole, `"finish_reason":"function_call"`, `"finish_reason":"stop"`)}, []broken{
		{"no name", swap(whole, `"name":"f",`, ""), "/choices/0/message/function_call/name: missing"},
		{"no arguments", swap(whole, `,"arguments":"{}"`, ""), "/choices/0/message/function_call/arguments: missing"},
		{"arguments must be an object", swap(whole, `"{}"`, `{}`), "/choices/0/message/function_call/arguments: not a string"},
		{"incomplete arguments", swap(whole, `"{}"`, `"{"`), "/choices/0: the arguments of the function_call"},
		{"no call", swap(whole, `,"function_call":{"name":"f","arguments":"{}"}`, ""), "/choices/0/finish_reason: function_call without a call"},
		{"another end", swap(whole, `"finish_reason":"function_call"`, `"finish_reason":"tool_calls"`), "/choices/0/finish_reason: tool_calls without calls"},
		{"a function_call with tool_calls", swap(whole, `"function_call":{`, `"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"function_call":{`), "/choices/0: a function_call together with tool_calls"},
	}}.run(t)
}

func TestChatWholeResponsesAndErrors(t *testing.T) {
	good := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"custom","custom":{"name":"g","input":"x"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	wholes{dialectname.OpenAIChat, []string{good}, []broken{
		{"no id", swap(good, `"id":"chatcmpl-1",`, ""), "/id: missing"},
		{"a chunk", swap(good, "chat.completion", "chat.completion.chunk"), "/object"},
		{"no choices", `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[]}`, "/choices: empty"},
		{"no refusal", swap(good, `"refusal":null,`, ""), "/choices/0/message/refusal: missing"},
		{"no logprobs", swap(good, `"logprobs":null,`, ""), "/choices/0/logprobs: missing"},
		{"no content", swap(good, `"content":null,`, ""), "/choices/0/message/content: missing"},
		{"arguments must be an object", swap(good, `"arguments":"{}"`, `"arguments":{}`), "/function/arguments: not a string"},
		{"duplicate id", swap(good, "call_2", "call_1"), "/choices/0/message/tool_calls/1/id: duplicate \"call_1\""},
		{"no calls", swap(good, `"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"custom","custom":{"name":"g","input":"x"}}]`, `"tool_calls":[]`), "/tool_calls: empty"},
		{"a sum", swap(good, `"total_tokens":3`, `"total_tokens":4`), "/usage/total_tokens"},
	}}.run(t)
	errs := `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`
	for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses} {
		failures{d, 400, []string{errs}, []broken{
			{"no message", swap(errs, "No.", ""), "/error/message: empty"},
			{"no type", swap(errs, `"type":"invalid_request_error",`, ""), "/error/type: missing"},
			{"no param", swap(errs, `"param":null,`, ""), "/error/param: missing"},
			{"a code that is a number", swap(errs, `"code":null`, `"code":400`), "/error/code: not a string"},
			{"a bare text", `{"error":"No."}`, "/error: not an object"},
			{"HTML", `<html>`, "not JSON"},
		}}.run(t)
	}
}
