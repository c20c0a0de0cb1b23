package openairesponses

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/google/go-cmp/cmp"
)

func hosted(name, obj string) dragoman.ToolSpec {
	var head struct{ Type string }
	_ = json.Unmarshal([]byte(obj), &head)
	return dragoman.ToolSpec{
		Kind: codes.ToolHosted, Name: name,
		Source: &dragoman.ToolSource{Format: dragoman.Format("openai.responses." + head.Type), JSON: json.RawMessage(obj)},
	}
}

func TestHostedToolsAreForcedByTheirType(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Name: "f"},
		hosted("web_search", `{"type":"web_search","search_context_size":"low"}`),
		hosted("docs", `{"type":"mcp","server_label":"docs","server_url":"https://example.com"}`),
		hosted("mcp", `{"type":"mcp","server_label":"mail","server_url":"https://example.com"}`),
		hosted("bare", `{"type":"mcp"}`),
	}
	for _, c := range []struct{ name, want string }{
		{"web_search", `{"type":"web_search"}`},
		{"docs", `{"type":"mcp","server_label":"docs"}`},
		{"mail", `{"type":"mcp","server_label":"mail"}`},
		{"bare", `{"type":"mcp"}`},
	} {
		ref := dragoman.ToolRef{Name: c.name, Kind: codes.ToolHosted}
		req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Tools: tools}
		var want any
		_ = json.Unmarshal([]byte(c.want), &want)

		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{ref}}
		v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
		if diff := cmp.Diff(want, v["tool_choice"]); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{ref}}
		v, _ = encodeRequest(t, req, dialect.EncodeOptions{})
		if diff := cmp.Diff(want, at(v, "tool_choice", "tools", 0)); diff != "" {
			t.Errorf("%s allowed: %s", c.name, diff)
		}
	}
	for what, refused := range map[string]dragoman.ToolSpec{
		"tool of another provider": {Kind: codes.ToolHosted, Name: "x", Source: &dragoman.ToolSource{Format: "anthropic.messages.web_search_20250305", JSON: json.RawMessage(`{"type":"x"}`)}},
		"function of that name":    {Name: "x"},
	} {
		req := &dragoman.Request{
			Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Name: "f"}, refused},
			ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "x", Kind: codes.ToolHosted}}},
		}
		if _, err := (Codec{}).EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestUnknownToolChoiceModeIsInvalid(t *testing.T) {
	for _, mode := range []string{"any", ""} {
		for _, tools := range [][]dragoman.ToolSpec{nil, {{Name: "f"}}} {
			req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Tools: tools, ToolChoice: &dragoman.ToolChoice{Mode: mode}}
			_, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
			if !errors.Is(err, dragoman.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("%q", mode)) {
				t.Errorf("%q: %v", mode, err)
			}
		}
	}
}

func TestChoiceNoneIgnoresAllowedTools(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Name: "f"}},
		ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceNone, Tools: []dragoman.ToolRef{{Name: "f"}}},
	}
	if v, _ := encodeRequest(t, req, dialect.EncodeOptions{}); v["tool_choice"] != "none" {
		t.Errorf("%v", v["tool_choice"])
	}
}

func TestQuirkD31_OnlyBreakpointsThatCanBeWrittenCount(t *testing.T) {
	hint := &dragoman.CacheHint{}
	text := func(s string) dragoman.Part { return &dragoman.Text{Text: s, Cache: hint} }
	req := &dragoman.Request{
		Model:        "m",
		Instructions: []dragoman.Part{text("i")},
		Tools:        []dragoman.ToolSpec{{Name: "f", Cache: hint}},
		Messages: []dragoman.Message{
			{Role: dragoman.RoleUser, Parts: []dragoman.Part{text("u1")}, Cache: hint}, // one breakpoint, set twice
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("a"), &dragoman.ToolCall{ID: "1", Name: "f", Cache: hint}}, Cache: hint},
			dragoman.ToolResults(&dragoman.ToolResult{CallID: "1", Cache: hint, Content: []dragoman.Part{text("r")}}),
			{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Media{Media: codes.MediaImage, URL: "https://example.com/a.png", Cache: hint}}},
			{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "u2"}}, Cache: hint},
		},
	}
	o := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{CacheBreakpoints: true}}}
	enc, err := Codec{}.EncodeRequest(req, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(enc.Body), "prompt_cache_breakpoint"); n != 4 {
		t.Errorf("%d breakpoints, want all 4:\n%s", n, enc.Body)
	}
	req.Messages = append(req.Messages, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{text("u3")}})
	enc, err = Codec{}.EncodeRequest(req, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(enc.Body), "prompt_cache_breakpoint"); n != 4 || !strings.Contains(string(enc.Body), `"text":"u1"}`) {
		t.Errorf("%d breakpoints, want the last 4:\n%s", n, enc.Body)
	}
}

