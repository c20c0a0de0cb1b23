package openairesponses

import (
	"encoding/json"
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","input":"x"}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[]},{"id":"x"},7]}`,
		`{"tools":[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]},{"type":"custom","name":"c"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[null]},"include":[1,"reasoning.encrypted_content"],"metadata":{"a":1},"text":{"format":null},"user":"u","safety_identifier":"s"}`,
		`{"input":[{"type":"message","role":"assistant","content":[{"type":"zzz"},{"type":"refusal","refusal":null}],"status":1}],"instructions":["a"],"stream":false,"store":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, _ := codectest.AnyRequest(t, Codec{}, body); req != nil && req.Native == nil && codectest.ReportsNoDroppedNative(Codec{}, body) {
			t.Fatal("the native request is lost")
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		`{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":1}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}},{"type":"function_call","call_id":"c","name":"f","arguments":""}],"created_at":1.5}`,
		`{"status":"failed","error":"boom","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"t"}]},{"type":"x"}],"model":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if resp, back := codectest.AnyResponse(t, Codec{}, body); resp != nil && back == nil {
			t.Fatalf("%v cannot be decoded again", resp.Error)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	f.Add(events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, `{"a":`), done(0, callJSON("fc_1", "c1", `{"a":1}`, "completed")), completed), 3)
	f.Add(events(created, `{"type":"response.output_text.delta","output_index":1000000000,"content_index":-1,"delta":"x"}`, `{"type":"response.content_part.done","part":{"type":"refusal","refusal":"r"}}`,
		`{"type":"response.reasoning_summary_text.delta","summary_index":2,"delta":"s"}`, `{"type":"response.incomplete","response":{"output":[{"type":"x"},{"type":"message"}]}}`), 1)
	f.Add(append(events(created, `{"type":"response.custom_tool_call_input.delta","item_id":"a","delta":{"x":1}}`, `{"type":"error","message":"m"}`), ": c\r\n\rdata: [DONE]"...), 7)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		if len(body) > 1<<16 {
			return
		}
		evs, _ := codectest.AnyStream(t, Codec{}, body, uint16(n))
		codectest.Written(t, Codec{}, codectest.Bare(evs), func(stream []byte) error { return checkOrder(stream, false) })
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, s := range []string{
		`{"error":{"message":"m","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`,
		`{"code":"invalid-argument","error":"Incorrect"}`, `{"detail":"Could not parse"}`, `{"detail":[{"msg":"x"}]}`,
		`{"error":{"message":"Please try again in 2.5s.","code":"rate_limit_exceeded"}}`, `{"error":{"message":7,"code":502}}`,
		`{"type":"error","error":{"message":"m"}}`, `{"message":"m","error":null}`, `<html>busy</html>`, ``, `[1]`, `{"error":`,
	} {
		f.Add(429, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := Codec{}.DecodeError(status, http.Header{"Retry-After": {string(body)}}, body)
		if e.Status != status || e.Class == "" || e.RetryAfter < 0 {
			t.Fatalf("%+v", e)
		}
		written, out, _ := Codec{}.EncodeError(e)
		if written < 400 || written > 599 || !json.Valid(out) {
			t.Fatalf("%+v is encoded as %d %q", e, written, out)
		}
		again := Codec{}.DecodeError(written, nil, out)
		if e.Message != "" && again.Native == nil {
			t.Fatalf("%q is not an error body of this dialect", out)
		}
		// The same body in a stream, as an event and instead of events.
		for _, e := range []*dragoman.APIError{decodeErrorEvent(body), decodeErrorObject(body), e} {
			enc, err := Codec{}.EncodeResponse(&dragoman.Response{Error: e}, dialect.EncodeOptions{})
			if err != nil || !json.Valid(enc.Body) {
				t.Fatalf("%v %s", err, enc.Body)
			}
		}
		evs, _, _ := decodeStream(body, 5, dialect.DecodeOptions{})
		last := evs[len(evs)-1]
		if _, ok := last.(*dragoman.Chunk); !ok && last.Type() != "stream_error" && last.Type() != "response_end" {
			t.Fatalf("last event %T", last)
		}
	})
}
