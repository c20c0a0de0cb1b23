package ollama_test

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
)

// oddResponse has every known field, and some unknown ones.
const oddResponse = `{"model":"qwen3:8b","created_at":"2026-11-15T10:00:00.123456+02:00","remote_model":"r","message":{"role":"assistant","content":"so","thinking":"hm","x":[1],
 "tool_calls":[{"id":"call_ab12cd34","function":{"index":0,"name":"f","arguments":{"b":1, "a":2}}}],"images":["iVBORw0KGgo="]},
 "done":true,"done_reason":"stop","total_duration":9,"load_duration":1,"prompt_eval_count":170,"prompt_eval_cached_count":128,"prompt_eval_duration":2,"eval_count":24,"eval_duration":3}`

func TestResponseRoundTrip(t *testing.T) {
	resp, rep := decodeResponse(t, oddResponse)
	lossless(t, rep)
	u := resp.Usage
	if resp.Model != "qwen3:8b" || !resp.Created.Equal(time.Date(2026, 11, 15, 8, 0, 0, 123456000, time.UTC)) || resp.Stop.Reason != dragoman.StopToolCalls ||
		u.Input != dragoman.Counted(170) || u.CacheRead != dragoman.Counted(128) || u.Output != dragoman.Counted(24) || u.Reasoning.Known || len(u.Extra.Fields) != 4 {
		t.Errorf("%+v", resp)
	}
	parts := resp.Output[0].Parts
	if len(parts) != 4 || parts[0].(*dragoman.Reasoning).Text != "hm" || resp.Text() != "so" || parts[2].(*dragoman.Media).MIME != "image/png" ||
		resp.ToolCalls()[0].ID != "call_ab12cd34" || resp.ToolCalls()[0].Arguments != `{"b":1, "a":2}` {
		t.Errorf("%+v", parts)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != oddResponse {
		t.Errorf("the unchanged response was encoded as %s, %v", enc.Body, err)
	}
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{Model: "alias"})
	if err != nil || string(enc.Body) != strings.Replace(oddResponse, "qwen3:8b", "alias", 1) {
		t.Errorf("%s, %v", enc.Body, err)
	}
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || len(enc.Report.Losses) > 0 {
		t.Errorf("%v\n%s", err, enc.Report)
	}
	sameJSON(t, string(enc.Body), oddResponse)
}

