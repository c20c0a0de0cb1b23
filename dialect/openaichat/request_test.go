package openaichat_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

var user = dragoman.UserText("hi")

func request(edit func(*dragoman.Request)) *dragoman.Request {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user}}
	edit(req)
	return req
}

func encoded(t *testing.T, target targets.Target, edit func(*dragoman.Request)) (map[string]json.RawMessage, dragoman.Report) {
	t.Helper()
	return encodeRequest(t, request(edit), dialect.EncodeOptions{Target: target})
}

func TestQuirkE1_ToolChoicesRoundTrip(t *testing.T) {
	tools := []dragoman.ToolSpec{fn("f"), {Kind: codes.ToolFreeform, Name: "sql"}}
	for _, tc := range []struct {
		name   string
		choice dragoman.ToolChoice
		want   string
	}{
		{"auto", dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, `"auto"`},
		{"none", dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, `"none"`},
		{"required", dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, `"required"`},
		{"one function", dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "f"}}}, `{"type":"function","function":{"name":"f"}}`},
		{"one custom tool", dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "sql", Kind: codes.ToolFreeform}}}, `{"type":"custom","custom":{"name":"sql"}}`},
		{"E9: some", dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "f"}, {Name: "sql", Kind: codes.ToolFreeform}}}, `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"sql"}}]}}`},
		{"E9: one of some", dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "f"}}}, `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) { r.Tools, r.ToolChoice = tools, &tc.choice })
			sameJSON(t, string(m["tool_choice"]), tc.want)
			lossless(t, rep)
			req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"sql"}}],"tool_choice":`+tc.want+`}`)
			got := req.ToolChoice
			if got == nil || got.Mode != tc.choice.Mode || len(got.Tools) != len(tc.choice.Tools) || got.Native != nil {
				t.Fatalf("%+v", got)
			}
			for i := range got.Tools {
				if got.Tools[i] != tc.choice.Tools[i] {
					t.Errorf("%+v", got.Tools)
				}
			}
		})
	}
}

func TestQuirkE1_ToolChoicesOfOtherServers(t *testing.T) {
	for in, want := range map[string]string{
		`"any"`:                          dragoman.ChoiceRequired, // Mistral
		`{"name":"f"}`:                   dragoman.ChoiceTool,     // legacy
		`{"type":"function","name":"f"}`: dragoman.ChoiceTool,     // flat
		`"whatever"`:                     codes.ChoiceOpaque,
		`{"type":"new","x":1}`:           codes.ChoiceOpaque,
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":`+in+`}`)
		if req.ToolChoice == nil || req.ToolChoice.Mode != want {
			t.Errorf("%s: %+v", in, req.ToolChoice)
		}
		if want == dragoman.ChoiceTool && req.ToolChoice.Tools[0].Name != "f" {
			t.Errorf("%s: %+v", in, req.ToolChoice.Tools)
		}
		if want == codes.ChoiceOpaque || in == `"any"` {
			m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
			sameJSON(t, string(m["tool_choice"]), in)
		}
	}
	m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("f")}
		r.ToolChoice = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: "openai.responses", JSON: []byte(`{"type":"mcp"}`)}}
	})
	if _, ok := m["tool_choice"]; ok {
		t.Errorf("tool_choice: %s", m["tool_choice"])
	}
	lost(t, rep, dragoman.Dropped, "for its own provider")
}

func TestQuirkE3_NoToolsNoFlags(t *testing.T) {
	hosted := dragoman.ToolSpec{Kind: codes.ToolHosted, Name: "bash", Source: &dragoman.ToolSource{Format: "anthropic.messages.bash_20250124", JSON: []byte(`{"type":"bash_20250124","name":"bash"}`)}}
	for name, choice := range map[string]*dragoman.ToolChoice{
		"required": {Mode: dragoman.ChoiceRequired}, "auto": {Mode: dragoman.ChoiceAuto}, "absent": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) {
				r.Tools, r.ToolChoice, r.ParallelToolCalls = []dragoman.ToolSpec{hosted}, choice, ptr(false)
			})
			for _, key := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
				if v, ok := m[key]; ok {
					t.Errorf("%s: %s", key, v)
				}
			}
			lost(t, rep, dragoman.Dropped, "no tools remain")
		})
	}
}

