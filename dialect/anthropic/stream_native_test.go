package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNativeChunksAreForwardedByteForByte(t *testing.T) {
	stream := ": hello\n\nevent: message_start\r\ndata: {\"type\":\"message_start\", \"message\":{\"id\":\"m\",\"model\":\"claude-opus-5-5\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}   }\r\n\r\n" +
		sseStream(`{"type":"ping"}
		{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"claude-opus-5-5"}}
		{"type":"content_block_stop","index":0}
		{"type":"from_the_future"}
		`+endLines("end_turn")) + ": bye\n\n"
	evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	stream = strings.TrimSuffix(stream, ": bye\n\n") // nothing follows the terminal event
	if out, _ := play(t, dialect.EncodeOptions{}, evs...); out != stream {
		t.Errorf("%q", out)
	}
	want := strings.Replace(stream, `"model":"claude-opus-5-5"`, `"model":"public"`, 1)
	if out, _ := play(t, dialect.EncodeOptions{Model: "public"}, evs...); out != want {
		t.Errorf("%q", out)
	}
}

func TestABrokenNativeStreamEndsWithAnErrorAndClosesNoCall(t *testing.T) {
	stream := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1"}}`)
	for _, native := range []bool{true, false} {
		evs, _ := drain(dialect.DecodeOptions{NoNative: !native}, []byte(stream))
		out, _ := play(t, dialect.EncodeOptions{}, evs...)
		if !strings.Contains(out, "event: error\n") || strings.Contains(out, "content_block_stop") || strings.Contains(out, "message_stop") {
			t.Errorf("native %v: %s", native, out)
		}
	}
	out, _ := play(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x"}})
	if err := checkWire([]byte(out)); err != nil || !strings.Contains(out, "event: error\n") {
		t.Errorf("a stream without an end must end with an error: %v\n%s", err, out)
	}
}

// everyBlock is a stream in the API's spelling, so that it satisfies checkWire
// itself, with what comes in several deltas.
var everyBlock = sseStream(startLine + `
	{"type":"ping"}
	{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
	{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"one, "}}
	{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"two"}}
	{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
	{"type":"content_block_stop","index":0}
	{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZW5j"}}
	{"type":"content_block_stop","index":1}
	{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}
	{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"c","n":1}}}
	{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"message_stop "}}
	{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"\"type\":\"error\",\"error\":{}"}}
	{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"c","n":2}}}
	{"type":"content_block_stop","index":2}
	{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}
	{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"q\": "}}
	{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"🙂\"}"}}
	{"type":"content_block_stop","index":3}
	{"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}
	{"type":"content_block_stop","index":4}
	{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
	{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}
	{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"\"one\"}"}}
	{"type":"content_block_stop","index":5}
	{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_2","name":"g","input":{}}}
	{"type":"content_block_stop","index":6}
	{"type":"content_block_start","index":7,"content_block":{"type":"text","text":""}}
	{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"one more"}}
	{"type":"content_block_stop","index":7}
	` + endLines("tool_use"))

// without leaves out the events for which leave is true.
func without(evs []dragoman.Event, leave func(dragoman.Event) bool) []dragoman.Event {
	return slices.DeleteFunc(slices.Clone(evs), leave)
}

func isChunk(ev dragoman.Event) bool { return ev.Type() == dragoman.EventChunk }

// partOf is the index of the part that an event is of, -1 for none.
func partOf(ev dragoman.Event) int {
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		return ev.Index
	case *dragoman.PartDelta:
		return ev.Index
	case *dragoman.PartEnd:
		return ev.Index
	default:
		return -1
	}
}

// redact changes some words of one fragment, and the end of its
// part with it; it is nil where there is nothing to change.
func redact(evs []dragoman.Event, at int) []dragoman.Event {
	return codectest.Changed(evs, at, strings.NewReplacer("one", "***", "日", "***", "1", "2").Replace)
}

