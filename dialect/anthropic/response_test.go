package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

func TestUnchangedResponseKeepsItsBytes(t *testing.T) {
	body := strings.Replace(responseBody("end_turn", `[{"type":"text","text":"h\u00e9 <b>"}]`), `"model":`, "\n \"model\" : ", 1)
	resp := decodeResponse(t, body)
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != body {
		t.Errorf("%v %s", err, enc.Body)
	}
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{Model: "public-name"})
	if want := strings.Replace(body, "claude-opus-5-5", "public-name", 1); err != nil || string(enc.Body) != want {
		t.Errorf("%v %s", err, enc.Body)
	}
}

func TestResponseMessageIsReplayed(t *testing.T) {
	content := `[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"x","citations":null}, {"type":"tool_use","id":"toolu_1","name":"f","input":{ "a":1 }}]`
	resp := decodeResponse(t, responseBody("tool_use", content))
	req := requestOf(append([]dragoman.Message{dragoman.UserText("a")}, append(resp.Output, newMessage(dragoman.RoleTool, result("toolu_1", "ok")))...)...)
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body)[1]; got != `{"role":"assistant","content":`+content+`}` {
		t.Errorf("%s", got)
	}
}

func TestQuirkB18_B19_B20_StopReasons(t *testing.T) {
	const text, use = `[{"type":"text","text":"x"}]`, `[{"type":"tool_use","id":"t1","name":"f","input":{}}]`
	for _, c := range []struct {
		word, content string
		want          dragoman.StopReason
		runs          bool
	}{
		{"end_turn", text, dragoman.StopEnd, true},
		{"end_turn", use, dragoman.StopToolCalls, true},
		{"tool_use", use, dragoman.StopToolCalls, true},
		{"tool_use", text, dragoman.StopEnd, true},
		{"", use, dragoman.StopToolCalls, true},
		{"max_tokens", use, dragoman.StopLength, false},
		{"model_context_window_exceeded", use, dragoman.StopLength, false},
		{"stop_sequence", text, dragoman.StopSequence, true},
		{"pause_turn", use, dragoman.StopPause, true},
		{"refusal", use, dragoman.StopRefusal, false},
		{"compaction", text, dragoman.StopCompaction, true},
		{"telepathy", use, dragoman.StopUnknown, false},
	} {
		resp := decodeResponse(t, responseBody(c.word, c.content))
		if resp.Stop.Reason != c.want || resp.Stop.Native != c.word {
			t.Errorf("%s: %+v", c.word, resp.Stop)
		}
		for _, call := range resp.ToolCalls() {
			if (call.Problem == nil) != c.runs {
				t.Errorf("%s: the call may run: %v", c.word, call.Problem == nil)
			}
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if back := decodeResponse(t, string(enc.Body)); back.Stop.Reason != c.want {
			t.Errorf("%s decoded as %+v", c.word, back.Stop)
		}
	}
}

func TestForeignStopReasons(t *testing.T) {
	for _, c := range []struct {
		reason dragoman.StopReason
		calls  bool
		want   string
		lossy  bool
	}{
		{dragoman.StopEnd, false, "end_turn", false},
		{dragoman.StopToolCalls, true, "tool_use", false},
		{dragoman.StopLength, false, "max_tokens", false},
		{dragoman.StopContentFilter, false, "refusal", true},
		{dragoman.StopMalformedCall, true, "max_tokens", true}, // a stop reason after which clients run no call
		{dragoman.StopUnknown, false, "end_turn", true},
	} {
		parts := []dragoman.Part{&dragoman.Text{Text: "x"}}
		if c.calls {
			parts = append(parts, call("c1", "f", "{}"))
		}
		resp := &dragoman.Response{ID: "r", Model: "m", Origin: foreignOrigin, Output: []dragoman.Message{newMessage(dragoman.RoleAssistant, parts...)}, Stop: dragoman.Stop{Reason: c.reason, Native: "zzz"}}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"stop_reason":"`+c.want+`"`) {
			t.Errorf("%s: %v %s", c.reason, err, enc.Body)
		}
		if c.lossy {
			has(t, enc.Report, dragoman.Lowered, "/stop")
		}
	}
}

func TestRefusalKeepsItsDetails(t *testing.T) {
	body := `{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":null},"usage":{"input_tokens":1,"output_tokens":0}}`
	resp := decodeResponse(t, body)
	if resp.Stop.Reason != dragoman.StopRefusal || resp.Stop.Details == nil || resp.Output != nil {
		t.Fatalf("%+v", resp)
	}
	enc, _ := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if diff := cmp.Diff(codectest.JSON[any](t, []byte(body)), codectest.JSON[any](t, enc.Body)); diff != "" {
		t.Error(diff)
	}
	// A refusal part becomes text and the refusal stop reason.
	other := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{newMessage(dragoman.RoleAssistant, &dragoman.Refusal{Text: "no"})}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}
	enc, _ = codec.EncodeResponse(other, dialect.EncodeOptions{})
	if s := string(enc.Body); !strings.Contains(s, `"stop_reason":"refusal"`) || !strings.Contains(s, `{"type":"text","text":"no"}`) {
		t.Errorf("%s", s)
	}
}

func TestQuirkB10_B11_SyntheticAndDuplicateIDs(t *testing.T) {
	content := `[{"type":"tool_use","name":"f","input":{"a":1}},{"type":"tool_use","id":"x","name":"f","input":{"a":1}},
		{"type":"tool_use","id":"x","name":"f","input":{"a":1}},{"type":"tool_use","id":"x","name":"f","input":{"a":2}}]`
	resp, rep, err := codec.DecodeResponse([]byte(responseBody("tool_use", content)), dialect.DecodeOptions{Seed: "run/1"})
	if err != nil {
		t.Fatal(err)
	}
	calls := resp.ToolCalls()
	if len(calls) != 3 || !calls[0].Synthetic || calls[1].ID != "x" || calls[2].ID == "x" || calls[2].ID == calls[0].ID {
		t.Fatalf("%+v\n%s", calls, rep)
	}
	has(t, rep, dragoman.Synthesized, "/content/0")
	has(t, rep, dragoman.Dropped, "/content/2")
	has(t, rep, dragoman.Renamed, "/content/3")
	if resp.Output[0].Native != nil {
		t.Error("a message with synthetic ids must not be replayed")
	}
	other, _, _ := codec.DecodeResponse([]byte(responseBody("tool_use", content)), dialect.DecodeOptions{Seed: "run/2"})
	if other.ToolCalls()[0].ID == calls[0].ID {
		t.Error("another seed must give another id")
	}
}

func TestQuirkC34_LengthTruncatesLastCall(t *testing.T) {
	resp := decodeResponse(t, responseBody("max_tokens", `[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{"x":1}}]`))
	calls := resp.ToolCalls()
	if calls[0].Problem.Code != codes.ProblemStopped || calls[1].Problem.Code != codes.ProblemTruncated {
		t.Errorf("%v %v", calls[0].Problem, calls[1].Problem)
	}
}

func TestDuplicateKeyBlocksOnlyItsCall(t *testing.T) {
	resp := decodeResponse(t, responseBody("tool_use", `[{"type":"tool_use","id":"a","name":"f","input":{"x":1,"x":2}}]`))
	if p := resp.ToolCalls()[0].Problem; p == nil || p.Code != codes.ProblemDuplicateKey {
		t.Errorf("%v", p)
	}
}

func TestQuirkJ12_UsageArithmetic(t *testing.T) {
	body := `{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":"end_turn","stop_sequence":null,
		"usage":{"input_tokens":400,"cache_creation_input_tokens":30,"cache_read_input_tokens":2000,"output_tokens":57,"output_tokens_details":{"thinking_tokens":7},"service_tier":"standard","server_tool_use":{"web_search_requests":1}}}`
	resp := decodeResponse(t, body)
	u := resp.Usage
	want := dragoman.Usage{Input: dragoman.Counted(2430), CacheRead: dragoman.Counted(2000), CacheWrite: dragoman.Counted(30), Output: dragoman.Counted(57), Reasoning: dragoman.Counted(7), Extra: u.Extra}
	if diff := cmp.Diff(want, u); diff != "" || resp.ServiceTier != "standard" {
		t.Error(diff, resp.ServiceTier)
	}
	enc, _ := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if diff := cmp.Diff(codectest.JSON[any](t, []byte(body)), codectest.JSON[any](t, enc.Body)); diff != "" {
		t.Error(diff)
	}
	if u := decodeResponse(t, strings.Replace(body, `"input_tokens":400`, `"input_tokens":null`, 1)).Usage; u.Input.Known || !u.CacheRead.Known {
		t.Errorf("unknown is not zero: %+v", u)
	}
}

func TestForeignReasoningLosesSignature(t *testing.T) {
	m := newMessage(dragoman.RoleAssistant, &dragoman.Reasoning{Summary: []string{"one", "two"}, Encrypted: "secret"}, &dragoman.Reasoning{Encrypted: "hidden"}, &dragoman.Text{Text: "x"})
	m.Origin = foreignOrigin
	resp := &dragoman.Response{ID: "r", Model: "m", Origin: foreignOrigin, Output: []dragoman.Message{m}, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := string(enc.Body)
	if !strings.Contains(s, `"content":[{"type":"thinking","thinking":"one\n\ntwo","signature":""},{"type":"text","text":"x"}]`) || strings.Contains(s, "secret") || strings.Contains(s, "hidden") {
		t.Errorf("%s", s)
	}
	has(t, enc.Report, dragoman.Dropped, "/output/0/parts/0")
	has(t, enc.Report, dragoman.Dropped, "/output/0/parts/1")
}

func TestFreeformCallIsInputObject(t *testing.T) {
	c := &dragoman.ToolCall{ID: "c1", Name: "patch", Payload: codes.PayloadText, Arguments: "*** \"x\"\n"}
	resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{newMessage(dragoman.RoleAssistant, c)}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || !strings.Contains(string(enc.Body), `"input":{"input":"*** \"x\"\n"}`) {
		t.Errorf("%v %s", err, enc.Body)
	}
	// In the other direction, a caller whose freeform tool was lowered gets its
	// text back.
	req := requestOf(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "patch"}}
	_, sent := encode(t, req, dialect.EncodeOptions{})
	back, _, err := codec.DecodeResponse(enc.Body, dialect.DecodeOptions{Registry: sent.Registry})
	if err != nil || back.ToolCalls()[0].Payload != codes.PayloadText || back.ToolCalls()[0].Arguments != c.Arguments {
		t.Errorf("%v %+v", err, back.ToolCalls()[0])
	}
}

func TestErrorWithStatus200IsFailedResponse(t *testing.T) {
	body := `{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_1"}`
	resp := decodeResponse(t, body)
	if resp.Error == nil || resp.Error.Class != dragoman.ErrorOverloaded || resp.Stop.Reason != dragoman.StopError {
		t.Errorf("%+v", resp)
	}
	if enc, _ := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true}); string(enc.Body) != body {
		t.Errorf("%s", enc.Body)
	}
}