func TestQuirkE4_UnsupportedForcedChoiceIsLowered(t *testing.T) {
	for _, tc := range []struct {
		forced  string
		effort  string
		lowered bool
	}{
		{codes.ForcedAlways, "high", false},
		{codes.ForcedNever, "", true},
		{codes.ForcedWithoutThinking, "high", true},
		{codes.ForcedWithoutThinking, "none", false},
		{codes.ForcedWithoutThinking, "", false},
	} {
		m, rep := encoded(t, caps(targets.Capabilities{ForcedChoice: tc.forced}), func(r *dragoman.Request) {
			r.Tools, r.ToolChoice = []dragoman.ToolSpec{fn("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
			if tc.effort != "" {
				r.Reasoning = &dragoman.ReasoningSettings{Effort: tc.effort}
			}
		})
		want := `"required"`
		if tc.lowered {
			want = `"auto"`
			lost(t, rep, dragoman.Lowered, "forced choice")
		}
		if got := string(m["tool_choice"]); got != want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

func TestQuirkE5_ToolChoiceNamesOnlySentTools(t *testing.T) {
	m, _ := encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("a.b"), {Namespace: "crm", Name: "list"}}
		r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "a.b"}, {Namespace: "crm", Name: "list"}}}
	})
	var wire []string
	for _, el := range elements(t, m["tools"]) {
		var tool struct{ Function struct{ Name string } }
		if err := json.Unmarshal([]byte(el), &tool); err != nil {
			t.Fatal(err)
		}
		wire = append(wire, tool.Function.Name)
	}
	if wire[0] == "a.b" || wire[1] != "crm__list" {
		t.Errorf("%q", wire)
	}
	for _, w := range wire {
		has(t, string(m["tool_choice"]), `"name":"`+w+`"`)
	}
	bad := dragoman.ToolSpec{Name: "bad", Parameters: json.RawMessage(`5`)}
	for name, choice := range map[string]dragoman.ToolChoice{
		"dropped":             {Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "bad"}}},
		"unknown":             {Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "missing"}}},
		"two forced":          {Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "good"}, {Name: "bad"}}},
		"required, none left": {Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "bad"}}},
	} {
		_, err := codec.EncodeRequest(request(func(r *dragoman.Request) { r.Tools, r.ToolChoice = []dragoman.ToolSpec{fn("good"), bad}, &choice }), dialect.EncodeOptions{})
		if !errors.Is(err, dragoman.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("good"), bad}
		r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "good"}, {Name: "bad"}}}
	})
	hasNot(t, string(m["tool_choice"]), "bad")
	has(t, string(m["tool_choice"]), "good")
	lost(t, rep, dragoman.Dropped, "is not sent")
	m, _ = encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("good"), bad}
		r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "bad"}}}
	})
	if string(m["tool_choice"]) != `"none"` {
		t.Errorf("an empty list of allowed tools became %s", m["tool_choice"])
	}
}

func TestQuirkE6_ParallelFlag(t *testing.T) {
	tools := []dragoman.ToolSpec{fn("f")}
	m, _ := encoded(t, targets.Target{}, func(r *dragoman.Request) { r.Tools, r.ParallelToolCalls = tools, ptr(false) })
	if string(m["parallel_tool_calls"]) != "false" {
		t.Errorf("%s", m["parallel_tool_calls"])
	}
	m, rep := encoded(t, caps(targets.Capabilities{NoParallelFlag: true}), func(r *dragoman.Request) { r.Tools, r.ParallelToolCalls = tools, ptr(false) })
	if _, ok := m["parallel_tool_calls"]; ok {
		t.Error("the flag was sent to a server that rejects it")
	}
	lost(t, rep, dragoman.Dropped, "rejects the flag")
	m, _ = encoded(t, targets.Target{}, func(r *dragoman.Request) { r.Tools = tools })
	if v, ok := m["parallel_tool_calls"]; ok {
		t.Errorf("unexpected flag: %s", v)
	}
}

func TestQuirkE7_NullParallelFlagIsDropped(t *testing.T) {
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":null}`)
	if req.ParallelToolCalls != nil {
		t.Errorf("null read as %v", *req.ParallelToolCalls)
	}
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if v, ok := m["parallel_tool_calls"]; ok {
		t.Errorf("written: %s", v)
	}
}