// faithful checks that events are written as a valid stream that says what they
// say.
func faithful(evs []dragoman.Event) (rep dragoman.Report, err error) {
	e := codec.NewStreamEncoder(dialect.EncodeOptions{})
	var out []byte
	var want, got dragoman.Collector
	for _, ev := range evs {
		want.Add(ev)
		if out, err = e.Encode(out, ev); err != nil {
			return rep, err
		}
	}
	if out, err = e.Close(out); err != nil {
		return rep, err
	}
	if err := checkWire(out); err != nil {
		return rep, fmt.Errorf("%w\n%s", err, out)
	}
	back, err := drain(dialect.DecodeOptions{NoNative: true}, out)
	if err != nil {
		return rep, fmt.Errorf("%w\n%s", err, out)
	}
	for _, ev := range back {
		got.Add(ev)
	}
	a, errA := want.Response()
	b, errB := got.Response()
	if mustNotRun(a) && b.Stop.Reason == dragoman.StopLength && told(e.Report(), "/stop") {
		a.Stop, b.Stop = dragoman.Stop{}, dragoman.Stop{}
		for _, c := range append(a.ToolCalls(), b.ToolCalls()...) { // nothing runs after that
			c.Problem = nil
		}
	}
	if diff := cmp.Diff(a, b, ignoreSidecars); diff != "" || (errA == nil) != (errB == nil) {
		return rep, fmt.Errorf("%v, %v: %s\n%s\n%s", errA, errB, diff, e.Report(), out)
	}
	return e.Report(), nil
}

// mustNotRun reports an answer with a call that must not run: whatever it says of
// its end, it is written as one that its limit cut, and that is told.
func mustNotRun(r *dragoman.Response) bool {
	return slices.ContainsFunc(r.ToolCalls(), func(c *dragoman.ToolCall) bool {
		_, barred := wirekit.Barred(c)
		return barred
	})
}

func told(rep dragoman.Report, path string) bool {
	return slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return strings.HasPrefix(l.Path, path) })
}

func TestAfterABlankedChunkTheStreamGoesOnFromItsEvents(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(everyBlock))
	if err != nil {
		t.Fatal(err)
	}
	for at, ev := range evs {
		if isChunk(ev) {
			if rep, err := faithful(codectest.Blanked(evs, at)); err != nil || len(rep.Losses) > 0 {
				t.Fatalf("blanked at %d: %v %s", at, err, rep)
			}
		}
		for from := range at { // native mode ends before the changed event, or earlier
			if !isChunk(evs[from]) {
				continue
			}
			if changed := redact(evs, at); changed != nil {
				if rep, err := faithful(codectest.Blanked(changed, from)); err != nil || len(rep.Losses) > 0 {
					t.Fatalf("blanked at %d, fragment %d changed: %v %s", from, at, err, rep)
				}
			}
			switch ev := ev.(type) {
			case *dragoman.PartStart:
				rest := without(codectest.Blanked(evs, from), func(e dragoman.Event) bool { return partOf(e) == ev.Index })
				if _, err := faithful(rest); err != nil {
					t.Fatalf("blanked at %d, part %d dropped: %v", from, ev.Index, err)
				}
			case *dragoman.ResponseEnd:
				changed := codectest.Blanked(evs, from)
				end := *ev
				end.Stop = dragoman.Stop{Reason: dragoman.StopPause}
				changed[at] = &end
				out, _ := play(t, dialect.EncodeOptions{}, changed...)
				if err := checkWire([]byte(out)); err != nil {
					t.Fatalf("blanked at %d: %v\n%s", from, err, out)
				}
				if got := collect(t, out).Stop; got.Reason != dragoman.StopPause || got.Native != "pause_turn" {
					t.Errorf("blanked at %d: the stop is %+v\n%s", from, got, out)
				}
			}
		}
	}
}

func TestWhateverTheStreamItGoesOnAfterABlankedChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := codec.NewStreamEncoder(dialect.EncodeOptions{})
		var stream []byte
		for _, ev := range drawing().Events(t) {
			stream, _ = e.Encode(stream, ev)
		}
		stream, _ = e.Close(stream)
		evs, err := drain(dialect.DecodeOptions{}, stream)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(evs)-1).Draw(t, "at")
		if changed := redact(evs, at); changed != nil {
			evs = changed
		}
		if _, err := faithful(codectest.Blanked(evs, at)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnyChunkThatIsNotOursEndsNativeModeForGood(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(everyBlock))
	if err != nil {
		t.Fatal(err)
	}
	for at, ev := range evs {
		if !isChunk(ev) {
			continue
		}
		want, _ := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, at)...)
		for _, c := range []*dragoman.Chunk{{Dialect: dragoman.Anthropic}, {Dialect: dragoman.OpenAIChat, Raw: []byte("data: {}\n\n")}} {
			other := slices.Clone(evs)
			other[at] = c
			if out, _ := play(t, dialect.EncodeOptions{}, other...); out != want {
				t.Fatalf("%+v at %d:\n%s", c, at, out)
			}
		}
	}
	bare, _ := play(t, dialect.EncodeOptions{}, without(evs, isChunk)...)
	if out, _ := play(t, dialect.EncodeOptions{Rebuild: true}, evs...); out != bare {
		t.Errorf("Rebuild keeps chunks:\n%s", out)
	}
	// What was written from events is not continued by chunks.
	first := slices.IndexFunc(evs, func(ev dragoman.Event) bool { return ev.Type() == dragoman.EventResponseStart })
	if out, _ := play(t, dialect.EncodeOptions{}, evs[first:]...); out != bare {
		t.Errorf("chunks after events:\n%s", out)
	}
}

