package openaichat_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkB1_B4_ArgumentsAsStringOrObject(t *testing.T) {
	for _, args := range []string{`"{\"n\":9007199254740993}"`, `{"n":9007199254740993}`} {
		resp, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":`+args+`}}]}`, `"tool_calls"`)
		sameCalls(t, calls(resp), call("a", "f", `{"n":9007199254740993}`))
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(enc.Body), `"arguments":"{\"n\":9007199254740993}"`)
	}
}

func TestQuirkB2_NoArguments(t *testing.T) {
	for name, args := range map[string]string{"empty": `,"arguments":""`, "missing": ``, "null": `,"arguments":null`, "null in quotes": `,"arguments":"null"`, "object": `,"arguments":"{}"`, "quotes": `,"arguments":"\"\""`} {
		t.Run(name, func(t *testing.T) {
			resp, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f"`+args+`}}]}`, `"tool_calls"`)
			if c := calls(resp); len(c) != 1 || c[0].Problem != nil {
				t.Fatalf("%+v", c)
			}
			resp.Output[0].Native = nil
			ms, rep := messages(t, targets.Target{}, resp.Output[0], dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}))
			sameJSON(t, ms[0], `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
			lossless(t, rep)
			st := streamed(t, stream(`"tool_calls"`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"`+args+`}}]}`))
			if c := calls(st); len(c) != 1 || c[0].Problem != nil {
				t.Errorf("streamed: %+v", c)
			}
		})
	}
}