func TestQuirkE9_ToolsAreNarrowed(t *testing.T) {
	m, rep := encoded(t, caps(targets.Capabilities{NoAllowedTools: true}), func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("a"), fn("b"), fn("c")}
		r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "c"}, {Name: "a"}}}
	})
	if els := elements(t, m["tools"]); len(els) != 2 || !strings.Contains(els[0], `"a"`) || !strings.Contains(els[1], `"c"`) {
		t.Errorf("%s", m["tools"])
	}
	if string(m["tool_choice"]) != `"required"` {
		t.Errorf("%s", m["tool_choice"])
	}
	lost(t, rep, dragoman.Lowered, "allowed tools")
}

func TestQuirkE11_ModelWithoutToolsIsAnError(t *testing.T) {
	_, err := codec.EncodeRequest(request(func(r *dragoman.Request) { r.Tools = []dragoman.ToolSpec{fn("f")} }), dialect.EncodeOptions{Target: caps(targets.Capabilities{NoTools: true})})
	if !errors.Is(err, dragoman.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestQuirkF5_StructuredOutput(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)
	for _, tc := range []struct {
		name string
		f    dragoman.OutputFormat
		want string
	}{
		{"schema", dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "verdict", Description: "d", Schema: schema, Strict: codes.StrictOn}, `{"type":"json_schema","json_schema":{"name":"verdict","description":"d","schema":` + string(schema) + `,"strict":true}}`},
		{"no name", dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: schema}, `{"type":"json_schema","json_schema":{"name":"response","schema":` + string(schema) + `}}`},
		{"invalid name", dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "my verdict!", Schema: schema}, `{"type":"json_schema","json_schema":{"name":"my_verdict_","schema":` + string(schema) + `}}`},
		{"auto, fits strict mode", dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "v", Schema: schema, Strict: codes.StrictAuto}, `{"type":"json_schema","json_schema":{"name":"v","schema":` + string(schema) + `,"strict":true}}`},
		{"JSON", dragoman.OutputFormat{Kind: codes.OutputJSON}, `{"type":"json_object"}`},
		{"text", dragoman.OutputFormat{Kind: codes.OutputText}, `{"type":"text"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) { r.Output = &tc.f })
			sameJSON(t, string(m["response_format"]), tc.want)
			switch tc.name {
			case "invalid name":
				lost(t, rep, dragoman.Renamed, "schema name")
			case "no name":
				lost(t, rep, dragoman.Synthesized, `"response"`)
			default:
				lossless(t, rep)
			}
			req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":`+tc.want+`}`)
			if req.Output == nil || req.Output.Kind != tc.f.Kind || string(req.Output.Schema) != string(tc.f.Schema) {
				t.Errorf("read back as %+v", req.Output)
			}
			m, _ = encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
			sameJSON(t, string(m["response_format"]), tc.want)
		})
	}
	m, rep := encoded(t, caps(targets.Capabilities{NoStructuredOutput: true}), func(r *dragoman.Request) { r.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON} })
	if _, ok := m["response_format"]; ok || rep.Err(dragoman.Serious) == nil {
		t.Error("the format was sent, or dropped without a report")
	}
}

func TestQuirkF5_LongNameIsTruncated(t *testing.T) {
	m, _ := encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: strings.Repeat("é", 70), Schema: json.RawMessage(`{"type":"object","properties":{}}`)}
	})
	has(t, string(m["response_format"]), `"name":"`+strings.Repeat("_", 64)+`"`)
}

func TestQuirkD13_ResultMediaFollowsTheBatch(t *testing.T) {
	png := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA=="}
	turn := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{ptr(call("a", "f", "{}")), ptr(call("b", "f", "{}"))}}
	batches := map[string][]dragoman.Message{
		"one message":  {dragoman.ToolResults(&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{text("see"), png}}, &dragoman.ToolResult{CallID: "b", Content: []dragoman.Part{png}})},
		"two messages": {dragoman.ToolResults(&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{text("see"), png}}), dragoman.ToolResults(&dragoman.ToolResult{CallID: "b", Content: []dragoman.Part{png}})},
	}
	for name, batch := range batches {
		t.Run(name, func(t *testing.T) {
			ms, rep := messages(t, targets.Target{}, append([]dragoman.Message{user, turn}, batch...)...)
			if len(ms) != 5 {
				t.Fatalf("%q", ms)
			}
			sameJSON(t, ms[2], `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"see"},{"type":"text","text":"(see the attached image below)"}]}`)
			sameJSON(t, ms[3], `{"role":"tool","tool_call_id":"b","content":"(see the attached image below)"}`)
			sameJSON(t, ms[4], `{"role":"user","content":[
				{"type":"text","text":"Attached to the result of call a:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},
				{"type":"text","text":"Attached to the result of call b:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`)
			lost(t, rep, dragoman.Moved, "moved to a user message")
		})
	}
}

