package bedrock_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/go-json-experiment/json/jsontext"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, everything, `{"model":"m","modelId":7,"messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"content":[{"toolUse":{"name":"f","input":{"a":1,"a":2}}},{"cachePoint":{}},{"text":1}],"role":"assistant"},{"role":"user","content":[{"toolResult":{"content":"x"}},{"toolResult":7}]}]}`,
		`{"system":[{"cachePoint":{"type":"default"}},{"text":""}],"toolConfig":{"tools":[{"cachePoint":{"type":"default"}},{"toolSpec":{}},{}],"toolChoice":{"any":{"x":1},"auto":{}}}}`,
		`{"inferenceConfig":{"maxTokens":1e99,"stopSequences":[null,""]},"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{"}}}},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":-1}},"requestMetadata":{"a":1},"serviceTier":{"type":"x"}}`,
		`{"messages":[{"role":"system","content":[]},{"role":"","content":null},{"role":"martian","content":[5,"x",{"unheardOf":1}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil {
			return
		}
		twoModels := false
		if req.Extra != nil {
			twoModels = len(slices.DeleteFunc(slices.Clone(req.Extra.Fields), func(f dragoman.Field) bool { return f.Path != "/model" && f.Path != "/modelId" })) > 1 ||
				bytes.Count(body, []byte(`model`))+bytes.Count(body, []byte(`\u`)) > 1
		}
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if req.Native != nil && !twoModels && (err != nil || string(same.Body) != string(body)) {
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
		`{}`, answerOf("end_turn", `[{"text":"x"}]`), answerOf("tool_use", `[{"toolUse":{"toolUseId":5,"name":null,"input":"{\"a\":1}"}},{"toolUse":{"input":[]}}]`),
		answerOf("max_tokens", `"text"`), answerOf("", `null`), answerOf("refusal", `[{"reasoningContent":{"redactedContent":"x"}},{"reasoningContent":{}},null,7]`),
		`{"__type":"X","message":"m"}`, `{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"a"},{"text":"b"}]}},{"image":{"format":"png","source":{"bytes":""}}}]}},"usage":{"inputTokens":-5,"outputTokens":1e30,"totalTokens":"7","cacheReadInputTokens":9223372036854775807}}`,
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
		if err := checkWire(out); err != nil {
			t.Fatalf("%v\n%s", err, lines(t, out))
		}
	})
}

// checkPromises holds events against what every decoder promises.
func checkPromises(t *testing.T, evs []dragoman.Event) {
	t.Helper()
	started, ended := map[int]bool{}, map[int]bool{}
	state, next := "", 0
	for i, ev := range evs {
		switch ev := ev.(type) {
		case *dragoman.Chunk:
		case *dragoman.ResponseStart:
			if state != "" {
				t.Fatalf("event %d: a second start", i)
			}
			state = "open"
		case *dragoman.PartStart:
			if state != "open" || ev.Index != next {
				t.Fatalf("event %d: part %d starts, want %d", i, ev.Index, next)
			}
			started[ev.Index] = true
			next++
		case *dragoman.PartDelta:
			if !started[ev.Index] || ended[ev.Index] {
				t.Fatalf("event %d: a delta of part %d", i, ev.Index)
			}
		case *dragoman.PartEnd:
			if !started[ev.Index] || ended[ev.Index] {
				t.Fatalf("event %d: the end of part %d", i, ev.Index)
			}
			ended[ev.Index] = true
		case *dragoman.ResponseEnd, *dragoman.StreamError:
			if state != "open" || len(ended) != len(started) {
				t.Fatalf("event %d: an end in state %q with %d of %d parts ended", i, state, len(ended), len(started))
			}
			state = "ended"
		}
	}
	if state != "ended" {
		t.Fatalf("the events end in state %q", state)
	}
}

// FuzzStreamDecoder takes a stream as bytes, or as the lines of its events.
func FuzzStreamDecoder(f *testing.F) {
	f.Add(richStream, uint16(7))
	for _, seed := range []string{
		twoParts, startLine + endLines("telepathy"), startLine + inputLine(0, "{") + textLine(0, "x") + endLines(""),
		startLine + callLine(0, "a", "f") + callLine(0, "a", "f") + textLine(0, "wrong kind") + stopLine(9) + `{"messageStop":{"stopReason":"max_tokens","x":1}}`,
		`{"throttlingException":{"message":"m"}}`, startLine + `{"contentBlockStart":{"contentBlockIndex":-1,"start":{"image":{}}}}` + "\n" + `{"contentBlockDelta":{"delta":{"toolResult":[]}}}` + "\n" + endLines("end_turn"),
	} {
		f.Add([]byte(seed), uint16(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		if len(stream) > 0 && stream[0] == '{' {
			stream = binary(string(stream))
		}
		evs, err := drain(dialect.DecodeOptions{}, stream)
		checkPromises(t, evs)
		again, err2 := drain(dialect.DecodeOptions{}, stream, int(cut), 1, 2, 3)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("%v, re-chunked %v", err, err2)
		}
		if a, b := codectest.EventLines(t, evs), codectest.EventLines(t, again); a != b {
			t.Fatalf("%s\nre-chunked\n%s", a, b)
		}
		out, _ := play(t, dialect.EncodeOptions{}, evs...)
		rebuilt := slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
			c, ok := ev.(*dragoman.Chunk)
			return ok && len(c.Raw) == 0
		})
		if err == nil && !rebuilt && !bytes.HasPrefix(stream, out) && checkWire(stream) == nil {
			t.Fatalf("not byte-identical:\n%q\n%q", stream, out)
		}
		// A valid stream stays one wherever it goes on from events.
		out, _ = play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, int(cut)%len(evs))...)
		if checkWire(stream) == nil {
			if err := checkWire(out); err != nil {
				t.Fatalf("%v\n%s", err, lines(t, out))
			}
		}
		bare := slices.DeleteFunc(slices.Clone(evs), func(ev dragoman.Event) bool { return ev.Type() == dragoman.EventChunk })
		out, _ = play(t, dialect.EncodeOptions{}, bare...)
		if err := checkWire(out); err != nil && !nameless(evs) {
			t.Fatalf("%v\n%s", err, lines(t, out))
		}
	})
}

// nameless reports whether a call has no name, which the checker refuses, or
// one that could not be read.
func nameless(evs []dragoman.Event) bool {
	return slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
		end, ok := ev.(*dragoman.PartEnd)
		if !ok {
			return false
		}
		c, ok := end.Part.(*dragoman.ToolCall)
		return ok && (c.Name == "" || c.Problem != nil)
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"__type":"a#ThrottlingException:x","message":"busy"}`, `{"message":"x"} trailing`, `{"code":7,"Message":"x"}`,
		`{"Output":{"Output":{"__type":"x"}}}`, `{"message":`, "<html>\xff", `{"message":null,"__type":null}`,
	} {
		f.Add(429, []byte(seed))
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

// FuzzStreamEncoder writes stored events, one a line.
func FuzzStreamEncoder(f *testing.F) {
	evs, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(codectest.EventLines(f, evs)))
	f.Add([]byte(`{"type":"part_start","part":{"type":"opaque","dialect":"bedrock.converse","kind":"toolUse","json":{"base64":"eyJ0b29sVXNlIjp7ImlucHV0Ijp7ImEifX19"}}}` + "\n" + `{"type":"response_end","stop":{"reason":"stop"}}`))
	f.Add([]byte(`{"type":"part_start","part":{"type":"tool_call","name":"f"}}` + "\n" + `{"type":"part_delta","text":"{"}` + "\n" + `{"type":"response_end","stop":{"reason":"stop"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := codec.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		for line := range bytes.Lines(text) {
			ev, err := dragoman.UnmarshalEvent(line)
			if err != nil {
				continue
			}
			if _, native := ev.(*dragoman.Chunk); native {
				continue // a made-up chunk may be anything
			}
			if out, err = e.Encode(out, ev); err != nil {
				return
			}
		}
		out, err := e.Close(out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(lines(t, out)) {
			if !jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Fatalf("%s", line)
			}
		}
	})
}
