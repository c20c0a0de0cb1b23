package openairesponses

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

func decodeResponse(t testing.TB, body string) (*dragoman.Response, dragoman.Report) {
	t.Helper()
	resp, rep, err := Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return resp, rep
}

func encodeResponse(t testing.TB, resp *dragoman.Response, o dialect.EncodeOptions) (map[string]any, dragoman.Report) {
	t.Helper()
	enc, err := Codec{}.EncodeResponse(resp, o)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(enc.Body, &v); err != nil {
		t.Fatalf("%v\n%s", err, enc.Body)
	}
	return v, enc.Report
}

func callJSON(id, call, args, status string) string {
	a, _ := json.Marshal(args)
	return `{"type":"function_call","id":"` + id + `","call_id":"` + call + `","name":"f","arguments":` + string(a) + `,"status":"` + status + `"}`
}

func TestStopReasons(t *testing.T) {
	call := callJSON("fc_1", "c1", "{}", "completed")
	for _, c := range []struct {
		name, fields string
		want         dragoman.StopReason
		problem      string
	}{
		{"completed", `"status":"completed","output":[]`, dragoman.StopEnd, ""},
		{"quirk B18: completed with a call", `"status":"completed","output":[` + call + `]`, dragoman.StopToolCalls, ""},
		{"no status at all", `"output":[` + call + `]`, dragoman.StopToolCalls, ""},
		{"quirk C34: truncated at the limit", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + call + `]`, dragoman.StopLength, codes.ProblemTruncated},
		{"filtered", `"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[` + call + `]`, dragoman.StopContentFilter, codes.ProblemStopped},
		{"steered", `"status":"incomplete","incomplete_details":{"reason":"steered"},"output":[` + call + `]`, dragoman.StopCanceled, codes.ProblemStopped},
		{"quirk B20: unknown reason", `"status":"incomplete","incomplete_details":{"reason":"moon"},"output":[` + call + `]`, dragoman.StopUnknown, codes.ProblemStopped},
		{"quirk B20: unknown status", `"status":"resting","output":[` + call + `]`, dragoman.StopUnknown, codes.ProblemStopped},
		{"failed", `"status":"failed","error":{"code":"server_error","message":"x"},"output":[` + call + `]`, dragoman.StopError, codes.ProblemStopped},
		{"cancelled", `"status":"cancelled","output":[` + call + `]`, dragoman.StopCanceled, codes.ProblemStopped},
		{"still queued", `"status":"queued","output":[` + call + `]`, dragoman.StopError, codes.ProblemStopped},
		{"quirk C26: an incomplete call", `"status":"completed","output":[` + callJSON("fc_1", "c1", `{"a":1}`, "incomplete") + `]`, dragoman.StopEnd, codes.ProblemTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, _ := decodeResponse(t, `{"id":"resp_1","model":"m",`+c.fields+`}`)
			if resp.Stop.Reason != c.want {
				t.Errorf("stop %+v, want %s", resp.Stop, c.want)
			}
			for _, call := range resp.ToolCalls() {
				if (call.Problem == nil) != (c.problem == "") || call.Problem != nil && call.Problem.Code != c.problem {
					t.Errorf("problem %+v, want %q", call.Problem, c.problem)
				}
			}
			// The native values are written back.
			var want map[string]any
			_ = json.Unmarshal([]byte(`{`+c.fields+`}`), &want)
			v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
			if s, ok := want["status"]; ok && v["status"] != s {
				t.Errorf("status %v, want %v", v["status"], s)
			}
			if dump(v["incomplete_details"]) != dump(want["incomplete_details"]) {
				t.Errorf("details %v, want %v", v["incomplete_details"], want["incomplete_details"])
			}
		})
	}
}

func TestQuirkB4_ArgumentsAsObject(t *testing.T) {
	resp, _ := decodeResponse(t, `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":{"n":9007199254740993}}]}`)
	if c := resp.ToolCalls()[0]; c.Arguments != `{"n":9007199254740993}` || c.Problem != nil { // quirk B31
		t.Errorf("%+v", c)
	}
}

