package anthropic_test

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/google/go-cmp/cmp"
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
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil {
			return
		}
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if req.Native != nil && (err != nil || string(same.Body) != string(body)) {
			t.Fatalf("not byte-identical: %v\n%s", err, same.Body)
		}
		built, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			return // a choice of a tool that is not there
		}
		if _, _, err := codec.DecodeRequest(built.Body, dialect.DecodeOptions{}); err != nil {
			t.Fatalf("what we build cannot be read: %v\n%s", err, built.Body)
		}
	})
}

func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{}`, answerOf("end_turn", `[{"type":"text","text":"x"}]`), answerOf("tool_use", `[{"type":"tool_use","id":5,"name":null,"input":"{\"a\":1}"},{"type":"tool_use","input":[]}]`),
		answerOf("max_tokens", `"text"`), answerOf("", `null`), answerOf("refusal", `[{"type":"redacted_thinking","data":"x"},{"type":"thinking"},null,7]`),
		`{"type":"error","error":{"type":"api_error","message":"x"}}`, `{"id":"x","content":[],"stop_details":null,"usage":{"input_tokens":-5,"output_tokens":1e30,"cache_read_input_tokens":9223372036854775807}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, _, err := codec.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
		if err != nil {
			return
		}
		same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if resp.Native != nil && (err != nil || string(same.Body) != string(body)) {
			t.Fatalf("not byte-identical: %v\n%s", err, same.Body)
		}
		built, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := codec.DecodeResponse(built.Body, dialect.DecodeOptions{}); err != nil && resp.Error == nil {
			t.Fatalf("what we build cannot be read: %v\n%s", err, built.Body)
		}
		// The response as a stream is valid, whatever it holds.
		evs := []dragoman.Event{&dragoman.ResponseStart{Response: *resp}}
		n := 0
		for i := range resp.Output {
			for _, p := range resp.Output[i].Parts {
				evs = append(evs, &dragoman.PartStart{Index: n, Part: skeletonOf(p)}, &dragoman.PartEnd{Index: n, Part: p})
				n++
			}
		}
		out, _ := play(t, dialect.EncodeOptions{}, append(evs, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage})...)
		if err := checkWire([]byte(out)); err != nil {
			t.Fatalf("%v\n%s", err, out)
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
	f.Add([]byte(sseStream(`{"type":"message_start","message":`+answerOf("tool_use", `[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"mcp_tool_use","id":"b"}]`)+`}`)), uint16(50))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		evs, err := drain(dialect.DecodeOptions{}, stream)
		checkPromises(t, evs)
		again, err2 := drain(dialect.DecodeOptions{}, stream, int(cut), 1, 2, 3)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v, re-chunked %v", err, err2)
		}
		if diff := cmp.Diff(evs, again, ignoreSidecars, cmp.Comparer(func(a, b *dragoman.APIError) bool { return a == b || a != nil && b != nil && a.Class == b.Class })); diff != "" {
			t.Fatal(diff)
		}
		out, _ := play(t, dialect.EncodeOptions{}, evs...)
		rebuilt := slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
			c, ok := ev.(*dragoman.Chunk)
			return ok && len(c.Raw) == 0
		})
		if err == nil && !rebuilt && out != string(stream) {
			// Only what never was an event may be missing, comments and names at
			// the very end, and what follows the terminal event.
			if len(out) > len(stream) || string(stream[:len(out)]) != out {
				t.Fatalf("not byte-identical:\n%q\n%q", stream, out)
			}
		}
		// A valid stream stays one wherever it goes on from events.
		out, _ = play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, int(cut)%len(evs))...)
		if checkWire(stream) == nil {
			if err := checkWire([]byte(out)); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		var bare []dragoman.Event
		for _, ev := range evs {
			if ev.Type() != dragoman.EventChunk {
				bare = append(bare, ev)
			}
		}
		out, _ = play(t, dialect.EncodeOptions{}, bare...)
		if err := checkWire([]byte(out)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}`, `{"error":"x"} trailing`,
		`{"error":{"message":"x","details":{"error_code":7}}}`, `{"detail":"x"}`, `{"error":{"message":`, "<html>\xff", `{"message":"a","error":null}`,
	} {
		f.Add(529, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := codec.DecodeError(status, nil, body)
		if e == nil || e.Class == "" {
			t.Fatalf("%+v", e)
		}
		code, out := codec.EncodeError(e)
		if code < 400 || code > 599 {
			t.Fatalf("status %d", code)
		}
		again := codec.DecodeError(code, nil, out)
		if e.Native != nil && string(out) != string(body) || again.Native == nil {
			t.Fatalf("%s\nwritten as %s", body, out)
		}
		if want := e.Message; want != "" && strings.ToValidUTF8(again.Message, "") != strings.ToValidUTF8(want, "") && !strings.Contains(again.Message, "\ufffd") {
			t.Fatalf("message %q read back as %q", want, again.Message)
		}
	})
}
