package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
)

// field returns the value at a path of field names and indexes.
func field(v any, path ...any) any { return codectest.At(v, path...) }

func js(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// bodyLosses returns the losses except those of settings in the URL.
func bodyLosses(rep dragoman.Report) []dragoman.Loss {
	return slices.DeleteFunc(slices.Clone(rep.Losses), func(l dragoman.Loss) bool { return l.Path == "/model" || l.Path == "/stream" })
}

func TestURLSettingsAreNotInBody(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Stream, req.StreamUsage = true, true
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if got := string(enc.Body); got != `{"messages":[{"role":"user","content":[{"text":"q"}]}]}` || len(enc.Report.Losses) != 2 {
		t.Errorf("%s\n%s", got, enc.Report)
	}
	has(t, enc.Report, dragoman.Moved, "/model")
	has(t, enc.Report, dragoman.Moved, "/stream")
}

func TestModelInBodyFollowsRequest(t *testing.T) {
	const body = `{"modelId": "a", "messages":[ {"role":"user","content":[{"text":"q"}]}]}`
	req := decode(t, body)
	if req.Model != "a" {
		t.Errorf("model %q", req.Model)
	}
	if _, enc := encode(t, req, dialect.EncodeOptions{}); string(enc.Body) != body {
		t.Errorf("unchanged: %s", enc.Body)
	}
	req.Model = "b"
	if _, enc := encode(t, req, dialect.EncodeOptions{}); string(enc.Body) != strings.Replace(body, `"a"`, `"b"`, 1) {
		t.Errorf("another model: %s", enc.Body)
	}
	if v, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true}); v["modelId"] != "b" {
		t.Errorf("rebuilt: %v", v)
	}
}

// everything is a request with every field of the wire.
const everything = `{"modelId":"m",
 "system":[{"text":"terse"},{"cachePoint":{"type":"default","ttl":"1h"}},{"guardContent":{"text":{"text":"g"}}}],
 "messages":[
  {"role":"user","content":[{"text":"q"},{"image":{"format":"png","source":{"bytes":"AAEC"}}},{"cachePoint":{"type":"default"}},
    {"document":{"name":"a paper (1)","format":"pdf","source":{"s3Location":{"uri":"s3://b/k","bucketOwner":"1"}},"citations":{"enabled":true}}},
    {"document":{"name":"c","format":"txt","source":{"content":[{"text":"x"}]}}},
    {"video":{"format":"three_gp","source":{"bytes":"AAEC"}}},{"audio":{"format":"wav","source":{"bytes":"AAEC"}}},
    {"searchResult":{"source":"s","title":"t","content":[{"text":"x"}]}},{"unheardOf":{"x":[1.0]}}]},
  {"role":"assistant","content":[
    {"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"AAEC"}},
    {"citationsContent":{"content":[{"text":"as it "},{"text":"says"}],"citations":[{"title":"t"}]}},
    {"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use","input":{"q":1}}},
    {"toolResult":{"toolUseId":"s1","type":"nova_grounding_result","content":[{"text":"f"}]}},
    {"toolUse":{"toolUseId":"t1","name":"f","input":{"b":1,"a":1.0}}},{"cachePoint":{"type":"default"}}]},
  {"role":"user","content":[
    {"toolResult":{"toolUseId":"t1","status":"success","content":[{"json":{"z":1,"a":2}},{"text":"ok"},{"image":{"format":"jpeg","source":{"bytes":"AAEC"}}}]}},
    {"text":"go on"}],"note":1}],
 "inferenceConfig":{"maxTokens":5000,"temperature":0.50,"topP":1,"stopSequences":["X"],"topQ":1},
 "toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","strict":true,"inputSchema":{"json":{"type":"object","properties":{"b":{"type":"number"}},"required":["b"],"additionalProperties":false}},"new":1}},
   {"cachePoint":{"type":"default"}},{"systemTool":{"name":"nova_grounding"}}],"toolChoice":{"tool":{"name":"f"}},"later":true},
 "outputConfig":{"effort":"high","textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"n","description":"d","schema":"{\"type\":\"object\"}"}}},"x":1},
 "additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized","y":1},"top_k":5,"anthropic_beta":["b"]},
 "additionalModelResponseFieldPaths":["/stop_sequence"],
 "guardrailConfig":{"guardrailIdentifier":"g"},"performanceConfig":{"latency":"optimized"},"promptVariables":{"v":{"text":"x"}},
 "requestMetadata":{"k":"v","a":"b"},"serviceTier":{"type":"flex"},"unheardOf":null}`

func TestEveryFieldSurvivesRebuild(t *testing.T) {
	req, rep, err := codec.DecodeRequest([]byte(everything), dialect.DecodeOptions{})
	if err != nil || len(rep.Losses) > 0 {
		t.Fatal(err, rep)
	}
	if _, enc := encode(t, req, dialect.EncodeOptions{}); string(enc.Body) != everything {
		t.Errorf("not byte-identical:\n%s", enc.Body)
	}
	got, enc := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	want := codectest.JSON[any](t, []byte(everything))
	if js(got) != js(want) || len(bodyLosses(enc.Report)) > 0 {
		t.Errorf("%s\n%s\n%s", js(want), js(got), enc.Report)
	}
}

