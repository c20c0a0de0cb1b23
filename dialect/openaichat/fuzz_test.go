package openaichat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// repeats reports whether the model is named more than once: readers disagree
// on which one counts, so replay makes them agree.
func repeatsModel(body []byte) bool {
	return bytes.Count(body, []byte(`"model"`)) > 1 || bytes.Contains(body, []byte(`\u`))
}

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
		req, _, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
		if req == nil {
			t.Fatal("no request")
		}
		if err != nil {
			decodeError(t, err)
			return
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(enc.Body, body) && !repeatsModel(body) {
			t.Fatalf("got  %q\nwant %q", enc.Body, body)
		}
		again, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			if !errors.Is(err, dragoman.ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(again.Body) {
			t.Fatalf("rebuilt as no JSON: %s", again.Body)
		}
		if _, _, err := codec.DecodeRequest(again.Body, dialect.DecodeOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, again.Body)
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
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, _, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
		if resp == nil {
			t.Fatal("no response")
		}
		if err != nil {
			decodeError(t, err)
			return
		}
		for _, c := range resp.ToolCalls() {
			if c.Problem == nil && c.Payload == dragoman.PayloadObject && dragoman.CheckArguments(c.Arguments) != nil {
				t.Fatalf("may run with %q", c.Arguments)
			}
			if c.Problem == nil && !resp.Stop.Reason.Runs() {
				t.Fatalf("may run after %q", resp.Stop.Reason)
			}
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if resp.Native != nil && !bytes.Equal(enc.Body, body) && !repeatsModel(body) {
			t.Fatalf("got  %q\nwant %q", enc.Body, body)
		}
		again, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil || !json.Valid(again.Body) {
			t.Fatalf("%v: %s", err, again.Body)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	for i, s := range []string{
		oddStream, hostileStream, "", "data: [DONE]\n\n", "data: {\"error\":\"x\"}\n\n", "event: error\ndata: {}\n\n", "data: {\n\n", "data: 5\r\r",
		stream(`"tool_calls"`, toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"b","function":{"name":"g"}}`, `{"function":{"arguments":"}"}}`)...),
		stream(`"stop"`, `{"tool_calls":[{"function":{"name":"f"}}],"content":"x","reasoning_details":[{"text":"t"}],"reasoning":"t"}`, `{"function_call":{"name":"f","arguments":"{}"}}`, `{"refusal":"no"}`),
	} {
		f.Add([]byte(s), uint16(i*7+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		whole := decodeStream(t, dialect.DecodeOptions{}, string(body))
		var cut []string
		for rest := string(body); rest != ""; {
			n := min(int(size)%37+1, len(rest))
			cut = append(cut, rest[:n])
			rest = rest[n:]
		}
		parts := decodeStream(t, dialect.DecodeOptions{}, cut...)
		sameEvents(t, whole.events, parts.events)
		if (whole.feed == nil) != (parts.feed == nil) || whole.rep.String() != parts.rep.String() {
			t.Fatalf("%v and %v\n%s\n%s", whole.feed, parts.feed, whole.rep, parts.rep)
		}
		for _, c := range whole.resp.ToolCalls() {
			if c.Problem == nil && (whole.err != nil || !whole.resp.Stop.Reason.Runs()) {
				t.Fatalf("may run after %q, %v", whole.resp.Stop.Reason, whole.err)
			}
		}
		out, _ := encodeStream(t, dialect.EncodeOptions{}, whole.events)
		if whole.feed == nil && whole.err == nil && !rewritten(whole.events) {
			// Lines at the end that never became an event are nothing.
			rest, ok := strings.CutPrefix(string(body), out)
			// Nor is anything that follows the terminal marker.
			done := strings.HasSuffix(strings.TrimSpace(out), "[DONE]")
			if !ok || !done && strings.Contains("\n"+strings.ReplaceAll(rest, "\r", "\n"), "\ndata:") {
				t.Fatalf("got  %q\nwant %q", out, body)
			}
		}
		rebuilt, _ := encodeStream(t, dialect.EncodeOptions{Rebuild: true, StreamUsage: true}, whole.events)
		again := decodeStream(t, dialect.DecodeOptions{}, rebuilt)
		if again.feed != nil {
			t.Fatalf("%v\n%s", again.feed, rebuilt)
		}
		if whole.err == nil && again.resp.Text() != whole.resp.Text() {
			t.Fatalf("%q became %q\n%s", whole.resp.Text(), again.resp.Text(), rebuilt)
		}
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
		e := codec.DecodeError(status, nil, body)
		if e == nil || e.Class == "" || e.Status != status {
			t.Fatalf("%+v", e)
		}
		code, out := codec.EncodeError(e)
		if code < 400 || code > 599 || status >= 400 && status <= 599 && code != status {
			t.Fatalf("status %d became %d", status, code)
		}
		if !json.Valid(out) {
			t.Fatalf("no JSON: %q", out)
		}
		if e.Native != nil && !bytes.Equal(out, body) {
			t.Fatalf("got  %q\nwant %q", out, body)
		}
		again := codec.DecodeError(code, nil, out)
		if again.Message != e.Message && e.Message != "" && utf8.ValidString(e.Message) {
			t.Fatalf("%q became %q in %s", e.Message, again.Message, out)
		}
	})
}
