package cohere_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// event returns a server-sent event.
func event(data string) string { return "data: " + data + "\n\n" }

const wholeStream = `data: {"type":"message-start","id":"r1","delta":{"message":{"role":"assistant"}}}

data: {"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will."}}}

data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}

data: {"type":"content-end","index":0}

data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a1","type":"function","function":{"name":"f","arguments":""}}}}}

data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}

data: {"type":"tool-call-end","index":0}

data: {"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1,"output_tokens":2}}}}

data: [DONE]

`

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"":[{"":"","":""}]}`, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_plan":"p","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a"},null,5]},{"role":"tool","tool_call_id":"a","content":[{"type":"document","document":{"data":{"x":1}}},{"type":"document","document":{"id":"d","data":"x"}},{"type":"text","text":"t"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},{"type":"thinking","thinking":"x"},{"type":"odd"}]}],"documents":["d",{"data":{"a":"b"}}]}`,
		`{"messages":[{"role":"user","content":"x","content":"y"}],"thinking":{"type":"enabled","token_budget":5},"response_format":{"type":"json_object","json_schema":{"type":"object"}},"strict_tools":true,"tools":[{"type":"function","function":{"name":"f","parameters":null}},{"function":5}],"tool_choice":"REQUIRED","p":0.5,"k":3.5,"seed":"1","stop_sequences":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, back := codectest.AnyRequest(t, codec, body)
		if req == nil || back == nil {
			return
		}
		if len(back.Messages) != len(req.Messages) || back.Stream != req.Stream {
			t.Fatalf("%d messages became %d", len(req.Messages), len(back.Messages))
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"message":"too many tokens"}`, `{"id":"r","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}],"citations":[{"start":0,"end":2,"text":"Hi","sources":[]}]},"usage":{"tokens":{"input_tokens":1,"output_tokens":2}}}`,
		`{"id":"r","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"p","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}},{"id":"a","function":{"name":"g"}},"x"]}}`,
		`{"finish_reason":"MAX_TOKENS","message":{"content":"x","content":[{"type":"thinking","thinking":"t"},{"type":"odd"},5]},"usage":null}`,
		`{"finish_reason":"","message":{"content":null,"tool_calls":null}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, back := codectest.AnyResponse(t, codec, body)
		if resp != nil && (back == nil || resp.Error == nil && back.Text() != resp.Text()) {
			t.Fatalf("%q became %+v", resp.Text(), back)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	for i, s := range []string{
		wholeStream, "", "\n", "data: [DONE]\n\n", "data: 5\n\n", "\xef\xbb", event(`{"type":"message-end"}`), event(`{"type":"odd","x":1}`) + wholeStream,
		event(`{"type":"message-start","id":"a"}`) + event(`{"type":"message-start","id":"b"}`) + event(`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"broken"}}`),
		event(`{"type":"content-delta","index":3,"delta":{"message":{"content":{"thinking":"x"}}}}`) + event(`{"type":"content-start","index":3,"delta":{"message":{"content":{"type":"odd","x":1}}}}`) + wholeStream,
		event(`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a","function":{"name":"f","arguments":"{\"a\":1"}}}}}`) + event(`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a","function":{"name":"g"}}}}}`) + event(`{"type":"message-end","delta":{"finish_reason":"MAX_TOKENS"}}`),
		event(`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0}}}}`) + wholeStream,
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

// FuzzStreamEncoder changes one event of a stream and checks that the output is
// still valid.
func FuzzStreamEncoder(f *testing.F) {
	for i, s := range []string{
		wholeStream, event(`{"type":"message-start","id":"a"}`), event(`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"x"}}`),
		event(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":"a"}}}}`) + wholeStream,
	} {
		f.Add([]byte(s), uint16(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, at uint16) {
		evs, _, _ := decodeStream(dialect.DecodeOptions{}, string(body))
		if len(evs) == 0 {
			return
		}
		if changed := codectest.Changed(evs, int(at)%len(evs), func(string) string { return "changed" }); changed != nil {
			evs = changed
		}
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, evs)
		d := codec.NewStreamDecoder(dialect.DecodeOptions{})
		if err := d.Feed(out, func(dragoman.Event) error { return nil }); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	for i, s := range []string{
		``, `{}`, `null`, `<html>bad gateway</html>`, `{"message":"m"}`, `{"id":"x","message":"m"} y`, `{"message":{"error":"m"}}`, `{"message":""}`, "\xff", "{\"message\":\"\xe1\"}", `{"message":"m`,
	} {
		f.Add(i*100-100, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		own := codec.DecodeError(status, nil, body).Native != nil
		if code := codectest.AnyError(t, codec, status, body, ""); own && status >= 400 && status <= 599 && code != status {
			t.Fatalf("status %d became %d", status, code)
		}
	})
}
