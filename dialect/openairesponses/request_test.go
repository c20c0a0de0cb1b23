package openairesponses

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/google/go-cmp/cmp"
)

func decodeRequest(t testing.TB, body string) *dragoman.Request {
	t.Helper()
	req, _, err := Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func encodeRequest(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (map[string]any, dragoman.Report) {
	t.Helper()
	enc, err := Codec{}.EncodeRequest(req, o)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(enc.Body, &v); err != nil {
		t.Fatalf("%v\n%s", err, enc.Body)
	}
	return v, enc.Report
}

func reported(r dragoman.Report, kind dragoman.LossKind, path string) bool {
	for _, l := range r.Losses {
		if l.Kind == kind && l.Path == path {
			return true
		}
	}
	return false
}

// at walks a decoded document: at(v, "input", 0, "role").
func at(v any, path ...any) any { return codectest.At(v, path...) }

func user(text string) dragoman.Message { return dragoman.UserText(text) }

func TestUnchangedRequestKeepsItsBytes(t *testing.T) {
	body := "{ \"model\" : \"a\\/b\",\n \"input\":[{\"content\":\"x\",\"role\":\"user\"}],\"z\":1.0}"
	req := decodeRequest(t, body)
	enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || string(enc.Body) != body {
		t.Fatalf("%v: %s", err, enc.Body)
	}
	req.Model = "other"
	enc, _ = Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if want := strings.Replace(body, `"a\/b"`, `"other"`, 1); string(enc.Body) != want {
		t.Errorf("got %s, want %s", enc.Body, want)
	}
}

func TestEditedRequestKeepsUnchangedItems(t *testing.T) {
	item := `{"content" : "x","role":"user"}`
	call := `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":" {} ","status":"completed"}`
	req := decodeRequest(t, `{"model":"m","input":[`+item+`,`+call+`]}`)
	req.Messages = append(req.Messages, user("more"))
	enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(enc.Body), item+","+call) {
		t.Errorf("items changed: %s", enc.Body)
	}
}

func TestRequestFieldsAreDecoded(t *testing.T) {
	req := decodeRequest(t, `{"model":"m","input":"hi","instructions":"i","max_output_tokens":99,"temperature":1.0,"top_p":0.10,"store":false,
		"previous_response_id":"resp_0","metadata":{"b":"2","a":"1"},"user":"u","prompt_cache_key":"k","service_tier":"flex","stream":true,
		"parallel_tool_calls":false,"text":{"format":{"type":"json_object"},"verbosity":"low"},"reasoning":{"effort":"high","summary":"auto","context":"all_turns"},
		"include":["reasoning.encrypted_content"],"background":true,"tools":[{"type":"function","name":"f"}],"tool_choice":"required"}`)
	if req.MaxOutputTokens == nil || *req.MaxOutputTokens != 99 || *req.Sampling.Temperature != "1.0" || *req.Sampling.TopP != "0.10" ||
		*req.Store || req.PreviousResponseID != "resp_0" || req.User != "u" || req.CacheKey != "k" || req.ServiceTier != "flex" || !req.Stream ||
		*req.ParallelToolCalls || req.Output.Kind != codes.OutputJSON || req.Verbosity != "low" || req.Reasoning.Effort != "high" ||
		req.Reasoning.Summary != "auto" || !*req.Reasoning.Encrypted || req.ToolChoice.Mode != dragoman.ChoiceRequired {
		t.Errorf("%+v", req)
	}
	if diff := cmp.Diff([]dragoman.KeyValue{{Key: "b", Value: "2"}, {Key: "a", Value: "1"}}, req.Metadata); diff != "" {
		t.Error(diff)
	}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if at(v, "user") != "u" || at(v, "safety_identifier") != nil || at(v, "background") != true || at(v, "reasoning", "context") != "all_turns" {
		t.Errorf("%v", v)
	}
}

func TestNullAndEmptyFieldsAreKeptUntilSet(t *testing.T) {
	body := `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}],"temperature":null,"tools":[],"text":{},"reasoning":{},"metadata":{},"stream":false,"include":[],"store":null}`
	req := decodeRequest(t, body)
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	var want map[string]any
	_ = json.Unmarshal([]byte(body), &want)
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
	n := dragoman.Number("0.5")
	req.Sampling.Temperature, req.Stream, req.Verbosity = &n, true, "high"
	v, _ = encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if at(v, "temperature") != 0.5 || at(v, "stream") != true || at(v, "text", "verbosity") != "high" {
		t.Errorf("%v", v)
	}
}

func TestQuirkB28_ResultsUseTheCallID(t *testing.T) {
	req := decodeRequest(t, `{"model":"m","input":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"ok"}]}`)
	c := req.Messages[0].Parts[0].(*dragoman.ToolCall)
	r := req.Messages[1].Parts[0].(*dragoman.ToolResult)
	if c.ID != "call_1" || c.ItemID != "fc_1" || r.CallID != "call_1" || r.Name != "f" {
		t.Errorf("call %+v, result %+v", c, r)
	}
}

// turn returns a decoded response, to be sent back.
func turn(origin *dragoman.Origin) []dragoman.Message {
	resp, _, err := Codec{}.DecodeResponse([]byte(`{"id":"resp_1","model":"m","status":"completed","output":[
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
		{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"s"}]},
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"t","annotations":[]}]},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"},
		{"type":"web_search_call","id":"ws_1","status":"completed"}]}`), dialect.DecodeOptions{Origin: *origin})
	if err != nil {
		panic(err)
	}
	return append([]dragoman.Message{user("hi")}, resp.Output...)
}

func types(v map[string]any) (out []string) {
	for _, it := range at(v, "input").([]any) {
		s := at(it, "type").(string)
		if id, ok := at(it, "id").(string); ok {
			s += " " + id
		}
		if _, ok := at(it, "status").(string); ok {
			s += " status"
		}
		out = append(out, s)
	}
	return out
}

func TestQuirkD28_IDsAndReasoningFollowStoreAndOrigin(t *testing.T) {
	home := dragoman.Origin{Provider: "openai", Scope: "acct"}
	here := targets.Target{Provider: "openai", Scope: "acct"}
	yes := true
	for _, c := range []struct {
		name   string
		origin dragoman.Origin
		target targets.Target
		store  *bool
		want   []string
		lost   int
	}{
		{
			"stored in the same account: everything unchanged", home, here, &yes,
			[]string{"message", "reasoning rs_1", "reasoning rs_2", "message msg_1 status", "function_call fc_1 status", "web_search_call ws_1 status"},
			0,
		},
		{
			"stateless: no ids except for encrypted reasoning", home, here, nil,
			[]string{"message", "reasoning rs_1", "message", "function_call", "web_search_call ws_1 status"},
			1,
		},
		{
			"another account: no reasoning", home,
			targets.Target{Provider: "openai", Scope: "other"},
			&yes,
			[]string{"message", "message", "function_call", "web_search_call ws_1 status"},
			2,
		},
		{
			"another provider: no hosted items", home,
			targets.Target{Provider: "lmstudio"},
			nil,
			[]string{"message", "message", "function_call"},
			3,
		},
		{
			"unknown origin: no stored items",
			dragoman.Origin{},
			targets.Target{},
			&yes,
			[]string{"message", "reasoning rs_1", "message", "function_call", "web_search_call ws_1 status"},
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &dragoman.Request{Model: "m", Messages: turn(&c.origin), Store: c.store}
			for _, rebuild := range []bool{false, true} {
				v, rep := encodeRequest(t, req, dialect.EncodeOptions{Target: c.target, Rebuild: rebuild})
				if diff := cmp.Diff(c.want, types(v)); diff != "" {
					t.Errorf("rebuild %v: %s", rebuild, diff)
				}
				lost := 0
				for _, l := range rep.Losses {
					if l.Kind == dragoman.Dropped {
						lost++
					}
				}
				if lost != c.lost {
					t.Errorf("%d losses, want %d: %v", lost, c.lost, rep)
				}
			}
		})
	}
}

