package openairesponses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/targets"
)

// events frames the data of events, which are JSON objects without a sequence number.
func events(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.Bytes()
}

const (
	created   = `{"type":"response.created","response":{"id":"resp_1","model":"m","created_at":1794700000}}`
	completed = `{"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}`
)

func added(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item)
}

func done(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
}

func argDelta(i int, text string) string {
	q, _ := json.Marshal(text)
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"x%d","delta":%s}`, i, len(text), q)
}

// run decodes a stream and collects it.
func run(t testing.TB, body []byte) (*dragoman.Response, []dragoman.Event, dragoman.Report) {
	t.Helper()
	evs, rep, err := decodeStream(body, len(body), dialect.DecodeOptions{NoNative: true})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := collect(evs)
	if err != nil {
		t.Fatal(err)
	}
	return resp, evs, rep
}

func TestQuirkC11_FinalValuesReplaceDeltas(t *testing.T) {
	resp, evs, _ := run(t, events(created,
		added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, `{"a":`), argDelta(0, `1}`),
		`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":2}"}`,
		done(0, callJSON("fc_1", "c1", `{"a":3}`, "completed")), done(0, callJSON("fc_1", "c1", `{"a":3}`, "completed")),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[`+callJSON("fc_1", "c1", `{"a":3}`, "completed")+`]}}`))
	if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Arguments != `{"a":3}` || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%+v", resp)
	}
	// Clients may have used an earlier value than the last, so the call does not run.
	if p := resp.ToolCalls()[0].Problem; p == nil || p.Code != codes.ProblemStopped {
		t.Errorf("contradicting events: %v", p)
	}
	ends := 0
	for _, ev := range evs {
		if _, ok := ev.(*dragoman.PartEnd); ok {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
	resp, _, _ = run(t, events(created,
		added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, `{"a":`), argDelta(0, `3}`),
		`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":3}"}`,
		done(0, callJSON("fc_1", "c1", `{"a":3}`, "completed")), done(0, callJSON("fc_1", "c1", `{"a":3}`, "completed")),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[`+callJSON("fc_1", "c1", `{"a":3}`, "completed")+`]}}`))
	if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Arguments != `{"a":3}` || calls[0].Problem != nil {
		t.Errorf("matching events: %+v", calls[0])
	}
}

func TestQuirkC34_CallsEndWithTheResponse(t *testing.T) {
	body := events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), done(0, callJSON("fc_1", "c1", `{"a":1}`, "completed")))
	d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	if err := d.Feed(body, func(ev dragoman.Event) error {
		if _, ok := ev.(*dragoman.PartEnd); ok {
			t.Error("the call ended before the response did")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	resp, _, _ := run(t, append(body, events(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`)...))
	if c := resp.ToolCalls()[0]; c.Problem == nil || c.Problem.Code != codes.ProblemTruncated || resp.Stop.Reason != dragoman.StopLength {
		t.Errorf("%+v %+v", c.Problem, resp.Stop)
	}
}

func TestQuirkC24_EmptyTerminalOutputKeepsItems(t *testing.T) {
	resp, _, _ := run(t, events(created, added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`),
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`,
		done(0, `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi"}]}`), completed))
	if resp.Text() != "hi" || resp.Usage.Output.N != 2 {
		t.Errorf("%+v", resp)
	}
}

func TestQuirkC24_ItemsOnlyInTheTerminalOutput(t *testing.T) {
	resp, _, _ := run(t, events(created,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},`+callJSON("fc_1", "c1", `{}`, "completed")+`]}}`))
	if resp.Text() != "hi" || len(resp.ToolCalls()) != 1 || len(resp.Output) != 2 {
		t.Errorf("%+v", resp)
	}
}

func TestItemsWithoutAddedEvent(t *testing.T) {
	resp, _, _ := run(t, events(created,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"h"}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"i"}`,
		argDelta(1, `{"a":1}`), done(1, callJSON("fc_1", "c1", `{"a":1}`, "completed")),
		`{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"why"}`, completed))
	if resp.Text() != "hi" || len(resp.ToolCalls()) != 1 || resp.Output[2].Parts[0].(*dragoman.Reasoning).Summary[0] != "why" {
		t.Errorf("%+v", resp)
	}
}

