package openaichat_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

const sampleCall = `{"id":"a","type":"function","function":{"name":"rm","arguments":"{}"}}`

// mustNotRun checks that a response has calls and that none may run.
func mustNotRun(t *testing.T, resp *dragoman.Response) {
	t.Helper()
	n := 0
	check := func(calls []*dragoman.ToolCall, stop dragoman.Stop) {
		for _, c := range calls {
			n++
			if c.Problem == nil {
				t.Errorf("call %q of %q may run after %q", c.ID, c.Name, stop.Reason)
			}
		}
	}
	check(resp.ToolCalls(), resp.Stop)
	for _, a := range resp.Alternatives {
		for i := range a.Output {
			check(a.Output[i].ToolCalls(), a.Stop)
		}
	}
	if n == 0 {
		t.Error("no calls")
	}
}

func encodeResponse(t *testing.T, resp *dragoman.Response, o dialect.EncodeOptions) (string, dragoman.Report) {
	t.Helper()
	enc, err := codec.EncodeResponse(resp, o)
	if err != nil {
		t.Fatal(err)
	}
	object(t, enc.Body)
	return string(enc.Body), enc.Report
}

func TestErrorWithChoicesBlocksCalls(t *testing.T) {
	choices := `"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[` + sampleCall + `]},"finish_reason":"tool_calls"},` +
		`{"index":1,"message":{"role":"assistant","tool_calls":[` + sampleCall + `]},"finish_reason":"stop"}]`
	for name, body := range map[string]string{
		"before": `{"error":{"message":"boom"},` + choices + `}`,
		"after":  `{` + choices + `,"error":"boom"}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := decodeResponse(t, body)
			mustNotRun(t, resp)
			if resp.Stop.Reason != dragoman.StopError || resp.Alternatives[0].Stop.Reason != dragoman.StopError || resp.Error == nil {
				t.Errorf("%+v %+v", resp.Stop, resp.Error)
			}
			out, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
			if again, _ := decodeResponse(t, out); again.Error == nil || len(again.ToolCalls()) > 0 {
				t.Errorf("the failed response is encoded as %s", out)
			}
		})
	}
	t.Run("in a choice", func(t *testing.T) {
		resp, _ := decodeResponse(t, `{"choices":[{"message":{"tool_calls":[`+sampleCall+`]},"error":{"message":"boom"},"finish_reason":"tool_calls"}]}`)
		mustNotRun(t, resp)
	})
}

func TestForbiddingStopNeverAllowsCalls(t *testing.T) {
	for _, reason := range []dragoman.StopReason{
		dragoman.StopLength, dragoman.StopContentFilter, dragoman.StopRefusal, dragoman.StopError, dragoman.StopCanceled,
		dragoman.StopMalformedCall, dragoman.StopUnknown, dragoman.StopSequence, dragoman.StopCompaction,
	} {
		want := "content_filter"
		if reason == dragoman.StopLength {
			want = "length"
		}
		t.Run(string(reason), func(t *testing.T) {
			for _, word := range []string{`"tool_calls"`, `"stop"`, `null`} {
				resp, _ := message(t, `{"role":"assistant","tool_calls":[`+sampleCall+`]}`, word)
				resp.Stop.Reason = reason // changed by a guardrail
				out, rep := encodeResponse(t, resp, dialect.EncodeOptions{})
				if !strings.Contains(out, `"finish_reason":"`+want+`"`) {
					t.Errorf("%s: %s", word, out)
				}
				if string(reason) != want && !strings.Contains(rep.String(), "written as") {
					t.Errorf("not reported: %s", rep)
				}
			}
			d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, stream(`"tool_calls"`, toolDeltas(sampleCall)...))
			for _, ev := range d.events {
				if end, ok := ev.(*dragoman.ResponseEnd); ok {
					end.Stop.Reason = reason
				}
			}
			out, _ := encodeStream(t, dialect.EncodeOptions{}, d.events)
			if !strings.Contains(out, `"finish_reason":"`+want+`"`) || strings.Contains(out, `"finish_reason":"tool_calls"`) {
				t.Errorf("stream: %s", out)
			}
		})
	}
	t.Run("hidden by a router", func(t *testing.T) {
		resp, _ := decodeResponse(t, `{"choices":[{"message":{"tool_calls":[`+sampleCall+`]},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}`)
		out, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
		if !strings.Contains(out, `"finish_reason":"content_filter"`) {
			t.Error(out)
		}
	})
}

func TestForbiddingFinishReasonIsNotReplaced(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, sse(append(deltas(toolDeltas(sampleCall)...), finish(`"length"`), finish(`"stop"`), "[DONE]")...))
	mustNotRun(t, d.resp)
	if d.resp.Stop.Reason != dragoman.StopLength {
		t.Errorf("%+v", d.resp.Stop)
	}
	resp, _ := decodeResponse(t, `{"choices":[{"message":{"tool_calls":[`+sampleCall+`]},"finish_reason":"length","finish_reason":"stop"}]}`)
	mustNotRun(t, resp)
	if resp.Native != nil {
		t.Error("a client would read the other reason")
	}
	d = decodeStream(t, dialect.DecodeOptions{}, sse(append(deltas(toolDeltas(sampleCall)...), finish(`"stop"`), finish(`"content_filter"`), "[DONE]")...))
	mustNotRun(t, d.resp)
}

func TestCallWithChangedNameDoesNotRun(t *testing.T) {
	body := stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"rm","arguments":"{"}}`, `{"index":0,"function":{"name":"ls","arguments":"}"}}`)...)
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	mustNotRun(t, d.resp)
	if c := d.resp.ToolCalls()[0]; c.Problem == nil || c.Problem.Code != codes.ProblemStopped {
		t.Errorf("%+v", c)
	}
	out, rep := encodeStream(t, dialect.EncodeOptions{Rebuild: true}, d.events)
	if strings.Contains(out, `"finish_reason":"tool_calls"`) || !strings.Contains(out, `"finish_reason":"content_filter"`) {
		t.Errorf("a client would run rm:\n%s", out)
	}
	if !strings.Contains(rep.String(), "name of a call changed") {
		t.Error(rep)
	}
}

func TestChangedFinalPartIsNotAppended(t *testing.T) {
	events := func(start, end dragoman.Part, sent string, reason dragoman.StopReason) []dragoman.Event {
		return []dragoman.Event{
			&dragoman.ResponseStart{Response: dragoman.Response{ID: "r"}},
			&dragoman.PartStart{Part: start, Header: &dragoman.Message{Role: dragoman.RoleAssistant}},
			&dragoman.PartDelta{Kind: start.Kind(), Text: sent},
			&dragoman.PartEnd{Part: end},
			&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: reason}},
		}
	}
	call := &dragoman.ToolCall{ID: "a", Name: "rm"}
	final := &dragoman.ToolCall{ID: "a", Name: "rm", Arguments: `{"a":2,"b":3}`}
	out, rep := encodeStream(t, dialect.EncodeOptions{}, events(call, final, `{"a":1`, dragoman.StopToolCalls))
	if strings.Contains(out, `\"b\":3`) || strings.Contains(out, `"finish_reason":"tool_calls"`) || !strings.Contains(out, `"finish_reason":"content_filter"`) {
		t.Error(out)
	}
	if rep.Err(dragoman.Serious) == nil {
		t.Error(rep)
	}
	out, rep = encodeStream(t, dialect.EncodeOptions{}, events(&dragoman.Text{}, &dragoman.Text{Text: "redacted text"}, "secret", dragoman.StopEnd))
	if strings.Contains(out, "text") || !strings.Contains(out, `"finish_reason":"stop"`) || rep.Err(dragoman.Serious) == nil {
		t.Errorf("%s\n%s", out, rep)
	}
	// Arguments that are only encoded twice are the same (quirk B3).
	final = &dragoman.ToolCall{ID: "a", Name: "rm", Arguments: `{"a":1}`}
	out, _ = encodeStream(t, dialect.EncodeOptions{}, events(call, final, `"{\"a\":1}"`, dragoman.StopToolCalls))
	if !strings.Contains(out, `"finish_reason":"tool_calls"`) {
		t.Error(out)
	}
}