func TestQuirkB2_EmptyArgumentsAreAnEmptyObject(t *testing.T) {
	for _, args := range []string{`""`, `null`, `"{}"`, `"\"\""`} {
		resp, _ := decodeResponse(t, `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":`+args+`}]}`)
		c := resp.ToolCalls()[0]
		if obj, _ := c.Object(); string(obj) != "{}" || c.Problem != nil {
			t.Errorf("%s: %s %v", args, obj, c.Problem)
		}
		v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
		if at(v, "output", 0, "arguments") != "{}" {
			t.Errorf("%s: written %v", args, at(v, "output", 0, "arguments"))
		}
	}
}

func TestQuirkB9_InvalidArgumentsAreForwarded(t *testing.T) {
	// Arguments that clients would interpret differently are wrapped in an error object
	// (requirement R7).
	for args, want := range map[string]string{`{"a":`: `{"a":`, `{"a":1,"a":2}`: `{"_raw":"{\"a\":1,\"a\":2}"}`} {
		resp, _ := decodeResponse(t, `{"status":"completed","output":[`+callJSON("fc_1", "c", args, "completed")+`]}`)
		c := resp.ToolCalls()[0]
		if c.Problem == nil || resp.Stop.Reason != dragoman.StopToolCalls {
			t.Errorf("%+v %v", c, resp.Stop)
		}
		v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
		if at(v, "output", 0, "arguments") != want {
			t.Errorf("a client would run it with %v", at(v, "output", 0, "arguments"))
		}
	}
}

func TestQuirkB7_InvalidArgumentsAreNotSentBack(t *testing.T) {
	resp, _ := decodeResponse(t, `{"status":"completed","output":[`+callJSON("fc_1", "c", `{"a":`, "completed")+`]}`)
	req := &dragoman.Request{Model: "m", Messages: resp.Output}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "input", 0, "arguments") != "{}" {
		t.Errorf("%v", v["input"])
	}
}

func TestQuirkB10_CallWithoutID(t *testing.T) {
	body := `{"status":"completed","output":[{"type":"function_call","id":"fc_9","name":"f","arguments":"{}"},{"type":"function_call","call_id":7,"name":"g","arguments":"{}"}]}`
	resp, rep := decodeResponse(t, body)
	a, b := resp.ToolCalls()[0], resp.ToolCalls()[1]
	if !a.Synthetic || !b.Synthetic || a.ID == b.ID || a.ID == "" || !reported(rep, dragoman.Synthesized, "/output/0") {
		t.Errorf("%+v %+v %v", a, b, rep)
	}
	seeded, _, _ := Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{Seed: "turn 2"})
	if seeded.ToolCalls()[0].ID == a.ID {
		t.Error("a different seed gave the same id")
	}
}

func TestQuirkB11_DuplicateCallIDs(t *testing.T) {
	resp, rep := decodeResponse(t, `{"status":"completed","output":[`+callJSON("fc_1", "c", `{"a":1}`, "completed")+`,`+callJSON("fc_2", "c", `{"a":1}`, "completed")+`,`+callJSON("fc_3", "c", `{"a":2}`, "completed")+`]}`)
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].ID != "c" || calls[1].ID == "c" || !calls[1].Synthetic || calls[1].Arguments != `{"a":2}` {
		t.Errorf("%+v", calls)
	}
	if !reported(rep, dragoman.Dropped, "/output/1") || !reported(rep, dragoman.Synthesized, "/output/2") {
		t.Errorf("%v", rep)
	}
}

func TestUnknownUsageIsNotZero(t *testing.T) {
	resp, _ := decodeResponse(t, `{"status":"completed","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":15}}`)
	want := dragoman.Usage{Input: dragoman.Counted(10), CacheRead: dragoman.Counted(4), CacheWrite: dragoman.Counted(2), Output: dragoman.Counted(5), Reasoning: dragoman.Counted(3)}
	if resp.Usage != want {
		t.Errorf("%+v", resp.Usage)
	}
	bare, _ := decodeResponse(t, `{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`)
	if bare.Usage.CacheRead.Known || bare.Usage.Reasoning.Known {
		t.Errorf("%+v", bare.Usage)
	}
	v, rep := encodeResponse(t, bare, dialect.EncodeOptions{Rebuild: true})
	if at(v, "usage", "input_tokens_details", "cached_tokens") != 0.0 || !reported(rep, dragoman.Synthesized, "/usage/cache_read") {
		t.Errorf("%v %v", v["usage"], rep)
	}
}