func TestQuirkD20_AssistantMessagesAreMerged(t *testing.T) {
	run := []dragoman.Message{
		user,
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("first")}},
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{ptr(call("a", "f", "{}"))}},
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("second")}},
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{ptr(call("b", "g", "{}"))}},
		dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}, &dragoman.ToolResult{CallID: "b"}),
	}
	ms, rep := messages(t, targets.Target{}, run...)
	if len(ms) != 4 {
		t.Fatalf("%q", ms)
	}
	sameJSON(t, ms[1], `{"role":"assistant","content":"first\n\nsecond","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`)
	lost(t, rep, dragoman.Moved, "are merged")
	// Messages decoded from Chat are not merged.
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]}`)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if len(elements(t, m["messages"])) != 2 {
		t.Errorf("%s", m["messages"])
	}
}

func TestQuirkD34_TextAloneIsAString(t *testing.T) {
	ms, _ := messages(t, targets.Target{},
		dragoman.SystemText("s"), user,
		dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "cached", Cache: &dragoman.CacheHint{}}}},
		dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("a"), text("b"), ptr(call("c", "f", "{}"))}},
		dragoman.ToolResults(&dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{text("r")}}),
	)
	for i, want := range []string{`"s"`, `"hi"`, `"cached"`, `"ab"`, `"r"`} {
		has(t, ms[i], `"content":`+want)
	}
}

func TestInstructions_AreTheFirstMessage(t *testing.T) {
	m, rep := encoded(t, targets.Target{}, func(r *dragoman.Request) { r.Instructions = []dragoman.Part{text("be brief")} })
	sameJSON(t, elements(t, m["messages"])[0], `{"role":"system","content":"be brief"}`)
	lossless(t, rep)
}

func TestCapabilities(t *testing.T) {
	dev := dragoman.Message{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{text("d")}}
	ms, _ := messages(t, targets.Target{}, dev)
	has(t, ms[0], `"developer"`)
	ms, _ = messages(t, caps(targets.Capabilities{NoDeveloperRole: true}), dev)
	has(t, ms[0], `"system"`)

	m, _ := encoded(t, targets.Target{}, func(r *dragoman.Request) { r.MaxOutputTokens = ptr(int64(5)) })
	if string(m["max_completion_tokens"]) != "5" || m["max_tokens"] != nil {
		t.Errorf("%v", m)
	}
	m, _ = encoded(t, caps(targets.Capabilities{LegacyMaxTokens: true}), func(r *dragoman.Request) { r.MaxOutputTokens = ptr(int64(5)) })
	if string(m["max_tokens"]) != "5" || m["max_completion_tokens"] != nil {
		t.Errorf("%v", m)
	}
	m, rep := encoded(t, caps(targets.Capabilities{NoSampling: true, NoStreamOptions: true}), func(r *dragoman.Request) {
		r.Sampling.Temperature, r.Stream, r.StreamUsage = ptr(dragoman.Number("1.0")), true, true
	})
	if m["temperature"] != nil || m["stream_options"] != nil {
		t.Errorf("%v", m)
	}
	lost(t, rep, dragoman.Dropped, "sampling")
	lost(t, rep, dragoman.Dropped, "stream_options")
	m, _ = encoded(t, targets.Target{}, func(r *dragoman.Request) {
		r.Sampling.Temperature, r.Stream, r.StreamUsage = ptr(dragoman.Number("1.0")), true, true
	})
	if string(m["temperature"]) != "1.0" || string(m["stream_options"]) != `{"include_usage":true}` {
		t.Errorf("%v", m)
	}
	img := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Media{Media: codes.MediaImage, URL: "https://x/y.png"}}}
	ms, rep = messages(t, caps(targets.Capabilities{NoImages: true}), img)
	has(t, ms[0], "not shown")
	lost(t, rep, dragoman.Dropped, "does not accept image")
}

func TestQuirkG1_DuplicateReasoningFields(t *testing.T) {
	whole, _ := message(t, `{"role":"assistant","content":"x","reasoning":"think","reasoning_content":"think"}`, `"stop"`)
	st := streamed(t, stream(`"stop"`, `{"reasoning":"thi","reasoning_content":"thi"}`, `{"reasoning":"nk","reasoning_content":"nk"}`, `{"content":"x"}`))
	det := streamed(t, stream(`"stop"`, `{"reasoning":"thi","reasoning_details":[{"type":"reasoning.text","index":0,"text":"thi"}]}`, `{"reasoning":"nk","reasoning_details":[{"type":"reasoning.text","index":0,"text":"nk"}]}`, `{"content":"x"}`))
	for i, r := range []*dragoman.Response{whole, st, det} {
		rs, ok := r.Output[0].Parts[0].(*dragoman.Reasoning)
		if !ok || rs.Text != "think" || rs.Field != "reasoning" || len(r.Output[0].Parts) != 2 {
			t.Errorf("%d: %+v", i, r.Output[0].Parts)
		}
	}
}

func TestQuirkG2_ReasoningKeepsItsField(t *testing.T) {
	for _, field := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		o := dialect.DecodeOptions{Origin: dragoman.Origin{Provider: "deepseek"}}
		resp, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"`+field+`":"think","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), o)
		if err != nil {
			t.Fatal(err)
		}
		turn := append(resp.Output, dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}))
		for _, rebuild := range []bool{false, true} {
			m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: turn}, dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "deepseek"}})
			has(t, elements(t, m["messages"])[0], `"`+field+`":"think"`)
			// G9: never to another provider.
			m, rep := encodeRequest(t, &dragoman.Request{Model: "m", Messages: turn}, dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "openai"}})
			hasNot(t, elements(t, m["messages"])[0], "think")
			lost(t, rep, dragoman.Dropped, "no field for reasoning")
			// Unless that provider names a field for it.
			m, _ = encodeRequest(t, &dragoman.Request{Model: "m", Messages: turn}, dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "kimi", Caps: targets.Capabilities{ReasoningField: "reasoning_content"}}})
			has(t, elements(t, m["messages"])[0], `"reasoning_content":"think"`)
		}
	}
}

func TestQuirkG3_EmptyReasoningField(t *testing.T) {
	target := caps(targets.Capabilities{ReasoningField: "reasoning_content", ReasoningFieldAlways: true})
	ms, _ := messages(t, target, user, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{ptr(call("a", "f", "{}"))}}, dragoman.ToolResults(&dragoman.ToolResult{CallID: "a"}), dragoman.AssistantText("done"))
	has(t, ms[1], `"reasoning_content":""`)
	hasNot(t, ms[3], "reasoning_content")
	// A native message without the field gets it too.
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Target: target})
	has(t, elements(t, m["messages"])[0], `"reasoning_content":""`)
}

func TestQuirkG4_ReasoningPlaceholderIsNotSent(t *testing.T) {
	kimi := caps(targets.Capabilities{ReasoningField: "reasoning_content", ReasoningFieldAlways: true})
	for text, want := range map[string]string{"because": `"reasoning_content":"because"`, "[reasoning unavailable]": `"reasoning_content":""`, " [reasoning unavailable]\\n": `"reasoning_content":""`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"reasoning_content":"`+text+`","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`)
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{Target: kimi})
		has(t, elements(t, m["messages"])[1], want)
		// The message is not replayed if it has the placeholder.
		req.Messages = append(req.Messages, dragoman.AssistantText("done"))
		m, _ = encodeRequest(t, req, dialect.EncodeOptions{})
		hasNot(t, elements(t, m["messages"])[1], "unavailable")
	}
}