func TestQuirkB18_StopReasonFromCallsAndDoneReason(t *testing.T) {
	const call = `"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]`
	for word, want := range map[string][2]dragoman.StopReason{ // without and with a call
		`,"done_reason":"stop"`:           {dragoman.StopEnd, dragoman.StopToolCalls},
		``:                                {dragoman.StopEnd, dragoman.StopToolCalls},
		`,"done_reason":""`:               {dragoman.StopEnd, dragoman.StopToolCalls},
		`,"done_reason":null`:             {dragoman.StopEnd, dragoman.StopToolCalls},
		`,"done_reason":"load"`:           {dragoman.StopEnd, dragoman.StopToolCalls},
		`,"done_reason":"unload"`:         {dragoman.StopEnd, dragoman.StopToolCalls},
		`,"done_reason":"length"`:         {dragoman.StopLength, dragoman.StopLength},
		`,"done_reason":"content_filter"`: {dragoman.StopContentFilter, dragoman.StopContentFilter},
		`,"done_reason":"error"`:          {dragoman.StopError, dragoman.StopError},
		`,"done_reason":"eclipse"`:        {dragoman.StopUnknown, dragoman.StopUnknown}, // quirk B20
	} {
		for i, msg := range []string{`{"role":"assistant","content":"x"}`, `{"role":"assistant","content":"",` + call + `}`} {
			body := wholeResponse(msg, word)
			resp, _ := decodeResponse(t, body)
			if resp.Stop.Reason != want[i] {
				t.Errorf("%s: %s, want %s", body, resp.Stop.Reason, want[i])
			}
			d := streamed(t, line(msg)+last(word))
			if d.resp.Stop.Reason != want[i] {
				t.Errorf("stream %s: %s, want %s", body, d.resp.Stop.Reason, want[i])
			}
			for _, r := range []*dragoman.Response{resp, d.resp} {
				for _, c := range r.ToolCalls() {
					if (c.Problem == nil) != want[i].Runs() {
						t.Errorf("%s: %v", body, c.Problem)
					}
				}
			}
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 { // the native value is written back
				sameJSON(t, string(enc.Body), body)
			}
			// Clients run every call they get, so calls that must not run are not sent.
			if got := strings.Contains(string(enc.Body), "tool_calls"); got != (i == 1 && want[i].Runs()) {
				t.Errorf("%s became %s", body, enc.Body)
			}
		}
	}
	cut, _ := decodeResponse(t, wholeResponse(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}},{"id":"b","function":{"name":"f","arguments":{}}}]}`, `,"done_reason":"length"`))
	problem(t, calls(cut)[0], codes.ProblemStopped)
	problem(t, calls(cut)[1], codes.ProblemTruncated) // quirk C34
	open, _ := decodeResponse(t, `{"model":"m","message":{"tool_calls":[{"id":"a","function":{"name":"f"}}]},"done":false}`)
	if open.Stop.Reason != dragoman.StopError || open.ToolCalls()[0].Problem == nil {
		t.Errorf("response without done: %+v", open.Stop)
	}
}

func TestStopReasonsAreMappedToTheNearest(t *testing.T) {
	for reason, want := range map[dragoman.StopReason]string{
		dragoman.StopNone: "stop", dragoman.StopEnd: "stop", dragoman.StopToolCalls: "stop", dragoman.StopLength: "length", dragoman.StopSequence: "stop",
		dragoman.StopContentFilter: "content_filter", dragoman.StopRefusal: "content_filter", dragoman.StopError: "error", dragoman.StopCanceled: "error",
		dragoman.StopMalformedCall: "error", dragoman.StopPause: "stop", dragoman.StopUnknown: "stop", dragoman.StopCompaction: "stop",
	} {
		resp := &dragoman.Response{Model: "m", Created: time.Unix(1, 0), Output: []dragoman.Message{dragoman.AssistantText("x")}, Stop: dragoman.Stop{Reason: reason, Native: "their word"}}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(object(t, enc.Body)["done_reason"]); got != `"`+want+`"` {
			t.Errorf("%s written as %s", reason, got)
		}
		back, _ := decodeResponse(t, string(enc.Body))
		if back.Stop.Reason != reason && reason != dragoman.StopNone && reason != dragoman.StopToolCalls {
			lost(t, enc.Report, dragoman.Lowered, "/stop", string(reason))
		} else {
			lossless(t, enc.Report)
		}
	}
}

func TestResponseFromAnotherAPI(t *testing.T) {
	resp := &dragoman.Response{
		ID: "r1", Model: "m", ServiceTier: "flex", Created: time.Unix(1794708826, 0),
		Output: []dragoman.Message{
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Reasoning{Summary: []string{"a", "b"}, Encrypted: "e"}}},
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("one")}},
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("two"), &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "x", JSON: json.RawMessage(`{}`)}}},
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
				&dragoman.ToolCall{ID: "toolu_1", Name: "f", Arguments: `{"a":1}`}, &dragoman.ToolCall{ID: "h", Name: "search", Hosted: true},
				&dragoman.ToolCall{ID: "b", Name: "f", Arguments: `{"a":`, Problem: &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "m"}},
			}},
		},
		Stop:         dragoman.Stop{Reason: dragoman.StopToolCalls, Native: "tool_use"},
		Usage:        dragoman.Usage{Input: dragoman.Counted(5), Output: dragoman.Counted(0), Reasoning: dragoman.Counted(1), CacheWrite: dragoman.Counted(2)},
		Alternatives: []dragoman.Candidate{{Index: 1}},
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, string(enc.Body), `{"model":"m","created_at":"2026-11-15T02:13:46Z","message":{"role":"assistant","content":"one\n\ntwo","thinking":"a\n\nb",
		"tool_calls":[{"id":"toolu_1","function":{"name":"f","arguments":{"a":1}}},{"id":"b","function":{"name":"f","arguments":{"_raw":"{\"a\":"}}}]},
		"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":0}`)
	for _, l := range []struct{ path, detail string }{
		{"/id", ""},
		{"/service_tier", ""},
		{"/alternatives", ""},
		{"/usage/reasoning", ""},
		{"/usage/cache_write", ""},
		{"/output/0/parts/0", "opaque"},
		{"/output/2/parts/1", "cannot contain"},
		{"/output/3/parts/1", "run by its provider"},
	} {
		lost(t, enc.Report, dragoman.Dropped, l.path, l.detail)
	}
	lost(t, enc.Report, dragoman.Lowered, "/output/3/parts/2", "_raw")

	for _, odd := range []int64{-1 << 40, 1 << 50} {
		enc, err := codec.EncodeResponse(&dragoman.Response{Created: time.Unix(odd, 0)}, dialect.EncodeOptions{})
		if err != nil || string(object(t, enc.Body)["created_at"]) != `"1970-01-01T00:00:00Z"` {
			t.Errorf("%v %s", err, enc.Body)
		}
		lost(t, enc.Report, dragoman.Dropped, "/created", "")
	}
}

func TestLoadResponseIsEmpty(t *testing.T) {
	body := `{"model":"m","created_at":"2026-11-15T10:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}`
	resp, _ := decodeResponse(t, body)
	if len(resp.Output) != 0 || resp.Stop != (dragoman.Stop{Reason: dragoman.StopEnd, Native: "load"}) || resp.Usage.Input.Known {
		t.Errorf("%+v", resp)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || string(enc.Body) != body {
		t.Errorf("%s, %v", enc.Body, err)
	}
}

func TestErrorsRoundTrip(t *testing.T) {
	for _, c := range []struct {
		status  int
		body    string
		message string
		class   dragoman.ErrorClass
	}{
		{404, `{"error":"model 'x' not found"}`, "model 'x' not found", dragoman.ErrorNotFound},
		{400, `{"error":"\"m\" does not support tools"}`, `"m" does not support tools`, dragoman.ErrorBadRequest},
		{401, `{"error":"unauthorized","signin_url":"https://x"}`, "unauthorized", dragoman.ErrorAuth},
		{403, `{"error":"no"}`, "no", dragoman.ErrorPermission},
		{429, `{"error":"slow"}`, "slow", dragoman.ErrorRateLimit},
		{499, `{"error":"gone"}`, "gone", dragoman.ErrorTimeout},
		{500, `{"error":"boom"}`, "boom", dragoman.ErrorServer},
		{503, `{"error":"server busy, please try again"}`, "server busy, please try again", dragoman.ErrorOverloaded},
		{400, `{"error":"the input length exceeds the context length"}`, "the input length exceeds the context length", dragoman.ErrorContextLength},
		{502, `{"error":{"message":"upstream","type":"t","code":7}}`, "upstream", dragoman.ErrorServer},
		{0, `{"error":"model 'x' not found, try pulling it first"}`, "model 'x' not found, try pulling it first", dragoman.ErrorNotFound},
		{0, `{"error":"m does not support thinking"}`, "m does not support thinking", dragoman.ErrorBadRequest},
		{0, `{"error":"an error was encountered while running the model"}`, "an error was encountered while running the model", dragoman.ErrorServer},
		{502, `<html>`, "<html>", dragoman.ErrorServer},
		{500, `{}`, "{}", dragoman.ErrorServer},
	} {
		e := codec.DecodeError(c.status, http.Header{"Retry-After": {"3"}}, []byte(c.body))
		if e.Message != c.message || e.Class != c.class || e.Status != c.status || e.RetryAfter != 3*time.Second {
			t.Errorf("%s: %+v", c.body, e)
		}
		if e.Native == nil {
			continue
		}
		if _, body, _ := codec.EncodeError(e); string(body) != c.body {
			t.Errorf("%s was encoded as %s", c.body, body)
		}
	}
	status, body, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorQuota, Message: "no credit", Type: "their type", Native: &dragoman.Native{Format: "openai.chat_completions", JSON: json.RawMessage(`{"error":{"message":"no credit"}}`)}})
	if status != 429 || string(body) != `{"error":"no credit"}` { // quirk J3: no fields of another API
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := codec.EncodeError(nil); status != 500 || string(body) != `{"error":"server"}` {
		t.Errorf("%d %s", status, body)
	}
}

func TestQuirkC14_ErrorInsteadOfResponse(t *testing.T) {
	resp, _ := decodeResponse(t, `{"error":"boom"}`)
	if resp.Error == nil || resp.Error.Message != "boom" || resp.Stop.Reason != dragoman.StopError {
		t.Errorf("%+v", resp)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || string(enc.Body) != `{"error":"boom"}` {
		t.Errorf("%s, %v", enc.Body, err)
	}
	resp, _ = decodeResponse(t, `{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}}]},"done":true,"error":"boom"}`)
	if resp.Error == nil || resp.ToolCalls()[0].Problem == nil {
		t.Errorf("%+v", resp)
	}
}

func TestInvalidResponseErrorsHavePointers(t *testing.T) {
	for body, pointer := range map[string]string{
		`{}`: "", `null`: "", `[]`: "", `{"message":null}`: "", `{"model":"m"`: "",
		`{"message":5}`:                         "/message",
		`{"message":{"content":5}}`:             "/message/content",
		`{"message":{"thinking":{}}}`:           "/message/thinking",
		`{"message":{"images":[1]}}`:            "/message/images/0",
		`{"message":{},"done":"yes"}`:           "/done",
		`{"message":{},"done_reason":["stop"]}`: "/done_reason",
	} {
		resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err == nil || resp == nil {
			t.Errorf("%s: no error", body)
			continue
		}
		if de := decodeError(t, err); de.Pointer != pointer || de.What != "response" {
			t.Errorf("%s: %v at %q, want %q", body, err, de.Pointer, pointer)
		}
	}
	_, err := codec.EncodeResponse(&dragoman.Response{Output: []dragoman.Message{{Parts: []dragoman.Part{nil}}}}, dialect.EncodeOptions{})
	if !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
}

// The Ollama client reads a whole response line by line, like a stream.
func TestWholeResponseIsOneLine(t *testing.T) {
	call := &dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: "{\n  \"city\": \"Oslo\",\r\n  \"days\": [1,\n 2]\n}"}
	resp := &dragoman.Response{Model: "m", Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || strings.ContainsAny(string(enc.Body), "\r\n") {
		t.Fatalf("%v: %q", err, enc.Body)
	}
	again, _ := decodeResponse(t, string(enc.Body))
	sameJSON(t, again.ToolCalls()[0].Arguments, call.Arguments)
}