func TestChangingItemIDsAreMatchedByIndex(t *testing.T) {
	resp, _, _ := run(t, events(created,
		added(0, `{"type":"message","id":"A","role":"assistant","content":[]}`),
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"B","delta":"hi"}`,
		done(0, `{"type":"message","id":"C","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`),
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"D","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}}`))
	if len(resp.Output) != 1 || resp.Text() != "hi" {
		t.Errorf("%+v", resp.Output)
	}
}

func TestQuirkC2_NewItemOnUsedIndex(t *testing.T) {
	resp, _, _ := run(t, events(created,
		added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, `{"a":1}`), done(0, callJSON("fc_1", "c1", `{"a":1}`, "completed")),
		added(0, callJSON("fc_2", "c2", "", "in_progress")), argDelta(0, `{"b":2}`), done(0, callJSON("fc_2", "c2", `{"b":2}`, "completed")), completed))
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].Arguments != `{"a":1}` || calls[1].Arguments != `{"b":2}` {
		t.Errorf("%+v", calls)
	}
}

func TestQuirkC4_HugeIndex(t *testing.T) {
	resp, _, _ := run(t, events(created, added(1000000000, callJSON("fc_1", "c1", "", "in_progress")), argDelta(1000000000, `{}`),
		`{"type":"response.output_text.delta","output_index":-5,"content_index":999999999,"delta":"x"}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":7,"summary_index":1000000000,"delta":"y"}`, completed))
	if len(resp.ToolCalls()) != 1 || resp.Text() != "x" {
		t.Errorf("%+v", resp.Output)
	}
	var many []string
	for i := range 5000 {
		many = append(many, added(i, `{"type":"message","role":"assistant","content":[]}`))
	}
	if _, _, err := decodeStream(events(many...), 1<<20, dialect.DecodeOptions{}); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("5000 items: %v", err)
	}
}

func TestQuirkC7_WholeObjectAsDelta(t *testing.T) {
	resp, _, _ := run(t, events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")),
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":{"a":1}}`,
		`{"type":"response.function_call_arguments.done","output_index":0,"arguments":{"a":1}}`, completed))
	if c := resp.ToolCalls()[0]; c.Arguments != `{"a":1}` || c.Problem != nil {
		t.Errorf("%+v", c)
	}
}

func TestQuirkC7_WholeObjectWithOtherDeltasDoesNotRun(t *testing.T) {
	for _, deltas := range [][]string{{`"{\"a\":"`, `{"b":1}`, `"}"`}, {`"{\"a\":"`, `1`, `"}"`}, {`{}`, `{}`}, {`{}`, `"{\"a\":1}"`}} {
		all := []string{created, added(0, callJSON("fc_1", "c1", "", "in_progress"))}
		for _, delta := range deltas {
			all = append(all, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":`+delta+`}`)
		}
		resp, _, _ := run(t, events(append(all, completed)...))
		if c := resp.ToolCalls()[0]; c.Problem == nil {
			t.Errorf("%v: %+v", deltas, c)
		}
	}
}

func TestQuirkJ20_OnlyTerminalEventsEndTheStream(t *testing.T) {
	resp, evs, _ := run(t, events(created, `{"type":"codex.rate_limits","limit_reached":true}`, `{"type":"response.metadata"}`, `{"type":"keepalive"}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`, completed, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"late"}`))
	if resp.Text() != "hi" {
		t.Errorf("%q", resp.Text())
	}
	if _, ok := evs[len(evs)-1].(*dragoman.ResponseEnd); !ok {
		t.Errorf("last event %T", evs[len(evs)-1])
	}
}

func TestQuirkC40_RepeatedSequenceNumbers(t *testing.T) {
	var with []string
	for _, d := range []string{created, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}`, completed} {
		with = append(with, strings.Replace(d, "{", `{"sequence_number":0,`, 1))
	}
	if resp, _, _ := run(t, events(with...)); resp.Text() != "aa" {
		t.Errorf("%q", resp.Text())
	}
}

func TestQuirkC13_IncompleteStream(t *testing.T) {
	for _, tail := range []string{"", "data: [DONE]\n\n"} {
		body := append(events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), done(0, callJSON("fc_1", "c1", "{}", "completed")),
			added(1, callJSON("fc_2", "c2", "", "in_progress")), argDelta(1, `{"a"`)), tail...)
		d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
		var evs []dragoman.Event
		emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
		if err := d.Feed(body, emit); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(emit); !errors.Is(err, dragoman.ErrIncompleteStream) {
			t.Errorf("close: %v", err)
		}
		resp, err := collect(evs)
		var api *dragoman.APIError
		if !errors.As(err, &api) || !api.Retryable() {
			t.Errorf("%v", err)
		}
		calls := resp.ToolCalls()
		if len(calls) != 2 || calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemStopped || calls[1].Problem == nil || calls[1].Problem.Code != codes.ProblemTruncated {
			t.Errorf("%+v", calls)
		}
	}
}

