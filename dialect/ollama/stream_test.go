package ollama_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// sampleStream is a stream with thinking, text and two calls.
var sampleStream = line(`{"role":"assistant","content":"","thinking":"Use "}`) + line(`{"role":"assistant","content":"","thinking":"the tool."}`) +
	line(`{"role":"assistant","content":"I "}`) + line(`{"role":"assistant","content":"look."}`) +
	line(`{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"f","arguments":{"city":"Oslo"}}}]}`) +
	line(`{"role":"assistant","content":"","tool_calls":[{"id":"call_2","function":{"index":1,"name":"g","arguments":{}}}]}`) +
	last(`,"done_reason":"stop","total_duration":5,"prompt_eval_count":170,"eval_count":40`)

func TestQuirkC32_StreamOfJSONLines(t *testing.T) {
	d := streamed(t, sampleStream)
	lossless(t, d.rep)
	whole, _ := decodeResponse(t, wholeResponse(`{"role":"assistant","content":"I look.","thinking":"Use the tool.","tool_calls":[{"id":"call_1","function":{"index":0,"name":"f","arguments":{"city":"Oslo"}}},{"id":"call_2","function":{"index":1,"name":"g","arguments":{}}}]}`,
		`,"done_reason":"stop","total_duration":5,"prompt_eval_count":170,"eval_count":40`))
	whole.Native, whole.Output[0].Native = nil, nil
	if diff := gen.Diff(whole, d.resp); diff != "" {
		t.Errorf("whole and streamed differ:\n%s", diff)
	}
	// A call starts when it arrives and ends when the stream is done.
	var order []string
	for _, ev := range d.events {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			order = append(order, fmt.Sprint("start ", ev.Index))
		case *dragoman.PartEnd:
			order = append(order, fmt.Sprint("end ", ev.Index))
		case *dragoman.Chunk:
			if string(ev.Raw) == last(`,"done_reason":"stop","total_duration":5,"prompt_eval_count":170,"eval_count":40`) {
				order = append(order, "done")
			}
		}
	}
	if got := strings.Join(order, ", "); got != "start 0, end 0, start 1, start 2, start 3, done, end 1, end 2, end 3" {
		t.Error(got)
	}
	again, rep := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, d.events)
	lossless(t, rep)
	if diff := gen.Diff(d.resp, streamed(t, string(again)).resp); diff != "" {
		t.Errorf("re-encoded:\n%s", diff)
	}
	again, _ = codectest.EncodeStream(t, codec, dialect.EncodeOptions{Model: "alias"}, d.events)
	if strings.Contains(string(again), `"model":"m"`) || streamed(t, string(again)).resp.Model != "alias" {
		t.Errorf("%s", again)
	}
}

func TestQuirkC8_NullAndEmptyFieldsAreIgnored(t *testing.T) {
	for _, l := range []string{
		`{}`, `{"message":null}`, `{"message":{}}`, `{"message":{"role":"","content":null,"thinking":null,"tool_calls":null,"images":null}}`,
		`{"message":{"content":"","thinking":"","tool_calls":[],"images":[]},"done":null,"error":null,"done_reason":""}`, `{"message":{"tool_calls":[null]}}`, ``, `  `,
	} {
		d := streamed(t, l+"\n"+line(`{"content":"x"}`)+last(""))
		if d.resp.Text() != "x" || len(d.resp.Output[0].Parts) != 1 || len(d.rep.Losses) > 0 {
			t.Errorf("%s: %+v\n%s", l, d.resp.Output, d.rep)
		}
	}
}

func TestQuirkC38_LineWithSeveralParts(t *testing.T) {
	d := streamed(t, `{"message":{"tool_calls":[{"function":{"name":"f"}}],"images":["iVBORw0KGgo="],"content":"c","thinking":"t"},"done":true,"model":"m","created_at":"2026-11-15T10:00:00Z"}`)
	kinds := ""
	for _, p := range d.resp.Output[0].Parts {
		kinds += p.Kind() + " "
	}
	if kinds != "reasoning text media tool_call " || d.resp.Model != "m" || d.events[1].(*dragoman.ResponseStart).Response.Model != "m" {
		t.Error(kinds, d.resp.Model)
	}
}

func TestQuirkC13_StreamWithoutLastLineIsIncomplete(t *testing.T) {
	whole := sampleStream[:strings.LastIndex(strings.TrimSuffix(sampleStream, "\n"), "\n")+1]
	for name, body := range map[string]string{"cut between lines": whole, "cut in a line": whole + `{"model":"m","done":tr`, "empty": "", "blank": "\n\n"} {
		d := decodeStream(t, dialect.DecodeOptions{}, body)
		if !errors.Is(d.feed, dragoman.ErrIncompleteStream) || !errors.Is(d.err, dragoman.ErrIncompleteStream) {
			t.Errorf("%s: %v, %v", name, d.feed, d.err)
		}
		for _, c := range calls(d.resp) {
			problem(t, c, codes.ProblemStopped)
		}
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, d.events)
		lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if end := lines[len(lines)-1]; !strings.HasPrefix(end, `{"error":"the stream`) {
			t.Errorf("%s: ends with %s", name, end)
		}
	}
}