func TestQuirkG5_StreamedReasoningDetailsAreMerged(t *testing.T) {
	for name, tc := range map[string]struct {
		deltas []string
		want   string
	}{
		"by index": {[]string{
			`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"anthropic-claude-v1","signature":null}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"sig"}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":1}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"y","index":1,"id":null}]}`,
		}, `[{"type":"reasoning.text","text":"ab","index":0,"format":"anthropic-claude-v1","signature":"sig"},{"type":"reasoning.encrypted","data":"xy","index":1,"id":null}]`},
		"by id": {[]string{
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"a","id":"one"},{"type":"reasoning.summary","summary":"c","id":"two"}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"b","id":"one"}]}`,
		}, `[{"type":"reasoning.summary","summary":"ab","id":"one"},{"type":"reasoning.summary","summary":"c","id":"two"}]`},
		"by id, before the index": {[]string{
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"a","id":"rs_1","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"b","id":"rs_2","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"d","id":"rs_1","index":4}]}`,
		}, `[{"type":"reasoning.encrypted","data":"ad","id":"rs_1","index":4},{"type":"reasoning.encrypted","data":"bc","id":"rs_2","index":0}]`},
		"null does not overwrite": {[]string{
			`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"signature":"s"}]}`, `{"reasoning_details":[{"type":"reasoning.text","text":"","index":0,"signature":null}]}`, `{"reasoning_details":[]}`, `{"reasoning_details":null}`,
		}, `[{"type":"reasoning.text","text":"a","index":0,"signature":"s"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := streamed(t, stream(`"stop"`, append(tc.deltas, `{"content":"x"}`)...))
			rs, ok := resp.Output[0].Parts[0].(*dragoman.Reasoning)
			if !ok {
				t.Fatalf("%+v", resp.Output[0].Parts)
			}
			b, _ := json.Marshal(rs.Details)
			sameJSON(t, string(b), tc.want)
			// They are sent back unchanged and in order.
			m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: resp.Output}, dialect.EncodeOptions{})
			var msg map[string]json.RawMessage
			if err := json.Unmarshal([]byte(elements(t, m["messages"])[0]), &msg); err != nil {
				t.Fatal(err)
			}
			sameJSON(t, string(msg["reasoning_details"]), tc.want)
		})
	}
}

func TestQuirkG6_ReasoningMayBeAnObjectOrAList(t *testing.T) {
	for in, want := range map[string]string{
		`"reasoning_content":{"text":"think"}`:                                           "think",
		`"reasoning_content":{"content":"think"}`:                                        "think",
		`"reasoning":[{"type":"text","text":"thi"},{"type":"text","text":"nk"}]`:         "think",
		`"reasoning":[{"content":[{"text":"thi"}]},"nk"]`:                                "think",
		`"reasoning_details":[{"type":"reasoning.text","text":"think","signature":"s"}]`: "think",
	} {
		resp, _ := message(t, `{"role":"assistant","content":"x",`+in+`}`, `"stop"`)
		rs, ok := resp.Output[0].Parts[0].(*dragoman.Reasoning)
		if !ok || rs.Text != want {
			t.Errorf("%s: %+v", in, resp.Output[0].Parts)
			continue
		}
		// A rebuild has the field once.
		encodeRequest(t, &dragoman.Request{Model: "m", Messages: resp.Output}, dialect.EncodeOptions{Rebuild: true})
		st := streamed(t, stream(`"stop"`, `{`+in+`}`, `{"content":"x"}`))
		if rs, ok := st.Output[0].Parts[0].(*dragoman.Reasoning); !ok || rs.Text != want {
			t.Errorf("streamed %s: %+v", in, st.Output[0].Parts)
		}
	}
	for _, in := range []string{`null`, `""`, `[]`, `{}`, `5`} {
		resp, _ := message(t, `{"role":"assistant","content":"x","reasoning":`+in+`}`, `"stop"`)
		if len(resp.Output[0].Parts) != 1 {
			t.Errorf("reasoning %s: %+v", in, resp.Output[0].Parts)
		}
	}
}

func TestQuirkG1_MistralThinkingParts(t *testing.T) {
	const msg = `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"think"}]},{"type":"text","text":"say"}]}`
	resp, _ := message(t, msg, `"stop"`)
	st := streamed(t, stream(`"stop"`, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"thi"}]}]}`, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"nk"}]}]}`, `{"content":[{"type":"text","text":"sa"}]}`, `{"content":"y"}`))
	for _, r := range []*dragoman.Response{resp, st} {
		rs, ok := r.Output[0].Parts[0].(*dragoman.Reasoning)
		if !ok || rs.Text != "think" || r.Text() != "say" {
			t.Fatalf("%+v", r.Output[0].Parts)
		}
		m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: r.Output}, dialect.EncodeOptions{Rebuild: true})
		sameJSON(t, elements(t, m["messages"])[0], msg)
	}
}

func TestLegacy_FunctionsBecomeTools(t *testing.T) {
	req, rep := decodeRequest(t, `{"model":"m","messages":[
		{"role":"user","content":"x"},
		{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},
		{"role":"function","name":"f","content":"one"},
		{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":2}"}},
		{"role":"function","name":"f","content":"two"},
		{"role":"function","name":"g","content":"unrequested"}],
		"functions":[{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}],"function_call":{"name":"f"}}`)
	lost(t, rep, dragoman.Moved, "legacy functions")
	if len(req.Tools) != 1 || req.Tools[0].Name != "f" || req.ToolChoice.Mode != dragoman.ChoiceTool {
		t.Fatalf("%+v, %+v", req.Tools, req.ToolChoice)
	}
	ids := map[string]bool{}
	for i := 1; i < 5; i += 2 {
		c, r := req.Messages[i].ToolCalls()[0], req.Messages[i+1].Parts[0].(*dragoman.ToolResult)
		if c.ID == "" || !c.Synthetic || r.CallID != c.ID || r.Name != "f" {
			t.Errorf("%+v does not match %+v", c, r)
		}
		ids[c.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("ids %v", ids)
	}
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	sameJSON(t, string(m["tools"]), `[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}]`)
	sameJSON(t, string(m["tool_choice"]), `{"type":"function","function":{"name":"f"}}`)
	for _, key := range []string{"functions", "function_call"} {
		if m[key] != nil {
			t.Errorf("%s: %s", key, m[key])
		}
	}
	ms := elements(t, m["messages"])
	c := req.Messages[1].ToolCalls()[0]
	sameJSON(t, ms[1], `{"role":"assistant","content":null,"tool_calls":[{"id":"`+c.ID+`","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`)
	sameJSON(t, ms[2], `{"role":"tool","tool_call_id":"`+c.ID+`","content":"one"}`)
	// The unchanged request keeps its bytes.
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || !strings.Contains(string(enc.Body), `"functions"`) {
		t.Errorf("%s, %v", enc.Body, err)
	}
}

func TestLegacy_FunctionCallIsACall(t *testing.T) {
	resp, _ := message(t, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":{"a":1}}}`, `"function_call"`)
	got := calls(resp)
	if len(got) != 1 || got[0].Name != "f" || got[0].Arguments != `{"a":1}` || !got[0].Synthetic || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%+v", resp)
	}
}

func TestLiftErrors_OnlyOnRequest(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"ERROR: no"}]}`
	for _, lift := range []bool{false, true} {
		req, rep, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{LiftErrors: lift})
		if err != nil {
			t.Fatal(err)
		}
		r := req.Messages[1].Parts[0].(*dragoman.ToolResult)
		if lift != (r.Outcome == codes.OutcomeError) || lift != (r.Text() == "no") {
			t.Errorf("lift %v: %+v", lift, r)
		}
		if lift {
			lost(t, rep, dragoman.Moved, "error flag")
		} else {
			lossless(t, rep)
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(enc.Body), `"content":"ERROR: no"`)
	}
}

func TestToolResultName_ComesFromTheCall(t *testing.T) {
	turn := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{ptr(call("a", "f", "{}"))}}
	ms, _ := messages(t, caps(targets.Capabilities{ToolResultName: true}), turn, dragoman.ToolResults(&dragoman.ToolResult{CallID: "a", Name: "f", Content: []dragoman.Part{text("x")}}))
	sameJSON(t, ms[1], `{"role":"tool","name":"f","tool_call_id":"a","content":"x"}`)
	// A decoded result has no tool name; it comes from the call.
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Target: caps(targets.Capabilities{ToolResultName: true})})
	has(t, elements(t, m["messages"])[1], `"name":"f"`)
}

func TestQuirkG9_SecondReasoningFieldDoesNotLeak(t *testing.T) {
	o := dialect.DecodeOptions{Origin: dragoman.Origin{Provider: "chutes"}}
	resp, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"x","reasoning":"think","reasoning_content":"think"},"finish_reason":"stop"}]}`), o)
	if err != nil {
		t.Fatal(err)
	}
	req := &dragoman.Request{Model: "m", Messages: resp.Output}
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Target: targets.Target{Provider: "openai"}})
	sameJSON(t, elements(t, m["messages"])[0], `{"role":"assistant","content":"x"}`)
	m, _ = encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true, Target: targets.Target{Provider: "chutes"}})
	sameJSON(t, elements(t, m["messages"])[0], `{"role":"assistant","content":"x","reasoning":"think","reasoning_content":"think"}`)
}