func TestQuirkC14_ErrorEndsTheStream(t *testing.T) {
	for _, c := range []struct {
		data  string
		class dragoman.ErrorClass
	}{
		{`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m","param":null}}`, dragoman.ErrorQuota},
		{`{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}`, dragoman.ErrorRateLimit},
		{`{"error":{"message":"m","code":503}}`, dragoman.ErrorOverloaded},
		{`{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"m"}}}`, dragoman.ErrorContextLength},
	} {
		evs, _, err := decodeStream(events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, "{}"), c.data), 9, dialect.DecodeOptions{NoNative: true})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := collect(evs)
		var api *dragoman.APIError
		if !errors.As(err, &api) || api.Class != c.class || api.Message != "m" {
			t.Errorf("%s: %v", c.data, err)
		}
		if call := resp.ToolCalls()[0]; call.Problem == nil {
			t.Errorf("%s: the call may run", c.data)
		}
	}
}

func TestQuirkB11_DuplicateCallIDsInAStream(t *testing.T) {
	resp, _, rep := run(t, events(created,
		added(0, callJSON("fc_1", "c", "", "in_progress")), argDelta(0, `{"a":1}`), done(0, callJSON("fc_1", "c", `{"a":1}`, "completed")),
		added(1, callJSON("fc_2", "c", "", "in_progress")), argDelta(1, `{"a":1}`), done(1, callJSON("fc_2", "c", `{"a":1}`, "completed")),
		added(2, callJSON("fc_3", "c", "", "in_progress")), argDelta(2, `{"a":2}`), done(2, callJSON("fc_3", "c", `{"a":2}`, "completed")), completed))
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].ID != "c" || !calls[1].Synthetic || calls[1].Arguments != `{"a":2}` {
		t.Errorf("%+v", calls)
	}
	if !reported(rep, dragoman.Dropped, "/output/1") || !reported(rep, dragoman.Synthesized, "/output/2") {
		t.Errorf("%v", rep)
	}
}

func TestQuirkB30_LoweredFreeformTool(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "f"}}}
	enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCustomTools: true}}})
	if err != nil {
		t.Fatal(err)
	}
	body := events(created, added(0, callJSON("fc_1", "c", "", "in_progress")), argDelta(0, `{"input":"SEL`), argDelta(0, `ECT"}`), done(0, callJSON("fc_1", "c", `{"input":"SELECT"}`, "completed")), completed)
	evs, _, err := decodeStream(body, 11, dialect.DecodeOptions{NoNative: true, Registry: enc.Registry})
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := collect(evs)
	if c := resp.ToolCalls()[0]; c.Payload != codes.PayloadText || c.Arguments != "SELECT" {
		t.Errorf("%+v", c)
	}
	for _, ev := range evs {
		if d, ok := ev.(*dragoman.PartDelta); ok && strings.Contains(d.Text, "input") {
			t.Errorf("JSON emitted as input: %q", d.Text)
		}
	}
}

func TestMalformedEventIsADecodeError(t *testing.T) {
	_, _, err := decodeStream(events(created, `{"type":"response.output_text.delta","delta":`), 3, dialect.DecodeOptions{})
	var d *dragoman.DecodeError
	if !errors.As(err, &d) || d.What != "stream" {
		t.Errorf("%v", err)
	}
	if _, _, err := decodeStream(events(created), 8, dialect.DecodeOptions{MaxBytes: 16}); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("too long: %v", err)
	}
}