func TestQuirkC14_ErrorLineEndsTheStream(t *testing.T) {
	body := line(`{"content":"half"}`) + line(`{"tool_calls":[{"function":{"name":"f"}}]}`) + `{"error":"an error was encountered while running the model"}` + "\n" + last("")
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	var e *dragoman.APIError
	if d.feed != nil || !errors.As(d.err, &e) || e.Class != dragoman.ErrorServer || !e.Retryable() || d.resp.Text() != "half" {
		t.Errorf("%v, %v", d.feed, d.err)
	}
	problem(t, calls(d.resp)[0], codes.ProblemStopped)
	// Data after an error is ignored (quirk C12), and the error is written once.
	lines, rep := written(t, dialect.EncodeOptions{}, d.events)
	if len(lines) != 2 || lines[1] != `{"error":"an error was encountered while running the model"}` {
		t.Errorf("%q", lines)
	}
	lost(t, rep, dragoman.Dropped, "/output", "not sent")
	d = decodeStream(t, dialect.DecodeOptions{}, `{"error":""}`)
	if !errors.As(d.err, &e) || e.Message == "" {
		t.Error(d.err)
	}
}

func TestQuirkC12_DataAfterTheEndIsIgnored(t *testing.T) {
	d := streamed(t, sampleStream+"\n"+line(`{"content":"late"}`)+"not JSON\n")
	if d.resp.Text() != "I look." {
		t.Error(d.resp.Text())
	}
	out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, d.events)
	if streamed(t, string(out)).resp.Text() != "I look." {
		t.Errorf("%s", out)
	}
}

func TestQuirkC18_LastLineWithoutLineBreak(t *testing.T) {
	body := strings.ReplaceAll(strings.TrimSuffix(sampleStream, "\n"), "\n", "\r\n")
	d := streamed(t, body)
	out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, d.events)
	if streamed(t, string(out)).resp.Text() != "I look." || d.resp.Text() != "I look." {
		t.Errorf("%s", out)
	}
}

func TestInvalidStreamErrorsHavePositions(t *testing.T) {
	for body, want := range map[string]struct {
		offset  int64
		pointer string
	}{
		"<html>\n":         {0, ""},
		line(`{}`) + "5\n": {int64(len(line(`{}`))), ""},
		line(`{}`) + `{"message":{"content":5}}` + "\n":           {int64(len(line(`{}`))) + 22, "/message/content"},
		line(`{}`) + "\n" + `{"done": "yes"}` + "\n":              {int64(len(line(`{}`))) + 10, "/done"},
		line(`{}`) + `{"message":{"tool_calls":[{"id":"a"` + "\n": {int64(len(line(`{}`))) + 35, "/message/tool_calls/0"},
	} {
		d := decodeStream(t, dialect.DecodeOptions{}, body)
		de := decodeError(t, d.feed)
		if de.Offset != want.offset || de.Pointer != want.pointer || !errors.Is(d.err, dragoman.ErrIncompleteStream) {
			t.Errorf("%q: %v at %q, byte %d; %v", body, de, de.Pointer, de.Offset, d.err)
		}
	}
	d := decodeStream(t, dialect.DecodeOptions{MaxBytes: 64}, line(`{}`))
	if !errors.Is(d.feed, dragoman.ErrTooLarge) {
		t.Error(d.feed)
	}
}

func TestQuirkC4_PartCountIsBounded(t *testing.T) {
	call := `{"function":{"name":"f"}}`
	for name, body := range map[string]string{
		"calls of one line":   line(`{"tool_calls":[` + strings.Repeat(call+",", stream.MaxParts) + call + `]}`),
		"calls of many lines": strings.Repeat(line(`{"tool_calls":[`+call+`]}`), stream.MaxParts+1),
		"images of one line":  line(`{"images":[` + strings.Repeat(`"",`, stream.MaxParts) + `""]}`),
		"thinking":            strings.Repeat(line(`{"thinking":"a"}`)+line(`{"content":"b","tool_calls":[`+call+`]}`), stream.MaxParts),
	} {
		d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, body)
		if !errors.Is(d.feed, dragoman.ErrTooLarge) {
			t.Errorf("%s: %v", name, d.feed)
		}
	}
}

