package bedrock_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

const oneCall = `[{"text":"a"},{"toolUse":{"toolUseId":"t1","name":"f","input":{"x":1}}}]`

func TestQuirkB18B20_StopReasons(t *testing.T) {
	for word, want := range map[string]struct {
		plain, withCall dragoman.StopReason
	}{
		"end_turn":                      {dragoman.StopEnd, dragoman.StopToolCalls},
		"tool_use":                      {dragoman.StopEnd, dragoman.StopToolCalls},
		"max_tokens":                    {dragoman.StopLength, dragoman.StopLength},
		"stop_sequence":                 {dragoman.StopSequence, dragoman.StopSequence},
		"guardrail_intervened":          {dragoman.StopContentFilter, dragoman.StopContentFilter},
		"content_filtered":              {dragoman.StopContentFilter, dragoman.StopContentFilter},
		"malformed_model_output":        {dragoman.StopError, dragoman.StopError},
		"malformed_tool_use":            {dragoman.StopMalformedCall, dragoman.StopMalformedCall},
		"model_context_window_exceeded": {dragoman.StopLength, dragoman.StopLength},
		"refusal":                       {dragoman.StopRefusal, dragoman.StopRefusal},
		"pause_turn":                    {dragoman.StopPause, dragoman.StopPause},
		"never_heard_of":                {dragoman.StopUnknown, dragoman.StopUnknown},
		"":                              {dragoman.StopEnd, dragoman.StopToolCalls},
	} {
		t.Run(word, func(t *testing.T) {
			for content, reason := range map[string]dragoman.StopReason{`[{"text":"a"}]`: want.plain, oneCall: want.withCall} {
				resp := decodeResponse(t, responseBody(word, content))
				if resp.Stop.Reason != reason || resp.Stop.Native != word {
					t.Errorf("%+v, want %s", resp.Stop, reason)
				}
				for _, c := range resp.ToolCalls() {
					if (c.Problem == nil) != reason.Runs() {
						t.Errorf("%s: problem %v", reason, c.Problem)
					}
				}
				enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
				if err != nil || word != "" && field(codectest.JSON[any](t, enc.Body), "stopReason") != word {
					t.Errorf("%v %s", err, enc.Body)
				}
			}
		})
	}
}

func TestForeignStopBlocksCalls(t *testing.T) {
	for _, reason := range []dragoman.StopReason{
		dragoman.StopLength, dragoman.StopSequence, dragoman.StopContentFilter, dragoman.StopRefusal, dragoman.StopMalformedCall,
		dragoman.StopError, dragoman.StopCanceled, dragoman.StopCompaction, dragoman.StopUnknown,
	} {
		resp := &dragoman.Response{Output: []dragoman.Message{newMessage(dragoman.RoleAssistant, call("1", "f", "{}"))}, Stop: dragoman.Stop{Reason: reason}}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if back := decodeResponse(t, string(enc.Body)); back.Stop.Reason.Runs() || back.ToolCalls()[0].Problem == nil {
			t.Errorf("%s decoded as %+v", reason, back.Stop)
		}
	}
}

func TestQuirkJ12_InputIncludesCachedTokens(t *testing.T) {
	body := strings.Replace(responseBody("end_turn", `[]`), `{"inputTokens":9,"outputTokens":20,"totalTokens":29}`,
		`{"inputTokens":9,"outputTokens":20,"totalTokens":36,"cacheReadInputTokens":3,"cacheWriteInputTokens":4,"cacheDetails":[{"ttl":"1h","inputTokens":4}],"serverToolUsage":{}}`, 1)
	resp := decodeResponse(t, body)
	u := resp.Usage
	if u.Input.N != 16 || u.CacheRead.N != 3 || u.CacheWrite.N != 4 || u.Output.N != 20 || u.Reasoning.Known {
		t.Errorf("%+v", u)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || js(codectest.JSON[any](t, enc.Body)) != js(codectest.JSON[any](t, []byte(body))) {
		t.Errorf("%v\n%s\n%s", err, body, enc.Body)
	}
	// A total that differs from the sum is kept.
	odd := strings.Replace(body, `"totalTokens":36`, `"totalTokens":99`, 1)
	enc, err = codec.EncodeResponse(decodeResponse(t, odd), dialect.EncodeOptions{Rebuild: true})
	if err != nil || js(codectest.JSON[any](t, enc.Body)) != js(codectest.JSON[any](t, []byte(odd))) {
		t.Errorf("%v\n%s", err, enc.Body)
	}
}

func TestResponseKeepsUnknownFields(t *testing.T) {
	body := `{"output":{"message":{"content":[{"type":"text","text":"a"}],"role":"assistant","x":1},"y":2},"stopReason":"stop_sequence",
 "usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"metrics":{"latencyMs":5},"trace":{"guardrail":{}},"performanceConfig":{"latency":"standard"},
 "serviceTier":{"type":"flex"},"additionalModelResponseFields":{"stop_sequence":"END"}}`
	resp := decodeResponse(t, body)
	if resp.Stop.Sequence != "END" || resp.ServiceTier != "flex" || resp.Text() != "a" || resp.ID != "" || resp.Model != "" {
		t.Errorf("%+v", resp)
	}
	for _, rebuild := range []bool{false, true} {
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: rebuild})
		if err != nil || js(codectest.JSON[any](t, enc.Body)) != js(codectest.JSON[any](t, []byte(body))) || !rebuild && string(enc.Body) != body {
			t.Errorf("rebuild %v: %v\n%s", rebuild, err, enc.Body)
		}
	}
}