func TestResponseFromAnotherAPIHasRequiredFields(t *testing.T) {
	resp := &dragoman.Response{
		ID: "msg_abc", Model: "claude", Created: time.Unix(1794700000, 0), Origin: &dragoman.Origin{Dialect: dialectname.Anthropic},
		Stop: dragoman.Stop{Reason: dragoman.StopToolCalls, Native: "tool_use"},
		Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Origin: &dragoman.Origin{Dialect: dialectname.Anthropic}, Parts: []dragoman.Part{
			&dragoman.Reasoning{Text: "hm", Signature: "sig"}, &dragoman.Text{Text: "a"}, &dragoman.Refusal{Text: "b"},
			&dragoman.ToolCall{ID: "toolu_1", Name: "f"}, &dragoman.Text{Text: "c"},
			&dragoman.ToolCall{ID: "toolu_2", Name: "sql", Payload: codes.PayloadText, Arguments: "S"},
			&dragoman.ToolCall{ID: "srv_1", Name: "web_search", Hosted: true},
		}}},
	}
	v, rep := encodeResponse(t, resp, dialect.EncodeOptions{Seed: "s"})
	for _, k := range []string{"id", "object", "created_at", "error", "incomplete_details", "instructions", "metadata", "model", "output", "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "access_programs", "status", "usage"} {
		if _, has := v[k]; !has {
			t.Errorf("no %s", k)
		}
	}
	var got []string
	for i := range v["output"].([]any) {
		got = append(got, at(v, "output", i, "type").(string)+" "+at(v, "output", i, "id").(string)[:3])
	}
	want := []string{"reasoning rs_", "message msg", "function_call fc_", "message msg", "custom_tool_call ctc"}
	if dump(got) != dump(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if at(v, "output", 1, "content", 1, "refusal") != "b" || at(v, "output", 2, "arguments") != "{}" || at(v, "output", 4, "input") != "S" {
		t.Errorf("%v", v["output"])
	}
	if rep.Err(dragoman.Serious) == nil {
		t.Error("the loss of the hosted call was not reported")
	}
	again, _ := encodeResponse(t, resp, dialect.EncodeOptions{Seed: "s"})
	other, _ := encodeResponse(t, resp, dialect.EncodeOptions{Seed: "t"})
	if dump(v) != dump(again) || v["id"] == other["id"] {
		t.Error("ids must depend on the seed only")
	}
}

func TestModelOverrideChangesOnlyTheModel(t *testing.T) {
	body := `{"id":"resp_1", "model":"up","output":[],"status":"completed","x":1.0}`
	resp, _ := decodeResponse(t, body)
	enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{Model: "alias"})
	if err != nil || string(enc.Body) != `{"id":"resp_1", "model":"alias","output":[],"status":"completed","x":1.0}` {
		t.Errorf("%v %s", err, enc.Body)
	}
}