func TestQuirkD27_ItemsAfterReasoningKeepTheirOrder(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: turn(&dragoman.Origin{Provider: "openai", Scope: "a"})}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Target: targets.Target{Provider: "openai", Scope: "a"}})
	if at(v, "input", 1, "type") != "reasoning" || at(v, "input", 2, "type") != "message" || at(v, "input", 2, "phase") != "commentary" {
		t.Errorf("%v", v)
	}
}

func TestQuirkD29_PreviousResponseIDIsKept(t *testing.T) {
	req := &dragoman.Request{Model: "m", PreviousResponseID: "resp_9", Messages: []dragoman.Message{user("x")}}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "previous_response_id") != "resp_9" {
		t.Errorf("%v", v)
	}
}

func TestQuirkD36_OutputSchemaRequiresJSON(t *testing.T) {
	req := &dragoman.Request{
		Model: "m",
		Tools: []dragoman.ToolSpec{{Name: "f", OutputSchema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []dragoman.Message{
			user("x"),
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "1", Name: "f"}, &dragoman.ToolCall{ID: "2", Name: "f"}}},
			dragoman.ToolResults(
				&dragoman.ToolResult{CallID: "1", Outcome: codes.OutcomeError, Content: []dragoman.Part{&dragoman.Text{Text: "boom"}}},
				&dragoman.ToolResult{CallID: "2", Content: []dragoman.Part{&dragoman.Data{JSON: json.RawMessage(`{"a":1}`)}}}),
		},
	}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "input", 3, "output") != `"ERROR: boom"` || at(v, "input", 4, "output") != `{"a":1}` {
		t.Errorf("%v", v["input"])
	}
}