func TestUnknownEventsAndFieldsAreReencoded(t *testing.T) {
	body := events(`{"type":"response.created","sequence_number":0,"at_start":1,"response":{"id":"resp_1","model":"up"}}`,
		added(0, `{"type":"message","id":"m","role":"assistant","content":[]}`),
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"a","logprobs":[{"token":"a","logprob":-1}],"in_delta":{"n":1}}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"","in_delta":{"n":2}}`,
		`{"type":"response.output_text.annotation.added","sequence_number":41,"output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"u"}}`,
		added(1, `{"type":"web_search_call","id":"ws","status":"in_progress"}`),
		`{"type":"response.web_search_call.searching","sequence_number":42,"output_index":1,"item_id":"ws"}`,
		`{"type":"vendor.note","sequence_number":43,"n":3}`,
		done(1, `{"type":"web_search_call","id":"ws","status":"completed"}`),
		`{"type":"response.completed","at_end":1,"response":{"id":"resp_1","model":"up","status":"completed","output":[]}}`)
	evs, _, err := decodeStream(body, 5, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
	for _, want := range []string{
		`"at_start":1`, `"in_delta":{"n":1}`, `"in_delta":{"n":2}`, `"logprobs":[{"token":"a","logprob":-1}]`, `"annotation":{"type":"url_citation","url":"u"}`,
		`"response.web_search_call.searching"`, `"type":"vendor.note"`, `"n":3`, `"at_end":1`,
	} {
		if bytes.Count(out, []byte(want)) == 0 {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	for i, ev := range sse.Events(out) {
		var numbered struct {
			N *int `json:"sequence_number"`
		}
		if json.Unmarshal(ev.Data, &numbered) == nil && (numbered.N == nil || *numbered.N != i) {
			t.Errorf("event %d: %s", i, ev.Data)
		}
	}
}

func TestBrokenStreamEndsWithError(t *testing.T) {
	whole, _ := encodeStream(t, []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "x", Model: "m"}},
		&dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartDelta{Text: "a"}, &dragoman.PartEnd{Part: &dragoman.Text{Text: "a"}},
		&dragoman.ResponseEnd{},
	}, dialect.EncodeOptions{Seed: "s"})
	frames := bytes.SplitAfter(whole, []byte("\n\n"))
	for n := 2; n < len(frames)-3; n++ {
		body := bytes.Join(frames[:n], nil)
		evs, _, err := decodeStream(body, 100, dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
		if bytes.Count(out, []byte(`"type":"error"`)) != 1 || bytes.Count(out, []byte(`"type":"response.failed"`)) != 1 || !bytes.HasSuffix(out, []byte("data: [DONE]\n\n")) {
			t.Errorf("after %d events: %s", n, out)
		}
	}
}

func TestEventsAfterAnEmptyChunkAreEncoded(t *testing.T) {
	body := events(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m"}}`,
		`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","model":"m"}}`)
	evs, _, _ := decodeStream(body, 100, dialect.DecodeOptions{})
	evs = evs[:len(evs)-1] // without the error at its end
	evs = append(evs, &dragoman.Chunk{Dialect: name},
		&dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartDelta{Text: "ours"}, &dragoman.PartEnd{Part: &dragoman.Text{Text: "ours"}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}})
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
	resp, _, _ := run(t, out)
	if resp.Text() != "ours" || !bytes.Contains(out, []byte(`"type":"response.output_item.added","sequence_number":2`)) {
		t.Errorf("%s", out)
	}
}

func TestStreamEncoderReportsUnsupportedParts(t *testing.T) {
	evs := []dragoman.Event{
		&dragoman.ResponseStart{},
		&dragoman.PartStart{Index: 0, Part: &dragoman.Media{Media: codes.MediaImage}}, &dragoman.PartEnd{Index: 0, Part: &dragoman.Media{Media: codes.MediaImage}},
		&dragoman.PartStart{Index: 1, Part: &dragoman.ToolCall{ID: "s", Name: "web_search", Hosted: true}}, &dragoman.PartEnd{Index: 1, Part: &dragoman.ToolCall{ID: "s", Name: "web_search", Hosted: true}},
		&dragoman.PartStart{Index: 2, Part: &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "x"}},
		&dragoman.PartStart{Choice: 1, Index: 0, Part: &dragoman.Text{}}, &dragoman.PartDelta{Choice: 1, Text: "other"},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopPause}},
	}
	out, rep := encodeStream(t, evs, dialect.EncodeOptions{Model: "m"})
	if err := checkOrder(out, true); err != nil {
		t.Error(err)
	}
	if len(rep.Losses) < 5 || bytes.Contains(out, []byte("web_search")) || bytes.Contains(out, []byte("other")) {
		t.Errorf("%v\n%s", rep, out)
	}
}

