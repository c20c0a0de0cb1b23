package ollama_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

// oddRequest has every known field, and some unknown ones.
const oddRequest = `{"model":"m","keep_alive":"10m","think":"high","format":{"type":"object","properties":{"a":{"type":"string"}}},
 "messages":[{"role":"System","content":"be brief"},{"role":"user","content":"what is it?","images":["iVBORw0KGgo="],"x":1},
 {"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"index":0,"name":"f","arguments":{"b":1, "a":[2]}}},{"id":"call_2","type":"function","function":{"name":"f","arguments":{}}}]},
 {"role":"tool","tool_name":"f","content":"1"},{"role":"tool","tool_call_id":"call_2","content":"2","images":["/9j/4AAQ"]},
 {"role":"assistant","content":"done","tool_calls":[]}],
 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":true}}],
 "options":{"num_ctx":8192,"temperature":0.20,"num_predict":256,"stop":["a","b"],"seed":7,"top_k":40,"top_p":1.0,"mirostat":null},"truncate":false}`

func TestRequestRoundTrip(t *testing.T) {
	req, rep := decodeRequest(t, oddRequest)
	if rep.Err(dragoman.Warn) != nil {
		t.Error(rep)
	}
	if !req.Stream || !req.StreamUsage || req.Reasoning.Effort != "high" || *req.MaxOutputTokens != 256 || *req.Sampling.Temperature != "0.20" ||
		*req.Sampling.TopP != "1.0" || *req.Sampling.TopK != 40 || *req.Sampling.Seed != 7 || !slices.Equal(req.Sampling.Stop, []string{"a", "b"}) ||
		req.Output.Kind != codes.OutputSchema || req.Messages[0].Role != dragoman.RoleSystem {
		t.Errorf("%+v", req)
	}
	img := req.Messages[1].Parts[1].(*dragoman.Media)
	if img.MIME != "image/png" || img.Base64 != "iVBORw0KGgo=" {
		t.Errorf("%+v", img)
	}
	calls := req.Messages[2].ToolCalls()
	if !calls[0].Synthetic || calls[0].Arguments != `{"b":1, "a":[2]}` || calls[1].ID != "call_2" || calls[1].Synthetic {
		t.Errorf("%+v %+v", calls[0], calls[1])
	}
	first, second := result(req.Messages[3]), result(req.Messages[4])
	if first.CallID != calls[0].ID || second.CallID != "call_2" || second.Name != "f" || second.Content[1].(*dragoman.Media).MIME != "image/jpeg" {
		t.Errorf("%+v %+v", first, second)
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != oddRequest {
		t.Errorf("the unchanged request was encoded as %s, %v", enc.Body, err)
	}
	other := *req
	other.Model = "another/model"
	enc, err = codec.EncodeRequest(&other, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != strings.Replace(oddRequest, `"model":"m"`, `"model":"another/model"`, 1) {
		t.Errorf("%s, %v", enc.Body, err)
	}
	enc, err = codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	if err != nil || len(enc.Report.Losses) > 0 {
		t.Errorf("%v\n%s", err, enc.Report)
	}
	want := strings.NewReplacer(
		`"role":"System"`, `"role":"system"`, `"tool_call_id":"call_2"`, `"tool_call_id":"call_2","tool_name":"f"`, `"truncate":false`, `"truncate":false,"stream":true`,
	).Replace(oddRequest)
	sameJSON(t, string(enc.Body), want)
}

func result(m dragoman.Message) *dragoman.ToolResult { return m.Parts[0].(*dragoman.ToolResult) }

func TestStreamIsTheDefault(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"m","messages":[]}`:                true,
		`{"model":"m","messages":[],"stream":null}`:  true,
		`{"model":"m","messages":[],"stream":true}`:  true,
		`{"model":"m","messages":[],"stream":false}`: false,
	} {
		req, _ := decodeRequest(t, body)
		if req.Stream != want {
			t.Errorf("%s: %v", body, req.Stream)
		}
		m, _ := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Stream: want}, dialect.EncodeOptions{})
		if string(m["stream"]) != map[bool]string{true: "true", false: "false"}[want] {
			t.Errorf("stream %v written as %s", want, m["stream"])
		}
	}
}

func TestReasoningSettingsAreMapped(t *testing.T) {
	budget := int64(20000)
	for _, c := range []struct {
		s    dragoman.ReasoningSettings
		want string
		kind dragoman.LossKind
	}{
		{dragoman.ReasoningSettings{}, "", ""},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, "true", ""},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, "false", ""},
		{dragoman.ReasoningSettings{Effort: "none"}, "false", ""},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "high"}, "false", dragoman.Dropped},
		{dragoman.ReasoningSettings{Effort: "low"}, `"low"`, ""},
		{dragoman.ReasoningSettings{Effort: "max"}, `"max"`, ""},
		{dragoman.ReasoningSettings{Effort: "minimal"}, `"low"`, dragoman.Lowered},
		{dragoman.ReasoningSettings{Effort: "xhigh"}, `"max"`, dragoman.Lowered},
		{dragoman.ReasoningSettings{Effort: "extreme"}, `true`, dragoman.Lowered},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &budget}, `"high"`, dragoman.Lowered},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningBudget}, "", dragoman.Dropped},
		{dragoman.ReasoningSettings{Effort: "low", BudgetTokens: &budget}, `"low"`, dragoman.Dropped},
		{dragoman.ReasoningSettings{Effort: "low", Summary: "auto"}, `"low"`, dragoman.Dropped},
	} {
		m, rep := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Reasoning: &c.s}, dialect.EncodeOptions{})
		if string(m["think"]) != c.want {
			t.Errorf("%+v written as %s, want %s", c.s, m["think"], c.want)
		}
		if c.kind == "" {
			lossless(t, rep)
		} else {
			lost(t, rep, c.kind, "/reasoning", "")
		}
	}
	for _, think := range []string{`true`, `false`, `"low"`, `"medium"`, `"high"`, `"max"`, `"turbo"`, `null`, `""`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[],"think":`+think+`}`)
		if m, rep := encode(t, req, dialect.EncodeOptions{Rebuild: true}); string(m["think"]) != think {
			t.Errorf("think %s is re-encoded as %s\n%s", think, m["think"], rep)
		}
	}
	if _, _, err := codec.DecodeRequest([]byte(`{"think":3}`), dialect.DecodeOptions{}); decodeError(t, err).Pointer != "/think" {
		t.Error(err)
	}
}

