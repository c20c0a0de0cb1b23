package emitcheck_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

const (
	olHead = `{"model":"m","created_at":"2026-11-15T10:00:00.123456Z",`
	olText = olHead + `"message":{"role":"assistant","content":"Hi"},"done":false}` + "\n"
	olCall = olHead + `"message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"f","arguments":{"a":1}}}]},"done":false}` + "\n"
	olEnd  = olHead + `"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":4}` + "\n"
)

func TestOllamaStreams(t *testing.T) {
	streams{dialectname.Ollama, []string{
		olText + olEnd, olCall + swap(olCall, "call_1", "call_2") + olEnd, olText + `{"error":"broken"}` + "\n", olEnd,
	}, []broken{
		{"no end", olText, "the stream has no end"},
		{"two ends", olText + olEnd + olEnd, "line 2: after the end, which was done"},
		{"after error", `{"error":"broken"}` + "\n" + olEnd, "line 1: after the end, which was an error"},
		{"a blank line", olText + "\n" + olEnd, "line 1: a blank line"},
		{"cut inside a line", olText + olEnd[:len(olEnd)-1], "line 1: the stream ends inside a line"},
		{"no model", swap(olText, `"model":"m",`, "") + olEnd, "line 0 /model: missing"},
		{"another model", olText + swap(olEnd, `"m"`, `"n"`), "line 1 /model: \"n\", but the first line has \"m\""},
		{"an invalid time", swap(olText, "2026-11-15T10:00:00.123456Z", "now") + olEnd, "line 0 /created_at: \"now\" is not an RFC 3339 time"},
		{"another role", swap(olText, "assistant", "model") + olEnd, "line 0 /message/role: \"model\""},
		{"no content", swap(olCall, `"content":"",`, "") + olEnd, "line 0 /message/content: missing"},
		{"arguments is a string", swap(olCall, `{"a":1}`, `"{}"`) + olEnd, "line 0 /message/tool_calls/0/function/arguments: not an object"},
		{"no arguments", swap(olCall, `,"arguments":{"a":1}`, "") + olEnd, "/tool_calls/0/function/arguments: missing"},
		{"no name", swap(olCall, `"name":"f",`, "") + olEnd, "/tool_calls/0/function/name: missing"},
		{"duplicate id", olCall + olCall + olEnd, "line 1 /message/tool_calls/0/id: duplicate \"call_1\""},
		{"no done", swap(olText, `,"done":false`, "") + olEnd, "line 0 /done: missing"},
		{"no reason", olText + swap(olEnd, `"done_reason":"stop",`, ""), "line 1 /done_reason: missing"},
		{"counters before the end", swap(olText, `"done":false`, `"done":false,"eval_count":1`) + olEnd, "line 0 /eval_count: before the last line"},
		{"a counter is a string", olText + swap(olEnd, `"eval_count":4`, `"eval_count":"4"`), "line 1 /eval_count: 4 is not a non-negative integer"},
		{"more cached than input", olText + swap(olEnd, `"prompt_eval_count":9`, `"prompt_eval_count":9,"prompt_eval_cached_count":10`), "line 1 /prompt_eval_cached_count: more than the 9 prompt tokens"},
		{"an empty error", `{"error":""}` + "\n", "line 0 /error: empty"},
		{"events", "data: " + olText + "\n", "line 0: not JSON"},
	}}.run(t)
}

func TestOllamaWholeResponsesAndErrors(t *testing.T) {
	wholes{dialectname.Ollama, []string{olEnd}, []broken{
		{"not done", olText, "/done: false in a response that is not streamed"},
		{"no message", `{"model":"m","created_at":"2026-11-15T10:00:00Z","done":true,"done_reason":"stop"}`, "/message: missing"},
		{"no time", swap(olEnd, `"created_at":"2026-11-15T10:00:00.123456Z",`, ""), "/created_at: missing"},
		{"no reason", swap(olEnd, `"done_reason":"stop",`, ""), "/done_reason: missing"},
		{"an empty list of calls", swap(olEnd, `"content":""`, `"content":"","tool_calls":[]`), "/message/tool_calls: empty"},
		{"null content", swap(olEnd, `"content":""`, `"content":null`), "/message/content: not a string"},
		{"null thinking", swap(olEnd, `"content":""`, `"content":"","thinking":null`), "/message/thinking: not a string"},
		{"lines", olText + olEnd, "more data after the value"},
	}}.run(t)
	failures{dialectname.Ollama, 404, []string{`{"error":"model 'm' not found"}`}, []broken{
		{"an object", `{"error":{"message":"x"}}`, "/error: not a string"},
		{"empty", `{"error":""}`, "/error: empty"},
		{"missing", `{}`, "/error: missing"},
		{"text", `model not found`, "not JSON"},
	}}.run(t)
}