func TestQuirkJ3_Errors(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		class  dragoman.ErrorClass
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"bad","details":{"error_code":"tool_name_conflict"}},"request_id":"req_1"}`, dragoman.ErrorBadRequest},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}`, dragoman.ErrorContextLength},
		{401, `{"type":"error","error":{"type":"authentication_error","message":"no"}}`, dragoman.ErrorAuth},
		{402, `{"type":"error","error":{"type":"billing_error","message":"no"}}`, dragoman.ErrorQuota},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"no"}}`, dragoman.ErrorTooLarge},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`, dragoman.ErrorRateLimit},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`, dragoman.ErrorOverloaded},
		{500, `{"type":"error","error":{"type":"brand_new_error","message":"no"}}`, dragoman.ErrorServer},
		{502, `<html>bad gateway</html>`, dragoman.ErrorServer},
		{404, `{"error":"model not found"}`, dragoman.ErrorNotFound},
		{403, ``, dragoman.ErrorPermission},
	} {
		h := http.Header{"Request-Id": {"req_h"}, "Retry-After": {"2"}}
		e := codec.DecodeError(c.status, h, []byte(c.body))
		if e.Class != c.class || e.Message == "" || e.Status != c.status || e.RetryAfter != 2*time.Second || e.RequestID == "" {
			t.Errorf("%d %s: %+v", c.status, c.body, e)
		}
		status, body, _ := codec.EncodeError(e)
		if !json.Valid(body) || status < 400 {
			t.Errorf("%d %s", status, body)
		}
		if strings.HasPrefix(c.body, `{"type"`) && (string(body) != c.body || status != c.status) {
			t.Errorf("an error of this dialect must keep its bytes: %d %s", status, body)
		}
	}
	if e := codec.DecodeError(400, nil, []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"m","details":{"error_code":"tool_name_conflict"}}}`)); e.Code != "tool_name_conflict" {
		t.Errorf("%+v", e)
	}
	status, body, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: 430, Type: "requests", Message: "slow down", RequestID: "r1"})
	if want := `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"},"request_id":"r1"}`; status != 429 || string(body) != want {
		t.Errorf("types of another API are written: %d %s", status, body)
	}
}