func TestQuirkC35_StreamMemoryIsLinear(t *testing.T) {
	took := func(n int) uint64 {
		body := strings.Repeat(line(`{"content":"12345678"}`), n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decodeStream(t, dialect.DecodeOptions{NoNative: true}, body, last(""))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if a, b := took(10_000), took(40_000); float64(b) > 4.6*float64(a) {
		t.Errorf("%d bytes for 10,000 lines, %d for 40,000", a, b)
	}
}

func TestUnknownLineFieldsAreReportedOnce(t *testing.T) {
	body := strings.Repeat(`{"model":"m","message":{"content":"x","y":1},"logprobs":[{"token":"x"}],"remote_host":"h"}`+"\n", 3) + last("")
	d := streamed(t, body)
	if len(d.rep.Losses) != 1 || d.resp.Output[0].Extra.Fields[0].Path != "/y" {
		t.Errorf("%s", d.rep)
	}
	if raw, _ := json.Marshal(d.resp.Extra); !strings.Contains(string(raw), "remote_host") {
		t.Errorf("%s", raw)
	}
}

func TestErrorLineStartsOnItsOwnLine(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, line(`{"content":"a"}`), strings.TrimSuffix(line(`{"content":"b"}`), "\n"))
	lines, _ := written(t, dialect.EncodeOptions{}, d.events)
	if len(lines) != 3 || !strings.HasPrefix(lines[2], `{"error"`) {
		t.Errorf("%q", lines)
	}
}

// A guardrail that changes the stop reason of a response blocks its calls.
func TestCallsAreNotWrittenAfterForbiddingStopReason(t *testing.T) {
	for _, reason := range []dragoman.StopReason{dragoman.StopLength, dragoman.StopContentFilter, dragoman.StopError} {
		evs := codectest.Bare(streamed(t, sampleStream).events)
		evs[len(evs)-1].(*dragoman.ResponseEnd).Stop.Reason = reason
		lines, rep := written(t, dialect.EncodeOptions{}, evs)
		if all := strings.Join(lines, "\n"); strings.Contains(all, "tool_calls") || !strings.Contains(all, "look.") {
			t.Errorf("%s: %s", reason, all)
		}
		lost(t, rep, dragoman.Dropped, "/output", "must not run")
	}
}

func TestOverlappingPartsAreNotMixed(t *testing.T) {
	start := func(i, message int, p dragoman.Part) dragoman.Event {
		return &dragoman.PartStart{Index: i, Message: message, Part: p, Header: &dragoman.Message{Role: dragoman.RoleAssistant}}
	}
	delta := func(i int, kind string, s string) dragoman.Event {
		return &dragoman.PartDelta{Index: i, Kind: kind, Text: s}
	}
	evs := []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
		start(0, 0, &dragoman.Text{}), delta(0, codes.KindText, "a"), start(1, 1, &dragoman.Text{}), delta(1, codes.KindText, "x"), delta(0, codes.KindText, "b"),
		start(2, 1, &dragoman.ToolCall{ID: "c1", Name: "f"}), start(3, 1, &dragoman.ToolCall{ID: "c2", Name: "g"}), delta(3, codes.KindToolCall, "{}"),
		&dragoman.PartEnd{Index: 3, Part: &dragoman.ToolCall{ID: "c2", Name: "g", Arguments: "{}"}},
		&dragoman.PartEnd{Index: 1, Part: text("xy")}, &dragoman.PartEnd{Index: 0, Part: text("abc")},
		&dragoman.PartEnd{Index: 2, Part: &dragoman.ToolCall{ID: "c1", Name: "f"}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}},
	}
	lines, rep := written(t, dialect.EncodeOptions{}, evs)
	lost(t, rep, dragoman.Dropped, "/id", "")
	d := streamed(t, strings.Join(lines, "\n"))
	if d.resp.Text() != "abc\n\nxy" || d.resp.ToolCalls()[0].ID != "c1" || d.resp.ToolCalls()[1].ID != "c2" {
		t.Errorf("%q %+v", lines, calls(d.resp))
	}
	for i, l := range lines[:len(lines)-1] {
		if !strings.Contains(l, `"done":false`) || strings.Count(l, "tool_calls") > 0 != (i >= len(lines)-3) {
			t.Errorf("line %d is %s", i, l)
		}
	}
}

func TestStreamWithoutEndEndsWithError(t *testing.T) {
	lines, _ := written(t, dialect.EncodeOptions{}, []dragoman.Event{&dragoman.ResponseStart{}, &dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartDelta{Kind: codes.KindText, Text: "a"}})
	if len(lines) != 2 || !strings.Contains(lines[1], `"error"`) {
		t.Errorf("%q", lines)
	}
	lines, _ = written(t, dialect.EncodeOptions{}, []dragoman.Event{&dragoman.ResponseStart{}, &dragoman.StreamError{}})
	if len(lines) != 1 || !strings.Contains(lines[0], `"error"`) {
		t.Errorf("%q", lines)
	}
}