func TestQuirkG10_LostReasoningSettingsAreReported(t *testing.T) {
	budget := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		what     string
		settings dragoman.ReasoningSettings
		effort   any
		kind     dragoman.LossKind
		path     string
	}{
		{"budget without a mode", dragoman.ReasoningSettings{BudgetTokens: budget(1024)}, "low", dragoman.Lowered, "/reasoning/budget_tokens"},
		{"budget with its mode", dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: budget(10000)}, "medium", dragoman.Lowered, "/reasoning/budget_tokens"},
		{"budget and effort", dragoman.ReasoningSettings{Effort: "high", BudgetTokens: budget(1024)}, "high", dragoman.Dropped, "/reasoning/budget_tokens"},
		{"budget without a number", dragoman.ReasoningSettings{Mode: codes.ReasoningBudget}, nil, dragoman.Dropped, "/reasoning/mode"},
		{"off and effort", dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "high"}, "none", dragoman.Dropped, "/reasoning/effort"},
		{"off and budget", dragoman.ReasoningSettings{Mode: codes.ReasoningOff, BudgetTokens: budget(1024)}, "none", dragoman.Dropped, "/reasoning/budget_tokens"},
		{"adaptive and budget", dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, BudgetTokens: budget(1024)}, nil, dragoman.Dropped, "/reasoning/budget_tokens"},
		{"off alone", dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, "none", "", ""},
		{"off in both fields", dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "none"}, "none", "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			v, rep := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Reasoning: &c.settings}, dialect.EncodeOptions{})
			if at(v, "reasoning", "effort") != c.effort {
				t.Errorf("effort %v, want %v", at(v, "reasoning", "effort"), c.effort)
			}
			if c.path != "" && !reported(rep, c.kind, c.path) {
				t.Errorf("%s %s is not reported: %v", c.kind, c.path, rep)
			}
			if c.path == "" && (reported(rep, dragoman.Dropped, "/reasoning/effort") || reported(rep, dragoman.Dropped, "/reasoning/mode")) {
				t.Errorf("reported: %v", rep)
			}
		})
	}
}

func TestQuirkF5_SchemaImpliesKind(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{user("x")},
		Output: &dragoman.OutputFormat{Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "text", "format", "type") != "json_schema" || at(v, "text", "format", "name") != "response" || at(v, "text", "format", "schema", "type") != "object" {
		t.Errorf("%v", v["text"])
	}
}

func TestQuirkF5_NativeOutputSchemaIsUnchanged(t *testing.T) {
	const text = `{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"a":{"type":"string","minLength":1}},"$comment":"x"}}}`
	req := decodeRequest(t, `{"model":"m","input":"x","text":`+text+`}`)
	if req.Output.Dialect != name {
		t.Errorf("dialect %q", req.Output.Dialect)
	}
	// The same in a new request.
	v, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Output: req.Output}, dialect.EncodeOptions{})
	var want any
	_ = json.Unmarshal([]byte(text), &want)
	if diff := cmp.Diff(want, v["text"]); diff != "" {
		t.Error(diff)
	}
}

func TestErrorWithoutStatusIsAFailure(t *testing.T) {
	resp, _ := decodeResponse(t, `{"error":{"code":"server_error","message":"boom"},"output":[`+callJSON("fc_1", "c1", "{}", "completed")+`]}`)
	if resp.Stop.Reason != dragoman.StopError || resp.ToolCalls()[0].Problem == nil || resp.Error == nil || resp.Error.Message != "boom" {
		t.Errorf("%+v %+v", resp.Stop, resp.Error)
	}
	bare, _ := decodeResponse(t, `{"error":{"message":"no such model"}}`)
	if bare.Stop.Reason != dragoman.StopError || bare.Error == nil {
		t.Errorf("%+v", bare)
	}
}