func TestQuirkF5_FormatIsJSONOrSchema(t *testing.T) {
	for _, format := range []string{`"json"`, `{"type":"array","items":{"type":"string"}}`, `""`, `null`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[],"format":`+format+`}`)
		if m, rep := encode(t, req, dialect.EncodeOptions{Rebuild: true}); string(m["format"]) != format || len(rep.Losses) > 0 {
			t.Errorf("format %s is re-encoded as %s\n%s", format, m["format"], rep)
		}
	}
	f := &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "n", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Strict: codes.StrictOn}
	m, rep := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Output: f, Tools: []dragoman.ToolSpec{fn("f")}}, dialect.EncodeOptions{})
	sameJSON(t, string(m["format"]), `{"type":"object"}`)
	lost(t, rep, dragoman.Dropped, "/output/name", "")
	lost(t, rep, dragoman.Dropped, "/output/description", "")
	lost(t, rep, dragoman.Lowered, "/output", "may not call tools") // quirk F9
	m, rep = encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Output: f}, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoStructuredOutput: true}}})
	if m["format"] != nil {
		t.Errorf("%s", m["format"])
	}
	lost(t, rep, dragoman.Dropped, "/output", "")
	m, rep = encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Output: &dragoman.OutputFormat{Kind: codes.OutputSchema}}, dialect.EncodeOptions{})
	if string(m["format"]) != `"json"` || rep.Err(dragoman.Serious) == nil {
		t.Errorf("%s\n%s", m["format"], rep)
	}
	if m, rep := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Output: &dragoman.OutputFormat{Kind: codes.OutputText}}, dialect.EncodeOptions{}); m["format"] != nil || len(rep.Losses) > 0 {
		t.Errorf("%s\n%s", m["format"], rep)
	}
}

func TestUnknownOptionsAreKept(t *testing.T) {
	for _, options := range []string{`{}`, `{"num_predict":-1}`, `{"stop":[]}`, `{"temperature":null,"repeat_penalty":1.1,"seed":3}`, `{"stop":["x"],"min_p":0.05}`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"q"}],"options":`+options+`}`)
		m, rep := encode(t, req, dialect.EncodeOptions{Rebuild: true})
		sameJSON(t, string(m["options"]), options)
		lossless(t, rep)
	}
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"q"}],"options":{"temperature":null,"num_predict":-2,"stop":"x"}}`)
	req.Sampling.Temperature, req.MaxOutputTokens = dragoman.Num(0.5), ptr(int64(9))
	m, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	sameJSON(t, string(m["options"]), `{"temperature":0.5,"num_predict":9,"stop":["x"]}`)
}

func TestUnsupportedSettingsAreReported(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, CacheKey: "k", User: "u", ServiceTier: "flex", Verbosity: "low", Store: ptr(true), Cache: &dragoman.CacheHint{},
		ParallelToolCalls: ptr(false), Metadata: []dragoman.KeyValue{{Key: "a", Value: "b"}}, Sampling: dragoman.Sampling{Candidates: ptr(int64(3))},
		Tools: []dragoman.ToolSpec{{Name: "f", Strict: codes.StrictOn, Deferred: true}}, Extra: &dragoman.Extra{Dialect: dialectname.Anthropic, Fields: []dragoman.Field{{Path: "/container", Value: json.RawMessage(`"c"`)}}},
	}
	_, rep := encode(t, req, dialect.EncodeOptions{})
	for _, path := range []string{
		"/cache_key", "/user", "/service_tier", "/verbosity", "/store", "/cache", "/parallel_tool_calls", "/metadata", "/sampling/candidates", "/tools/0/strict", "/container",
	} {
		lost(t, rep, dragoman.Dropped, path, "")
	}
	lost(t, rep, dragoman.Lowered, "/tools/0", "deferred")
	req.Store, req.ParallelToolCalls, req.Sampling.Candidates = ptr(false), nil, ptr(int64(1))
	_, rep = encode(t, req, dialect.EncodeOptions{})
	for _, l := range rep.Losses {
		if l.Path == "/store" || l.Path == "/sampling/candidates" || l.Path == "/parallel_tool_calls" {
			t.Errorf("unexpected loss: %s", l)
		}
	}
}

func TestQuirkB1_ArgumentsAreAnObject(t *testing.T) {
	for args, want := range map[string]string{
		`{"b":1,"a":2}`:       `{"b":1,"a":2}`,
		`"{\"b\":1,\"a\":2}"`: `{"b":1,"a":2}`,
		`{}`:                  `{}`, `null`: `{}`, `""`: `{}`,
		`"\"{\\\"a\\\":1}\""`: `{"a":1}`, // encoded twice (quirk B3)
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":`+args+`}}]}]}`)
		if c := req.Messages[0].ToolCalls()[0]; c.Problem != nil {
			t.Errorf("%s: %v", args, c.Problem)
		}
		m, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
		if el := elements(t, m["messages"])[0]; !strings.Contains(el, `"arguments":`+want+`}`) {
			t.Errorf("%s written as %s", args, el)
		}
	}
	els, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
		&dragoman.ToolCall{ID: "a", Name: "f", Arguments: `[1]`}, &dragoman.ToolCall{ID: "b", Name: "f", Arguments: `{"a":`}, &dragoman.ToolCall{ID: "c", Name: "f", Payload: codes.PayloadText, Arguments: "x"},
	}})
	sameJSON(t, els[0], `{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"_raw":[1]}}},{"id":"b","function":{"name":"f","arguments":{}}},{"id":"c","function":{"name":"f","arguments":{"input":"x"}}}]}`)
	lost(t, rep, dragoman.Lowered, "/messages/0/parts/0", "_raw")
	lost(t, rep, dragoman.Lowered, "/messages/0/parts/1", "{}")
	lost(t, rep, dragoman.Lowered, "/messages/0/parts/2", "freeform")
}