func TestQuirkB18_B19_B20_StopReasons(t *testing.T) {
	const withCall = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	const withText = `{"role":"assistant","content":"hi"}`
	for _, tc := range []struct {
		word       string
		call, text dragoman.StopReason
	}{
		{`"stop"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"tool_calls"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"function_call"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"tool_use"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"end_turn"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"eos"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"end"`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`""`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`null`, dragoman.StopToolCalls, dragoman.StopEnd},
		{`"length"`, dragoman.StopLength, dragoman.StopLength},
		{`"model_length"`, dragoman.StopLength, dragoman.StopLength},
		{`"content_filter"`, dragoman.StopContentFilter, dragoman.StopContentFilter},
		{`"sensitive"`, dragoman.StopContentFilter, dragoman.StopContentFilter},
		{`"error"`, dragoman.StopError, dragoman.StopError},
		{`"network_error"`, dragoman.StopError, dragoman.StopError},
		{`"insufficient_system_resource"`, dragoman.StopError, dragoman.StopError},
		{`"abort"`, dragoman.StopCanceled, dragoman.StopCanceled},
		{`"malformed_tool_use"`, dragoman.StopMalformedCall, dragoman.StopMalformedCall},
		{`"MODEL_ARMOR"`, dragoman.StopUnknown, dragoman.StopUnknown},
		{`"stahp"`, dragoman.StopUnknown, dragoman.StopUnknown},
	} {
		t.Run(tc.word, func(t *testing.T) {
			c, _ := message(t, withCall, tc.word)
			x, _ := message(t, withText, tc.word)
			if c.Stop.Reason != tc.call || x.Stop.Reason != tc.text {
				t.Errorf("with a call %q, want %q; with text %q, want %q", c.Stop.Reason, tc.call, x.Stop.Reason, tc.text)
			}
			if runs := calls(c)[0].Problem == nil; runs != (tc.call == dragoman.StopToolCalls) {
				t.Errorf("the call runs: %v", runs)
			}
			if w := strings.Trim(tc.word, `"`); w != "null" && c.Stop.Native != w {
				t.Errorf("the native value is %q", c.Stop.Native)
			}
			// The native value is written back in the same dialect.
			enc, err := codec.EncodeResponse(c, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			if tc.word != `""` {
				has(t, string(enc.Body), `"finish_reason":`+tc.word)
			}
			if tc.word == "null" {
				return
			}
			s := streamed(t, stream(tc.word, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`))
			if s.Stop.Reason != tc.call {
				t.Errorf("streamed: %q", s.Stop.Reason)
			}
		})
	}
}

func TestQuirkB21_HiddenMalformedCallDoesNotRun(t *testing.T) {
	for _, native := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"} {
		whole, _ := decodeResponse(t, `{"choices":[{"index":0,"finish_reason":"stop","native_finish_reason":"`+native+`","message":{"content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`)
		st := streamed(t, sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"`+native+`"}]}`, "[DONE]"))
		for _, r := range []*dragoman.Response{whole, st} {
			if r.Stop.Reason != dragoman.StopMalformedCall {
				t.Errorf("%s: %+v", native, r.Stop)
			}
			problem(t, calls(r)[0], codes.ProblemStopped)
		}
	}
}

func TestQuirkB11_DuplicateIDsInOneMessage(t *testing.T) {
	t.Run("exact repeat is one call", func(t *testing.T) {
		resp, rep := message(t, `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`)
		sameCalls(t, calls(resp), call("a", "f", "{}"))
		lost(t, rep, dragoman.Dropped, "exact repeat")
	})
	t.Run("other call gets a new id, and its result follows", func(t *testing.T) {
		req, rep := decodeRequest(t, `{"model":"m","messages":[
			{"role":"user","content":"x"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"a","content":"of f"},
			{"role":"tool","tool_call_id":"a","content":"of g"}]}`)
		cs := req.Messages[1].ToolCalls()
		if len(cs) != 2 || cs[0].ID != "a" || cs[1].ID == "a" || !cs[1].Synthetic {
			t.Fatalf("%+v", cs)
		}
		lost(t, rep, dragoman.Renamed, "occurs twice")
		for i, want := range []string{"of f", "of g"} {
			r := req.Messages[2+i].Parts[0].(*dragoman.ToolResult)
			if r.CallID != cs[i].ID || r.Text() != want {
				t.Errorf("result %d has call id %q and text %q", i, r.CallID, r.Text())
			}
		}
		// Calls and results match on the wire, whatever is rebuilt.
		req.Messages[0].Parts = []dragoman.Part{text("edited")}
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{})
		ms := elements(t, m["messages"])
		for i, c := range cs {
			has(t, ms[1], `"id":"`+c.ID+`"`)
			has(t, ms[2+i], `"tool_call_id":"`+c.ID+`"`)
		}
	})
}

func TestQuirkB10_CallsAndResultsWithoutIDs(t *testing.T) {
	const body = `{"model":"m","messages":[
		{"role":"user","content":"x"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{}"}},{"type":"function","function":{"name":"g","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"","content":"of f"},
		{"role":"tool","content":"of g"}]}`
	req, _ := decodeRequest(t, body)
	again, _ := decodeRequest(t, body)
	for i, c := range req.Messages[1].ToolCalls() {
		r := req.Messages[2+i].Parts[0].(*dragoman.ToolResult)
		if c.ID == "" || r.CallID != c.ID {
			t.Errorf("call %q has a result for %q", c.ID, r.CallID)
		}
		if other := again.Messages[1].ToolCalls()[i].ID; other != c.ID {
			t.Errorf("the same history gives the ids %q and %q", c.ID, other)
		}
	}
}

func TestQuirkB10_SyntheticIDIsSentWithItsResult(t *testing.T) {
	resp, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`, `"stop"`)
	c := resp.ToolCalls()[0]
	ms, _ := messages(t, targets.Target{}, append([]dragoman.Message{dragoman.UserText("x")}, append(resp.Output, dragoman.ToolResults(&dragoman.ToolResult{CallID: c.ID, Content: []dragoman.Part{text("y")}}))...)...)
	has(t, ms[1], `"id":"`+c.ID+`"`)
	has(t, ms[2], `"tool_call_id":"`+c.ID+`"`)
}

func TestQuirkB12_SameIDInLaterTurn(t *testing.T) {
	req, rep := decodeRequest(t, `{"model":"m","messages":[
		{"role":"assistant","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"functions.f:0","content":"1"},
		{"role":"assistant","tool_calls":[{"id":"functions.f:0","type":"custom","custom":{"name":"g","input":"x"}}]},
		{"role":"tool","tool_call_id":"functions.f:0","content":"2"}]}`)
	lossless(t, rep)
	first, second := req.Messages[1].Parts[0].(*dragoman.ToolResult), req.Messages[3].Parts[0].(*dragoman.ToolResult)
	if first.CallID != "functions.f:0" || second.CallID != "functions.f:0" {
		t.Errorf("%+v, %+v", first, second)
	}
	if first.Payload != codes.PayloadObject || second.Payload != codes.PayloadText {
		t.Error("a result has the payload kind of the wrong turn")
	}
}

func TestQuirkB34_EmptyLists(t *testing.T) {
	resp, _ := message(t, `{"role":"assistant","content":"x","tool_calls":[]}`, `"tool_calls"`)
	if len(resp.ToolCalls()) != 0 || resp.Stop.Reason != dragoman.StopEnd {
		t.Errorf("%+v", resp)
	}
	m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x"), dragoman.AssistantText("y")}, Tools: []dragoman.ToolSpec{}}, dialect.EncodeOptions{})
	if _, ok := m["tools"]; ok {
		t.Errorf("tools: %s", m["tools"])
	}
	hasNot(t, string(m["messages"]), "tool_calls")
}

func TestQuirkB36_NoContent(t *testing.T) {
	c := call("a", "f", "{}")
	ms, _ := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&c}}, dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}))
	sameJSON(t, ms[0], `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	ms, rep := messages(t, targets.Target{}, dragoman.UserText("x"), dragoman.Message{Role: dragoman.RoleAssistant}, dragoman.UserText("y"))
	if len(ms) != 2 {
		t.Errorf("%q", ms)
	}
	lost(t, rep, dragoman.Dropped, "neither content nor calls")
	// The original form is written back, even in a rebuild.
	for _, msg := range []string{
		`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[`+msg+`,{"role":"tool","tool_call_id":"a","content":"x"}]}`)
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
		sameJSON(t, elements(t, m["messages"])[0], msg)
	}
}

func TestQuirkC9_UsageInAnyChunk(t *testing.T) {
	const u = `{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}`
	text := deltas(`{"content":"x"}`)[0]
	for name, body := range map[string]string{
		"last chunk without choices": sse(text, finish(`"stop"`), `{"choices":[],"usage":`+u+`}`, "[DONE]"),
		"on the finish chunk":        sse(text, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":`+u+`}`, "[DONE]"),
		"in the choice (Moonshot)":   sse(text, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":`+u+`}]}`, "[DONE]"),
		"in x_groq":                  sse(text, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"q","usage":`+u+`}}`, "[DONE]"),
		"on every chunk":             sse(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`, finish(`"stop"`), `{"choices":[],"usage":`+u+`}`, "[DONE]"),
		"zeros after it":             sse(text, finish(`"stop"`), `{"choices":[],"usage":`+u+`}`, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, "[DONE]"),
		"zeros before it":            sse(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, finish(`"stop"`), `{"choices":[],"usage":`+u+`}`, "[DONE]"),
		"no marker after it":         sse(text, finish(`"stop"`), `{"choices":[],"usage":`+u+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			got := streamed(t, body).Usage
			if got.Input != dragoman.Counted(9) || got.Output != dragoman.Counted(4) || got.CacheRead != dragoman.Counted(2) || got.Reasoning != dragoman.Counted(1) {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := streamed(t, sse(text, finish(`"stop"`), "[DONE]")).Usage; got.Input.Known || got.Output.Known {
		t.Errorf("unexpected usage: %+v", got)
	}
}

func TestQuirkJ12_UsageArithmeticPerServer(t *testing.T) {
	known := func(in, read, write, out, reason int64) [5]int64 { return [5]int64{in, read, write, out, reason} }
	const none = -1
	for name, tc := range map[string]struct {
		usage string
		want  [5]int64 // input, cache read, cache write, output, reasoning; -1 is unknown
	}{
		"OpenAI":                        {`{"prompt_tokens":210,"completion_tokens":57,"total_tokens":267,"prompt_tokens_details":{"cached_tokens":128,"cache_write_tokens":5,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":40,"accepted_prediction_tokens":0}}`, known(210, 128, 5, 57, 40)},
		"xAI excludes reasoning":        {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":45,"completion_tokens_details":{"reasoning_tokens":30},"cost_in_usd_ticks":7}`, known(10, none, none, 35, 30)},
		"DeepSeek":                      {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, known(10, 4, none, 5, none)},
		"DeepSeek in both fields":       {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, known(10, 4, none, 5, none)},
		"Kimi":                          {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cached_tokens":3}`, known(10, 3, none, 5, none)},
		"Mistral":                       {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"num_cached_tokens":2}`, known(10, 2, none, 5, none)},
		"no total":                      {`{"prompt_tokens":10,"completion_tokens":5}`, known(10, none, none, 5, none)},
		"inconsistent total":            {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":99}`, known(10, none, none, 5, none)},
		"details are null":              {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":null,"completion_tokens_details":null}`, known(10, none, none, 5, none)},
		"numbers in strings, fractions": {`{"prompt_tokens":"10","completion_tokens":5.0,"total_tokens":15}`, known(10, none, none, 5, none)},
		"only the prompt":               {`{"prompt_tokens":10,"total_tokens":10}`, known(10, none, none, none, none)},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := decodeResponse(t, `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":`+tc.usage+`}`)
			u := resp.Usage
			for i, c := range []dragoman.Count{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
				if c.Known != (tc.want[i] >= 0) || c.Known && c.N != tc.want[i] {
					t.Errorf("counter %d is %+v, want %d", i, c, tc.want[i])
				}
			}
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			again, _ := decodeResponse(t, string(enc.Body))
			if a, b := again.Usage, u; a.Input != b.Input || a.CacheRead != b.CacheRead || a.CacheWrite != b.CacheWrite || a.Output.N != b.Output.N || a.Reasoning != b.Reasoning {
				t.Errorf("decoded as %+v, want %+v\n%s", a, b, enc.Body)
			}
			if strings.HasPrefix(name, "xAI") { // OpenAI clients count reasoning as part of the completion
				sameJSON(t, string(object(t, enc.Body)["usage"]), strings.Replace(tc.usage, `"completion_tokens":5`, `"completion_tokens":35`, 1))
			}
			if strings.HasPrefix(name, "DeepSeek") || name == "OpenAI" || name == "Kimi" {
				sameJSON(t, string(object(t, enc.Body)["usage"]), tc.usage)
			}
		})
	}
}

func TestChoices_AreSortedByIndex(t *testing.T) {
	resp, _ := decodeResponse(t, `{"choices":[
		{"index":1,"message":{"role":"assistant","content":"second"},"finish_reason":"length","x":1},
		{"index":0,"message":{"role":"assistant","content":"first"},"finish_reason":"stop","x":0}]}`)
	if resp.Text() != "first" || resp.Stop.Reason != dragoman.StopEnd || len(resp.Alternatives) != 1 || resp.Alternatives[0].Index != 1 || resp.Alternatives[0].Output[0].Text() != "second" {
		t.Errorf("%+v", resp)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	choices := elements(t, object(t, enc.Body)["choices"])
	sameJSON(t, choices[0], `{"index":0,"message":{"role":"assistant","content":"first","refusal":null},"finish_reason":"stop","logprobs":null,"x":0}`)
	sameJSON(t, choices[1], `{"index":1,"message":{"role":"assistant","content":"second","refusal":null},"finish_reason":"length","logprobs":null,"x":1}`)
}

func TestErrors_ErrorInResponseBody(t *testing.T) {
	for name, body := range map[string]string{
		"instead of choices": `{"error":{"message":"boom","type":"server_error","param":null,"code":null}}`,
		"string":             `{"error":"boom"}`,
		"in the choice":      `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error","error":{"code":502,"message":"boom"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := decodeResponse(t, body)
			if resp.Error == nil || resp.Error.Message != "boom" || resp.Stop.Reason != dragoman.StopError {
				t.Errorf("%+v, %+v", resp.Error, resp.Stop)
			}
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			again, _ := decodeResponse(t, string(enc.Body))
			if again.Error == nil || again.Error.Message != "boom" {
				t.Errorf("encoded as %s", enc.Body)
			}
		})
	}
}

func TestErrors_Classes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		class  dragoman.ErrorClass
		want   dragoman.APIError // message, type, code, param
		retry  bool
	}{
		{"bad request", 400, `{"error":{"message":"m","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m", Type: "invalid_request_error", Param: "max_tokens", Code: "unsupported_parameter"}, false},
		{"context length", 400, `{"error":{"message":"m","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, dragoman.ErrorContextLength, dragoman.APIError{Message: "m", Type: "invalid_request_error", Param: "messages", Code: "context_length_exceeded"}, false},
		{"llama.cpp context", 400, `{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_ctx":1}}`, dragoman.ErrorContextLength, dragoman.APIError{Message: "m", Type: "exceed_context_size_error", Code: "400"}, false},
		{"policy", 400, `{"error":{"message":"m","type":"invalid_request_error","code":"cyber_policy"}}`, dragoman.ErrorPolicy, dragoman.APIError{Message: "m", Type: "invalid_request_error", Code: "cyber_policy"}, false},
		{"key", 401, `{"error":{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}}`, dragoman.ErrorAuth, dragoman.APIError{Message: "m", Type: "invalid_request_error", Code: "invalid_api_key"}, false},
		{"country", 403, `{"error":{"message":"m","type":"request_forbidden","code":"unsupported_country_region_territory"}}`, dragoman.ErrorPermission, dragoman.APIError{Message: "m", Type: "request_forbidden", Code: "unsupported_country_region_territory"}, false},
		{"model", 404, `{"error":{"message":"m","type":"invalid_request_error","code":"model_not_found"}}`, dragoman.ErrorNotFound, dragoman.APIError{Message: "m", Type: "invalid_request_error", Code: "model_not_found"}, false},
		{"conflict", 409, `{"error":{"message":"m"}}`, dragoman.ErrorConflict, dragoman.APIError{Message: "m"}, true},
		{"unprocessable", 422, `{"error":{"message":"m"}}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m"}, false},
		{"rate", 429, `{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}`, dragoman.ErrorRateLimit, dragoman.APIError{Message: "m", Type: "tokens", Code: "rate_limit_exceeded"}, true},
		{"quota", 429, `{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}`, dragoman.ErrorQuota, dragoman.APIError{Message: "m", Type: "insufficient_quota", Code: "insufficient_quota"}, false},
		{"credit", 429, `{"error":{"message":"m","type":"x","code":"credit_balance_exhausted"}}`, dragoman.ErrorQuota, dragoman.APIError{Message: "m", Type: "x", Code: "credit_balance_exhausted"}, false},
		{"server", 500, `{"error":{"message":"m","type":"server_error"}}`, dragoman.ErrorServer, dragoman.APIError{Message: "m", Type: "server_error"}, true},
		{"overloaded", 503, `{"error":{"message":"m","type":"x","code":"slow_down"}}`, dragoman.ErrorOverloaded, dragoman.APIError{Message: "m", Type: "x", Code: "slow_down"}, true},
		{"vLLM: number as code", 400, `{"error":{"message":"m","type":"BadRequestError","param":null,"code":400}}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m", Type: "BadRequestError", Code: "400"}, false},
		{"xAI: string as error", 400, `{"code":"Client specified an invalid argument","error":"m"}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m", Code: "Client specified an invalid argument"}, false},
		{"LM Studio", 404, `{"error":"m"}`, dragoman.ErrorNotFound, dragoman.APIError{Message: "m"}, false},
		{"Mistral: no envelope", 400, `{"object":"error","message":"m","type":"invalid_request_error","param":null,"code":"3280"}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m", Type: "invalid_request_error", Code: "3280"}, false},
		{"FastAPI", 422, `{"detail":"m"}`, dragoman.ErrorBadRequest, dragoman.APIError{Message: "m"}, false},
		{"Gemini: list", 429, `[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]`, dragoman.ErrorRateLimit, dragoman.APIError{Message: "m", Code: "429"}, true},
		{"HTML from a proxy", 502, `<html>bad gateway</html>`, dragoman.ErrorServer, dragoman.APIError{Message: "<html>bad gateway</html>"}, true},
		{"nothing", 504, ``, dragoman.ErrorTimeout, dragoman.APIError{Message: "Gateway Timeout"}, true},
		{"other JSON", 500, `["x"]`, dragoman.ErrorServer, dragoman.APIError{Message: `["x"]`}, true},
		{"cut off", 500, `{"error":{"message":"m`, dragoman.ErrorServer, dragoman.APIError{Message: `{"error":{"message":"m`}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			h.Set("x-request-id", "req_1")
			h.Set("retry-after", "2")
			e := codec.DecodeError(tc.status, h, []byte(tc.body))
			if e.Class != tc.class || e.Message != tc.want.Message || e.Type != tc.want.Type || e.Code != tc.want.Code || e.Param != tc.want.Param {
				t.Errorf("%+v", e)
			}
			if e.Retryable() != tc.retry || e.Status != tc.status || e.RequestID != "req_1" || e.RetryAfter != 2*time.Second {
				t.Errorf("%+v", e)
			}
			status, body, _ := codec.EncodeError(e)
			if status != tc.status {
				t.Errorf("status %d", status)
			}
			if e.Native != nil && string(body) != tc.body {
				t.Errorf("the native error was encoded as %s", body)
			}
			if again := codec.DecodeError(status, nil, body); again.Message != e.Message {
				t.Errorf("%s was decoded as %+v", body, again)
			}
		})
	}
}

func TestQuirkJ3_ErrorsOfOtherAPIs(t *testing.T) {
	for class, want := range map[dragoman.ErrorClass]struct {
		status int
		body   string
	}{
		dragoman.ErrorBadRequest:    {400, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}`},
		dragoman.ErrorAuth:          {401, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
		dragoman.ErrorPermission:    {403, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}`},
		dragoman.ErrorNotFound:      {404, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"model_not_found"}}`},
		dragoman.ErrorContextLength: {400, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`},
		dragoman.ErrorRateLimit:     {429, `{"error":{"message":"m","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		dragoman.ErrorQuota:         {429, `{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`},
		dragoman.ErrorOverloaded:    {503, `{"error":{"message":"m","type":"server_error","param":null,"code":"server_is_overloaded"}}`},
		dragoman.ErrorServer:        {500, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`},
		dragoman.ErrorTimeout:       {504, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`},
		dragoman.ErrorUnknown:       {500, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`},
	} {
		e := &dragoman.APIError{Class: class, Message: "m", Type: "overloaded_error_of_somebody", Code: "theirs", Native: &dragoman.Native{Format: "anthropic.messages", JSON: []byte(`{}`)}}
		status, body, _ := codec.EncodeError(e)
		if status != want.status {
			t.Errorf("%s: status %d", class, status)
		}
		sameJSON(t, string(body), want.body)
		if again := codec.DecodeError(status, nil, body); again.Class != class && class != dragoman.ErrorUnknown && class != dragoman.ErrorTimeout {
			t.Errorf("%s was decoded as %s", class, again.Class)
		}
	}
	_, body, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorServer})
	has(t, string(body), `"message":"server"`) // there is always a message
}

func TestStream_ErrorEndsTheStream(t *testing.T) {
	boom := &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "boom"}
	for name, ev := range map[string]*dragoman.StreamError{"with an error": {Err: boom}, "without one": {}} {
		t.Run(name, func(t *testing.T) {
			out, _ := encodeStream(t, dialect.EncodeOptions{}, []dragoman.Event{
				&dragoman.ResponseStart{Response: dragoman.Response{ID: "r"}}, &dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartDelta{Text: "x"}, &dragoman.PartEnd{Part: text("x")}, ev,
			})
			if strings.Count(out, `"error"`) != 1 {
				t.Errorf("%s", out)
			}
			hasNot(t, out, "[DONE]")
			d := decodeStream(t, dialect.DecodeOptions{}, out)
			var api *dragoman.APIError
			if !errors.As(d.err, &api) || d.resp.Text() != "x" {
				t.Errorf("%v", d.err)
			}
		})
	}
	// A stream without an end is an error too.
	out, _ := encodeStream(t, dialect.EncodeOptions{}, []dragoman.Event{&dragoman.ResponseStart{}})
	has(t, out, `"error"`)
}

func TestStream_NullErrorIsNotWritten(t *testing.T) {
	resp, _ := decodeResponse(t, `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"error":null}`)
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	hasNot(t, string(enc.Body), `"error"`)
	d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, sse(`{"id":"r","error":null,"choices":[{"index":0,"delta":{"content":"x"}}]}`, `{"error":null,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"))
	out, _ := encodeStream(t, dialect.EncodeOptions{StreamUsage: true}, d.events)
	hasNot(t, out, `"error"`)
	for _, c := range chunksOf(t, out) {
		if c != "[DONE]" {
			object(t, []byte(c))
		}
	}
}

func TestQuirkJ4_MarkerInText(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, stream(`"stop"`, `{"content":"data: [DONE]"}`))
	if d.resp.Text() != "data: [DONE]" {
		t.Fatalf("%q", d.resp.Text())
	}
	// The text is a native chunk; the end is re-encoded.
	var events []dragoman.Event
	for _, ev := range d.events {
		if c, ok := ev.(*dragoman.Chunk); ok && !strings.Contains(string(c.Raw), "content") {
			continue
		}
		if _, ok := ev.(*dragoman.ResponseEnd); ok {
			events = append(events, &dragoman.Chunk{Dialect: "another"})
		}
		events = append(events, ev)
	}
	out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
	if !strings.HasSuffix(out, "data: [DONE]\n\n") || strings.Count(out, "\ndata: [DONE]\n") != 1 {
		t.Errorf("%s", out)
	}
}

func TestStop_ReasonsOfOtherAPIs(t *testing.T) {
	for reason, want := range map[dragoman.StopReason]struct {
		word  string
		exact bool
	}{
		dragoman.StopEnd: {"stop", true}, dragoman.StopNone: {"stop", true}, dragoman.StopToolCalls: {"tool_calls", true}, dragoman.StopLength: {"length", true},
		dragoman.StopContentFilter: {"content_filter", true}, dragoman.StopRefusal: {"content_filter", false}, dragoman.StopSequence: {"stop", false},
		dragoman.StopError: {"error", false}, dragoman.StopCanceled: {"error", false}, dragoman.StopMalformedCall: {"error", false}, dragoman.StopPause: {"stop", false}, dragoman.StopUnknown: {"stop", false},
	} {
		head := dragoman.Response{ID: "r", Created: time.Unix(1, 0), Origin: &dragoman.Origin{Dialect: dialectname.Anthropic}}
		resp := &head
		resp.Output, resp.Stop = []dragoman.Message{dragoman.AssistantText("x")}, dragoman.Stop{Reason: reason, Native: "their_word"}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(enc.Body), `"finish_reason":"`+want.word+`"`)
		out, rep := encodeStream(t, dialect.EncodeOptions{}, []dragoman.Event{&dragoman.ResponseStart{Response: head}, &dragoman.ResponseEnd{Stop: resp.Stop, Response: dragoman.Response{Origin: resp.Origin}}})
		has(t, out, `"finish_reason":"`+want.word+`"`)
		for _, r := range []dragoman.Report{enc.Report, rep} {
			if want.exact {
				lossless(t, r)
			} else {
				lost(t, r, dragoman.Lowered, "stop reason")
			}
		}
	}
}

func TestIdentity_EditedResponseKeepsUnchangedMessage(t *testing.T) {
	resp, _ := decodeResponse(t, oddResponse)
	resp.ServiceTier = "edited"
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(enc.Body), `{"annotations":[],"content":"h\u00e9","refusal":null,"role":"assistant"}`)
	resp.Output[0].Parts = []dragoman.Part{text("redacted")}
	enc, err = codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hasNot(t, string(enc.Body), "u00e9")
	has(t, string(enc.Body), `"redacted"`)
}

// The last name counts, but the call does not run: a client that showed the first name asked its
// user about another tool.
func TestQuirkC5_ChangedNameBlocksTheCall(t *testing.T) {
	resp := streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"wrong","arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"right","arguments":"}"}}`,
	)...))
	got := calls(resp)
	if len(got) != 1 || got[0].ID != "a" || got[0].Name != "right" || got[0].Arguments != "{}" {
		t.Fatalf("%+v", got)
	}
	if p := got[0].Problem; p == nil || p.Code != codes.ProblemStopped {
		t.Errorf("it may run: %+v", p)
	}
}