func TestDecodeEveryField(t *testing.T) {
	req := decode(t, everything)
	m := req.Messages
	calls := m[1].ToolCalls()
	res := m[2].Parts[0].(*dragoman.ToolResult)
	for what, got := range map[string]any{
		"system":        req.Instructions[0].(*dragoman.Text).Cache.TTL == "1h" && req.Instructions[1].(*dragoman.Opaque).Type == "guardContent",
		"image":         m[0].Parts[1].(*dragoman.Media).MIME == "image/png" && m[0].Parts[1].(*dragoman.Media).Cache != nil,
		"document":      m[0].Parts[2].(*dragoman.Media).URL == "s3://b/k" && m[0].Parts[2].(*dragoman.Media).Name == "a paper (1)",
		"video":         m[0].Parts[4].(*dragoman.Media).MIME == "video/3gpp",
		"reasoning":     m[1].Parts[0].(*dragoman.Reasoning).Signature == "c2ln" && m[1].Parts[1].(*dragoman.Reasoning).Redacted,
		"cited text":    m[1].Parts[2].(*dragoman.Text).Text == "as it says",
		"hosted":        m[1].Parts[3].(*dragoman.Opaque).CallID == "s1" && m[1].Parts[4].(*dragoman.Opaque).CallID == "s1",
		"call":          len(calls) == 1 && calls[0].ID == "t1" && calls[0].Arguments == `{"b":1,"a":1.0}` && calls[0].Cache != nil,
		"result":        res.Outcome == codes.OutcomeOK && string(res.Content[0].(*dragoman.Data).JSON) == `{"z":1,"a":2}`,
		"mixed message": m[2].Role == dragoman.RoleUser,
		"numbers":       *req.MaxOutputTokens == 5000 && *req.Sampling.Temperature == "0.50" && req.Sampling.Stop[0] == "X",
		"tool":          req.Tools[0].Name == "f" && req.Tools[0].Strict == codes.StrictOn && req.Tools[0].Cache != nil,
		"hosted tool":   req.Tools[1].Kind == codes.ToolHosted && req.Tools[1].Name == "nova_grounding",
		"choice":        req.ToolChoice.Mode == dragoman.ChoiceTool && req.ToolChoice.Tools[0].Name == "f",
		"output":        req.Output.Name == "n" && string(req.Output.Schema) == `{"type":"object"}`,
		"thinking":      req.Reasoning.Mode == codes.ReasoningAdaptive && req.Reasoning.Effort == "high" && req.Reasoning.Summary == "auto",
		"metadata":      len(req.Metadata) == 2 && req.Metadata[0].Key == "k",
		"tier":          req.ServiceTier == "flex",
	} {
		if got != true {
			t.Errorf("%s is not decoded", what)
		}
	}
}

func TestQuirkD12_ErrorFlagIsStatus(t *testing.T) {
	for status, want := range map[string]string{
		`,"status":"error"`: codes.OutcomeError, `,"status":"success"`: codes.OutcomeOK, ``: codes.OutcomeOK, `,"status":"incomplete"`: codes.OutcomeUnknown,
	} {
		body := `{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"text":"x"}]` + status + `}}]}]}`
		req := decode(t, body)
		if got := req.Messages[0].Parts[0].(*dragoman.ToolResult).Outcome; got != want || req.Messages[0].Role != dragoman.RoleTool {
			t.Errorf("%s: %q", status, got)
		}
		v, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
		if js(field(v, "messages")) != js(field(codectest.JSON[any](t, []byte(body)), "messages")) {
			t.Errorf("%s: %s", status, js(v))
		}
	}
	failed := result("t", "x")
	failed.Outcome = codes.OutcomeError
	v, _ := encode(t, requestOf(newMessage(dragoman.RoleAssistant, call("t", "f", "")), dragoman.ToolResults(failed)), dialect.EncodeOptions{})
	if got := field(v, "messages", 2, "content", 0, "toolResult", "status"); got != "error" {
		t.Errorf("%s", js(v))
	}
}

func TestQuirkD11_EmptyOutputGetsText(t *testing.T) {
	for name, content := range map[string][]dragoman.Part{"none": nil, "blank": {&dragoman.Text{Text: " \n"}}} {
		res := &dragoman.ToolResult{CallID: "t", Content: content}
		v, enc := encode(t, requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("t", "f", "")), dragoman.ToolResults(res)), dialect.EncodeOptions{})
		if got := js(field(v, "messages", 2, "content", 0, "toolResult", "content")); got != `[{"text":"(no output)"}]` {
			t.Errorf("%s: %s", name, got)
		}
		has(t, enc.Report, dragoman.Synthesized, "/messages/2/parts/0")
	}
}

func TestResultJSONMustBeObject(t *testing.T) {
	res := &dragoman.ToolResult{CallID: "t", Content: []dragoman.Part{
		&dragoman.Data{JSON: json.RawMessage(`{"a":1}`)}, &dragoman.Data{JSON: json.RawMessage(`[1]`)}, &dragoman.Data{JSON: json.RawMessage(`"s"`)},
		&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AAEC"},
	}}
	v, _ := encode(t, requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("t", "f", "")), dragoman.ToolResults(res)), dialect.EncodeOptions{})
	want := `[{"json":{"a":1}},{"text":"[1]"},{"text":"\"s\""},{"image":{"format":"png","source":{"bytes":"AAEC"}}}]`
	if got := js(field(v, "messages", 2, "content", 0, "toolResult", "content")); got != want {
		t.Errorf("%s", got)
	}
}