func TestQuirkD15_ResultMatchesCallByIDNameOrOrder(t *testing.T) {
	for name, c := range map[string]struct {
		calls, results string
		want           []int // the call of each result; -1 for no call
	}{
		"by id, in any order":        {`[{"id":"x","function":{"name":"f"}},{"id":"y","function":{"name":"f"}}]`, `{"role":"tool","tool_call_id":"y"},{"role":"tool","tool_call_id":"x"}`, []int{1, 0}},
		"by name":                    {`[{"function":{"name":"f"}},{"function":{"name":"g"}},{"function":{"name":"f"}}]`, `{"role":"tool","tool_name":"g"},{"role":"tool","tool_name":"f"},{"role":"tool","tool_name":"f"}`, []int{1, 0, 2}},
		"by order":                   {`[{"function":{"name":"f"}},{"function":{"name":"g"}}]`, `{"role":"tool"},{"role":"tool"},{"role":"tool"}`, []int{0, 1, -1}},
		"name before order":          {`[{"function":{"name":"f"}},{"function":{"name":"g"}}]`, `{"role":"tool","tool_name":"g"},{"role":"tool"}`, []int{1, 0}},
		"unknown id":                 {`[{"id":"x","function":{"name":"f"}}]`, `{"role":"tool","tool_call_id":"z","tool_name":"f"}`, []int{-1}},
		"unknown name":               {`[{"id":"x","function":{"name":"f"}}]`, `{"role":"tool","tool_name":"g"}`, []int{-1}},
		"id, calls without ids":      {`[{"function":{"name":"f"}}]`, `{"role":"tool","tool_call_id":"z","tool_name":"f"}`, []int{0}},
		"no id, one call without id": {`[{"id":"x","function":{"name":"f"}},{"function":{"name":"f"}}]`, `{"role":"tool","tool_name":"f"},{"role":"tool","tool_call_id":"x"}`, []int{1, 0}},
		"no id, all calls with ids":  {`[{"id":"x","function":{"name":"f"}},{"id":"y","function":{"name":"f"}}]`, `{"role":"tool","tool_name":"f"},{"role":"tool"}`, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","tool_calls":`+c.calls+`},`+c.results+`]}`)
			calls := req.Messages[0].ToolCalls()
			for i, want := range c.want {
				res := result(req.Messages[1+i])
				if want < 0 {
					for _, c := range calls {
						if res.CallID == c.ID || res.CallID == "" {
							t.Errorf("result %d has call id %q", i, res.CallID)
						}
					}
					continue
				}
				if res.CallID != calls[want].ID || res.Name != calls[want].Name {
					t.Errorf("result %d has call id %q and name %q, want id %q", i, res.CallID, res.Name, calls[want].ID)
				}
			}
		})
	}
}

