package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestUnknownEventsAndFieldsAreReencoded(t *testing.T) {
	stream := sseStream(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"in_message":1,"usage":{"input_tokens":1,"output_tokens":1}},"at_start":1}
		{"type":"ping"}
		{"at_block":{"a":[1]},"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","in_block":1}}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"claude-opus-5-5","in_delta":1},"at_delta":1}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"","in_empty_delta":1}}
		{"type":"content_block_delta","index":0,"delta":{"type":"sparkle_delta","sparkle":1}}
		{"type":"content_block_stop","index":0,"at_stop":1}
		{"type":"from_the_future","all":[{"of":"it"}]}
		{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{},"in_call":1}}
		{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}","in_delta":2}}
		{"type":"content_block_stop","index":1,"at_stop":2}
		{"type":"message_delta","delta":{"stop_reason":"tool_use","in_change":1},"usage":{"output_tokens":8,"in_usage":1},"at_change":1}
		{"type":"message_stop","at_end":1}`)
	evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	out, rep := encodeEvents(t, dialect.EncodeOptions{Model: "public"}, evs...)
	want := strings.NewReplacer(`"model":"claude-opus-5-5"`, `"model":"public"`,
		// Response fields of message_delta are next to its delta.
		`"stop_reason":"tool_use","in_change":1}`, `"stop_reason":"tool_use"}`, `"at_change":1`, `"in_change":1,"at_change":1`).Replace(stream)
	if diff := cmp.Diff(wireValues(t, want), wireValues(t, out)); diff != "" || len(rep.Losses) > 0 {
		t.Errorf("%s\n%s\n%s", diff, rep, out)
	}
}

// wireValues parses the events of a stream, without the fields that the API
// always sends.
func wireValues(t *testing.T, stream string) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			ev := codectest.JSON[map[string]any](t, []byte(data))
			for _, key := range []string{"message", "delta"} {
				if m, ok := ev[key].(map[string]any); ok {
					delete(m, "stop_sequence")
				}
			}
			if u, ok := ev["usage"].(map[string]any); ok {
				delete(u, "input_tokens") // message_start has it
			}
			out = append(out, ev)
		}
	}
	return out
}

func TestBrokenStreamEndsWithError(t *testing.T) {
	stream := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1"}}`)
	for _, native := range []bool{true, false} {
		evs, _ := drain(dialect.DecodeOptions{NoNative: !native}, []byte(stream))
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if !strings.Contains(out, "event: error\n") || strings.Contains(out, "content_block_stop") || strings.Contains(out, "message_stop") {
			t.Errorf("native %v: %s", native, out)
		}
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x"}})
	if err := checkWire([]byte(out)); err != nil || !strings.Contains(out, "event: error\n") {
		t.Errorf("a stream without an end must end with an error: %v\n%s", err, out)
	}
}

// everyBlock is a stream in the API's own form, so that it satisfies checkWire,
// with values that arrive in several deltas.
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

// without returns the events for which leave is false.
func without(evs []dragoman.Event, leave func(dragoman.Event) bool) []dragoman.Event {
	return slices.DeleteFunc(slices.Clone(evs), leave)
}

// partOf returns the index of an event's part, or -1.
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

// redact changes some words of one fragment and of the end of its part. It
// returns nil if there is nothing to change.
func redact(evs []dragoman.Event, at int) []dragoman.Event {
	return codectest.Changed(evs, at, strings.NewReplacer("one", "***", "日", "***", "1", "2").Replace)
}

// faithful checks that events encode to a valid stream that decodes to the same
// events.
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
	if mustNotRun(a) && b.Stop.Reason == dragoman.StopLength && hasLoss(e.Report(), "/stop") {
		a.Stop, b.Stop = dragoman.Stop{}, dragoman.Stop{}
		for _, c := range append(a.ToolCalls(), b.ToolCalls()...) { // no call runs after that stop
			c.Problem = nil
		}
	}
	if diff := cmp.Diff(a, b, ignoreSidecars); diff != "" || (errA == nil) != (errB == nil) {
		return rep, fmt.Errorf("%v, %v: %s\n%s\n%s", errA, errB, diff, e.Report(), out)
	}
	return e.Report(), nil
}