func TestQuirkA32_EmptyDescriptionIsOmitted(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{tool("f"), {Name: "g"}}
	v, _ := encode(t, req, dialect.EncodeOptions{})
	want := `{"tools":[{"toolSpec":{"inputSchema":{"json":{"properties":{},"type":"object"}},"name":"f"}},{"toolSpec":{"inputSchema":{"json":{"properties":{},"type":"object"}},"name":"g"}}]}`
	if got := js(v["toolConfig"]); got != want {
		t.Error(got)
	}
}

// A response may contain a name that the model made up. The API would refuse it
// if the response were sent back unchanged.
func TestQuirkA33_NamesInHistoryAreAliased(t *testing.T) {
	resp := decodeResponse(t, responseBody("tool_use", `[{"toolUse":{"toolUseId":"t1","name":"$READ<|x|>","input":{}}},{"toolUse":{"toolUseId":"t2","name":"","input":{}}}]`))
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(result("t1", "no"), result("t2", "no")))
	v, enc := encode(t, req, dialect.EncodeOptions{})
	for i := range 2 {
		name, _ := field(v, "messages", 1, "content", i, "toolUse", "name").(string)
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q\n%s", name, enc.Body)
		}
	}
}

func TestRefusedResponseIsNotReplayed(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"blank text":        {`[{"text":"\n"},{"text":"a"}]`, `[{"text":"a"}]`},
		"list as arguments": {`[{"toolUse":{"toolUseId":"t","name":"f","input":[1]}}]`, `[{"toolUse":{"input":{"_raw":[1]},"name":"f","toolUseId":"t"}}]`},
		"unsigned thinking": {`[{"text":"a"},{"reasoningContent":{"reasoningText":{"text":"hm"}}}]`, `[{"text":"a"}]`},
		"missing id":        {`[{"toolUse":{"name":"f","input":{}}}]`, `[{"toolUse":{"input":{},"name":"f","toolUseId":"ID"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := decodeResponse(t, responseBody("tool_use", tc.content))
			req := requestOf(append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...)...)
			if calls := resp.ToolCalls(); len(calls) > 0 {
				req.Messages = append(req.Messages, dragoman.ToolResults(calls[0].ResultText("r")))
				tc.want = strings.Replace(tc.want, "ID", calls[0].ID, 1)
			}
			v, enc := encode(t, req, dialect.EncodeOptions{})
			if got := js(field(v, "messages", 1, "content")); got != tc.want {
				t.Errorf("%s\n%s", got, enc.Report)
			}
		})
	}
}

func TestQuirkB13_InvalidIDIsAliased(t *testing.T) {
	id := "functions.Bash:0" + strings.Repeat("x", 60)
	v, enc := encode(t, requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call(id, "f", "")), dragoman.ToolResults(result(id, "r"))), dialect.EncodeOptions{})
	use, res := field(v, "messages", 1, "content", 0, "toolUse", "toolUseId"), field(v, "messages", 2, "content", 0, "toolResult", "toolUseId")
	if use != res || len(use.(string)) > 64 || strings.ContainsAny(use.(string), ".:") {
		t.Errorf("%v %v", use, res)
	}
	back, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil || back.Messages[1].ToolCalls()[0].ID != id {
		t.Errorf("the id is not restored: %v", err)
	}
}

func TestQuirkD1D2D4D6_ResultOrder(t *testing.T) {
	v, _ := encode(t, requestOf(
		dragoman.UserText("q"),
		newMessage(dragoman.RoleAssistant, call("1", "f", ""), &dragoman.Text{Text: "calling"}, call("2", "f", "")),
		dragoman.ToolResults(result("2", "b")), dragoman.UserText("hurry"), dragoman.ToolResults(result("1", "a")), dragoman.ToolResults(result("2", "c")),
	), dialect.EncodeOptions{})
	if got := js(field(v, "messages", 1, "content")); got != `[{"text":"calling"},{"toolUse":{"input":{},"name":"f","toolUseId":"1"}},{"toolUse":{"input":{},"name":"f","toolUseId":"2"}}]` {
		t.Errorf("calls: %s", got)
	}
	want := `[{"toolResult":{"content":[{"text":"a"}],"toolUseId":"1"}},{"toolResult":{"content":[{"text":"c"}],"toolUseId":"2"}},{"text":"hurry"}]`
	if got := js(field(v, "messages", 2, "content")); got != want {
		t.Errorf("results: %s", got)
	}
}

func TestQuirkD21_ConversationWithCallsDeclaresTools(t *testing.T) {
	req := requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("1", "b.c", ""), call("2", "a", ""), call("3", "a", "")),
		dragoman.ToolResults(result("1", "r"), result("2", "r"), result("3", "r")))
	v, enc := encode(t, req, dialect.EncodeOptions{})
	tools := field(v, "toolConfig", "tools").([]any)
	if len(tools) != 2 || field(tools[1], "toolSpec", "name") != "a" || field(tools[0], "toolSpec", "name") != field(v, "messages", 1, "content", 0, "toolUse", "name") {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Synthesized, "/tools")
	resp, _, err := codec.DecodeResponse([]byte(responseBody("tool_use", `[{"toolUse":{"toolUseId":"4","name":"a","input":{}}}]`)), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil || resp.ToolCalls()[0].Problem == nil {
		t.Errorf("a stub must not be callable: %v", err)
	}
	orphan, _ := encode(t, requestOf(dragoman.UserText("q"), dragoman.ToolResults(result("1", "r"))), dialect.EncodeOptions{})
	if len(field(orphan, "toolConfig", "tools").([]any)) != 1 {
		t.Errorf("result without its call: %s", js(orphan))
	}
	plain, _ := encode(t, requestOf(dragoman.UserText("q")), dialect.EncodeOptions{})
	if plain["toolConfig"] != nil {
		t.Errorf("no calls need no tools: %s", js(plain))
	}
}

func TestQuirkE1E2E3_ToolChoice(t *testing.T) {
	history := []dragoman.Message{dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("1", "f", "")), dragoman.ToolResults(result("1", "r"))}
	named := []dragoman.ToolRef{{Name: "g"}}
	for name, tc := range map[string]struct {
		choice *dragoman.ToolChoice
		ms     []dragoman.Message
		want   string
		tools  int
		lost   bool
	}{
		"absent":             {nil, nil, "null", 2, false},
		"auto":               {&dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, nil, `{"auto":{}}`, 2, false},
		"required":           {&dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, nil, `{"any":{}}`, 2, false},
		"named":              {&dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: named}, nil, `{"tool":{"name":"g"}}`, 2, false},
		"allowed":            {&dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: named}, nil, `{"any":{}}`, 1, true},
		"none":               {&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, nil, "null", 0, true},
		"none after calls":   {&dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, history, "null", 2, true},
		"of another dialect": {&dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: "x", JSON: []byte("{}")}}, nil, "null", 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestOf(append([]dragoman.Message{dragoman.UserText("q")}, tc.ms...)...)
			req.Tools = []dragoman.ToolSpec{tool("f"), tool("g")}
			req.ToolChoice = tc.choice
			v, enc := encode(t, req, dialect.EncodeOptions{})
			tools, _ := field(v, "toolConfig", "tools").([]any)
			if got := js(field(v, "toolConfig", "toolChoice")); got != tc.want || len(tools) != tc.tools {
				t.Errorf("%s with %d tools", got, len(tools))
			}
			if tc.lost {
				if l := bodyLosses(enc.Report); len(l) == 0 || l[0].Path != "/tool_choice" {
					t.Errorf("the loss is not reported: %s", enc.Report)
				}
			} else if len(bodyLosses(enc.Report)) > 0 {
				t.Errorf("%s", enc.Report)
			}
		})
	}
}

func TestQuirkE2_CallAgainstChoiceNoneIsBlocked(t *testing.T) {
	req := requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("1", "f", "")), dragoman.ToolResults(result("1", "r")))
	req.Tools = []dragoman.ToolSpec{tool("f"), tool("g")}
	for name, tc := range map[string]struct {
		choice dragoman.ToolChoice
		want   string
	}{
		"none":     {dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, "malformed_tool_call stopped stopped"},
		"narrowed": {dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "g"}}}, "tool_calls stopped -"},
	} {
		t.Run(name, func(t *testing.T) {
			req.ToolChoice = &tc.choice
			_, enc := encode(t, req, dialect.EncodeOptions{})
			o := dialect.DecodeOptions{Registry: enc.Registry}
			summary := func(resp *dragoman.Response) string {
				out := []string{string(resp.Stop.Reason)}
				for _, c := range resp.ToolCalls() {
					if c.Problem == nil {
						out = append(out, "-")
					} else {
						out = append(out, c.Problem.Code)
					}
				}
				return strings.Join(out, " ")
			}
			resp, _, err := codec.DecodeResponse([]byte(responseBody("tool_use", `[{"toolUse":{"toolUseId":"a","name":"f","input":{}}},{"toolUse":{"toolUseId":"b","name":"g","input":{}}}]`)), o)
			if err != nil || summary(resp) != tc.want || resp.Native != nil || resp.Output[0].Native != nil {
				t.Errorf("%v %s", err, summary(resp))
			}
			evs, err := drain(o, binary(startLine+callLine(0, "a", "f")+stopLine(0)+callLine(1, "b", "g")+stopLine(1)+endLines("tool_use")))
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := codectest.Collect(evs); err != nil || summary(resp) != tc.want {
				t.Errorf("%v %s", err, summary(resp))
			}
			codectest.Reencoded(t, codec, evs)
		})
	}
}

func TestQuirkE5_MissingForcedToolIsError(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	for _, refs := range [][]dragoman.ToolRef{{{Name: "g"}}, nil, {{Name: "f"}, {Name: "f"}}} {
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: refs}
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
			t.Errorf("%v: %v", refs, err)
		}
	}
	req.ToolChoice = &dragoman.ToolChoice{Mode: "sometimes"}
	if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
	if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoTools: true}}}); !errors.Is(err, dragoman.ErrUnsupported) {
		t.Error(err)
	}
}

func TestQuirkE4_ThinkingReplacesForcedChoice(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(2000))}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if js(field(v, "toolConfig", "toolChoice")) != `{"auto":{}}` || js(v["additionalModelRequestFields"]) != `{"thinking":{"budget_tokens":2000,"type":"enabled"}}` {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Lowered, "/tool_choice")
}

func TestQuirkE4_ForcedChoiceStaysWithoutThinking(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools, req.ToolChoice, req.MaxOutputTokens = []dragoman.ToolSpec{tool("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, ptr(int64(500))
	req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(600))}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if js(field(v, "toolConfig", "toolChoice")) != `{"any":{}}` || v["additionalModelRequestFields"] != nil {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/reasoning/budget_tokens")
}

func TestQuirkD2_NoCachePointBetweenResults(t *testing.T) {
	first, second := result("a", "1"), result("b", "2")
	first.Cache = &dragoman.CacheHint{TTL: "1h"}
	req := requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("a", "f", "{}"), call("b", "f", "{}")), newMessage(dragoman.RoleTool, first, second), dragoman.UserText("more"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	content := field(v, "messages").([]any)[2].(map[string]any)["content"].([]any)
	var keys []string
	for _, b := range content {
		for key := range b.(map[string]any) {
			keys = append(keys, key)
		}
	}
	if strings.Join(keys, " ") != "toolResult toolResult cachePoint text" || !strings.Contains(string(enc.Body), `"ttl":"1h"`) {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Moved, "/messages/2/parts/0")
}

func TestBlankTextInResultIsReported(t *testing.T) {
	res := result("a", "1")
	res.Content = append(res.Content, &dragoman.Text{Text: " "})
	req := requestOf(dragoman.UserText("q"), newMessage(dragoman.RoleAssistant, call("a", "f", "{}")), newMessage(dragoman.RoleTool, res))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	has(t, enc.Report, dragoman.Dropped, "/messages/2/parts/0/content/1")
}

func TestQuirkE6_NoParallelFlag(t *testing.T) {
	for parallel, severity := range map[bool]dragoman.Severity{true: dragoman.Info, false: dragoman.Warn} {
		req := requestOf(dragoman.UserText("q"))
		req.Tools = []dragoman.ToolSpec{tool("f")}
		req.ParallelToolCalls = &parallel
		_, enc := encode(t, req, dialect.EncodeOptions{})
		if l := bodyLosses(enc.Report); len(l) != 1 || l[0].Path != "/parallel_tool_calls" || l[0].Severity != severity {
			t.Errorf("%v: %s", parallel, enc.Report)
		}
	}
}

func TestReasoningSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		s             dragoman.ReasoningSettings
		max           int64
		model, output string
	}{
		"adaptive":             {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Effort: "max"}, 0, `{"thinking":{"type":"adaptive"}}`, `{"effort":"max"}`},
		"effort only":          {dragoman.ReasoningSettings{Effort: "minimal"}, 0, `null`, `{"effort":"low"}`},
		"none":                 {dragoman.ReasoningSettings{Effort: "none"}, 0, `{"thinking":{"type":"disabled"}}`, `null`},
		"off":                  {dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, 0, `{"thinking":{"type":"disabled"}}`, `null`},
		"budget only":          {dragoman.ReasoningSettings{BudgetTokens: ptr(int64(3000)), Summary: "omitted"}, 0, `{"thinking":{"budget_tokens":3000,"display":"omitted","type":"enabled"}}`, `null`},
		"budget too small":     {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(1))}, 0, `{"thinking":{"budget_tokens":1024,"type":"enabled"}}`, `null`},
		"budget above maximum": {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(9000))}, 4000, `{"thinking":{"budget_tokens":3999,"type":"enabled"}}`, `null`},
		"no room":              {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(9000))}, 100, `null`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestOf(dragoman.UserText("q"))
			req.Reasoning = &tc.s
			if tc.max > 0 {
				req.MaxOutputTokens = &tc.max
			}
			v, _ := encode(t, req, dialect.EncodeOptions{})
			if a, b := js(v["additionalModelRequestFields"]), js(v["outputConfig"]); a != tc.model || b != tc.output {
				t.Errorf("%s %s", a, b)
			}
		})
	}
}

func TestQuirkE4_ThinkingReplacesSampling(t *testing.T) {
	for name, tc := range map[string]struct {
		temperature, topP dragoman.Number
		want              string
	}{
		"refused with thinking":  {"0.5", "0.5", `{"maxTokens":9000}`},
		"accepted with thinking": {"1", "0.95", `{"maxTokens":9000,"temperature":1,"topP":0.95}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestOf(dragoman.UserText("q"))
			req.MaxOutputTokens, req.Sampling.Temperature, req.Sampling.TopP = ptr(int64(9000)), &tc.temperature, &tc.topP
			req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(2000))}
			v, enc := encode(t, req, dialect.EncodeOptions{})
			if got := js(v["inferenceConfig"]); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if tc.temperature == "0.5" {
				has(t, enc.Report, dragoman.Dropped, "/sampling/temperature")
				has(t, enc.Report, dragoman.Dropped, "/sampling/top_p")
			}
		})
	}
}

func TestThinkingBudgetGetsMaxTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		budget, limit int64
		want          string
	}{
		"above the Converse default": {24576, 0, "28672"},
		"too small":                  {1, 0, "5120"},
		"the model has a default":    {2000, 32000, "32000"},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestOf(dragoman.UserText("q"))
			req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: &tc.budget}
			v, enc := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{DefaultMaxTokens: tc.limit}}})
			if got := js(field(v, "inferenceConfig", "maxTokens")); got != tc.want {
				t.Errorf("maxTokens %s, want %s: %s", got, tc.want, enc.Body)
			}
			has(t, enc.Report, dragoman.Synthesized, "/max_output_tokens")
		})
	}
}

// A budget that replaces adaptive thinking stays below maxTokens. A budget that
// the client set is not changed.
func TestBudgetForAdaptiveThinkingStaysBelowMaxTokens(t *testing.T) {
	caps := dialect.EncodeOptions{Rebuild: true, Target: targets.Target{Caps: targets.Capabilities{ThinkingBudgets: true}}}
	for name, tc := range map[string]struct{ config, thinking, maxTokens, temperature, budget string }{
		"lowered":    {`{"maxTokens":3000,"temperature":0.5}`, `{"type":"adaptive"}`, "3000", "null", "2999"},
		"no maximum": {`{"temperature":0.5}`, `{"type":"adaptive"}`, "12288", "null", "8192"},
		"own budget": {`{"maxTokens":3000,"temperature":0.5}`, `{"type":"enabled","budget_tokens":9000}`, "3000", "0.5", "9000"},
	} {
		req := decode(t, `{"messages":[{"role":"user","content":[{"text":"q"}]}],"inferenceConfig":`+tc.config+`,"additionalModelRequestFields":{"thinking":`+tc.thinking+`}}`)
		v, enc := encode(t, req, caps)
		for path, want := range map[[2]string]string{{"inferenceConfig", "maxTokens"}: tc.maxTokens, {"inferenceConfig", "temperature"}: tc.temperature} {
			if got := js(field(v, path[0], path[1])); got != want {
				t.Errorf("%s: %v is %s, want %s: %s", name, path, got, want, enc.Body)
			}
		}
		if got := js(field(v, "additionalModelRequestFields", "thinking", "budget_tokens")); got != tc.budget {
			t.Errorf("%s: a budget of %s, want %s: %s", name, got, tc.budget, enc.Body)
		}
	}
}