func TestBodyWithoutOutputIsAnError(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"error":null}`,
		`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}`,
		`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`,
	} {
		_, _, err := Codec{}.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		var d *dragoman.DecodeError
		if !errors.As(err, &d) || !strings.Contains(err.Error(), "no output: check that this is an OpenAI Responses response") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestQuirkC26_UnfinishedResponsesBlockCalls(t *testing.T) {
	call := callJSON("fc_1", "c1", `{"a":1}`, "completed")
	for _, c := range []struct {
		what, fields string
		want         dragoman.StopReason
		problem      string
	}{
		{"incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`, dragoman.StopLength, codes.ProblemTruncated},
		{"incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`, dragoman.StopContentFilter, codes.ProblemStopped},
		{"failed", `"status":"failed","error":{"code":"server_error","message":"m"}`, dragoman.StopError, codes.ProblemStopped},
		{"cancelled", `"status":"cancelled"`, dragoman.StopCanceled, codes.ProblemStopped},
	} {
		whole, _ := decodeResponse(t, `{`+c.fields+`,"output":[`+call+`]}`)
		evs, _, err := decodeStream(events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, `{"a":1}`), done(0, call),
			`{"type":"response.`+c.what+`","response":{`+c.fields+`,"output":[]}}`), 7, dialect.DecodeOptions{NoNative: true})
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := collect(evs)
		if (err != nil) != (c.what == "failed") {
			t.Errorf("%s: %v", c.fields, err)
		}
		for how, resp := range map[string]*dragoman.Response{"whole": whole, "streamed": streamed} {
			calls := resp.ToolCalls()
			stopped := resp.Stop.Reason == c.want || how == "streamed" && err != nil // then the error has the reason
			if !stopped || len(calls) != 1 || calls[0].Arguments != `{"a":1}` || calls[0].Problem == nil || calls[0].Problem.Code != c.problem {
				t.Errorf("%s %s: %+v %+v", how, c.fields, resp.Stop, calls)
			}
		}
	}
}

func TestQuirkB8_UnfinishedStringIsNotClosed(t *testing.T) {
	const half = `{"path":"a.txt","body":"half of th`
	whole, _ := decodeResponse(t, `{"status":"completed","output":[`+callJSON("fc_1", "c1", half, "completed")+`]}`)
	streamed, _, _ := run(t, events(created, added(0, callJSON("fc_1", "c1", "", "in_progress")), argDelta(0, half[:9]), argDelta(0, half[9:]), done(0, callJSON("fc_1", "c1", half, "completed")), completed))
	for how, resp := range map[string]*dragoman.Response{"whole": whole, "streamed": streamed} {
		c := resp.ToolCalls()[0]
		if c.Arguments != half || c.Problem == nil {
			t.Errorf("%s: %q, problem %v", how, c.Arguments, c.Problem)
		}
		v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true})
		if at(v, "output", 0, "arguments") != half {
			t.Errorf("%s: a client would get %v", how, at(v, "output", 0, "arguments"))
		}
	}
}

func TestErrorsAreEncodedWithStatusAndBody(t *testing.T) {
	for _, status := range []int{0, 200, 399, 600, 1000, -1} {
		if got, _, _ := (Codec{}).EncodeError(&dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: status, Message: "m"}); got != 429 {
			t.Errorf("status %d is encoded as %d", status, got)
		}
	}
	native := `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null,"extra":1}}`
	e := Codec{}.DecodeError(400, nil, []byte(native))
	if _, body, _ := (Codec{}).EncodeError(e); string(body) != native {
		t.Errorf("the native body changed: %s", body)
	}
	for what, change := range map[string]func(*dragoman.APIError){
		"not JSON":    func(e *dragoman.APIError) { e.Native.JSON = json.RawMessage(native[:20]) },
		"empty":       func(e *dragoman.APIError) { e.Native.JSON = nil },
		"changed":     func(e *dragoman.APIError) { e.Message = "other" },
		"no envelope": func(e *dragoman.APIError) { e.Native.JSON = json.RawMessage(`{"code":"x","message":"m"}`) },
		"an event": func(e *dragoman.APIError) {
			e.Native.JSON = json.RawMessage(`{"type":"error","error":{"message":"m"}}`)
		},
		"another dialect": func(e *dragoman.APIError) { e.Native.Format = dragoman.Format(dialectname.Anthropic) },
	} {
		e := Codec{}.DecodeError(400, http.Header{}, []byte(native))
		change(e)
		_, body, _ := Codec{}.EncodeError(e)
		var v struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal(body, &v); err != nil || v.Error.Message != e.Message || v.Error.Type == "" || string(body) == string(e.Native.JSON) {
			t.Errorf("%s: %v %s", what, err, body)
		}
		// The same error in a failed response.
		resp := &dragoman.Response{Error: e, Stop: dragoman.Stop{Reason: dragoman.StopError}}
		if v, _ := encodeResponse(t, resp, dialect.EncodeOptions{}); at(v, "error", "message") != e.Message {
			t.Errorf("%s: %v", what, v["error"])
		}
	}
}