func TestQuirkD20_MergedFieldsAreWrittenOnce(t *testing.T) {
	x := func(v string) *dragoman.Extra {
		return &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: "/x", Value: json.RawMessage(v)}, {Path: "/same", Value: json.RawMessage(`1`)}}}
	}
	ms, rep := messages(t, targets.Target{},
		dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("a")}, Extra: x(`"first"`)},
		dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("b")}, Extra: x(`"second"`)},
	)
	sameJSON(t, ms[0], `{"role":"assistant","content":"a\n\nb","x":"first","same":1}`)
	if l := lost(t, rep, dragoman.Dropped, "this field only once"); l.Path != "/messages/1/x" {
		t.Errorf("reported at %q", l.Path)
	}
}

func TestNames_AliasesAreReversed(t *testing.T) {
	enc, err := codec.EncodeRequest(request(func(r *dragoman.Request) {
		r.Tools = []dragoman.ToolSpec{fn("calendar.add"), {Namespace: "crm", Name: "list"}}
	}), dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range [][2]string{{"", "calendar.add"}, {"crm", "list"}} {
		wire := enc.Registry.WireName(id[0], id[1])
		has(t, string(enc.Body), `"`+wire+`"`)
		o := dialect.DecodeOptions{Registry: enc.Registry}
		whole, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"`+wire+`","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), o)
		if err != nil {
			t.Fatal(err)
		}
		st := decodeStream(t, o, stream(`"tool_calls"`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"`+wire+`","arguments":"{}"}}]}`))
		for _, r := range []*dragoman.Response{whole, st.resp} {
			c := r.ToolCalls()[0]
			if c.Namespace != id[0] || c.Name != id[1] {
				t.Errorf("%q was decoded as %q", wire, c.QualifiedName())
			}
		}
	}
}

func TestBothUserFieldsAreKept(t *testing.T) {
	for _, fields := range []string{`"user":"u","safety_identifier":"s"`, `"safety_identifier":"s","user":"u"`} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+fields+`}`)
		if req.User != "s" {
			t.Errorf("%s: user %q", fields, req.User)
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(enc.Body), `"user":"u"`) || !strings.Contains(string(enc.Body), `"safety_identifier":"s"`) {
			t.Errorf("%s became %s", fields, enc.Body)
		}
	}
}

func TestToolChoiceOverridesFunctionCall(t *testing.T) {
	for _, fields := range []string{`"function_call":"auto","tool_choice":"none"`, `"tool_choice":"none","function_call":"auto"`} {
		req, rep, err := codec.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],`+fields+`}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if req.ToolChoice == nil || req.ToolChoice.Mode != dragoman.ChoiceNone || len(rep.Losses) == 0 {
			t.Errorf("%s: %+v\n%s", fields, req.ToolChoice, rep.String())
		}
	}
}

func TestLoweredDeveloperMessageIsReported(t *testing.T) {
	m := dragoman.Message{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{text("be brief")}}
	list, rep := messages(t, caps(targets.Capabilities{NoDeveloperRole: true}), m)
	has(t, list[0], `"role":"system"`)
	if l := lost(t, rep, dragoman.Lowered, "developer"); l.Severity != dragoman.Info || l.Path != "/messages/0/role" {
		t.Errorf("%+v", l)
	}
	_, rep = messages(t, targets.Target{}, m)
	lossless(t, rep)
}

// A gateway may request usage that its client does not want.
func TestStreamUsageOverridesClientOptions(t *testing.T) {
	for options, want := range map[string]string{
		`{"include_usage":false}`:                        `{"include_usage":true}`,
		`{"include_usage":null,"x":1}`:                   `{"include_usage":true,"x":1}`,
		`{"include_usage":true,"include_obfuscation":0}`: `{"include_usage":true,"include_obfuscation":0}`,
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":`+options+`}`)
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{})
		sameJSON(t, string(m["stream_options"]), options)
		req.StreamUsage = true
		m, _ = encodeRequest(t, req, dialect.EncodeOptions{})
		sameJSON(t, string(m["stream_options"]), want)
	}
}
