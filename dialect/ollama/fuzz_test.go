package ollama_test

import (
	"bytes"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		oddRequest, `{}`, `null`, `{"":[{"":"","":""}]}`, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","messages":[],"keep_alive":0}`,
		`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"a","Function":{"name":"g"},"function":{"name":"h"}},null,5]},{"role":"TOOL","tool_call_id":"","content":null},{"role":"tool","tool_name":"g","images":["",null]}]}`,
		`{"think":"low","stream":null,"format":"json","options":{"num_predict":-1,"stop":"x","temperature":"0.5","top_k":1.5},"tools":[]}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":null}},{"type":"web_search"},{"function":5}],"messages":[{"content":"a","content":"b"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, back := codectest.AnyRequest(t, codec, body)
		if req == nil {
			return
		}
		if req.Native == nil && codectest.ReportsNoDroppedNative(codec, body) {
			t.Fatal("the native request is lost")
		}
		if back == nil {
			if len(req.Messages) > 0 {
				t.Fatal("the request cannot be rebuilt")
			}
			return // refused: it has neither messages nor a native form
		}
		if len(back.Messages) != len(req.Messages) || back.Stream != req.Stream {
			t.Fatalf("%d messages became %d", len(req.Messages), len(back.Messages))
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		oddResponse, `{}`, `{"error":{"message":"m","code":5}}`, `{"message":{},"error":"x","done":false}`,
		wholeResponse(`{"role":"tool","content":"x","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1,"a":2}}},{"id":"a","function":{"name":"g"}},"x"]}`, `,"done_reason":"length","eval_count":"2"`),
		`{"message":{"content":"x"},"done":true,"done_reason":"","created_at":"never","eval_count":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, back := codectest.AnyResponse(t, codec, body)
		if resp != nil && (back == nil || resp.Error == nil && back.Text() != resp.Text() && !bytes.Contains(body, []byte(`""`))) { // an image without content becomes a note
			t.Fatalf("%q became %+v", resp.Text(), back)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	for i, s := range []string{
		hostileStream, sampleStream, "", "\n", `{"error":"x"}`, "{\n", "5\r\n", "\xef\xbb", last(""),
		line(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1,"a":2}}},{"id":"a","function":{"name":"g"}}]}`) + last(`,"done_reason":"length"`),
		line(`{"images":[""]}`) + last(""),
		line(`{"content":"a","content":"b","thinking":"c"}`) + line(`{"thinking":"d","images":["AAAA"]}`) + `{"done_reason":"length"}` + "\n" + last(`,"done_reason":"stop"`) + "\n\n" + line(`{}`),
	} {
		f.Add([]byte(s), uint16(i*7+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		evs, _ := codectest.AnyStream(t, codec, body, size)
		if err := codectest.OneMessage(evs); err != nil {
			t.Fatal(err)
		}
		codectest.Rebuilt(t, codec, evs, "[image not shown]") // an image without content
	})
}

// FuzzStreamEncoder changes one event of a stream. The result must still be a valid stream.
func FuzzStreamEncoder(f *testing.F) {
	for i, s := range []string{
		sampleStream, hostileStream, line(`{"content":"a"}`), `{"error":"x"}`,
		line(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1,"a":2}}}]}`) + last(""),
		line(`{"thinking":"a"}`) + line(`{"content":"b"}`) + line(`{"thinking":"c","tool_calls":[5]}`) + last(`,"done_reason":"length"`),
	} {
		f.Add([]byte(s), uint16(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, at uint16) {
		d := decodeStream(t, dialect.DecodeOptions{}, string(body))
		if len(d.events) == 0 {
			return
		}
		i := int(at) % len(d.events)
		evs := d.events
		if changed := codectest.Changed(evs, i, func(string) string { return "changed" }); changed != nil {
			evs = changed
		}
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, evs)
		for l := range bytes.Lines(out) {
			if l = bytes.TrimSpace(bytes.TrimPrefix(l, []byte("\ufeff"))); len(l) > 0 && jsonwire.NewReader(l).Kind() != '{' {
				t.Fatalf("%q is not a JSON line\n%s", l, out)
			}
		}
		if again := decodeStream(t, dialect.DecodeOptions{}, string(out)); again.feed != nil {
			t.Fatalf("%v\n%s", again.feed, out)
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	for i, s := range []string{
		``, `{}`, `null`, `<html>bad gateway</html>`, `{"error":"m"}`, `{"error":"m"} x`, `{"error":{"message":"m","code":429}}`, `{"error":["m"]}`, `{"error":""}`, "\xff", "{\"error\":\"\xe1\"}", `{"error":"m`,
	} {
		f.Add(i*100-100, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		own := codec.DecodeError(status, nil, body).Native != nil // otherwise it may come from another vendor and get one of our statuses
		if code := codectest.AnyError(t, codec, status, body, "message"); own && status >= 400 && status <= 599 && code != status {
			t.Fatalf("status %d became %d", status, code)
		}
	})
}