func TestInvalidResponseErrorHasPointer(t *testing.T) {
	for _, body := range []string{``, `[]`, `{"id":5}`, `{"id":"x","content":[{"type":"text","text":"a"}],"model":5}`, `{"id":"x"} trailing`} {
		resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err == nil || resp == nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	resp, _, err := codec.DecodeResponse([]byte(`{"id":"x","content":[{"type":"text","text":"a"}],"model":7}`), dialect.DecodeOptions{})
	if err == nil || resp.Text() != "a" {
		t.Errorf("the part decoded before the error is lost: %v", err)
	}
}

func TestQuirkB21_MalformedCallIsNotEmptySuccess(t *testing.T) {
	ended := dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopMalformedCall, Native: "MALFORMED_FUNCTION_CALL"}, Response: dragoman.Response{
		ID: "r", Model: "m", Origin: &dragoman.Origin{Dialect: dialectname.Gemini},
		Extra: &dragoman.Extra{Dialect: dialectname.Gemini, Fields: []dragoman.Field{{Path: "/candidates/0/finishMessage", Value: []byte(`"call: print(x)"`)}}},
	}}
	resp := ended.Response
	resp.Stop = ended.Stop
	enc, err := codec.EncodeResponse(&resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := codec.NewStreamEncoder(dialect.EncodeOptions{})
	streamed, err := e.Encode(nil, &ended)
	if err != nil {
		t.Fatal(err)
	}
	for how, got := range map[string]dialect.Encoded{"whole": enc, "streamed": {Body: streamed, Report: e.Report()}} {
		if !strings.Contains(string(got.Body), `"text":"[the response ended with malformed_tool_call: call: print(x)]"`) {
			t.Errorf("%s: the failure is not visible: %s", how, got.Body)
		}
		for _, l := range got.Report.Losses {
			if strings.HasSuffix(l.Path, "finishMessage") {
				t.Errorf("%s: reported as lost but written: %v", how, l)
			}
		}
		if got.Report.Err(dragoman.Serious) == nil {
			t.Errorf("%s: no serious loss in %v", how, got.Report.Losses)
		}
	}
}