func TestQuirkB12_ResultsMatchWithinTheirTurn(t *testing.T) {
	turn := `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"%"}`
	body := `{"model":"m","messages":[` + strings.ReplaceAll(turn, "%", "1") + `,{"role":"user","content":"again"},` + strings.ReplaceAll(turn, "%", "2") + `]}`
	req, rep := decodeRequest(t, body)
	one, two := req.Messages[0].ToolCalls()[0], req.Messages[3].ToolCalls()[0]
	if one.ID == two.ID || result(req.Messages[1]).CallID != one.ID || result(req.Messages[4]).CallID != two.ID {
		t.Errorf("%q %q", one.ID, two.ID)
	}
	lost(t, rep, dragoman.Synthesized, "/messages/0", one.ID)
	// A call without a result does not take the result of a later call.
	open, _ := decodeRequest(t, strings.Replace(body, `,{"role":"tool","tool_name":"f","content":"1"}`, "", 1))
	if res := result(open.Messages[3]); res.CallID != open.Messages[2].ToolCalls()[0].ID {
		t.Errorf("the result has call id %q", res.CallID)
	}
	again, _ := decodeRequest(t, body)
	if again.Messages[0].ToolCalls()[0].ID != one.ID {
		t.Error("the same history got a different id")
	}
	seeded, _, _ := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{Seed: "run 7"})
	if seeded.Messages[0].ToolCalls()[0].ID == one.ID {
		t.Error("the seed had no effect")
	}
}