func TestAnEndThatNoChunkToldIsWritten(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(everyBlock))
	if err != nil {
		t.Fatal(err)
	}
	failure := &dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "busy", Type: "overloaded_error"}}
	for cut := range evs {
		for what, ends := range map[string][]dragoman.Event{
			"Close": nil, "StreamError": {failure}, "two errors": {failure, failure},
			"ResponseEnd": {&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopLength}}, failure},
		} {
			out, _ := play(t, dialect.EncodeOptions{}, slices.Concat(evs[:cut], ends)...)
			if err := checkWire([]byte(out)); err != nil {
				t.Fatalf("%s after %d events: %v\n%s", what, cut, err, out)
			}
			if told := strings.Contains(out, `"busy"`); told != strings.Contains(what, "rror") && !strings.HasSuffix(out, stopLine+"\n\n") {
				t.Fatalf("%s after %d events: %s", what, cut, out)
			}
		}
	}
	for _, end := range []dragoman.Event{failure, &dragoman.ResponseEnd{}} {
		if out, _ := play(t, dialect.EncodeOptions{}, append(slices.Clone(evs), end)...); out != everyBlock {
			t.Errorf("a second end was written:\n%s", out)
		}
	}
	// An error of the wire is not told twice, whatever its event is called.
	for _, line := range []string{
		`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, `{"error":{"message":"busy"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"},"error":"busy"}`,
	} {
		stream := sseStream(startLine + "\n" + line)
		evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
		if out, _ := play(t, dialect.EncodeOptions{}, evs...); err != nil || out != stream {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// Servers that keep to no order are forwarded as they are, and their streams
// still mean the same when they go on from events.
func TestAStrangeNativeStreamIsContinued(t *testing.T) {
	for what, lines := range map[string]string{
		"blocks that overlap": startLine + `
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_stop","index":0}
			` + endLines("tool_use"),
		"nothing starts": `
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"c"}}
			` + endLines("end_turn"),
		"text at the start, types last": startLine + `
			{"index":0,"content_block":{"type":"text","text":"a"},"type":"content_block_start"}
			{"index":0,"delta":{"text":"b"},"type":"content_block_delta"}
			{"index":0,"type":"content_block_stop"}
			` + endLines("end_turn"),
		"input at the start": startLine + `
			{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}}
			{"type":"content_block_stop","index":3}
			` + endLines("tool_use"),
		"the whole content in message_start": `{"type":"message_start","message":` +
			answerOf("tool_use", `[{"type":"text","text":"x"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]`) + `}
			` + stopLine,
		"no block at all": startLine + "\n" + endLines("refusal"),
	} {
		t.Run(what, func(t *testing.T) {
			stream := sseStream(lines)
			evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
			if err != nil {
				t.Fatal(err)
			}
			want := collect(t, stream)
			for at, ev := range evs {
				if !isChunk(ev) {
					continue
				}
				out, _ := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, at)...)
				got := collect(t, out)
				if want.Output == nil {
					got.Output = nil // an empty answer still gets a block (quirk C20)
				}
				got.ID, got.Usage = want.ID, want.Usage // made up where none came
				if diff := cmp.Diff(want, got, ignoreSidecars); diff != "" || strings.Count(out, `"message_stop"`) != 1 {
					t.Errorf("blanked at %d: %s\n%s", at, diff, out)
				}
				if starts, stops := strings.Count(out, `"content_block_start"`), strings.Count(out, `"content_block_stop"`); starts > stops {
					t.Errorf("blanked at %d: %d blocks start, %d stop\n%s", at, starts, stops, out)
				}
			}
		})
	}
}

func TestABlockThatANativeChunkBroughtWholeIsOnlyClosed(t *testing.T) {
	for _, block := range []string{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`,
		`{"type":"tool_result","tool_use_id":"t1","content":"x"}`, `{"type":"redacted_thinking","data":"x"}`, `{"type":"poem","verse":"x"}`, `null`,
	} {
		stream := sseStream(startLine + `
			{"type":"content_block_start","index":0,"content_block":` + block + `}
			{"type":"content_block_stop","index":0}
			` + endLines("end_turn"))
		evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		stop := slices.IndexFunc(evs, func(ev dragoman.Event) bool {
			c, ok := ev.(*dragoman.Chunk)
			return ok && strings.Contains(string(c.Raw), "content_block_stop")
		})
		out, rep := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, stop)...)
		if diff := cmp.Diff(collect(t, stream), collect(t, out), ignoreSidecars); diff != "" || len(rep.Losses) > 0 || strings.Count(out, "event: content_block_") != 2 {
			t.Errorf("%s: %s %s\n%s", block, diff, rep, out)
		}
	}
}

func TestQuirkB11_ARepeatedCallInANativeStreamIsClosed(t *testing.T) {
	call := func(index, args string) string {
		return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":"` + args + `"}}
			{"type":"content_block_stop","index":` + index + `}
			`
	}
	evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(startLine+"\n"+call("0", `{\"a\":1}`)+call("1", `{\"a\":2}`)+endLines("tool_use"))))
	if err != nil {
		t.Fatal(err)
	}
	for at, ev := range evs {
		if !isChunk(ev) {
			continue
		}
		out, rep := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, at)...)
		if err := checkWire([]byte(out)); err != nil {
			t.Errorf("blanked at %d: %v\n%s", at, err, out)
		}
		// Its part starts only at the end of the stream, when the native
		// message_delta may have been written.
		if strings.Count(out, `"message_delta"`) > strings.Count(out, "event: message_delta") {
			has(t, rep, dragoman.Dropped, "/output/0/parts/1")
		}
	}
}