func TestQuirkD35_EmptyOutputIsAnEmptyString(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "1", Name: "f"}}},
		dragoman.ToolResults(&dragoman.ToolResult{CallID: "1"}),
	}}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if out, ok := at(v, "input", 1, "output").(string); !ok || out != "" || at(v, "input", 1, "role") != nil {
		t.Errorf("%v", v["input"])
	}
}

func TestOutputWithoutCallID(t *testing.T) {
	req := decodeRequest(t, `{"model":"m","input":[{"type":"function_call_output","name":"injected","output":"x"}]}`)
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if _, has := at(v, "input", 0).(map[string]any)["call_id"]; has || at(v, "input", 0, "name") != "injected" {
		t.Errorf("%v", v)
	}
}

func TestQuirkA25_StrictIsExplicit(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Name: "f"}}}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "tools", 0, "strict") != false {
		t.Errorf("%v", v["tools"])
	}
}

func TestQuirkE1_ToolChoicesRoundTrip(t *testing.T) {
	for _, choice := range []string{
		`"none"`, `"auto"`, `"required"`, `"somehow"`, `{"type":"function","name":"f"}`, `{"type":"custom","name":"c"}`,
		`{"type":"mcp","server_label":"docs","name":"search"}`, `{"type":"file_search"}`, `{"type":"web_search_preview"}`,
		`{"type":"computer"}`, `{"type":"shell"}`, `{"type":"apply_patch"}`,
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"custom","name":"c"},{"type":"mcp","server_label":"d"}]}`,
		`{"type":"allowed_tools","mode":"auto","tools":[]}`,
	} {
		req := decodeRequest(t, `{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"custom","name":"c"}],"tool_choice":`+choice+`}`)
		v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
		var want any
		_ = json.Unmarshal([]byte(choice), &want)
		if diff := cmp.Diff(want, v["tool_choice"]); diff != "" {
			t.Errorf("%s: %s", choice, diff)
		}
	}
}

func TestQuirkE3_NoToolsNoFlags(t *testing.T) {
	no := false
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{user("x")}, ParallelToolCalls: &no,
		ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired},
		Tools:      []dragoman.ToolSpec{{Kind: codes.ToolHosted, Name: "bash", Source: &dragoman.ToolSource{Format: "anthropic.messages.bash_20250124", JSON: json.RawMessage(`{}`)}}},
	}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if v["tools"] != nil || v["tool_choice"] != nil || v["parallel_tool_calls"] != nil {
		t.Errorf("%v", v)
	}
	for _, path := range []string{"/tools/0", "/tool_choice", "/parallel_tool_calls"} {
		if !reported(rep, dragoman.Dropped, path) {
			t.Errorf("%s is not reported: %v", path, rep)
		}
	}
}

func TestQuirkE3_ToolsFromAnItemCountAsTools(t *testing.T) {
	req := decodeRequest(t, `{"model":"m","tool_choice":"required","input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"late"}]}]}`)
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if v["tool_choice"] != "required" {
		t.Errorf("%v", v)
	}
}