func TestAmbiguousInputIsReencoded(t *testing.T) {
	for name, msg := range map[string]string{
		"duplicate name":              `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","name":"rm","arguments":"{}"}}]}`,
		"duplicate function":          `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"},"function":{"name":"rm","arguments":"{}"}}]}`,
		"duplicate key in arguments":  `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"rm","arguments":"{\"a\":1,\"a\":2}"}}]}`,
		"duplicate legacy name":       `{"role":"assistant","function_call":{"name":"ls","name":"rm","arguments":"{}"}}`,
		"duplicate content":           `{"role":"assistant","content":"a","content":"b"}`,
		"duplicate tool_calls":        `{"role":"assistant","tool_calls":[` + sampleCall + `],"tool_calls":[]}`,
		"duplicate content, one null": `{"role":"assistant","content":null,"content":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, rep := message(t, msg, `"tool_calls"`)
			if resp.Native != nil || resp.Output[0].Native != nil {
				t.Error("the native form was kept")
			}
			if !strings.Contains(rep.String(), "duplicate") {
				t.Errorf("not reported: %s", rep)
			}
			encodeResponse(t, resp, dialect.EncodeOptions{}) // checks for duplicate fields
		})
	}
}

func TestMalformedCallIsNotForwarded(t *testing.T) {
	resp, _ := message(t, `{"role":"assistant","content":"x","tool_calls":["rm -rf",`+sampleCall+`]}`, `"tool_calls"`)
	out, rep := encodeResponse(t, resp, dialect.EncodeOptions{})
	if strings.Contains(out, "rm -rf") || !strings.Contains(out, `"name":"rm"`) || rep.Err(dragoman.Serious) == nil {
		t.Errorf("%s\n%s", out, rep)
	}
	body := `{"model":"m","messages":[{"role":"assistant","tool_calls":["odd"]}]}`
	req, _ := decodeRequest(t, body)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if !strings.Contains(string(m["messages"]), `["odd"]`) {
		t.Errorf("%s", m["messages"])
	}
}

func TestDecision131_RepeatInFragmentsIsOneCall(t *testing.T) {
	first := `{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"p\":1}"}}`
	again := []string{`{"index":1,"id":"a","function":{"name":"rm","arguments":""}}`, `{"index":1,"function":{"arguments":"{\"p\""}}`}
	for name, tc := range map[string]struct {
		last string
		want []string
	}{
		"exact":   {`:1}`, []string{`{"p":1}`}},
		"another": {`:2}`, []string{`{"p":1}`, `{"p":2}`}},
		"longer":  {`:1} `, []string{`{"p":1}`, `{"p":1} `}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := append([]string{first}, again...)
			calls = append(calls, fmt.Sprintf(`{"index":1,"function":{"arguments":%q}}`, tc.last))
			d := decodeStream(t, dialect.DecodeOptions{}, stream(`"tool_calls"`, toolDeltas(calls...)...))
			var got []string
			for _, c := range d.resp.ToolCalls() {
				got = append(got, c.Arguments)
			}
			if strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			out, _ := encodeStream(t, dialect.EncodeOptions{Rebuild: true}, d.events)
			if n := strings.Count(out, `"name":"rm"`); n != len(tc.want) {
				t.Errorf("a client gets %d calls\n%s", n, out)
			}
		})
	}
}

func TestOutputFormatWithoutSchemaIsRebuilt(t *testing.T) {
	for _, format := range []string{`{"type":"json_schema"}`, `{"type":"json_schema","json_schema":{"name":"n"}}`, `{"type":"json_schema","json_schema":{"name":"n","strict":true}}`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":`+format+`}`)
		req.Messages = append(req.Messages, dragoman.UserText("x"))
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{})
		if strings.Contains(string(m["response_format"]), `"schema":`) {
			t.Errorf("%s", m["response_format"])
		}
	}
	_, rep := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Output: &dragoman.OutputFormat{Kind: codes.OutputSchema}}, dialect.EncodeOptions{})
	if rep.Err(dragoman.Serious) == nil {
		t.Errorf("not reported: %s", rep)
	}
}