// The message of a response is sent back byte for byte in the next request.
func TestResponseMessageIsReplayed(t *testing.T) {
	content := `[ {"reasoningContent":{"reasoningText":{"signature":"c2ln", "text":"hm"}}},{"toolUse":{"input":{"x":1.0},"name":"f","toolUseId":"t1"}}]`
	resp := decodeResponse(t, responseBody("tool_use", content))
	req := requestOf(append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...)...)
	req.Messages = append(req.Messages, dragoman.ToolResults(resp.ToolCalls()[0].ResultText("r")))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body)[1]; got != `{"role":"assistant","content":`+content+`}` {
		t.Error(got)
	}
}

func TestQuirkB10_SyntheticIDIsStable(t *testing.T) {
	body := []byte(responseBody("tool_use", `[{"toolUse":{"name":"f","input":{}}},{"toolUse":{"toolUseId":7,"name":"f","input":{"a":1}}}]`))
	a, rep, err := codec.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
	if err != nil {
		t.Fatal(err)
	}
	b, _, _ := codec.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
	other, _, _ := codec.DecodeResponse(body, dialect.DecodeOptions{Seed: "t"})
	ids := a.ToolCalls()
	if len(ids) != 2 || ids[0].ID == ids[1].ID || !ids[0].Synthetic || ids[0].ID != b.ToolCalls()[0].ID || ids[0].ID == other.ToolCalls()[0].ID || len(rep.Losses) != 2 {
		t.Errorf("%+v %s", ids, rep)
	}
	history := `{"messages":[{"role":"assistant","content":[{"toolUse":{"name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"content":[{"text":"r"}]}}]}]}`
	req := decode(t, history)
	if req.Messages[0].ToolCalls()[0].ID != req.Messages[1].Parts[0].(*dragoman.ToolResult).CallID {
		t.Error("the result does not match the call")
	}
}

func TestQuirkB11_DuplicateIDs(t *testing.T) {
	same := `{"toolUse":{"toolUseId":"t","name":"f","input":{"a":1}}}`
	resp := decodeResponse(t, responseBody("tool_use", `[`+same+`,`+same+`,{"toolUse":{"toolUseId":"t","name":"g","input":{}}}]`))
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].ID != "t" || calls[1].ID == "t" || !calls[1].Synthetic {
		t.Errorf("%+v", calls)
	}
}

func TestQuirkB1B2B3_ArgumentForms(t *testing.T) {
	for input, want := range map[string]string{
		`,"input":{}`: `{}`, ``: `{}`, `,"input":null`: `{}`, `,"input":""`: `{}`, `,"input":"{\"a\":1}"`: `{"a":1}`, `,"input":{"a": 1.0}`: `{"a": 1.0}`,
	} {
		resp := decodeResponse(t, responseBody("tool_use", `[{"toolUse":{"toolUseId":"t","name":"f"`+input+`}}]`))
		c := resp.ToolCalls()[0]
		if obj, _ := c.Object(); string(obj) != want || c.Problem != nil {
			t.Errorf("%s: %s %v", input, obj, c.Problem)
		}
	}
}

