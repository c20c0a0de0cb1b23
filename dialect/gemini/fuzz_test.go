package gemini_test

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
		`{}`, `[]`, snakeRequest, `{"contents":{"parts":[{"functionResponse":{}}]}}`, `{"contents":{"parts":{"text":"hi"}}}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1,"a":2}}},{"text":"","thoughtSignature":"s"},{"thought":true,"text":"t"}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"error":[1]},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}},7]}}]}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}}],"googleSearch":{},"codeExecution":null}],"toolConfig":{"functionCallingConfig":{"mode":2,"allowedFunctionNames":["f"]}}}`,
		`{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH","thinkingBudget":-1},"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"stopSequences":[null],"topK":1e99,"seed":"7"},"cachedContent":"c","model":"models/m","systemInstruction":{"role":"x","parts":[]}}`,
		`{"contents":[{"role":"martian","parts":[{},{"novelty":1},{"text":"a","inlineData":{}},{"FunctionCall":{}},{"functionCall":{"willContinue":true}}]},{"parts":null}],"store":false}`,
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
		`{}`, answerOf("STOP", `{"text":"x"}`), answerOf("STOP", `{"functionCall":{"id":5,"name":null,"args":"{\"a\":1}"}},{"functionCall":{"args":[]}}`),
		answerOf("MAX_TOKENS", `{"functionCall":{"name":"f","args":{"a":1,"a":2}},"text":"x"},{"thoughtSignature":"s"}`), answerOf("", ``),
		`{"error":{"code":500,"message":"x"}}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"candidates":[],"usageMetadata":{"promptTokenCount":-5,"thoughtsTokenCount":1e30}}`,
		`{"candidates":[{"finishReason":1},{"content":{"parts":[{"codeExecutionResult":{"id":"a"}}]},"index":7}],"createTime":"2026-01-01T00:00:00.5Z"}`,
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
		again, _, err := codec.DecodeResponse(built.Body, dialect.DecodeOptions{})
		if err != nil && resp.Error == nil {
			t.Fatalf("what we build cannot be read: %v\n%s", err, built.Body)
		}
		if resp.Error == nil && !resp.Stop.Reason.Runs() && again.Stop.Reason.Runs() && len(again.ToolCalls()) > 0 {
			t.Fatalf("calls may run again: %+v became %+v\n%s", resp.Stop, again.Stop, built.Body)
		}
		evs := []dragoman.Event{&dragoman.ResponseStart{Response: *resp}}
		n := 0
		for i := range resp.Output {
			for _, p := range resp.Output[i].Parts {
				evs = append(evs, &dragoman.PartStart{Index: n, Part: p}, &dragoman.PartEnd{Index: n, Part: p})
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
	f.Add(asArray(richStream), uint16(50))
	f.Add([]byte("[1,\"a\",{\"error\":{}}]"), uint16(2))
	f.Add([]byte(sseStream(chunk("", `{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$['a'][0].b","boolValue":true}],"willContinue":true}}`), chunk("TELEPATHY", `{"functionCall":{"name":"g"}},{"functionCall":{}}`))), uint16(1))
	f.Add([]byte("data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"}}\n\ndata: [DONE]\n\n"), uint16(3))
	f.Add([]byte(sseStream(chunk("SAFETY", `{"text":"a","text":"b"}`), chunk("STOP", `{"functionCall":{"id":"1","name":"f","args":{}}},{"functionCall":{"id":"1","name":"f","args":{}}}`))), uint16(9))
	f.Add([]byte(",\n\r\ndata: {\"candidates\":[{\"finishReason\":0}]}"), uint16(0))
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
		out, _ = play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, int(cut)%len(evs))...)
		if checkWire(stream) == nil && err == nil {
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

// checkPromises fails where events break what a decoder promises.
func checkPromises(t *testing.T, evs []dragoman.Event) {
	t.Helper()
	type key struct{ choice, index int }
	open := map[key]bool{}
	next := map[int]int{}
	started, ended := false, false
	for i, ev := range evs {
		if _, ok := ev.(*dragoman.Chunk); ok {
			continue
		}
		if ended {
			t.Fatalf("event %d, %s, comes after the end", i, ev.Type())
		}
		if _, ok := ev.(*dragoman.ResponseStart); ok == started {
			t.Fatalf("event %d is %s", i, ev.Type())
		}
		started = true
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			if ev.Index != next[ev.Choice] {
				t.Fatalf("part %d starts, want %d", ev.Index, next[ev.Choice])
			}
			next[ev.Choice]++
			open[key{ev.Choice, ev.Index}] = true
		case *dragoman.PartDelta:
			if !open[key{ev.Choice, ev.Index}] {
				t.Fatalf("a delta of part %d, which is not open", ev.Index)
			}
		case *dragoman.PartEnd:
			if !open[key{ev.Choice, ev.Index}] {
				t.Fatalf("the end of part %d, which is not open", ev.Index)
			}
			delete(open, key{ev.Choice, ev.Index})
		case *dragoman.ResponseEnd, *dragoman.StreamError:
			ended = true
		}
	}
	if !ended || len(open) > 0 {
		t.Fatalf("ended %v, open %v", ended, open)
	}
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"error":{"code":429,"message":"busy","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"1e400s"},{"retryDelay":"3s"},7]}}`,
		`[{"error":{"message":"x"}}]`, `{"error":"x"} trailing`, `{"error":{"message":`, "<html>\xff", `{"message":"a","error":null}`, `[[[{"detail":"d"}]]]`,
	} {
		f.Add(503, []byte(seed))
		f.Add(338, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := codec.DecodeError(status, nil, body)
		if e == nil || e.Class == "" || e.RetryAfter < 0 {
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