func TestQuirkB10_GeneratedIDIsNotSent(t *testing.T) {
	resp, _ := decodeResponse(t, wholeResponse(`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"f","arguments":{"a":1}}}]}`, `,"done_reason":"stop"`))
	one, two := resp.ToolCalls()[0], resp.ToolCalls()[1]
	for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
		// Without ids only the order matters, so results are sorted like the calls.
		req := &dragoman.Request{Model: "m", Messages: append(slices.Clone(resp.Output), dragoman.ToolResults(two.ResultText("2"), one.ResultText("1")))}
		m, _ := encode(t, req, o)
		els := elements(t, m["messages"])
		if len(els) != 3 || strings.Contains(strings.Join(els, ""), one.ID) || strings.Contains(els[0], `"id"`) || !strings.Contains(els[1], `"content":"1"`) {
			t.Errorf("%q", els)
		}
		back, _, err := codec.DecodeRequest([]byte(`{"model":"m","messages":`+string(m["messages"])+`}`), dialect.DecodeOptions{})
		if err != nil || result(back.Messages[2]).CallID != back.Messages[0].ToolCalls()[1].ID {
			t.Errorf("%v %q", err, els)
		}
	}
	// An id that was generated for another API is sent: it is the only one.
	els, _ := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{one}}, dragoman.ToolResults(one.ResultText("1")))
	if !strings.Contains(els[0], one.ID) || !strings.Contains(els[1], `"tool_call_id":"`+one.ID+`"`) {
		t.Errorf("%q", els)
	}
}

func TestQuirkB11_DuplicateCallID(t *testing.T) {
	req, rep := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}},{"id":"a","function":{"name":"g","arguments":{}}},{"id":"a","function":{"name":"f","arguments":{}}}]},
		{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"a","content":"2"}]}`)
	calls := req.Messages[0].ToolCalls()
	if len(calls) != 2 || calls[0].ID != "a" || calls[1].ID == "a" || result(req.Messages[1]).CallID != "a" || result(req.Messages[2]).CallID != calls[1].ID {
		t.Errorf("%+v %+v", calls, result(req.Messages[2]))
	}
	lost(t, rep, dragoman.Renamed, "/messages/0", "twice")
	lost(t, rep, dragoman.Dropped, "/messages/0", "exact repeat")
	if req.Messages[0].Native != nil {
		t.Error("the native message lacks the new id")
	}
}

func TestQuirkD12_ErrorPrefix(t *testing.T) {
	call := &dragoman.ToolCall{ID: "a", Name: "f"}
	els, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}, dragoman.ToolResults(call.Fail("no such city")))
	sameJSON(t, els[1], `{"role":"tool","content":"ERROR: no such city","tool_name":"f","tool_call_id":"a"}`)
	lost(t, rep, dragoman.Lowered, "/messages/1/parts/0", "ERROR: ")
	body := []byte(`{"model":"m","messages":[` + els[0] + `,` + els[1] + `]}`)
	plain, _, _ := codec.DecodeRequest(body, dialect.DecodeOptions{})
	lifted, _, _ := codec.DecodeRequest(body, dialect.DecodeOptions{LiftErrors: true})
	if r := result(plain.Messages[1]); r.Outcome != codes.OutcomeUnknown || r.Text() != "ERROR: no such city" {
		t.Errorf("%+v", r)
	}
	if r := result(lifted.Messages[1]); r.Outcome != codes.OutcomeError || r.Text() != "no such city" {
		t.Errorf("%+v", r)
	}
}

func TestQuirkD13_ResultImages(t *testing.T) {
	call := &dragoman.ToolCall{ID: "a", Name: "shot"}
	png := dragoman.Image("image/png", []byte("\x89PNG\r\n\x1a\n1234"))
	els, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}},
		dragoman.ToolResults(call.Result(png, text("one"), &dragoman.Data{JSON: json.RawMessage(`{"n":2}`)}, &dragoman.Media{Media: codes.MediaImage, URL: "https://example.com/x.png"})))
	sameJSON(t, els[1], `{"role":"tool","content":"one\n\n{\"n\":2}\n\n[image https://example.com/x.png not shown]","images":["`+png.Base64+`"],"tool_name":"shot","tool_call_id":"a"}`)
	lost(t, rep, dragoman.Dropped, "/messages/1/parts/0", "by reference")
	lost(t, rep, dragoman.Lowered, "/messages/1/parts/0", "texts are joined")
	back, _ := decodeRequest(t, `{"model":"m","messages":[`+els[0]+`,`+els[1]+`]}`)
	if m := result(back.Messages[1]).Content[1].(*dragoman.Media); *m != *png {
		t.Errorf("%+v", m)
	}
}

func TestResultMediaMovesToUserMessage(t *testing.T) {
	call := &dragoman.ToolCall{ID: "a", Name: "shot"}
	png := dragoman.Image("image/png", []byte("\x89PNG\r\n\x1a\n1234"))
	els, rep := messages(t, targets.Target{Caps: targets.Capabilities{NoResultMedia: true, NoCallIDs: true}},
		dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}, dragoman.ToolResults(call.Result(text("one"), png)))
	want := []string{
		`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"shot","arguments":{}}}]}`,
		`{"role":"tool","content":"one\n\n(see what is attached below)","tool_name":"shot"}`,
		`{"role":"user","content":"Attached to the result of shot:","images":["` + png.Base64 + `"]}`,
	}
	if !slices.Equal(els, want) {
		t.Errorf("%q", els)
	}
	lost(t, rep, dragoman.Moved, "/messages/1/parts/0", "after the results")
	// Native messages with ids or media are re-encoded.
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`)
	m, _ := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCallIDs: true}}})
	if strings.Contains(string(m["messages"]), `"a"`) {
		t.Errorf("%s", m["messages"])
	}
}