func TestQuirkE5_ToolChoiceOfUnsentToolIsAnError(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Name: "f"}},
		ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "gone"}}},
	}
	if _, err := (Codec{}).EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestNamespacedAndDeferredToolsCannotBeForced(t *testing.T) {
	for _, spec := range []dragoman.ToolSpec{{Namespace: "crm", Name: "orders"}, {Name: "orders", Deferred: true}} {
		req := &dragoman.Request{
			Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{spec},
			ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Namespace: spec.Namespace, Name: spec.Name}}},
		}
		v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
		if v["tool_choice"] != "required" || !reported(rep, dragoman.Lowered, "/tool_choice") {
			t.Errorf("%v %v", v["tool_choice"], rep)
		}
		v, _ = encodeRequest(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoNamespaces: true, NoDeferred: true}}})
		if at(v, "tool_choice", "type") != "function" || at(v, "tool_choice", "name") != at(v, "tools", 0, "name") {
			t.Errorf("flattened: %v", v)
		}
	}
}

func TestDeferredToolHasNoNamespace(t *testing.T) {
	body := `{"model":"m","tools":[{"type":"function","name":"late","defer_loading":true}],"input":[{"type":"function_call","call_id":"c","namespace":"late","name":"late","arguments":"{}"}]}`
	req := decodeRequest(t, body)
	if c := req.Messages[0].Parts[0].(*dragoman.ToolCall); c.Namespace != "" || c.Name != "late" {
		t.Errorf("%+v", c)
	}
	v, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	if at(v, "input", 0, "namespace") != "late" {
		t.Errorf("%v", v)
	}
}

func TestStoreFalseIsExplicitForOtherDialects(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if v["store"] != false || !reported(rep, dragoman.Synthesized, "/store") {
		t.Errorf("%v %v", v, rep)
	}
	v, _ = encodeRequest(t, decodeRequest(t, `{"model":"m","input":"x"}`), dialect.EncodeOptions{Rebuild: true})
	if _, has := v["store"]; has {
		t.Error("a native request got a store field")
	}
}

func TestQuirkB36_EmptyAssistantMessageIsDropped(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x"), {Role: dragoman.RoleAssistant}}}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if len(v["input"].([]any)) != 1 || !reported(rep, dragoman.Dropped, "/messages/1") {
		t.Errorf("%v %v", v, rep)
	}
}

func TestQuirkB26_HostedCallsOfOtherProvidersAreDropped(t *testing.T) {
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
		&dragoman.Text{Text: "t"}, &dragoman.ToolCall{ID: "srvtoolu_1", Name: "web_search", Hosted: true},
		&dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "web_search_tool_result", JSON: json.RawMessage(`{}`)},
	}}}}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if diff := cmp.Diff([]string{"message"}, types(v)); diff != "" || rep.Err(dragoman.Serious) == nil {
		t.Errorf("%s %v", diff, rep)
	}
}

func TestCacheHintsBecomeBreakpoints(t *testing.T) {
	m := user("x")
	m.Cache = &dragoman.CacheHint{TTL: "5m"}
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{m}}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "input", 0, "content", 0, "prompt_cache_breakpoint") != nil || len(rep.Losses) < 2 {
		t.Errorf("%v %v", v, rep)
	}
	v, _ = encodeRequest(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{CacheBreakpoints: true}}})
	if at(v, "input", 0, "content", 0, "prompt_cache_breakpoint", "mode") != "explicit" {
		t.Errorf("%v", v)
	}
	if m.Parts[0].(*dragoman.Text).Cache != nil {
		t.Error("encoding changed the message")
	}
}

func TestQuirkF5_OutputFormatIsFlatAndAlwaysNamed(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{user("x")},
		Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "my schema!", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	v, rep := encodeRequest(t, req, dialect.EncodeOptions{})
	if at(v, "text", "format", "name") != "my_schema_" || !reported(rep, dragoman.Renamed, "/output/name") {
		t.Errorf("%v %v", v, rep)
	}
}

