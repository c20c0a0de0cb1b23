package ollama_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// repeatsModel reports whether the model is named more than once: readers
// disagree on which one counts, so replay makes them agree.
func repeatsModel(body []byte) bool {
	return bytes.Count(body, []byte(`"model"`)) > 1 || bytes.Contains(body, []byte(`\u`))
}

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		oddRequest, `{}`, `null`, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","messages":[],"keep_alive":0}`,
		`{"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"a","Function":{"name":"g"},"function":{"name":"h"}},null,5]},{"role":"TOOL","tool_call_id":"","content":null},{"role":"tool","tool_name":"g","images":["",null]}]}`,
		`{"think":"low","stream":null,"format":"json","options":{"num_predict":-1,"stop":"x","temperature":"0.5","top_k":1.5},"tools":[]}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":null}},{"type":"web_search"},{"function":5}],"messages":[{"content":"a","content":"b"}]}`,
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
		if err != nil || !json.Valid(again.Body) {
			t.Fatalf("%v: %s", err, again.Body)
		}
		back, _, err := codec.DecodeRequest(again.Body, dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, again.Body)
		}
		if len(back.Messages) != len(req.Messages) || back.Stream != req.Stream {
			t.Fatalf("%d messages became %d\n%s", len(req.Messages), len(back.Messages), again.Body)
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		oddResponse, `{}`, `{"error":{"message":"m","code":5}}`, `{"message":{},"error":"x","done":false}`,
		answer(`{"role":"tool","content":"x","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1,"a":2}}},{"id":"a","function":{"name":"g"}},"x"]}`, `,"done_reason":"length","eval_count":"2"`),
		`{"message":{"content":"x"},"done":true,"done_reason":"","created_at":"never","eval_count":null}`,
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
		mayRun(t, resp)
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
		if back, _, err := codec.DecodeResponse(again.Body, dialect.DecodeOptions{}); err != nil || resp.Error == nil && back.Text() != resp.Text() {
			t.Fatalf("%v\n%s", err, again.Body)
		}
	})
}

// mayRun checks that no call may run that must not.
func mayRun(t *testing.T, resp *dragoman.Response) {
	t.Helper()
	for _, c := range resp.ToolCalls() {
		if c.Problem == nil && c.Payload == dragoman.PayloadObject && dragoman.CheckArguments(c.Arguments) != nil {
			t.Fatalf("may run with %q", c.Arguments)
		}
		if c.Problem == nil && !resp.Stop.Reason.Runs() {
			t.Fatalf("may run after %q", resp.Stop.Reason)
		}
	}
}

// rewritten reports whether a decoder held back bytes.
func rewritten(evs []dragoman.Event) bool {
	for _, ev := range evs {
		if c, ok := ev.(*dragoman.Chunk); ok && len(c.Raw) == 0 {
			return true
		}
	}
	return false
}

func FuzzStreamDecoder(f *testing.F) {
	for i, s := range []string{
		hostileStream, aStream, "", "\n", `{"error":"x"}`, "{\n", "5\r\n", "\xef\xbb", last(""),
		line(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1,"a":2}}},{"id":"a","function":{"name":"g"}}]}`) + last(`,"done_reason":"length"`),
		line(`{"images":[""]}`) + last(""),
		line(`{"content":"a","content":"b","thinking":"c"}`) + line(`{"thinking":"d","images":["AAAA"]}`) + `{"done_reason":"length"}` + "\n" + last(`,"done_reason":"stop"`) + "\n\n" + line(`{}`),
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
		if whole.err == nil {
			mayRun(t, whole.resp)
		}
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, whole.events)
		if whole.feed == nil && whole.err == nil && !rewritten(whole.events) && !strings.HasPrefix(string(body), strings.TrimRight(string(out), "\n")) {
			t.Fatalf("got  %q\nwant %q", out, body)
		}
		rebuilt, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{Rebuild: true}, whole.events)
		again := decodeStream(t, dialect.DecodeOptions{}, string(rebuilt))
		if again.feed != nil {
			t.Fatalf("%v\n%s", again.feed, rebuilt)
		}
		// An image without content is shown in words.
		if whole.err == nil && strings.ReplaceAll(again.resp.Text(), "[image not shown]", "") != strings.ReplaceAll(whole.resp.Text(), "[image not shown]", "") {
			t.Fatalf("%q became %q\n%s", whole.resp.Text(), again.resp.Text(), rebuilt)
		}
	})
}

// FuzzStreamEncoder changes a stream in the middle: from there on it is written
// from what is left of its events, and must stay a stream.
func FuzzStreamEncoder(f *testing.F) {
	for i, s := range []string{
		aStream, hostileStream, line(`{"content":"a"}`), `{"error":"x"}`,
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
		evs := codectest.Blanked(d.events, i)
		if changed := codectest.Changed(evs, i, func(string) string { return "changed" }); changed != nil {
			evs = changed
		}
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, evs)
		for l := range bytes.Lines(out) {
			if l = bytes.TrimSpace(bytes.TrimPrefix(l, []byte("\ufeff"))); len(l) > 0 && jsonwire.NewReader(l).Kind() != '{' {
				t.Fatalf("%q is no line\n%s", l, out)
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