func TestMediaIsBareBase64(t *testing.T) {
	for begin, want := range map[string]dragoman.Media{
		"\x89PNG\r\n\x1a\nxxxx":    {Media: codes.MediaImage, MIME: "image/png"},
		"\xff\xd8\xff\xe0":         {Media: codes.MediaImage, MIME: "image/jpeg"},
		"GIF89a":                   {Media: codes.MediaImage, MIME: "image/gif"},
		"RIFF\x01\x02\x03\x04WEBP": {Media: codes.MediaImage, MIME: "image/webp"},
		"RIFF\x01\x02\x03\x04WAVE": {Media: codes.MediaAudio, MIME: "audio/wav"},
		"ID3\x03":                  {Media: codes.MediaAudio, MIME: "audio/mpeg"},
		"who knows":                {Media: codes.MediaImage},
		"":                         {Media: codes.MediaImage},
	} {
		content := dragoman.Image("", []byte(begin)).Base64
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"","images":["`+content+`"]}]}`)
		want.Base64 = content
		if got := req.Messages[0].Parts[0].(*dragoman.Media); *got != want {
			t.Errorf("%q: %+v, want %+v", begin, got, want)
		}
	}
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x","images":["data:image/png;base64,iVBORw0KGgo="]}]}`)
	m, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	sameJSON(t, elements(t, m["messages"])[0], `{"role":"user","content":"x","images":["iVBORw0KGgo="]}`)

	user := func(parts ...dragoman.Part) dragoman.Message {
		return dragoman.Message{Role: dragoman.RoleUser, Parts: parts}
	}
	png := dragoman.Image("image/png", []byte("\x89PNG\r\n\x1a\n"))
	for _, c := range []struct {
		part dragoman.Part
		want string
		caps targets.Capabilities
		loss string
	}{
		{png, `{"role":"user","content":"","images":["` + png.Base64 + `"]}`, targets.Capabilities{}, ""},
		{&dragoman.Media{Media: codes.MediaImage, MIME: "image/heic", Base64: "AAAA"}, `{"role":"user","content":"[image not shown]"}`, targets.Capabilities{}, "image/heic"},
		{&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AAAA"}, `{"role":"user","content":"","images":["AAAA"]}`, targets.Capabilities{}, "image/png"},
		{&dragoman.Media{Media: codes.MediaImage, MIME: "image/heic", Base64: png.Base64}, `{"role":"user","content":"","images":["` + png.Base64 + `"]}`, targets.Capabilities{}, "from its content"},
		{&dragoman.Media{Media: codes.MediaImage, Base64: png.Base64}, `{"role":"user","content":"","images":["` + png.Base64 + `"]}`, targets.Capabilities{}, ""},
		{&dragoman.Media{Media: codes.MediaAudio, Base64: "AAAA"}, `{"role":"user","content":"","images":["AAAA"]}`, targets.Capabilities{}, "/parts/0/media"},
		{png, `{"role":"user","content":"[image not shown]"}`, targets.Capabilities{NoImages: true}, "does not accept image"},
		{&dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Base64: "JVBE", Name: "a.pdf"}, `{"role":"user","content":"[file a.pdf not shown]"}`, targets.Capabilities{}, "does not accept file"},
		{&dragoman.Media{Media: codes.MediaFile, Text: "words"}, `{"role":"user","content":"words"}`, targets.Capabilities{}, "text document"},
		{&dragoman.Media{Media: codes.MediaImage, FileID: "f1"}, `{"role":"user","content":"[image f1 not shown]"}`, targets.Capabilities{}, "by reference"},
		{&dragoman.Media{Media: codes.MediaImage}, `{"role":"user","content":"[image not shown]"}`, targets.Capabilities{}, "has no content"},
		{&dragoman.Media{Media: codes.MediaImage, Base64: "data:image/png;base64,iVBORw0KGgo="}, `{"role":"user","content":"","images":["iVBORw0KGgo="]}`, targets.Capabilities{}, ""},
	} {
		els, rep := messages(t, targets.Target{Caps: c.caps}, user(c.part))
		sameJSON(t, els[0], c.want)
		if c.loss == "" {
			lossless(t, rep)
		} else if !strings.Contains(rep.String(), c.loss) {
			t.Errorf("%s: %s", c.want, rep)
		}
	}
	_, rep := messages(t, targets.Target{}, user(png, text("after it")))
	lost(t, rep, dragoman.Moved, "/messages/0", "images are moved after the text")
}

