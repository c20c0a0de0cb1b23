package openaichat_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		oddRequest, `{}`, `null`, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"","function":{"name":"f","arguments":{}}},{"id":"a","type":"custom","custom":{"name":"g","input":"x"}}]},{"role":"tool","tool_call_id":"","content":null}]}`,
		`{"functions":[{"name":"f"}],"function_call":"auto","messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"x"}]}`,
		`{"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"f"}}]}}}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AA=="},{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"file","file":{"file_data":"JVBE"}}]}]}`,
		`{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}},"max_tokens":1,"max_completion_tokens":2,"stop":["a"],"metadata":{"a":1}}`,
		`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"0"}}}`,
		`{"messages":[{"role":"assistant","reasoning":{"text":"t"},"reasoning_details":[{"type":"reasoning.text","text":"t"}],"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, _ := codectest.AnyRequest(t, codec, body); req != nil && req.Native == nil && codectest.ReportsNoDroppedNative(codec, body) {
			t.Fatal("the native request is lost")
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		oddResponse, `{}`, `{"error":{"message":"m","code":5}}`, `{"choices":[{"index":1},{"index":0,"message":null,"finish_reason":null,"native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}`,
		`{"choices":[{"message":{"role":"","content":"x","refusal":"no","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}},{"id":"a","function":{"name":"g"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":"2","total_tokens":9,"completion_tokens_details":{"reasoning_tokens":6}},"x_groq":{"usage":{"prompt_tokens":3}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) { codectest.AnyResponse(t, codec, body) })
}

func FuzzStreamDecoder(f *testing.F) {
	for i, s := range []string{
		oddStream, hostileStream, "", "data: [DONE]\n\n", "data: {\"error\":\"x\"}\n\n", "event: error\ndata: {}\n\n", "data: {\n\n", "data: 5\r\r",
		"data:[DONE]\n0\n\ndata:0", "data: [DONE]\n\n: between\n\ndata: {\"id\":\"r\"}\n\n: bye\n\ndata: [DONE]\n\n",
		stream(`"tool_calls"`, toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"b","function":{"name":"g"}}`, `{"function":{"arguments":"}"}}`)...),
		stream(`"stop"`, `{"tool_calls":[{"function":{"name":"f"}}],"content":"x","reasoning_details":[{"text":"t"}],"reasoning":"t"}`, `{"function_call":{"name":"f","arguments":"{}"}}`, `{"refusal":"no"}`),
	} {
		f.Add([]byte(s), uint16(i*7+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		evs, _ := codectest.AnyStream(t, codec, body, size)
		if err := codectest.OneMessage(evs); err != nil {
			t.Fatal(err)
		}
		codectest.Rebuilt(t, codec, evs)
	})
}

func FuzzDecodeError(f *testing.F) {
	for i, s := range []string{
		``, `{}`, `null`, `<html>bad gateway</html>`, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`, `{"error":"m"}`, `{"error":"m"} x`,
		`[{"error":{"code":429,"message":"m"}}]`, `{"object":"error","message":"m","code":"3280"}`, `{"detail":"m"}`, `{"error":{"message":"m`, `{"error":{"message":""}}`, "\xff", "{\"error\":\"\xe1\"}",
	} {
		f.Add(i*100-100, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		own := codec.DecodeError(status, nil, body).Native != nil // otherwise it may come from another vendor and get one of our statuses
		if code := codectest.AnyError(t, codec, status, body, "choices"); own && status >= 400 && status <= 599 && code != status {
			t.Fatalf("status %d became %d", status, code)
		}
	})
}