func TestCollectedStreamHasTheSidecarsOfItsItems(t *testing.T) {
	item := `{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"hi","x":1}]}`
	evs, _, err := decodeStream(events(created, added(0, `{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}`),
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`, done(0, item), completed), 1, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := collect(evs)
	m := resp.Output[0]
	if m.Status != codes.StatusIncomplete || !m.Native.Current(name, m.Fingerprint) || string(m.Native.Raw) != item {
		t.Errorf("%+v", m)
	}
}

// Annotations and logprobs that only events have are reported once, if the final message does not
// repeat them and the chunks are not passed through.
func TestUncollectedMetadataIsReported(t *testing.T) {
	const note = `{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"u"}}`
	const delta = `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"`
	end := func(part string) string {
		return done(0, `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"aa"`+part+`}]}`)
	}
	const lp = `,"logprobs":[{"token":"a","logprob":-1,"top_logprobs":[]}]`
	for what, tc := range map[string]struct {
		events []string
		want   string
	}{
		"annotation in the final message":     {[]string{delta + `}`, delta + `}`, note, end(`,"annotations":[{"type":"url_citation","url":"u"}]`)}, ""},
		"annotation not in the final message": {[]string{delta + `}`, delta + `}`, note, note, end(`,"annotations":[]`)}, "annotations of a stream"},
		"one of two annotations":              {[]string{delta + `}`, delta + `}`, note, note, end(`,"annotations":[{"type":"url_citation","url":"u"}]`)}, "annotations of a stream"},
		"annotation without a final message":  {[]string{delta + `}`, delta + `}`, note}, "annotations of a stream"},
		"logprobs in the final message":       {[]string{delta + lp + `}`, delta + lp + `}`, end(lp)}, ""},
		"logprobs not in the final message":   {[]string{delta + lp + `}`, delta + lp + `}`, end(``)}, "logprobs of a stream"},
		"empty logprobs":                      {[]string{delta + `,"logprobs":[]}`, delta + `,"logprobs":null}`, end(``)}, ""},
		"unknown field":                       {[]string{delta + `,"vendor":1}`, delta + `,"vendor":2}`, end(``)}, "not collected: vendor"},
		"unknown field before the type":       {[]string{`{"a_vendor":1,` + delta[1:] + `}`, delta + `}`, end(``)}, "not collected: a_vendor"},
		"two unknown fields":                  {[]string{delta + `,"vendor":1,"other":2}`, delta + `,"vendor":1,"other":2}`, end(``)}, "not collected: vendor, other"},
		"null and known fields":               {[]string{delta + `,"vendor":null,"obfuscation":"x","sequence_number":5}`, delta + `}`, end(``)}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			body := events(append(append([]string{created, added(0, `{"type":"message","id":"m","role":"assistant","content":[]}`)}, tc.events...), completed)...)
			evs, rep, err := decodeStream(body, len(body), dialect.DecodeOptions{NoNative: true})
			if err != nil {
				t.Fatal(err)
			}
			if resp, _ := collect(evs); resp.Text() != "aa" {
				t.Errorf("%q", resp.Text())
			}
			if tc.want == "" && len(rep.Losses) > 0 || tc.want != "" && (len(rep.Losses) != 1 || !strings.Contains(rep.Losses[0].Detail, tc.want)) {
				t.Errorf("%v", rep.Losses)
			}
			// Encoding in the same dialect loses nothing.
			enc := Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
			evs, rep, _ = decodeStream(body, len(body), dialect.DecodeOptions{})
			for _, ev := range evs {
				if _, err := enc.Encode(nil, ev); err != nil {
					t.Fatal(err)
				}
			}
			if lost := enc.Report(); len(rep.Losses) > 0 || lost.Err(dragoman.Warn) != nil {
				t.Errorf("%v %v", rep.Losses, lost)
			}
		})
	}
}

func TestQuirkC23_EmptySummaryHasNoDeltas(t *testing.T) {
	out, _ := encodeStream(t, []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
		&dragoman.PartStart{Part: &dragoman.Reasoning{}},
		&dragoman.PartEnd{Part: &dragoman.Reasoning{Summary: []string{"", "Hm"}}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}},
	}, dialect.EncodeOptions{})
	if err := checkOrder(out, true); err != nil || bytes.Count(out, []byte("event: response.reasoning_summary_text.delta")) != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}