func TestQuirkD34_ContentIsOneString(t *testing.T) {
	els, rep := messages(t, targets.Target{},
		dragoman.Message{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{text("rules")}},
		dragoman.Message{Role: dragoman.RoleUser, Name: "ada", Parts: []dragoman.Part{text("a"), text("b")}},
		dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("c"), text("d")}},
		dragoman.Message{Role: dragoman.RoleAssistant, Phase: "final_answer", Parts: []dragoman.Part{text("e"), &dragoman.Refusal{Text: "no"}}},
		dragoman.Message{Role: dragoman.RoleUser},
		dragoman.Message{Role: "critic", Parts: []dragoman.Part{text("hm")}},
	)
	want := []string{
		`{"role":"system","content":"rules"}`, `{"role":"user","content":"a\n\nb"}`, `{"role":"assistant","content":"cd\n\neno"}`, `{"role":"user","content":"hm"}`,
	}
	if !slices.Equal(els, want) {
		t.Errorf("%q", els)
	}
	for _, l := range []struct {
		kind   dragoman.LossKind
		path   string
		detail string
	}{
		{dragoman.Lowered, "/messages/0/role", "developer"},
		{dragoman.Lowered, "/messages/1", "2 texts"},
		{dragoman.Dropped, "/messages/1/name", "ada"},
		{dragoman.Moved, "/messages/3", "merged"},
		{dragoman.Dropped, "/messages/3/phase", ""},
		{dragoman.Lowered, "/messages/3/parts/1", "refusal"},
		{dragoman.Dropped, "/messages/4", "no content"},
		{dragoman.Lowered, "/messages/5/role", "critic"},
	} {
		lost(t, rep, l.kind, l.path, l.detail)
	}
}