func TestInvalidRequestErrorsHavePointers(t *testing.T) {
	for _, c := range []struct{ body, pointer string }{
		{`{"model":5}`, "/model"},
		{`{"input":{"a":1}}`, "/input"},
		{`{"input":["x",{"type":"message","role":"user","content":{}}]}`, "/input/1/content"},
		{`{"tools":[{"type":"function","name":[]}]}`, "/tools/0/name"},
		{`{"model":"m"`, ""},
		{`[]`, ""},
		{`{"model":"m"} x`, ""},
	} {
		_, _, err := Codec{}.DecodeRequest([]byte(c.body), dialect.DecodeOptions{})
		var d *dragoman.DecodeError
		if !errors.As(err, &d) {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		if d.Pointer != c.pointer {
			t.Errorf("%s: at %q, want %q (%v)", c.body, d.Pointer, c.pointer, err)
		}
		if d.Pointer != "" && (d.Offset < 0 || d.Offset > int64(len(c.body))) {
			t.Errorf("%s: offset %d", c.body, d.Offset)
		}
	}
	if _, _, err := (Codec{}).DecodeRequest(make([]byte, 11), dialect.DecodeOptions{MaxBytes: 10}); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestQuirkB29_UnknownItemsAreOpaque(t *testing.T) {
	req := decodeRequest(t, `{"input":[{"type":"shell_call","call_id":"call_s","action":{}},{"type":"shell_call_output","call_id":"call_s","output":[]},
		{"type":"mcp_approval_request","id":"mcpr_1"},{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},
		{"type":"additional_tools","tools":[]},{"type":"compaction_trigger"}]}`)
	want := []struct {
		role dragoman.Role
		id   string
	}{{dragoman.RoleAssistant, "call_s"}, {dragoman.RoleTool, "call_s"}, {dragoman.RoleAssistant, "mcpr_1"}, {dragoman.RoleTool, "mcpr_1"}, {dragoman.RoleDeveloper, ""}, {dragoman.RoleUser, ""}}
	for i, m := range req.Messages {
		o := m.Parts[0].(*dragoman.Opaque)
		if m.Role != want[i].role || o.CallID != want[i].id {
			t.Errorf("%s: role %s, call %q", o.Type, m.Role, o.CallID)
		}
	}
}

func TestQuirkB12_GeneratedIDsAreStable(t *testing.T) {
	body := `{"input":[{"role":"user","content":"x"},{"type":"function_call","name":"f","arguments":"{}"}]}`
	a := decodeRequest(t, body).Messages[1].Parts[0].(*dragoman.ToolCall)
	b := decodeRequest(t, strings.Replace(body, "]", `,{"role":"user","content":"y"}]`, 1)).Messages[1].Parts[0].(*dragoman.ToolCall)
	if !a.Synthetic || a.ID == "" || a.ID != b.ID {
		t.Errorf("%q and %q", a.ID, b.ID)
	}
}

func TestMessageItemNeedsRole(t *testing.T) {
	for item, want := range map[string]struct{ pointer, text string }{
		`{"type":"message","content":"a"}`:             {"/input/0", "has no role"},
		`{"type":"message","role":null,"content":"a"}`: {"/input/0", "has no role"},
		`{"role":"","content":"a"}`:                    {"/input/0", "has no role"},
		`{"type":"message","role":5,"content":"a"}`:    {"/input/0/role", "want a string"},
		`{"role":5,"content":"a"}`:                     {"/input/0/role", "want a string"},
		`{"role":{},"content":"a"}`:                    {"/input/0/role", "want a string"},
	} {
		_, _, err := Codec{}.DecodeRequest([]byte(`{"model":"m","input":[`+item+`]}`), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || at.Pointer != want.pointer || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", item, err)
		}
	}
	// Responses may omit the role, because their messages are always from the assistant.
	resp, _, err := Codec{}.DecodeResponse([]byte(`{"id":"r","status":"completed","output":[{"type":"message","content":"a"}]}`), dialect.DecodeOptions{})
	if err != nil || resp.Output[0].Role != dragoman.RoleAssistant {
		t.Errorf("%v %+v", err, resp)
	}
}

func TestItemWithoutTypeIsNamedInLosses(t *testing.T) {
	req, _, err := Codec{}.DecodeRequest([]byte(`{"model":"m","input":[{"content":"a"},{"role":"user","content":"q"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req.Messages[0].Parts[0].(*dragoman.Opaque).Dialect = "other"
	req.Messages[0].Native = nil
	enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := enc.Report.Losses[0].Detail; got != "a block without a type of other is not valid in this dialect" {
		t.Errorf("%q", got)
	}
}