func TestQuirkC5_EncodedNameIsSentOnce(t *testing.T) {
	var evs []dragoman.Event
	evs = append(evs, &dragoman.ResponseStart{})
	for i, name := range []string{"first", "second"} {
		c := call("id_"+name, name, `{"a":[1,2]}`)
		evs = append(evs, &dragoman.PartStart{Index: i, Part: &dragoman.ToolCall{ID: c.ID, Name: name, Payload: codes.PayloadObject}})
		for _, fragment := range []string{`{"a":`, `[1,`, `2]}`} {
			evs = append(evs, &dragoman.PartDelta{Index: i, Kind: codes.KindToolCall, Text: fragment})
		}
		evs = append(evs, &dragoman.PartEnd{Index: i, Part: &c})
	}
	evs = append(evs, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}})
	out, _ := encodeStream(t, dialect.EncodeOptions{}, evs)
	if names := strings.Count(out, `"name":`); names != 2 {
		t.Errorf("%d names for two calls: %s", names, out)
	}
	if fragments := strings.Count(out, `"arguments":`); fragments != 8 {
		t.Errorf("%d fragments, want a start and three for each call: %s", fragments, out)
	}
	for _, name := range []string{"first", "second"} {
		has(t, out, `"id":"id_`+name+`","type":"function","function":{"name":"`+name+`"`)
	}
}

func TestR7_LastOfDuplicateRolesCounts(t *testing.T) {
	resp, _ := decodeResponse(t, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","role":"user"},"finish_reason":"stop"}]}`)
	if m := resp.Output[0]; m.Role != dragoman.RoleUser || m.Native != nil || resp.Native != nil {
		t.Errorf("%+v", m)
	}
}