func TestQuirkD23D24G12_ThinkingReturnsOnlyToItsOrigin(t *testing.T) {
	signed := &dragoman.Reasoning{Signature: "c2ln"}
	withheld := &dragoman.Reasoning{Redacted: true, Encrypted: "AAEC"}
	unsigned := &dragoman.Reasoning{Text: "hm"}
	for name, tc := range map[string]struct {
		origin *dragoman.Origin
		target string
		want   string
	}{
		"same model":    {&dragoman.Origin{Dialect: dialectname.Bedrock, Model: "a"}, "a", `[{"reasoningContent":{"reasoningText":{"signature":"c2ln","text":""}}},{"reasoningContent":{"redactedContent":"AAEC"}},{"text":"x"}]`},
		"another model": {&dragoman.Origin{Dialect: dialectname.Bedrock, Model: "a"}, "b", `[{"text":"x"}]`},
		"another API":   {foreignOrigin, "a", `[{"text":"x"}]`},
		"no origin":     {nil, "a", `[{"text":"x"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMessage(dragoman.RoleAssistant, signed, withheld, unsigned, &dragoman.Text{Text: "x"})
			m.Origin = tc.origin
			req := requestOf(dragoman.UserText("q"), m, dragoman.UserText("more"))
			req.Model = tc.target
			v, _ := encode(t, req, dialect.EncodeOptions{})
			if got := js(field(v, "messages", 1, "content")); got != tc.want {
				t.Error(got)
			}
		})
	}
}

func TestQuirkD31_CachePointsAreSeparateBlocks(t *testing.T) {
	hint := &dragoman.CacheHint{TTL: "1h"}
	inside := result("1", "r")
	inside.Content[0].(*dragoman.Text).Cache = hint
	req := requestOf(
		dragoman.Message{Role: dragoman.RoleSystem, Parts: []dragoman.Part{&dragoman.Text{Text: "s"}}, Cache: &dragoman.CacheHint{}},
		dragoman.UserText("q"),
		newMessage(dragoman.RoleAssistant, call("1", "f", "")),
		dragoman.ToolResults(inside),
		dragoman.UserText("and"),
	)
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.Tools[0].Cache = &dragoman.CacheHint{TTL: "12h"}
	req.Cache = &dragoman.CacheHint{}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	for want, got := range map[string]any{
		`{"cachePoint":{"ttl":"1h","type":"default"}}`: field(v, "toolConfig", "tools", 1),
		`{"cachePoint":{"type":"default"}}`:            field(v, "system", 1),
		`[{"toolResult":{"content":[{"text":"r"}],"toolUseId":"1"}},{"cachePoint":{"ttl":"1h","type":"default"}},{"text":"and"},{"cachePoint":{"type":"default"}}]`: field(v, "messages", 2, "content"),
	} {
		if js(got) != want {
			t.Errorf("%s, want %s", js(got), want)
		}
	}
	has(t, enc.Report, dragoman.Moved, "/messages/3/parts/0")
	if back := decode(t, string(enc.Body)); back.Tools[0].Cache.TTL != "1h" {
		t.Error("the cache point of the tool is not decoded")
	}
}

func TestQuirkD31_LastFourCachePointsAreWritten(t *testing.T) {
	req := requestOf()
	for i := range 6 {
		m := dragoman.UserText(fmt.Sprint("q", i))
		m.Cache = &dragoman.CacheHint{}
		req.Messages = append(req.Messages, m, dragoman.AssistantText("a"))
	}
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.Tools[0].Cache = &dragoman.CacheHint{}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if n := strings.Count(string(enc.Body), "cachePoint"); n != 4 || !strings.Contains(string(enc.Body), `"q2"},{"cachePoint"`) || strings.Contains(string(enc.Body), `"q1"},{"cachePoint"`) {
		t.Errorf("%d: %s", n, enc.Body)
	}
	// Messages in their native form lose only their cache points.
	native := `{"messages":[{"role":"user", "content":[{"text":"a"},{"cachePoint":{"type":"default"}},{"text":"b"},{"cachePoint":{"type":"default"}},{"text":"c"}]}]}`
	back := decode(t, native)
	back.Native = nil
	back.Tools = req.Tools
	for range 3 {
		back.Messages = append(back.Messages, dragoman.AssistantText("x"), req.Messages[0])
	}
	_, enc = encode(t, back, dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body)[0]; got != `{"role":"user", "content":[{"text":"a"},{"text":"b"},{"cachePoint":{"type":"default"}},{"text":"c"}]}` {
		t.Error(got)
	}
}

func TestQuirkD38_DocumentHasTextAndUniqueName(t *testing.T) {
	pdf := func(name string) *dragoman.Media {
		return &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf; x=y", Base64: "AAEC", Name: name}
	}
	v, enc := encode(t, requestOf(newMessage(dragoman.RoleUser, pdf("a_b.pdf"), pdf("a_b.pdf"), pdf(""), &dragoman.Media{Media: codes.MediaFile, Text: "plain", Title: "The  title"})), dialect.EncodeOptions{})
	var names []string
	content := field(v, "messages", 0, "content").([]any)
	for _, b := range content[:4] {
		names = append(names, field(b, "document", "name").(string))
	}
	if got := strings.Join(names, "|"); got != "a-b-pdf|a-b-pdf (2)|document|The title" {
		t.Error(got)
	}
	if got := js(content[3]); got != `{"document":{"format":"txt","name":"The title","source":{"text":"plain"}}}` {
		t.Error(got)
	}
	if len(content) != 5 || field(content[4], "text") != "(see the attached document)" {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Synthesized, "/messages/0")
}

func TestQuirkD38_InstructionsOnlyGetUserMessage(t *testing.T) {
	v, enc := encode(t, requestOf(dragoman.SystemText("s")), dialect.EncodeOptions{})
	if field(v, "messages", 0, "role") != "user" || field(v, "system", 0, "text") != "s" {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Synthesized, "/messages")
}

func TestQuirkD14_UnsupportedMediaBecomesNote(t *testing.T) {
	for name, m := range map[string]*dragoman.Media{
		"by URL":     {Media: codes.MediaImage, URL: "https://x/y.png"},
		"by file id": {Media: codes.MediaFile, FileID: "file_1"},
		"bitmap":     {Media: codes.MediaImage, MIME: "image/bmp", Base64: "AAEC"},
	} {
		v, enc := encode(t, requestOf(newMessage(dragoman.RoleUser, m)), dialect.EncodeOptions{})
		if s, _ := field(v, "messages", 0, "content", 0, "text").(string); !strings.Contains(s, "not shown") {
			t.Errorf("%s: %s", name, enc.Body)
		}
		if err := enc.Report.Err(dragoman.Serious); err == nil {
			t.Errorf("%s is not reported", name)
		}
	}
	s3 := &dragoman.Media{Media: codes.MediaVideo, MIME: "video/mp4", URL: "s3://b/k"}
	v, _ := encode(t, requestOf(newMessage(dragoman.RoleUser, s3)), dialect.EncodeOptions{})
	if got := js(field(v, "messages", 0, "content", 0)); got != `{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/k"}}}}` {
		t.Error(got)
	}
}

func TestQuirkA31_StrictFlagNeedsKnownModel(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Tools = []dragoman.ToolSpec{{Name: "f", Strict: codes.StrictOn, Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)}}
	strict := func(v map[string]any) any { return field(v, "toolConfig", "tools", 0, "toolSpec", "strict") }
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if strict(v) != nil {
		t.Errorf("the flag is sent to an unknown model: %s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/tools/0/strict")
	v, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{StrictTools: true}}})
	if strict(v) != true || enc.Report.Err(dragoman.Warn) != nil {
		t.Errorf("the model accepts the flag: %s\n%s", enc.Body, enc.Report)
	}
	v, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{StrictTools: true, NoStrict: true}}})
	if strict(v) != nil {
		t.Errorf("the server rejects the flag: %s", enc.Body)
	}
}