// mustNotRun reports whether a response has a call that must not run. Such a
// response is always written as cut off by its limit, and that is reported.
func mustNotRun(r *dragoman.Response) bool {
	return slices.ContainsFunc(r.ToolCalls(), func(c *dragoman.ToolCall) bool {
		_, blocked := wirekit.BlockedReason(c)
		return blocked
	})
}

func hasLoss(rep dragoman.Report, path string) bool {
	return slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return strings.HasPrefix(l.Path, path) })
}

func TestReencodeEveryBlock(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(everyBlock))
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := faithful(evs); err != nil || len(rep.Losses) > 0 {
		t.Fatalf("%v %s", err, rep)
	}
	for at, ev := range evs {
		if changed := redact(evs, at); changed != nil {
			if rep, err := faithful(changed); err != nil || len(rep.Losses) > 0 {
				t.Fatalf("fragment %d changed: %v %s", at, err, rep)
			}
		}
		if start, ok := ev.(*dragoman.PartStart); ok {
			if _, err := faithful(without(evs, func(e dragoman.Event) bool { return partOf(e) == start.Index })); err != nil {
				t.Fatalf("part %d dropped: %v", start.Index, err)
			}
		}
	}
}

func TestReencodeAnyStream(t *testing.T) {
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
		if _, err := faithful(evs); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStreamEndsOnce(t *testing.T) {
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
			out, _ := encodeEvents(t, dialect.EncodeOptions{}, slices.Concat(evs[:cut], ends)...)
			if err := checkWire([]byte(out)); err != nil {
				t.Fatalf("%s after %d events: %v\n%s", what, cut, err, out)
			}
			if written := strings.Contains(out, `"busy"`); written != strings.Contains(what, "rror") && !strings.HasSuffix(out, stopLine+"\n\n") {
				t.Fatalf("%s after %d events: %s", what, cut, out)
			}
		}
	}
	for _, end := range []dragoman.Event{failure, &dragoman.ResponseEnd{}} {
		want, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, append(slices.Clone(evs), end)...); out != want {
			t.Errorf("a second end was written:\n%s", out)
		}
	}
	// An error of the wire is written once, whatever the name of its event.
	for _, line := range []string{
		`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, `{"error":{"message":"busy"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"},"error":"busy"}`,
	} {
		evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(startLine+"\n"+line)))
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); err != nil || strings.Count(out, "event: error\n") != 1 || strings.Count(out, "busy") != 1 {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// A stream of a server with an unusual order re-encodes to the same meaning.
func TestReencodeUnusualStreams(t *testing.T) {
	for what, lines := range map[string]string{
		"overlapping blocks": startLine + `
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_stop","index":0}
			` + endLines("tool_use"),
		"no starts": `
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
		"content in message_start": `{"type":"message_start","message":` +
			responseBody("tool_use", `[{"type":"text","text":"x"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]`) + `}
			` + stopLine,
		"no blocks": startLine + "\n" + endLines("refusal"),
	} {
		t.Run(what, func(t *testing.T) {
			stream := sseStream(lines)
			evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
			if err != nil {
				t.Fatal(err)
			}
			want := collect(t, stream)
			out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
			got := collect(t, out)
			if want.Output == nil {
				got.Output = nil // an empty response still gets a block (quirk C20)
			}
			got.ID, got.Usage = want.ID, want.Usage // synthesized if absent
			if diff := cmp.Diff(want, got, ignoreSidecars); diff != "" || checkWire([]byte(out)) != nil {
				t.Errorf("%s\n%s", diff, out)
			}
		})
	}
}