func TestNoContentAfterTerminalEvent(t *testing.T) {
	for name, body := range map[string]string{
		"done":  stream(`"stop"`, `{"content":"x"}`) + ": after\n\n" + sse(deltas(`{"content":"late"}`)...),
		"error": sse(`{"error":{"message":"boom"}}`) + sse(deltas(`{"content":"late"}`)...) + sse("[DONE]"),
	} {
		t.Run(name, func(t *testing.T) {
			d := codec.NewStreamDecoder(dialect.DecodeOptions{})
			ended := false
			emit := func(ev dragoman.Event) error {
				c, chunk := ev.(*dragoman.Chunk)
				if ended && (!chunk || bytes.Contains(c.Raw, []byte("late"))) {
					t.Errorf("%s after the end", ev.Type())
				}
				typ := ev.Type()
				ended = ended || typ == "response_end" || typ == "stream_error"
				return nil
			}
			if err := d.Feed([]byte(body), emit); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(emit); err != nil || !ended {
				t.Fatal(err)
			}
		})
	}
}

func TestNilErrorIsServerError(t *testing.T) {
	status, body, _ := codec.EncodeError(nil)
	if status < 500 || !bytes.Contains(object(t, body)["error"], []byte("server_error")) {
		t.Errorf("%d %s", status, body)
	}
}

func TestChoicesWithoutIndexAreBounded(t *testing.T) {
	list := strings.Repeat(`,{"delta":{"content":"x"},"message":{"content":"x"}}`, 200)[1:]
	d := decodeStream(t, dialect.DecodeOptions{}, sse(`{"choices":[`+list+`]}`, "[DONE]"))
	if d.feed == nil {
		t.Error("a stream of 200 choices was accepted")
	}
	if _, _, err := codec.DecodeResponse([]byte(`{"choices":[`+list+`]}`), dialect.DecodeOptions{}); err == nil {
		t.Error("a response of 200 choices was accepted")
	}
}