func TestThinkingIsSentBack(t *testing.T) {
	els, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
		&dragoman.Reasoning{Text: "hm", Signature: "s"}, text("so"), &dragoman.Reasoning{Encrypted: "e", Redacted: true}, &dragoman.Reasoning{Summary: []string{"one", "two"}},
	}})
	sameJSON(t, els[0], `{"role":"assistant","content":"so","thinking":"hm\n\none\n\ntwo"}`)
	lost(t, rep, dragoman.Dropped, "/messages/0/parts/0", "opaque")
	lost(t, rep, dragoman.Dropped, "/messages/0/parts/2", "opaque")
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":"x","thinking":"hm"}]}`)
	m, rep := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoReasoning: true}}})
	if els := elements(t, m["messages"]); strings.Contains(els[0], "hm") {
		t.Errorf("%q", els)
	}
	lost(t, rep, dragoman.Dropped, "/messages/0/parts/0", "does not accept earlier reasoning")
}

func TestUnchangedMessageKeepsItsBytes(t *testing.T) {
	req, _ := decodeRequest(t, oddRequest)
	req.Messages = append(req.Messages, dragoman.UserText("go on"))
	m, rep := encode(t, req, dialect.EncodeOptions{})
	lossless(t, rep)
	var sent struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(oddRequest), &sent); err != nil {
		t.Fatal(err)
	}
	for i, el := range elements(t, m["messages"])[:len(sent.Messages)] {
		if el != string(sent.Messages[i]) {
			t.Errorf("message %d became %s", i, el)
		}
	}
	// A changed message is re-encoded.
	result(req.Messages[3]).Content[0].(*dragoman.Text).Text = "redacted"
	m, _ = encode(t, req, dialect.EncodeOptions{})
	sameJSON(t, elements(t, m["messages"])[3], `{"role":"tool","tool_name":"f","content":"redacted"}`)
}

func TestQuirkA47_ToolsKeepTheirNestedSchemas(t *testing.T) {
	params := `{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"]}}},"required":["list"]}`
	m, rep := encode(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: []dragoman.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(params)}, {Name: "g"}, {Name: "grep", Namespace: "fs"}}}, dialect.EncodeOptions{})
	tools := elements(t, m["tools"])
	sameJSON(t, tools[0], `{"type":"function","function":{"name":"f","description":"d","parameters":`+params+`}}`)
	sameJSON(t, tools[1], `{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}`)
	if !strings.Contains(tools[2], `"name":"fs__grep"`) {
		t.Error(tools[2])
	}
	lost(t, rep, dragoman.Renamed, "/tools/2", "fs__grep")
}

func TestInvalidRequestErrorsHavePointers(t *testing.T) {
	for body, pointer := range map[string]string{
		`[]`:                            "",
		`{"model":1}`:                   "/model",
		`{"messages":{}}`:               "/messages",
		`{"messages":[{"content":[]}]}`: "/messages/0/content",
		`{"messages":[1]}`:              "/messages/0",
		`{"messages":[{"role":"tool","content":{}}]}`:           "/messages/0/content",
		`{"messages":[{"role":"user","images":["",{}]}]}`:       "/messages/0/images/1",
		`{"messages":[{"role":"assistant","tool_calls":true}]}`: "/messages/0/tool_calls",
		`{"tools":[{"function":{"name":5}}]}`:                   "/tools/0/function/name",
		`{"options":{"temperature":"hot"}}`:                     "/options/temperature",
		`{"options":{"num_predict":"many"}}`:                    "/options/num_predict",
		`{"options":[]}`:                                        "/options",
		`{"stream":"yes"}`:                                      "/stream",
		`{"model":"m",`:                                         "",
	} {
		req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err == nil || req == nil {
			t.Errorf("%s: no error", body)
			continue
		}
		if de := decodeError(t, err); de.Pointer != pointer || de.What != "request" {
			t.Errorf("%s: %v at %q, want %q", body, err, de.Pointer, pointer)
		}
	}
	_, _, err := codec.DecodeRequest([]byte(`{"model":"mmmm"}`), dialect.DecodeOptions{MaxBytes: 8})
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Error(err)
	}
}