func TestCompactionResponseStopsAsCompaction(t *testing.T) {
	resp, _ := decodeResponse(t, `{"id":"r","object":"response.compaction","created_at":1,"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"x"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	if resp.Stop.Reason != dragoman.StopCompaction {
		t.Errorf("%+v", resp.Stop)
	}
	if v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true}); v["object"] != "response.compaction" {
		t.Errorf("%v", v)
	}
}

func TestErrorsOfEveryFormAreDecoded(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		class  dragoman.ErrorClass
		msg    string
	}{
		{400, `{"error":{"message":"m","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, dragoman.ErrorContextLength, "m"},
		{400, `{"code":"invalid-argument","error":"Incorrect"}`, dragoman.ErrorBadRequest, "Incorrect"},
		{401, `{"detail":"Could not parse"}`, dragoman.ErrorAuth, "Could not parse"},
		{429, `{"error":{"message":"q","type":"insufficient_quota","code":null}}`, dragoman.ErrorQuota, "q"},
		{429, `{"error":{"message":"Please try again in 20ms.","type":"tokens","code":"rate_limit_exceeded"}}`, dragoman.ErrorRateLimit, "Please try again in 20ms."},
		{500, `{"error":{"message":"x","type":"server_error","code":502}}`, dragoman.ErrorServer, "x"},
		{503, `<html>busy</html>`, dragoman.ErrorOverloaded, "<html>busy</html>"},
		{404, ``, dragoman.ErrorNotFound, "Not Found"},
	} {
		e := Codec{}.DecodeError(c.status, http.Header{"X-Request-Id": {"req_1"}}, []byte(c.body))
		if e.Class != c.class || e.Message != c.msg || e.RequestID != "req_1" {
			t.Errorf("%s: %+v", c.body, e)
		}
		status, body, _ := Codec{}.EncodeError(e)
		back := Codec{}.DecodeError(status, nil, body)
		if status != c.status || back.Class != c.class || back.Message != c.msg {
			t.Errorf("%s: encoded as %d %s", c.body, status, body)
		}
	}
	e := Codec{}.DecodeError(429, nil, []byte(`{"error":{"message":"Please try again in 2.5s.","code":"rate_limit_exceeded"}}`))
	if e.RetryAfter != 2500*time.Millisecond {
		t.Errorf("wait %v", e.RetryAfter)
	}
	if status, body, _ := (Codec{}).EncodeError(&dragoman.APIError{Class: dragoman.ErrorOverloaded, Type: "overloaded_error", Message: "x"}); status != 503 || !json.Valid(body) || wirekit.ClassOfStatus(status) != dragoman.ErrorOverloaded {
		t.Errorf("%d %s", status, body)
	}
}

func TestInvalidResponseKeepsPartialResult(t *testing.T) {
	resp, _, err := Codec{}.DecodeResponse([]byte(`{"id":"resp_1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"message","role":7}]}`), dialect.DecodeOptions{})
	var d *dragoman.DecodeError
	if !errors.As(err, &d) || d.Pointer != "/output/1/role" || resp.ID != "resp_1" || resp.Text() != "a" {
		t.Errorf("%v %+v", err, resp)
	}
}

func TestMisplacedPayloadIsReencoded(t *testing.T) {
	body := `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","input":"{\"p\":1}","status":"completed"}]}`
	resp, rep, err := Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || !strings.Contains(string(enc.Body), `"arguments":"{\"p\":1}"`) || strings.Contains(string(enc.Body), `"input":`) || len(rep.Losses) == 0 {
		t.Errorf("%v, %s, %+v", err, enc.Body, rep)
	}
}

func TestQuirkB21_FailedResponseHasProviderMessage(t *testing.T) {
	resp := &dragoman.Response{
		ID: "r", Model: "m", Origin: &dragoman.Origin{Dialect: dialectname.Gemini}, Stop: dragoman.Stop{Reason: dragoman.StopMalformedCall},
		Extra: &dragoman.Extra{Dialect: dialectname.Gemini, Fields: []dragoman.Field{{Path: "/candidates/0/finishMessage", Value: []byte(`"call: print(x)"`)}}},
	}
	enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || !strings.Contains(string(enc.Body), `"message":"the response ended with malformed_tool_call: call: print(x)"`) {
		t.Errorf("%v %s", err, enc.Body)
	}
	for _, l := range enc.Report.Losses {
		if strings.HasSuffix(l.Path, "finishMessage") {
			t.Errorf("%v is reported, but was written", l)
		}
	}
}

func TestQuirkC26_ReencodingIncompleteCallIsReported(t *testing.T) {
	body := `{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[` + callJSON("fc_1", "c1", `{"a":1}`, "incomplete") + `]}`
	resp, _, err := Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if string(enc.Body) != body && !strings.Contains(enc.Report.String(), "re-encoded") {
		t.Errorf("%s\n%s", enc.Body, enc.Report)
	}
}