func TestQuirkF3_OutputSchemaIsString(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "a b", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}`)}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	f := field(v, "outputConfig", "textFormat", "structure", "jsonSchema")
	text, _ := field(f, "schema").(string)
	if field(f, "name") != "a_b" || !json.Valid([]byte(text)) || !strings.Contains(text, `"additionalProperties":false`) || strings.Contains(text, `"minimum"`) {
		t.Errorf("%s", enc.Body)
	}
	req.Output.Kind, req.Output.Schema = codes.OutputJSON, nil
	_, enc = encode(t, req, dialect.EncodeOptions{})
	has(t, enc.Report, dragoman.Dropped, "/output")
}

func TestUnsupportedSettingsAreReported(t *testing.T) {
	req := requestOf(dragoman.UserText("q"))
	req.Sampling = dragoman.Sampling{Temperature: dragoman.Num(1.5), TopK: ptr(int64(1)), Seed: ptr(int64(1)), FrequencyPenalty: dragoman.Num(1), PresencePenalty: dragoman.Num(1), Candidates: ptr(int64(2)), Stop: []string{""}}
	req.User, req.CacheKey, req.Verbosity, req.Store = "u", "k", "low", ptr(true)
	req.ServiceTier = "scale"
	req.Metadata = []dragoman.KeyValue{{Key: "ok", Value: "v"}, {Key: "bad key é", Value: "v"}}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if js(v["inferenceConfig"]) != `{"temperature":1}` || js(v["requestMetadata"]) != `{"ok":"v"}` || v["serviceTier"] != nil {
		t.Errorf("%s", enc.Body)
	}
	for _, path := range []string{
		"/sampling/top_k", "/sampling/seed", "/sampling/frequency_penalty", "/sampling/presence_penalty", "/sampling/candidates",
		"/sampling/stop", "/user", "/cache_key", "/verbosity", "/store", "/service_tier", "/metadata",
	} {
		has(t, enc.Report, dragoman.Dropped, path)
	}
	has(t, enc.Report, dragoman.Lowered, "/sampling/temperature")
	_, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoSampling: true}}})
	has(t, enc.Report, dragoman.Dropped, "/sampling/temperature")
}

func TestSystemMessagesInsideTheConversation(t *testing.T) {
	ms := []dragoman.Message{dragoman.UserText("q"), dragoman.SystemText("mind"), dragoman.AssistantText("a")}
	v, _ := encode(t, requestOf(ms...), dialect.EncodeOptions{})
	if got := js(field(v, "messages", 0, "content")); got != `[{"text":"q"},{"text":"mind"}]` {
		t.Error(got)
	}
	v, _ = encode(t, requestOf(ms...), dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{MidSystem: true}}})
	if field(v, "messages", 1, "role") != "system" {
		t.Error(js(v))
	}
}

func TestInvalidRequestErrorHasPointer(t *testing.T) {
	for body, pointer := range map[string]string{
		`[]`:                                    "",
		`{"messages":{}}`:                       "/messages",
		`{"messages":[1]}`:                      "/messages/0",
		`{"messages":[{"role":1}]}`:             "/messages/0/role",
		`{"messages":[{"content":{}}]}`:         "/messages/0/content",
		`{"system":{}}`:                         "/system",
		`{"inferenceConfig":{"maxTokens":"x"}}`: "/inferenceConfig/maxTokens",
		`{"toolConfig":{"tools":{}}}`:           "/toolConfig/tools",
		`{"toolConfig":{"tools":[{"toolSpec":{"name":1}}]}}`:        "/toolConfig/tools/0",
		`{"messages":[{"role":"user","content":[{"text":"q"}]}]} x`: "",
		`{"messages":[`: "/messages",
	} {
		_, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || !strings.HasPrefix(at.Pointer, pointer) || at.Dialect != dialectname.Bedrock {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := codec.EncodeRequest(nil, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
}

// A null in the inference config must not be written next to the value: that
// would be a duplicate field.
func TestStoredNullIsNotWrittenWithValue(t *testing.T) {
	req := decode(t, `{"messages":[{"role":"user","content":[{"text":"q"}]}],"inferenceConfig":{"maxTokens":null}}`)
	req.MaxOutputTokens = new(int64(7))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if n := strings.Count(string(enc.Body), `"maxTokens"`); n != 1 {
		t.Errorf("maxTokens is written %d times: %s", n, enc.Body)
	}
}

// A client that asks for fields of the model keeps its list, even with stop
// sequences.
func TestClientResponseFieldPathsAreKept(t *testing.T) {
	req := decode(t, `{"messages":[{"role":"user","content":[{"text":"q"}]}],"inferenceConfig":{"stopSequences":["x"]},"additionalModelResponseFieldPaths":["/trace"]}`)
	_, enc := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	if !strings.Contains(string(enc.Body), `"additionalModelResponseFieldPaths":["/trace"]`) {
		t.Errorf("the list is lost: %s", enc.Body)
	}
}
