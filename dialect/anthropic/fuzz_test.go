package anthropic_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{"a":1,"a":2}},{"type":"thinking","thinking":"","signature":"s"}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]}]}]}`,
		`{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20260318","name":"web_search"}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`,
		`{"thinking":{"type":"enabled","budget_tokens":1e99},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}},"metadata":{"user_id":null},"stop_sequences":[null,""],"temperature":1.0,"temperature":2}`,
		`{"messages":[{"role":"system","content":[]},{"role":"","content":null},{"role":"martian","content":[5,"x",{"type":"opaque"}]}],"stream":false,"cache_control":{"type":"eternal"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { codectest.AnyRequest(t, codec, body) })
}

func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{}`, responseBody("end_turn", `[{"type":"text","text":"x"}]`), responseBody("tool_use", `[{"type":"tool_use","id":5,"name":null,"input":"{\"a\":1}"},{"type":"tool_use","input":[]}]`),
		responseBody("max_tokens", `"text"`), responseBody("", `null`), responseBody("refusal", `[{"type":"redacted_thinking","data":"x"},{"type":"thinking"},null,7]`),
		`{"type":"error","error":{"type":"api_error","message":"x"}}`, `{"id":"x","content":[],"stop_details":null,"usage":{"input_tokens":-5,"output_tokens":1e30,"cache_read_input_tokens":9223372036854775807}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		// Every decodable response can be written as a valid stream.
		if resp, _ := codectest.AnyResponse(t, codec, body); resp != nil {
			codectest.Written(t, codec, codectest.EventsOf(resp), checkWire)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	f.Add(richStream, uint16(7))
	f.Add([]byte(sseStream(startLine+"\n"+endLines("telepathy"))), uint16(1))
	f.Add([]byte(sseStream(`{"type":"content_block_delta","index":99999999999,"delta":{"type":"text_delta","text":"x"}}
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":"{}"}}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wrong kind"}}
		{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":null,"context_management":{}}
		`+stopLine)), uint16(3))
	f.Add([]byte("data: {\"type\":\"error\",\"error\":\"x\"}\n\ndata: [DONE]\n\n"), uint16(2))
	f.Add([]byte(sseStream(`{"type":"message_start","message":`+responseBody("tool_use", `[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"mcp_tool_use","id":"b"}]`)+`}`)), uint16(50))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		evs, _ := codectest.AnyStream(t, codec, stream, cut)
		codectest.Written(t, codec, codectest.Bare(evs), checkWire)
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}`, `{"error":"x"} trailing`,
		`{"error":{"message":"x","details":{"error_code":7}}}`, `{"detail":"x"}`, `{"error":{"message":`, "<html>\xff", `{"message":"a","error":null}`,
		`{"error":{"message":"a"},"x":1,"x":2}`, `{"error":{"message":"a"},"Content":[]}`,
	} {
		f.Add(529, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) { codectest.AnyError(t, codec, status, body, "content") })
}