func TestAChangeThatComesTooLateIsReported(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(everyBlock))
	if err != nil {
		t.Fatal(err)
	}
	// The block of a call is closed before its end is known (quirk C34).
	for i, ev := range evs {
		if end, ok := ev.(*dragoman.PartEnd); ok && end.Part.Kind() == dragoman.KindToolCall {
			changed := codectest.Blanked(evs, i)
			changed[i] = &dragoman.PartEnd{Index: end.Index, Part: call("toolu_1", "f", `{"a": "changed"}`)}
			_, rep := play(t, dialect.EncodeOptions{}, changed...)
			has(t, rep, dragoman.Dropped, fmt.Sprintf("/output/0/parts/%d", end.Index))
		}
	}
	// Nobody but the API knows the deltas of a block of the future.
	evs, err = drain(dialect.DecodeOptions{}, []byte(sseStream(startLine+`
		{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}
		{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"sum"}}
		{"type":"content_block_stop","index":0}
		`+endLines("end_turn"))))
	if err != nil {
		t.Fatal(err)
	}
	for at, ev := range evs {
		if c, ok := ev.(*dragoman.Chunk); ok && strings.Contains(string(c.Raw), "compaction_delta") {
			out, rep := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, at)...)
			has(t, rep, dragoman.Dropped, "/output/0/parts/0")
			if err := checkWire([]byte(out)); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		}
	}
}

func TestAFreeformCallThatANativeChunkBeganIsContinued(t *testing.T) {
	req := ask(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{{Kind: dragoman.ToolFreeform, Name: "patch"}}
	_, sent := encode(t, req, dialect.EncodeOptions{})
	evs, err := drain(dialect.DecodeOptions{Registry: sent.Registry}, []byte(sseStream(startLine+`
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"patch","input":{}}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"input\":\"one "}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"two\"}"}}
		{"type":"content_block_stop","index":0}
		`+endLines("tool_use"))))
	if err != nil {
		t.Fatal(err)
	}
	for at := range evs {
		out, rep := play(t, dialect.EncodeOptions{}, codectest.Blanked(evs, at)...)
		if err := checkWire([]byte(out)); err != nil {
			t.Fatalf("blanked at %d: %v\n%s", at, err, out)
		}
		if c := collect(t, out).ToolCalls(); len(c) != 1 || c[0].Arguments != `{"input":"one two"}` || rep.Err(dragoman.Warn) != nil {
			t.Errorf("blanked at %d: %v\n%s", at, rep, out)
		}
	}
}