func TestAmbiguousCallIsBlocked(t *testing.T) {
	for name, block := range map[string]string{
		"duplicate id":          `{"toolUse":{"toolUseId":"a","toolUseId":"b","name":"f","input":{}}}`,
		"duplicate name":        `{"toolUse":{"toolUseId":"a","name":"f","name":"g","input":{}}}`,
		"duplicate input":       `{"toolUse":{"toolUseId":"a","name":"f","input":{},"input":{"x":1}}}`,
		"input in another case": `{"toolUse":{"toolUseId":"a","name":"f","input":{},"Input":{"x":1}}}`,
		"duplicate block":       `{"toolUse":{"toolUseId":"a","name":"f","input":{}},"toolUse":{"toolUseId":"a","name":"g","input":{}}}`,
		"block in another case": `{"ToolUse":{"toolUseId":"a","name":"f","input":{}}}`,
		"call and text":         `{"text":"a","toolUse":{"toolUseId":"a","name":"f","input":{}}}`,
		"not an object":         `{"toolUse":"x"}`,
		"duplicate argument":    `{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1,"x":2}}}`,
		"invalid name":          `{"toolUse":{"toolUseId":"a","name":{},"input":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := responseBody("tool_use", `[`+block+`]`)
			resp := decodeResponse(t, body)
			calls := resp.ToolCalls()
			if len(calls) != 1 || calls[0].Problem == nil {
				t.Fatalf("%+v", calls)
			}
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range decodeResponse(t, string(enc.Body)).ToolCalls() {
				if obj, _ := c.Object(); c.Problem == nil && !strings.Contains(string(obj), "_raw") {
					t.Errorf("a client would run %s", enc.Body)
				}
			}
		})
	}
	for name, body := range map[string]string{
		"duplicate content": `{"output":{"message":{"content":[],"content":` + oneCall + `}},"stopReason":"tool_use"}`,
		"duplicate message": `{"output":{"message":{},"message":{"content":` + oneCall + `}},"stopReason":"tool_use"}`,
		"duplicate stop":    `{"output":{"message":{"content":` + oneCall + `}},"stopReason":"max_tokens","stopReason":"tool_use"}`,
		"error field":       `{"output":{"message":{"content":` + oneCall + `}},"__type":"X","stopReason":"tool_use"}`,
	} {
		resp := decodeResponse(t, body)
		if c := resp.ToolCalls(); len(c) != 1 || c[0].Problem == nil || resp.Native != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestInvalidResponseIsError(t *testing.T) {
	for _, body := range []string{`{}`, `[]`, `{"output":{}}`, `{"output":null,"stopReason":"end_turn"}`, `{"output":{"message":[]}}`, `{"output":{"message":{"content":{}}}}`, `{"output":{"message":{"content":[]}},"stopReason":[]}`, `x`} {
		_, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{`{"message":"no"}`, `{"__type":"com.amazon#ThrottlingException","message":"slow"}`} {
		resp := decodeResponse(t, body)
		if resp.Error == nil || resp.Stop.Reason != dragoman.StopError {
			t.Errorf("%s: %+v", body, resp)
		}
		if enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil || string(enc.Body) != body {
			t.Errorf("%v %s", err, enc.Body)
		}
	}
}

func TestForeignResponse(t *testing.T) {
	resp := &dragoman.Response{
		ID: "r", Model: "m", Origin: foreignOrigin,
		Output: []dragoman.Message{newMessage(dragoman.RoleAssistant,
			&dragoman.Reasoning{Text: "hm", Signature: "s"}, &dragoman.Reasoning{Redacted: true, Encrypted: "e"},
			&dragoman.Text{Text: "t"}, &dragoman.Refusal{Text: "no"}, &dragoman.Data{JSON: json.RawMessage(`[1]`)},
			&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AAEC"},
			&dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "server_tool_use", JSON: json.RawMessage(`{}`)},
			&dragoman.ToolCall{ID: "x.y", Name: "f", Arguments: `{"a":`}, &dragoman.ToolCall{Name: "p", Payload: codes.PayloadText, Arguments: "in"})},
		Stop:  dragoman.Stop{Reason: dragoman.StopSequence, Sequence: "END"},
		Usage: dragoman.Usage{Input: dragoman.Counted(3), Output: dragoman.Counted(4), Reasoning: dragoman.Counted(1)},
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
	if err != nil {
		t.Fatal(err)
	}
	v := codectest.JSON[any](t, enc.Body)
	want := `[{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"t"},{"text":"no"},{"text":"[1]"},{"image":{"format":"png","source":{"bytes":"AAEC"}}},` +
		`{"toolUse":{"input":{"_raw":"{\"a\":"},"name":"f","toolUseId":"x.y"}},{"toolUse":{"input":{"input":"in"},"name":"p","toolUseId":"` +
		field(v, "output", "message", "content", 6, "toolUse", "toolUseId").(string) + `"}}]`
	if got := js(field(v, "output", "message", "content")); got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if js(field(v, "additionalModelResponseFields")) != `{"stop_sequence":"END"}` || js(field(v, "metrics")) != `{"latencyMs":0}` {
		t.Errorf("%s", enc.Body)
	}
	for _, path := range []string{"/id", "/model", "/output/0/parts/0", "/output/0/parts/6", "/usage/reasoning"} {
		has(t, enc.Report, dragoman.Dropped, path)
	}
}

func TestErrorSources(t *testing.T) {
	header := func(typ string) http.Header {
		return http.Header{"X-Amzn-Errortype": {typ}, "X-Amzn-Requestid": {"req-1"}, "Retry-After": {"2"}}
	}
	for name, tc := range map[string]struct {
		status int
		header http.Header
		body   string
		typ    string
		class  dragoman.ErrorClass
	}{
		"header":            {429, header("ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"), `{"message":"m"}`, "ThrottlingException", dragoman.ErrorRateLimit},
		"type in the body":  {400, nil, `{"__type":"com.amazon.coral.service#ValidationException","message":"m"}`, "ValidationException", dragoman.ErrorBadRequest},
		"code in the body":  {403, nil, `{"code":"AccessDeniedException","Message":"m"}`, "AccessDeniedException", dragoman.ErrorPermission},
		"status only":       {404, nil, `{"message":"m"}`, "", dragoman.ErrorNotFound},
		"bad signature":     {403, header("InvalidSignatureException"), `{"message":"m"}`, "InvalidSignatureException", dragoman.ErrorAuth},
		"prompt too long":   {400, header("ValidationException"), `{"message":"Input is too long for requested model."}`, "ValidationException", dragoman.ErrorContextLength},
		"quota":             {400, nil, `{"__type":"ServiceQuotaExceededException","message":"m"}`, "ServiceQuotaExceededException", dragoman.ErrorQuota},
		"model error":       {424, nil, `{"__type":"ModelErrorException","message":"m","originalStatusCode":529,"resourceName":"r"}`, "ModelErrorException", dragoman.ErrorServer},
		"model not ready":   {429, nil, `{"__type":"ModelNotReadyException","message":"m"}`, "ModelNotReadyException", dragoman.ErrorOverloaded},
		"timeout":           {408, nil, `{"__type":"ModelTimeoutException","message":"m"}`, "ModelTimeoutException", dragoman.ErrorTimeout},
		"conflict":          {400, nil, `{"__type":"ConflictException","message":"m"}`, "ConflictException", dragoman.ErrorConflict},
		"router error":      {404, nil, `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`, "UnknownOperationException", dragoman.ErrorNotFound},
		"HTML page":         {503, nil, `<html>down</html>`, "", dragoman.ErrorOverloaded},
		"nothing":           {500, nil, ``, "", dragoman.ErrorServer},
		"failed dependency": {424, nil, `{"message":"m"}`, "", dragoman.ErrorServer},
	} {
		t.Run(name, func(t *testing.T) {
			e := codec.DecodeError(tc.status, tc.header, []byte(tc.body))
			if e.Type != tc.typ || e.Class != tc.class || e.Status != tc.status || e.Message == "" {
				t.Errorf("%+v", e)
			}
			if tc.header != nil && (e.RequestID != "req-1" || e.RetryAfter.Seconds() != 2) {
				t.Errorf("%+v", e)
			}
			if strings.HasPrefix(tc.body, "{") {
				if status, body, _ := codec.EncodeError(e); status != tc.status || string(body) != tc.body {
					t.Errorf("%d %s", status, body)
				}
			}
		})
	}
	if e := codec.DecodeError(424, nil, []byte(`{"__type":"ModelErrorException","message":"m","originalStatusCode":529,"resourceName":"r"}`)); e.Code != "529" || e.Param != "r" {
		t.Errorf("%+v", e)
	}
}

func TestQuirkJ3_EveryClassHasErrorType(t *testing.T) {
	for _, class := range []dragoman.ErrorClass{
		dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound, dragoman.ErrorTooLarge, dragoman.ErrorContextLength,
		dragoman.ErrorRateLimit, dragoman.ErrorQuota, dragoman.ErrorOverloaded, dragoman.ErrorTimeout, dragoman.ErrorConflict, dragoman.ErrorServer, dragoman.ErrorPolicy, dragoman.ErrorUnknown,
	} {
		status, body, _ := codec.EncodeError(&dragoman.APIError{Class: class, Type: "invalid_request_error", Message: "m", Native: &dragoman.Native{Format: "anthropic.messages.error", JSON: json.RawMessage(`{}`)}})
		e := codec.DecodeError(status, nil, body)
		if strings.Contains(string(body), "invalid_request_error") || !strings.HasSuffix(e.Type, "Exception") || e.Message != "m" {
			t.Errorf("%s: %d %s", class, status, body)
		}
		switch class {
		case dragoman.ErrorTooLarge, dragoman.ErrorPolicy, dragoman.ErrorUnknown, dragoman.ErrorContextLength: // classes without a type in this dialect
		default:
			if e.Class != class {
				t.Errorf("%s decoded as %s", class, e.Class)
			}
		}
	}
	if status, body, _ := codec.EncodeError(nil); status != 500 || !json.Valid(body) {
		t.Errorf("%d %s", status, body)
	}
}