// Each of these once took quadratic time.
func TestHostileInputCostsLinearTime(t *testing.T) {
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(f(i))
		}
		return b.String()
	}
	always := func(s string) func(int) string { return func(int) string { return s } }
	member := func(i int) string { return fmt.Sprintf(`"m%d":1`, i) }
	feed := func(body string) func() error {
		return func() error {
			d := codec.NewStreamDecoder(dialect.DecodeOptions{})
			emit := func(dragoman.Event) error { return nil }
			if err := d.Feed([]byte(body), emit); err != nil {
				return err
			}
			return d.Close(emit)
		}
	}
	decode := func(body string) func() error {
		return func() error {
			_, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{NoNative: true})
			return err
		}
	}
	request := func(body string) func() error {
		return func() error {
			req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err == nil {
				_, err = codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			}
			return err
		}
	}
	details := `{"reasoning_details":[{"index":0,` + many(80_000, member) + `}]}`
	for _, tc := range []struct {
		name string
		run  func() error
	}{
		{"messages of a streamed choice", feed(sse(`{"choices":[{"index":0,`+many(40_000, always(`"message":{}`))+`,"finish_reason":"stop"}]}`, "[DONE]"))},
		{"messages before the index", feed(sse(`{"choices":[{`+many(40_000, always(`"message":{}`))+`,"index":0,"finish_reason":"stop"}]}`, "[DONE]"))},
		{"texts of reasoning", feed(stream(`"stop"`, `{"reasoning":{`+many(80_000, always(`"text":"xxxxxxxxxxxxxxxx"`))+`}}`))},
		{"choices of a chunk", feed(sse(`{"choices":[`+many(40_000, always(`{"index":0,"delta":{"content":"x"}}`))+`]}`, finish(`"stop"`), "[DONE]"))},
		{"choices of a chunk, one with reasoning", feed(sse(`{"choices":[`+many(40_000, always(`{"index":0,"delta":{"content":"x"}}`))+`,{"index":0,"delta":{"reasoning":"x"}}]}`, finish(`"stop"`), "[DONE]"))},
		{"contents of a delta", feed(stream(`"stop"`, `{`+many(80_000, always(`"content":"x"`))+`}`))},
		{"contents of a delta with calls", feed(stream(`"stop"`, `{`+many(80_000, always(`"tool_calls":[],"content":"x"`))+`}`))},
		{"fields of a message", request(`{"model":"m","messages":[{"role":"assistant","content":"x",` + many(80_000, member) + `}]}`)},
		{"fields of a streamed call", feed(stream(`"stop"`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},`+many(80_000, member)+`}]}`))},
		{"fields of a reasoning record", feed(stream(`"stop"`, details, details))},
		// A result with an unknown call id searches all waiting calls.
		{"calls and results", decode(`{"messages":[{"role":"assistant","tool_calls":[` +
			many(40_000, func(i int) string { return fmt.Sprintf(`{"id":"c%05d","function":{"name":"f"}}`, i) }) + `]},` +
			many(60_000, always(`{"role":"tool","tool_call_id":"c99999"}`)) + `]}`)},
		{"legacy calls and results", decode(`{"messages":[` +
			many(40_000, func(i int) string { return fmt.Sprintf(`{"role":"assistant","function_call":{"name":"f%05d"}}`, i) }) + `,` +
			many(60_000, always(`{"role":"function","name":"f99999"}`)) + `]}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Now()
			if err := tc.run(); err != nil {
				t.Error(err)
			}
			// This takes milliseconds, and ten times that with the race detector. Quadratic time
			// took up to minutes.
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A client that ignores case must not find a second response in the bytes we send.
func TestCaseVariantFieldsAreNotForwarded(t *testing.T) {
	call := `[{"id":"b","type":"function","function":{"name":"rm","arguments":"{}"}}]`
	for name, body := range map[string]string{
		"choices":       `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"Choices":[{"index":0,"message":{"role":"assistant","tool_calls":` + call + `},"finish_reason":"tool_calls"}]}`,
		"message":       `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","Message":{"role":"assistant","tool_calls":` + call + `}}]}`,
		"finish reason": `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","FINISH_REASON":"rm"}]}`,
		"tool calls":    `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi","Tool_Calls":` + call + `},"finish_reason":"stop"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, rep, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Losses) == 0 {
				t.Error("no loss was reported")
			}
			for _, rebuild := range []bool{false, true} {
				enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: rebuild})
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(enc.Body, []byte("rm")) {
					t.Errorf("rebuild %v: %s", rebuild, enc.Body)
				}
			}
		})
	}
}
