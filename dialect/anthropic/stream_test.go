package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

// Each stream must decode to the given response.
func TestStreamEqualsResponse(t *testing.T) {
	for what, c := range map[string]struct{ word, content, lines string }{
		"text": {"end_turn", `[{"type":"text","text":"Hi there."}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"ping"}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi "}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there."}}
			{"type":"content_block_stop","index":0}`},
		"thinking, omitted thinking and redacted": {"end_turn", `[{"type":"thinking","thinking":"ab","signature":"s1"},{"type":"thinking","thinking":"","signature":"s2"},{"type":"redacted_thinking","data":"e"},{"type":"text","text":"x"}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a","estimated_tokens":3}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"b"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"s2"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"e"}}
			{"type":"content_block_stop","index":2}
			{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}
			{"type":"content_block_stop","index":3}`},
		"quirk C19: placeholder, whole input at the start, no delta": {"tool_use", `[{"type":"tool_use","id":"t1","name":"f","input":{"city": "Oslo"}},{"type":"tool_use","id":"t2","name":"g","input":{"a":1},"caller":{"type":"direct"}},{"type":"tool_use","id":"t3","name":"h","input":{}}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Os"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"lo\"}"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"g","input":{"a":1},"caller":{"type":"direct"}}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t3","name":"h","input":{}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_stop","index":2}`},
		"server tool, result, cited text": {"end_turn", `[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"go"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]},{"type":"text","text":"Go.","citations":[{"type":"c","n":1},{"type":"c","n":2}]}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"go\"}"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}
			{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"c","n":1}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Go."}}
			{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"c","n":2}}}
			{"type":"content_block_stop","index":2}`},
		"compaction and a block of the future": {"end_turn", `[{"type":"compaction","content":"sum","encrypted_content":"e"},{"type":"poem","verse":"roses are red","n":2}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}
			{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"sum","encrypted_content":"e"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"poem","verse":"","n":1}}
			{"type":"content_block_delta","index":1,"delta":{"type":"verse_delta","verse":"roses "}}
			{"type":"content_block_delta","index":1,"delta":{"type":"verse_delta","verse":"are red","n":2}}
			{"type":"content_block_stop","index":1}`},
		"quirk B11: a repeated call and a reused id": {"tool_use", `[{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use","id":"t1","name":"f","input":{"a":2}}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":2}"}}
			{"type":"content_block_stop","index":2}`},
		"quirk C34: cut by the limit": {"max_tokens", `[{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use","id":"t2","name":"f","input":{"b":1}}]`, `
			{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"f","input":{}}}
			{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"b\":1}"}}
			{"type":"content_block_stop","index":1}`},
	} {
		t.Run(what, func(t *testing.T) {
			stream := sseStream(startLine + c.lines + "\n" + endLines(c.word))
			want := decodeResponse(t, responseBody(c.word, c.content))
			if diff := cmp.Diff(want, collect(t, stream), ignoreSidecars); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestContentInMessageStart(t *testing.T) {
	content := `[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"x"}},{"type":"tool_use","id":"t1","name":"f","input":{"a":1},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}]`
	stream := sseStream(`{"type":"message_start","message":` + responseBody("tool_use", content) + "}\n" + stopLine)
	want := decodeResponse(t, responseBody("tool_use", content))
	if diff := cmp.Diff(want, collect(t, stream), ignoreSidecars); diff != "" {
		t.Error(diff)
	}
}

func TestStreamUsageIsCumulative(t *testing.T) {
	stream := sseStream(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":1,"service_tier":"standard"}}}
		{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":5,"input_tokens":null}}
		{"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c1"}},"usage":{"output_tokens":8,"cache_creation_input_tokens":1},"context_management":{"applied_edits":[]}}
		` + stopLine)
	resp := collect(t, stream)
	if u := resp.Usage; u.Input.N != 110 || u.Output.N != 8 || u.CacheRead.N != 100 || u.CacheWrite.N != 1 || resp.ServiceTier != "standard" {
		t.Errorf("%+v %s", u, resp.ServiceTier)
	}
	if len(resp.Extra.For(dialectname.Anthropic)) != 2 {
		t.Errorf("%+v", resp.Extra)
	}
}

func TestQuirkC4_LargeIndexTakesNoMemory(t *testing.T) {
	resp := collect(t, sseStream(startLine+`
		{"type":"content_block_start","index":1000000000,"content_block":{"type":"text","text":""}}
		{"type":"content_block_delta","index":1000000000,"delta":{"type":"text_delta","text":"x"}}
		{"type":"content_block_stop","index":1000000000}
		{"type":"content_block_start","index":-7,"content_block":{"type":"text","text":"y"}}
		{"type":"content_block_stop","index":-7}
		`+endLines("end_turn")))
	if resp.Text() != "xy" {
		t.Errorf("%q", resp.Text())
	}
	var many strings.Builder
	many.WriteString(startLine + "\n")
	for i := range 5000 {
		fmt.Fprintf(&many, `{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`+"\n", i)
	}
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(sseStream(many.String())))
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	checkPromises(t, evs)
}

func TestQuirkC13_NoTerminalEventIsIncomplete(t *testing.T) {
	whole := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
		{"type":"content_block_stop","index":0}
		{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"f","input":{}}}
		{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1"}}`)
	for what, stream := range map[string]string{"mid call": whole, "before message_stop": whole + sseStream(strings.Split(endLines("tool_use"), "\n")[0]), "empty": ""} {
		evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(stream))
		if !errors.Is(err, dragoman.ErrIncompleteStream) {
			t.Errorf("%s: %v", what, err)
		}
		checkPromises(t, evs)
		for _, ev := range evs {
			if end, ok := ev.(*dragoman.PartEnd); ok && end.Part.(*dragoman.ToolCall).Problem == nil {
				t.Errorf("%s: a call of a broken stream may run", what)
			}
		}
		last, ok := evs[len(evs)-1].(*dragoman.StreamError)
		if !ok || !last.Err.Retryable() {
			t.Errorf("%s: ends with %T", what, evs[len(evs)-1])
		}
	}
	evs, _ := drain(dialect.DecodeOptions{NoNative: true}, []byte(whole))
	problems := map[string]string{}
	for _, ev := range evs {
		if end, ok := ev.(*dragoman.PartEnd); ok {
			c := end.Part.(*dragoman.ToolCall)
			problems[c.ID] = c.Problem.Code
		}
	}
	if problems["t1"] != codes.ProblemStopped || problems["t2"] != codes.ProblemTruncated {
		t.Errorf("%v", problems)
	}
}

func TestQuirkC14_ErrorEndsStream(t *testing.T) {
	stream := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"par"}}
		{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`)
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	checkPromises(t, evs)
	e := evs[len(evs)-1].(*dragoman.StreamError).Err
	if e.Class != dragoman.ErrorOverloaded || e.RequestID != "req_1" || !e.Retryable() {
		t.Errorf("%+v", e)
	}
	// Without a type, and as the first event.
	evs, _ = drain(dialect.DecodeOptions{NoNative: true}, []byte("data: {\"error\":{\"message\":\"no\"}}\n\n"))
	checkPromises(t, evs)
	if _, ok := evs[len(evs)-1].(*dragoman.StreamError); !ok {
		t.Errorf("%T", evs[len(evs)-1])
	}
}

func TestQuirkC20_EmptyResponseHasBlock(t *testing.T) {
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x"}}, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}})
	if err := checkWire([]byte(out)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestQuirkC21_OverlappingPartsAreSerialized(t *testing.T) {
	start := func(i int, id string) *dragoman.PartStart {
		return &dragoman.PartStart{Index: i, Part: &dragoman.ToolCall{ID: id, Name: "f"}}
	}
	delta := func(i int, s string) *dragoman.PartDelta { return &dragoman.PartDelta{Index: i, Text: s} }
	end := func(i int, id, args string) *dragoman.PartEnd {
		return &dragoman.PartEnd{Index: i, Part: call(id, "f", args)}
	}
	out, rep := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x"}},
		start(0, "a"), delta(0, `{"x"`), start(1, "b"), delta(1, `{"y`), delta(0, `:1}`), delta(1, `":2}`), end(1, "b", `{"y":2}`), end(0, "a", `{"x":1}`),
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}, Usage: dragoman.Usage{Output: dragoman.Counted(1)}})
	if err := checkWire([]byte(out)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls := collect(t, out).ToolCalls()
	if len(calls) != 2 || calls[0].ID != "a" || calls[0].Arguments != `{"x":1}` || calls[1].Arguments != `{"y":2}` || len(rep.Losses) != 0 {
		t.Errorf("%+v %s", calls, rep)
	}
	if strings.Index(out, `{\"x\"`) > strings.Index(out, `:1}`) {
		t.Error("the first call was not streamed immediately")
	}
}

func TestQuirkC22_LastNonEmptySignatureCounts(t *testing.T) {
	resp := collect(t, sseStream(startLine+`
		{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"first"}}
		{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"second"}}
		{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"late"}}
		{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":""}}
		{"type":"content_block_stop","index":0}
		`+endLines("end_turn")))
	if r := resp.Output[0].Parts[0].(*dragoman.Reasoning); r.Signature != "second" || r.Text != "late" {
		t.Errorf("%+v", r)
	}
}

func TestQuirkC37_SplicedResponsesAreError(t *testing.T) {
	again := strings.Replace(startLine, "msg_1", "msg_2", 1)
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(sseStream(startLine+"\n"+again)))
	var at *dragoman.DecodeError
	if !errors.As(err, &at) {
		t.Errorf("%v", err)
	}
	checkPromises(t, evs)
	if resp := collect(t, sseStream(startLine+"\n"+startLine+"\n"+endLines("end_turn"))); resp.ID != "msg_1" {
		t.Errorf("a repeated start must be accepted: %+v", resp)
	}
}

func TestDeltasWithoutStart(t *testing.T) {
	resp := collect(t, sseStream(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}
		{"delta":{"type":"text_delta","text":"y"},"index":0,"type":"content_block_delta"}
		{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}
		{"type":"content_block_stop","index":9}
		{"type":"from_the_future","index":0}
		`+endLines("end_turn")))
	if resp.Text() != "xy" {
		t.Errorf("%q", resp.Text())
	}
}

func TestFreeformCallStreamsAsInputObject(t *testing.T) {
	text := "line \"one\"\n<two>"
	part := &dragoman.ToolCall{ID: "c1", Name: "patch", Payload: codes.PayloadText, Arguments: text}
	out, rep := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x"}},
		&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c1", Name: "patch", Payload: codes.PayloadText}},
		&dragoman.PartDelta{Text: text[:5]}, &dragoman.PartDelta{Text: text[5:]}, &dragoman.PartEnd{Part: part},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}})
	if err := checkWire([]byte(out)); err != nil {
		t.Fatal(err)
	}
	has(t, rep, dragoman.Lowered, "/output/0/parts/0")
	req := requestOf(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "patch"}}
	_, sent := encode(t, req, dialect.EncodeOptions{})
	evs, err := drain(dialect.DecodeOptions{NoNative: true, Registry: sent.Registry}, []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	var shown string
	for _, ev := range evs {
		switch ev := ev.(type) {
		case *dragoman.PartDelta:
			shown += ev.Text
		case *dragoman.PartEnd:
			if c := ev.Part.(*dragoman.ToolCall); c.Payload != codes.PayloadText || c.Arguments != text {
				t.Errorf("%+v", c)
			}
		}
	}
	if shown != text {
		t.Errorf("shown %q", shown)
	}
}

func TestSummaryStreamsAsThinking(t *testing.T) {
	part := &dragoman.Reasoning{Summary: []string{"one", "two"}, Encrypted: "e", ID: "rs_1"}
	out, rep := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x", Origin: foreignOrigin}},
		&dragoman.PartStart{Part: &dragoman.Reasoning{ID: "rs_1"}}, &dragoman.PartDelta{Text: "on", Summary: 1}, &dragoman.PartDelta{Text: "e", Summary: 1}, &dragoman.PartDelta{Text: "two", Summary: 2},
		&dragoman.PartEnd{Part: part},
		&dragoman.PartStart{Index: 1, Part: &dragoman.Reasoning{}}, &dragoman.PartEnd{Index: 1, Part: &dragoman.Reasoning{Encrypted: "f"}}, // nothing visible, so no block
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}})
	if err := checkWire([]byte(out)); err != nil {
		t.Fatal(err)
	}
	parts := collect(t, out).Output[0].Parts
	if r := parts[0].(*dragoman.Reasoning); len(parts) != 1 || r.Text != "one\n\ntwo" || r.Signature != "" {
		t.Errorf("%+v", parts)
	}
	has(t, rep, dragoman.Dropped, "/output/0/parts/0")
	has(t, rep, dragoman.Dropped, "/output/0/parts/1")
}

func TestUsageAtStartAndEnd(t *testing.T) {
	usage := dragoman.Usage{Input: dragoman.Counted(110), CacheRead: dragoman.Counted(100)}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x", Usage: usage}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Usage: dragoman.Usage{Output: dragoman.Counted(7), Reasoning: dragoman.Counted(2)}})
	var end struct{ Usage map[string]any }
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"message_delta"`) && strings.HasPrefix(line, "data: ") {
			_ = json.Unmarshal([]byte(line[6:]), &end)
		}
	}
	if end.Usage["input_tokens"] != 10.0 || end.Usage["cache_read_input_tokens"] != 100.0 || end.Usage["output_tokens"] != 7.0 {
		t.Errorf("%v", end.Usage)
	}
	if u := collect(t, out).Usage; u.Input.N != 110 || u.Output.N != 7 || u.Reasoning.N != 2 {
		t.Errorf("%+v", u)
	}
}

func TestInvalidStreamErrorHasPointer(t *testing.T) {
	for _, data := range []string{`{"type":"content_block_delta","index":{}}`, `{"type":`, `[1]`, `{"type":"message_start","message":{"id":7}}`} {
		evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(sseStream(startLine)+"data: "+data+"\n\n"))
		var at *dragoman.DecodeError
		if strings.Contains(data, `"id":7`) {
			continue // only the id of a repeated start is read
		}
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", data, err)
		}
		checkPromises(t, evs)
	}
	_, err := drain(dialect.DecodeOptions{MaxBytes: 50}, []byte(sseStream(startLine)))
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// checkPromises checks events against what every decoder promises (quirk C39).
func checkPromises(t testing.TB, evs []dragoman.Event) {
	t.Helper()
	if err := codectest.Order(evs); err != nil {
		t.Fatal(err)
	}
}
