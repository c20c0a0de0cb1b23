package anthropic_test

import (
	"bytes"
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
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/google/go-cmp/cmp"
)

func TestUnchangedRequestKeepsItsBytes(t *testing.T) {
	body := "{ \"model\" : \"claude-opus-5-5\",\n\"max_tokens\":5, \"messages\":[{\"content\":\"h\\u00e9 <b>\",\"role\":\"user\"}], \"zeta\": {\"b\":1,\"a\":[ ]} }\n"
	req := decode(t, body)
	if _, enc := encode(t, req, dialect.EncodeOptions{}); string(enc.Body) != body {
		t.Errorf("changed: %s", enc.Body)
	}
	req.Model = "claude-haiku-5-5"
	want := strings.Replace(body, "claude-opus-5-5", "claude-haiku-5-5", 1)
	if _, enc := encode(t, req, dialect.EncodeOptions{}); string(enc.Body) != want {
		t.Errorf("more than the model changed: %s", enc.Body)
	}
}

func TestUnchangedMessagesKeepTheirBytes(t *testing.T) {
	first := `{"content":[{"text":"hi","type":"text" }], "role":"user"}`
	second := `{ "role":"assistant","content":[{"type":"text","text":"yes"}] }`
	req := decode(t, `{"model":"m","max_tokens":5,"messages":[`+first+`,`+second+`]}`)
	req.Messages = append(req.Messages, dragoman.UserText("more"))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	got := messagesOf(t, enc.Body)
	if got[0] != first || got[1] != second || len(got) != 3 {
		t.Errorf("messages: %q", got)
	}
}

func TestMaxTokensIsSynthesized(t *testing.T) {
	req := requestOf(dragoman.UserText("hi"))
	req.MaxOutputTokens = nil
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if v["max_tokens"] != json.Number("4096") {
		t.Errorf("max_tokens %v", v["max_tokens"])
	}
	has(t, enc.Report, dragoman.Synthesized, "/max_output_tokens")
	req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(8000))}
	if v, _ = encode(t, req, dialect.EncodeOptions{}); v["max_tokens"] != json.Number("12096") {
		t.Errorf("a thinking budget must fit below max_tokens, which is %v", v["max_tokens"])
	}
	more := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{DefaultMaxTokens: 32000}}}
	for budget, want := range map[int64]json.Number{8000: "32000", 30000: "34096"} { // a budget is added to 4096, not to the larger default
		req.Reasoning.BudgetTokens = &budget
		if v, _ = encode(t, req, more); v["max_tokens"] != want {
			t.Errorf("with a thinking budget of %d: %v", budget, v["max_tokens"])
		}
	}
}

func TestSamplingPerVersion(t *testing.T) {
	req := requestOf(dragoman.UserText("hi"))
	req.Sampling = dragoman.Sampling{Temperature: ptr(dragoman.Number("1.0")), TopP: ptr(dragoman.Number("0.50")), TopK: ptr(int64(3)), Seed: ptr(int64(1))}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if v["temperature"] != json.Number("1.0") || v["top_p"] != json.Number("0.50") || v["top_k"] != json.Number("3") {
		t.Errorf("version 2023-06-01: %s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/sampling/seed")
	v, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoSampling: true}}})
	for _, k := range []string{"temperature", "top_p", "top_k"} {
		if v[k] != nil {
			t.Errorf("version 2026-10-21 rejects %s", k)
		}
		has(t, enc.Report, dragoman.Dropped, "/sampling/"+k)
	}
	req.Sampling = dragoman.Sampling{Temperature: ptr(dragoman.Number("1.7"))}
	v, enc = encode(t, req, dialect.EncodeOptions{})
	if v["temperature"] != json.Number("1") {
		t.Errorf("temperature %v", v["temperature"])
	}
	has(t, enc.Report, dragoman.Lowered, "/sampling/temperature")
}

func TestSystemPromptIncludesLeadingMessages(t *testing.T) {
	req := requestOf(dragoman.SystemText("two"), newMessage(dragoman.RoleDeveloper, &dragoman.Text{Text: "three"}), dragoman.UserText("hi"))
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "one", Cache: &dragoman.CacheHint{TTL: "1h"}}, &dragoman.Text{Text: "  "}}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	got, _ := json.Marshal(v["system"])
	want := `[{"cache_control":{"ttl":"1h","type":"ephemeral"},"text":"one","type":"text"},{"text":"two","type":"text"},{"text":"three","type":"text"}]`
	if string(got) != want {
		t.Errorf("system %s", got)
	}
	if len(messagesOf(t, enc.Body)) != 1 {
		t.Errorf("messages %s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/instructions/1")
}

func TestSystemMessageInsideTheConversation(t *testing.T) {
	mid := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{MidSystem: true}}}
	ms := []dragoman.Message{dragoman.UserText("a"), dragoman.SystemText("rule"), dragoman.AssistantText("b"), dragoman.UserText("c")}
	roles := func(req *dragoman.Request, o dialect.EncodeOptions) (string, dialect.Encoded) {
		_, enc := encode(t, req, o)
		var out []string
		for _, m := range messagesOf(t, enc.Body) {
			var v struct{ Role string }
			_ = json.Unmarshal([]byte(m), &v)
			out = append(out, v.Role)
		}
		return strings.Join(out, " "), enc
	}
	if got, enc := roles(requestOf(ms...), mid); got != "user system assistant user" || len(enc.Report.Losses) != 0 {
		t.Errorf("%s\n%s", got, enc.Report)
	}
	got, enc := roles(requestOf(ms...), dialect.EncodeOptions{})
	if got != "user assistant user" {
		t.Error(got)
	}
	has(t, enc.Report, dragoman.Lowered, "/messages/1")
	// After an assistant message the API accepts no system message.
	got, enc = roles(requestOf(dragoman.UserText("a"), dragoman.AssistantText("b"), dragoman.SystemText("rule"), dragoman.UserText("c")), mid)
	if got != "user assistant user" {
		t.Error(got)
	}
	has(t, enc.Report, dragoman.Lowered, "/messages/2")
	// An Anthropic client knows what its model accepts.
	req := decode(t, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"system","content":"rule","clear_at":"never"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	if got, enc := roles(req, dialect.EncodeOptions{Rebuild: true}); got != "user system assistant user" || !strings.Contains(string(enc.Body), `"clear_at":"never"`) {
		t.Errorf("%s %s", got, enc.Body)
	}
}

func TestConversationGetsOpeningUserMessage(t *testing.T) {
	_, enc := encode(t, requestOf(dragoman.AssistantText("b"), dragoman.UserText("c")), dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body); len(got) != 3 || !strings.HasPrefix(got[0], `{"role":"user"`) {
		t.Errorf("%q", got)
	}
	has(t, enc.Report, dragoman.Synthesized, "/messages")
	req := requestOf()
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "Say hello."}} // the model can answer them
	_, enc = encode(t, req, dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body); len(got) != 1 {
		t.Errorf("%q", got)
	}
	// A request of this dialect keeps its first message.
	req = decode(t, `{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	if _, enc = encode(t, req, dialect.EncodeOptions{Rebuild: true}); len(messagesOf(t, enc.Body)) != 2 {
		t.Errorf("%s", enc.Body)
	}
}

func TestPrefillTrailingWhiteSpaceIsTrimmed(t *testing.T) {
	_, enc := encode(t, requestOf(dragoman.UserText("a"), dragoman.AssistantText("so\u2003 \n")), dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body); got[1] != `{"role":"assistant","content":[{"type":"text","text":"so"}]}` {
		t.Errorf("%q", got)
	}
	has(t, enc.Report, dragoman.Lowered, "/messages/1/parts/0")
}

func TestQuirkB2_EmptyArguments(t *testing.T) {
	for _, args := range []string{"", " ", "null", "{}", `""`} {
		_, enc := encode(t, requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call("c1", "f", args)), newMessage(dragoman.RoleTool, result("c1", "x"))), dialect.EncodeOptions{})
		if got := messagesOf(t, enc.Body)[1]; !strings.Contains(got, `"input":{}`) {
			t.Errorf("%q: %s", args, got)
		}
	}
}

func TestQuirkB5_B7_InvalidArgumentsAreReplaced(t *testing.T) {
	for args, want := range map[string]string{
		`[1,2]`:         `"input":{"_raw":[1,2]}`,
		`{"a":1,"a":2}`: `"input":{}`,
		`{"a":`:         `"input":{}`,
	} {
		_, enc := encode(t, requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call("c1", "f", args)), newMessage(dragoman.RoleTool, result("c1", "x"))), dialect.EncodeOptions{})
		if got := messagesOf(t, enc.Body)[1]; !strings.Contains(got, want) {
			t.Errorf("%q: %s", args, got)
		}
		has(t, enc.Report, dragoman.Lowered, "/messages/1/parts/0/arguments")
	}
}

func TestQuirkB10_ResultsWithoutIDPairWithCallsWithoutID(t *testing.T) {
	body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","id":"","name":"g","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","content":"1"},{"type":"tool_result","content":"2"}]}]}`
	req := decode(t, body)
	calls := req.Messages[1].ToolCalls()
	if calls[0].ID == "" || calls[0].ID == calls[1].ID || !calls[0].Synthetic {
		t.Fatalf("ids %q %q", calls[0].ID, calls[1].ID)
	}
	for i, p := range req.Messages[2].Parts {
		if got := p.(*dragoman.ToolResult).CallID; got != calls[i].ID {
			t.Errorf("result %d answers %q, not %q", i, got, calls[i].ID)
		}
	}
	if again := decode(t, body); again.Messages[1].ToolCalls()[1].ID != calls[1].ID {
		t.Error("decoding the same history again must give the same ids")
	}
}

func TestQuirkB13_CallAndResultGetSameAlias(t *testing.T) {
	id := "call.with:dots/1"
	_, enc := encode(t, requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call(id, "f", "{}")), newMessage(dragoman.RoleTool, result(id, "x"))), dialect.EncodeOptions{})
	ms := messagesOf(t, enc.Body)
	alias := enc.Registry.WireID(id)
	if alias == id || !strings.Contains(ms[1], `"id":"`+alias+`"`) || !strings.Contains(ms[2], `"tool_use_id":"`+alias+`"`) {
		t.Errorf("%q", ms)
	}
	if enc.Registry.PublicID(alias) != id {
		t.Error("the alias is not reversible")
	}
}

func TestQuirkB26_B27_ClientCallsComeLast(t *testing.T) {
	server := &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "server_tool_use", JSON: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)}
	m := newMessage(dragoman.RoleAssistant, call("c1", "f", "{}"), &dragoman.Text{Text: "after"}, server)
	m.Origin = ownOrigin
	_, enc := encode(t, requestOf(dragoman.UserText("a"), m, newMessage(dragoman.RoleTool, result("c1", "x"))), dialect.EncodeOptions{})
	want := `{"role":"assistant","content":[{"type":"text","text":"after"},` + string(server.JSON) + `,{"type":"tool_use","id":"c1","name":"f","input":{}}]}`
	if got := messagesOf(t, enc.Body)[1]; got != want {
		t.Errorf("%s", got)
	}
	has(t, enc.Report, dragoman.Moved, "/messages/1/parts/0")
}

func TestQuirkD25_SignedThinkingKeepsOrder(t *testing.T) {
	m := newMessage(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t1", Signature: "s1"}, call("c1", "f", "{}"), &dragoman.Text{Text: " "},
		&dragoman.Reasoning{Signature: "s2"}, call("c2", "g", "{}"))
	m.Origin = ownOrigin
	_, enc := encode(t, requestOf(dragoman.UserText("a"), m, newMessage(dragoman.RoleTool, result("c1", "x"), result("c2", "y"))), dialect.EncodeOptions{})
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"t1","signature":"s1"},{"type":"tool_use","id":"c1","name":"f","input":{}},` +
		`{"type":"text","text":" "},{"type":"thinking","thinking":"","signature":"s2"},{"type":"tool_use","id":"c2","name":"g","input":{}}]}`
	if got := messagesOf(t, enc.Body)[1]; got != want {
		t.Errorf("quirks D22, D25, G12: %s", got)
	}
}

func TestQuirkB31_B33_NumbersAndCharactersAreExact(t *testing.T) {
	args := `{"n":9007199254740993,"f":1.0,"s":"<&>\u00e9"}`
	_, enc := encode(t, requestOf(dragoman.UserText("a <b> & c"), newMessage(dragoman.RoleAssistant, call("c1", "f", args)), newMessage(dragoman.RoleTool, result("c1", "x"))), dialect.EncodeOptions{})
	ms := messagesOf(t, enc.Body)
	if !strings.Contains(ms[1], args) || !strings.Contains(ms[0], "a <b> & c") {
		t.Errorf("%q", ms)
	}
	back := decode(t, string(enc.Body))
	if got := back.Messages[1].ToolCalls()[0].Arguments; got != args {
		t.Errorf("arguments %s", got)
	}
}

func TestQuirkD1_D2_D4_ResultOrder(t *testing.T) {
	_, enc := encode(t, requestOf(
		dragoman.UserText("a"),
		newMessage(dragoman.RoleAssistant, call("c1", "f", "{}")), newMessage(dragoman.RoleAssistant, call("c2", "g", "{}")), // one turn in two items
		newMessage(dragoman.RoleTool, result("c2", "second")), dragoman.UserText("meanwhile"), newMessage(dragoman.RoleTool, result("c1", "first")),
	), dialect.EncodeOptions{})
	ms := messagesOf(t, enc.Body)
	if len(ms) != 3 {
		t.Fatalf("%q", ms)
	}
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"first"}]},` +
		`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"second"}]},{"type":"text","text":"meanwhile"}]}`
	if ms[2] != want {
		t.Errorf("%s", ms[2])
	}
	has(t, enc.Report, dragoman.Moved, "/messages/5/parts/0")
}

func TestQuirkD6_LastResultReplacesFirst(t *testing.T) {
	_, enc := encode(t, requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call("c1", "f", "{}"), call("c2", "f", "{}")),
		newMessage(dragoman.RoleTool, result("c1", "old"), result("c2", "b"), result("c1", "new"))), dialect.EncodeOptions{})
	got := messagesOf(t, enc.Body)[2]
	if strings.Contains(got, "old") || strings.Index(got, "new") > strings.Index(got, `"b"`) {
		t.Errorf("%s", got)
	}
	has(t, enc.Report, dragoman.Dropped, "/messages/2/parts/0")
}

func TestQuirkD12_ErrorFlagRoundTrip(t *testing.T) {
	res := result("c1", "boom")
	res.Outcome = codes.OutcomeError
	_, enc := encode(t, requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call("c1", "f", "{}")), newMessage(dragoman.RoleTool, res)), dialect.EncodeOptions{})
	back := decode(t, string(enc.Body)).Messages[2]
	got := back.Parts[0].(*dragoman.ToolResult)
	if back.Role != dragoman.RoleTool || got.Outcome != codes.OutcomeError || got.Text() != "boom" {
		t.Errorf("%+v", got)
	}
}

func TestQuirkD14_UnsupportedMediaBecomesNote(t *testing.T) {
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBO"}
	res := &dragoman.ToolResult{CallID: "c1", Content: []dragoman.Part{image}}
	req := requestOf(newMessage(dragoman.RoleUser, image), newMessage(dragoman.RoleAssistant, call("c1", "f", "{}")), newMessage(dragoman.RoleTool, res))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if n := strings.Count(string(enc.Body), `"type":"image"`); n != 2 {
		t.Errorf("%d images: %s", n, enc.Body)
	}
	_, enc = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoImages: true}}})
	if strings.Contains(string(enc.Body), "iVBO") || strings.Count(string(enc.Body), "not shown]") != 2 {
		t.Errorf("%s", enc.Body)
	}
	if enc.Report.Err(dragoman.Serious) == nil {
		t.Error("the loss is not reported")
	}
}

func TestQuirkD22_BlankTextIsDropped(t *testing.T) {
	_, enc := encode(t, requestOf(dragoman.UserText("a"), dragoman.AssistantText(" \n"), dragoman.UserText("b")), dialect.EncodeOptions{})
	if got := messagesOf(t, enc.Body); len(got) != 1 || got[0] != `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}` {
		t.Errorf("%q", got)
	}
	has(t, enc.Report, dragoman.Dropped, "/messages/1/parts/0")
	has(t, enc.Report, dragoman.Dropped, "/messages/1")
}

func TestQuirkD23_D24_D26_ThinkingReturnsOnlyToItsOrigin(t *testing.T) {
	other := &dragoman.Origin{Dialect: dialectname.Anthropic, Model: "claude-haiku-5-5"}
	for _, c := range []struct {
		what   string
		origin *dragoman.Origin
		part   *dragoman.Reasoning
		kept   bool
	}{
		{"signed, of this dialect", ownOrigin, &dragoman.Reasoning{Text: "t", Signature: "s"}, true},
		{"signed, text omitted (quirk G12)", ownOrigin, &dragoman.Reasoning{Signature: "s"}, true},
		{"redacted", ownOrigin, &dragoman.Reasoning{Encrypted: "e", Redacted: true}, true},
		{"unsigned", ownOrigin, &dragoman.Reasoning{Text: "t"}, false},
		{"of another model", other, &dragoman.Reasoning{Text: "t", Signature: "s"}, false},
		{"of another dialect", foreignOrigin, &dragoman.Reasoning{Text: "t", Signature: "s"}, false},
		{"encrypted, of another dialect", foreignOrigin, &dragoman.Reasoning{Encrypted: "e", Summary: []string{"t"}}, false},
		{"no origin", nil, &dragoman.Reasoning{Text: "t", Signature: "s"}, false},
	} {
		m := newMessage(dragoman.RoleAssistant, c.part, &dragoman.Text{Text: "so"})
		m.Origin = c.origin
		_, enc := encode(t, requestOf(dragoman.UserText("a"), m, dragoman.UserText("b")), dialect.EncodeOptions{})
		if got := strings.Contains(messagesOf(t, enc.Body)[1], "thinking"); got != c.kept {
			t.Errorf("%s: kept %v", c.what, got)
		}
		if !c.kept {
			has(t, enc.Report, dragoman.Dropped, "/messages/1/parts/0")
		}
	}
	// A native message with thinking of another model is re-encoded.
	req := decode(t, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"so"}]},{"role":"user","content":"b"}]}`)
	req.Messages[1].Origin = other
	req.Messages = append(req.Messages, dragoman.AssistantText("c"), dragoman.UserText("d"))
	if _, enc := encode(t, req, dialect.EncodeOptions{}); strings.Contains(string(enc.Body), "thinking") {
		t.Errorf("%s", enc.Body)
	}
}

func TestQuirkD31_LastFourCacheBreakpointsAreWritten(t *testing.T) {
	hint := &dragoman.CacheHint{}
	req := requestOf(newMessage(dragoman.RoleUser, &dragoman.Text{Text: "a", Cache: hint}, &dragoman.Text{Text: "b", Cache: hint}), dragoman.AssistantText("x"))
	user := dragoman.UserText("c")
	user.Cache = hint
	req.Messages = append(req.Messages, user)
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "sys", Cache: hint}}
	req.Tools = []dragoman.ToolSpec{tool("f"), tool("g")}
	req.Tools[1].Cache = hint
	req.Cache = hint
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if n := strings.Count(string(enc.Body), "cache_control"); n != 4 {
		t.Errorf("%d markers: %s", n, enc.Body)
	}
	if v["cache_control"] == nil {
		t.Error("the last breakpoint, at the end of the prompt, is missing")
	}
	has(t, enc.Report, dragoman.Dropped, "/tools/1")
	has(t, enc.Report, dragoman.Dropped, "/instructions/0")
	if strings.Contains(messagesOf(t, enc.Body)[2], "cache_control") != true {
		t.Error("the hint of a message must be on its last block")
	}
}

func TestQuirkE1_ToolChoice(t *testing.T) {
	for want, c := range map[string]*dragoman.ToolChoice{
		`{"type":"auto"}`:            {Mode: dragoman.ChoiceAuto},
		`{"type":"none"}`:            {Mode: dragoman.ChoiceNone},
		`{"type":"any"}`:             {Mode: dragoman.ChoiceRequired},
		`{"name":"f","type":"tool"}`: {Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "f"}}},
	} {
		req := requestOf(dragoman.UserText("a"))
		req.Tools, req.ToolChoice = []dragoman.ToolSpec{tool("f")}, c
		v, enc := encode(t, req, dialect.EncodeOptions{})
		if got, _ := json.Marshal(v["tool_choice"]); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		if diff := cmp.Diff(c, decode(t, string(enc.Body)).ToolChoice); diff != "" {
			t.Error(diff)
		}
	}
}

func TestQuirkE3_NoToolsNoChoice(t *testing.T) {
	req := requestOf(dragoman.UserText("a"))
	req.ToolChoice, req.ParallelToolCalls = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, ptr(false)
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if v["tools"] != nil || v["tool_choice"] != nil {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/tool_choice")
	has(t, enc.Report, dragoman.Dropped, "/parallel_tool_calls")
}

func TestQuirkE4_ForcedChoiceIsLowered(t *testing.T) {
	adaptive := &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}
	budget := &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(2000))}
	for _, c := range []struct {
		forced   string
		thinking *dragoman.ReasoningSettings
		want     string
	}{
		{codes.ForcedAlways, nil, "any"},
		{codes.ForcedAlways, adaptive, "any"},
		{codes.ForcedAlways, budget, "auto"},
		{codes.ForcedWithoutThinking, nil, "any"},
		{codes.ForcedWithoutThinking, adaptive, "auto"},
		{codes.ForcedNever, nil, "auto"},
	} {
		req := requestOf(dragoman.UserText("a"))
		req.MaxOutputTokens = ptr(int64(4000))
		req.Tools, req.ToolChoice, req.Reasoning = []dragoman.ToolSpec{tool("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, c.thinking
		v, enc := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{ForcedChoice: c.forced}}})
		if got := v["tool_choice"].(map[string]any)["type"]; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if c.want == "auto" {
			has(t, enc.Report, dragoman.Lowered, "/tool_choice")
		}
	}
}

func TestBlankTextInResultIsReported(t *testing.T) {
	for _, content := range [][]dragoman.Part{{&dragoman.Text{Text: "1"}, &dragoman.Text{Text: " "}}, {&dragoman.Text{Text: " "}}} {
		res := &dragoman.ToolResult{CallID: "a", Content: content}
		req := requestOf(dragoman.UserText("q"), dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "a", Name: "f"}}}, dragoman.ToolResults(res))
		req.Tools = []dragoman.ToolSpec{tool("f")}
		_, enc := encode(t, req, dialect.EncodeOptions{})
		if !strings.Contains(enc.Report.String(), "a blank text") {
			t.Errorf("%d parts: %s", len(content), enc.Report)
		}
	}
}

func TestQuirkE4_ForcedChoiceStaysWithoutThinking(t *testing.T) {
	for _, forced := range []string{codes.ForcedAlways, codes.ForcedWithoutThinking} {
		req := requestOf(dragoman.UserText("q"))
		req.Tools, req.ToolChoice, req.MaxOutputTokens = []dragoman.ToolSpec{tool("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, ptr(int64(500))
		req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(600))}
		v, enc := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{ForcedChoice: forced}}})
		if got := v["tool_choice"].(map[string]any)["type"]; got != "any" || v["thinking"] != nil {
			t.Errorf("%q: %s", forced, enc.Body)
		}
		has(t, enc.Report, dragoman.Dropped, "/reasoning/budget_tokens")
	}
}

func TestQuirkE5_MissingForcedToolIsError(t *testing.T) {
	req := requestOf(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{tool("f"), {Name: "bad", Parameters: json.RawMessage(`{"type":`)}}
	for _, ref := range []dragoman.ToolRef{{Name: "absent"}, {Name: "bad"}} {
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{ref}}
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
			t.Errorf("%s: %v", ref.Name, err)
		}
	}
	long := strings.Repeat("n", 200) // the choice follows the alias
	req.Tools = []dragoman.ToolSpec{tool(long)}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: long}}}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	wire := enc.Registry.WireName("", long)
	if got := v["tool_choice"].(map[string]any)["name"]; got != wire || wire == long {
		t.Errorf("choice %v, tool %q", got, wire)
	}
}

func TestQuirkE6_ParallelFlagIsInvertedInChoice(t *testing.T) {
	for _, c := range []struct {
		parallel *bool
		choice   *dragoman.ToolChoice
		want     string
	}{
		{ptr(false), nil, `{"disable_parallel_tool_use":true,"type":"auto"}`},
		{ptr(true), nil, `null`},
		{ptr(true), &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, `{"disable_parallel_tool_use":false,"type":"any"}`},
		{ptr(false), &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, `{"type":"none"}`},
	} {
		req := requestOf(dragoman.UserText("a"))
		req.Tools, req.ToolChoice, req.ParallelToolCalls = []dragoman.ToolSpec{tool("f")}, c.choice, c.parallel
		v, enc := encode(t, req, dialect.EncodeOptions{})
		if got, _ := json.Marshal(v["tool_choice"]); string(got) != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		if c.choice != nil && c.choice.Mode != dragoman.ChoiceNone {
			if back := decode(t, string(enc.Body)); *back.ParallelToolCalls != *c.parallel {
				t.Error("the flag decoded inverted")
			}
		}
	}
}

func TestQuirkE9_AllowedToolsFilterTools(t *testing.T) {
	req := requestOf(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{tool("f"), tool("g"), {Name: "bad", Parameters: json.RawMessage(`[`)}}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "g"}, {Name: "bad"}}}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	if tools := v["tools"].([]any); len(tools) != 1 || tools[0].(map[string]any)["name"] != "g" {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Lowered, "/tool_choice")
	has(t, enc.Report, dragoman.Dropped, "/tools/2") // its position in the request
}

func TestQuirkE11_DroppedToolsAreErrors(t *testing.T) {
	req := requestOf(dragoman.UserText("a"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	_, err := codec.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoTools: true}}})
	if !errors.Is(err, dragoman.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestQuirkF5_StructuredOutput(t *testing.T) {
	req := requestOf(dragoman.UserText("a"))
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "n", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}`)}
	v, enc := encode(t, req, dialect.EncodeOptions{})
	format := v["output_config"].(map[string]any)["format"].(map[string]any)
	s := format["schema"].(map[string]any)
	if format["type"] != "json_schema" || s["additionalProperties"] != false || strings.Contains(fmt.Sprint(s["properties"]), "minimum:3") {
		t.Errorf("%s", enc.Body)
	}
	if len(enc.Report.Losses) < 2 {
		t.Errorf("the lowering is not reported: %s", enc.Report)
	}
	for _, body := range []string{
		`{"model":"m","max_tokens":5,"messages":[],"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}}`,
		`{"model":"m","max_tokens":5,"messages":[],"output_format":{"type":"json_schema","schema":{"type":"object"}}}`,
	} {
		if got := decode(t, body).Output; got == nil || got.Kind != codes.OutputSchema || string(got.Schema) != `{"type":"object"}` {
			t.Errorf("%s: %+v", body, got)
		}
	}
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON}
	if v, enc = encode(t, req, dialect.EncodeOptions{}); v["output_config"] != nil {
		t.Errorf("%s", enc.Body)
	}
	has(t, enc.Report, dragoman.Dropped, "/output")
}

func TestQuirkG10_ThinkingAndEffort(t *testing.T) {
	for _, c := range []struct {
		in             dragoman.ReasoningSettings
		thinking, conf string
	}{
		{dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Summary: "auto"}, `{"display":"summarized","type":"adaptive"}`, `null`},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Summary: "omitted", Effort: "max"}, `{"display":"omitted","type":"adaptive"}`, `{"effort":"max"}`},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(2048))}, `{"budget_tokens":2048,"type":"enabled"}`, `null`},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(10))}, `{"budget_tokens":1024,"type":"enabled"}`, `null`},
		{dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, `{"type":"disabled"}`, `null`},
		{dragoman.ReasoningSettings{Effort: "none"}, `{"type":"disabled"}`, `null`},
		{dragoman.ReasoningSettings{Effort: "minimal"}, `null`, `{"effort":"low"}`},
		{dragoman.ReasoningSettings{Effort: "xhigh"}, `null`, `{"effort":"xhigh"}`},
	} {
		req := requestOf(dragoman.UserText("a"))
		req.MaxOutputTokens, req.Reasoning = ptr(int64(9000)), &c.in
		v, _ := encode(t, req, dialect.EncodeOptions{})
		thinking, _ := json.Marshal(v["thinking"])
		conf, _ := json.Marshal(v["output_config"])
		if string(thinking) != c.thinking || string(conf) != c.conf {
			t.Errorf("%+v: %s %s", c.in, thinking, conf)
		}
	}
}

func TestUnknownFieldsBlocksAndNullsRoundTrip(t *testing.T) {
	body := `{"model":"m","max_tokens":0,"messages":[
		{"role":"user","content":[{"type":"text","text":"a","future":1},{"type":"hologram","x":[1]},{"type":"document","source":{"type":"content","content":"x"}},{"type":"search_result","source":"s","title":"t","content":[]}],"mood":"fine"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s","depth":3},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":1}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"},"toolset_name":"computer"}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"toolset_name":"computer"}]}],
		"thinking":{"type":"between_tools"},"tool_choice":{"type":"auto","x":1},"tools":[{"name":"f","input_schema":{"type":"object"},"eager_input_streaming":true},{"type":"web_search_20260318","name":"web_search"}],
		"metadata":{"user_id":"u","team":"x"},"output_config":{"effort":null,"task_budget":{"total":1}},"service_tier":"turbo","system":null,"stream":false,"container":"c","mcp_servers":[{"name":"n"}],"cache_control":{"type":"ephemeral","ttl":"1h"}}`
	req := decode(t, body)
	_, enc := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	var a, b any
	_ = json.Unmarshal([]byte(body), &a)
	_ = json.Unmarshal(enc.Body, &b)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s\n%s", diff, enc.Report)
	}
	o := req.Messages[1].Parts[1].(*dragoman.Opaque)
	if p := req.Messages[1].Parts[2].(*dragoman.Opaque); o.CallID != "srvtoolu_1" || p.CallID != o.CallID {
		t.Errorf("call and result of a hosted tool have different ids: %q %q", o.CallID, p.CallID)
	}
	if req.User != "u" || req.Messages[2].Role != dragoman.RoleTool || req.Messages[0].Role != dragoman.RoleUser {
		t.Errorf("user %q, roles %q %q", req.User, req.Messages[0].Role, req.Messages[2].Role)
	}
}

func TestForeignPartsAreDroppedAndReported(t *testing.T) {
	m := newMessage(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: dialectname.OpenAIResponses, Type: "computer_call", JSON: json.RawMessage(`{}`)},
		&dragoman.Text{Text: "x", Extra: &dragoman.Extra{Dialect: dialectname.OpenAIResponses, Fields: []dragoman.Field{{Path: "/annotations", Value: json.RawMessage(`[1]`)}}}})
	m.Origin, m.Phase, m.Name = foreignOrigin, "commentary", "bob"
	req := requestOf(dragoman.UserText("a"), m, dragoman.UserText("b"))
	req.Verbosity, req.CacheKey, req.ServiceTier = "low", "k", "flex"
	req.Metadata, req.Store = []dragoman.KeyValue{{Key: "a", Value: "b"}}, ptr(true)
	req.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: "/logit_bias", Value: json.RawMessage(`{"1":2}`)}}}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	for _, path := range []string{
		"/messages/1/parts/0", "/messages/1/parts/1/annotations", "/messages/1/phase", "/messages/1/name",
		"/verbosity", "/cache_key", "/service_tier", "/metadata", "/store", "/logit_bias",
	} {
		has(t, enc.Report, dragoman.Dropped, path)
	}
	for _, leak := range []string{"logit_bias", "computer_call", "annotations"} {
		if strings.Contains(string(enc.Body), leak) {
			t.Errorf("%s is sent: %s", leak, enc.Body)
		}
	}
}

func TestInvalidRequestErrorHasPointer(t *testing.T) {
	for body, pointer := range map[string]string{
		`{"model":5}`: "/model",
		`{"messages":[{"role":"user","content":"a"},{"role":3}]}`: "/messages/1/role",
		`{"messages":[{"role":"user","content":5}]}`:              "/messages/0/content",
		`{"messages":["x"]}`:                                     "/messages/0",
		`{"tools":[{"name":1,"input_schema":{}}]}`:               "/tools/0/name",
		`{"tool_choice":"auto"}`:                                 "/tool_choice",
		`{"thinking":{"type":"enabled","budget_tokens":"much"}}`: "/thinking/budget_tokens",
		`{"max_tokens":{}}`:                                      "/max_tokens",
		`{"messages":[{"role":"user","content":"a"}`:             "",
		``:   "",
		`[]`: "",
	} {
		req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || pointer != "" && at.Pointer != pointer {
			t.Errorf("%s: %v", body, err)
		}
		if req == nil {
			t.Errorf("%s: the decoded part of the request is lost", body)
		}
		if at != nil && at.Offset > int64(len(body)) {
			t.Errorf("%s: offset %d", body, at.Offset)
		}
	}
	req, _, err := codec.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":7}]}`), dialect.DecodeOptions{})
	if err == nil || len(req.Messages) != 1 || req.Model != "m" {
		t.Errorf("the part decoded before the error is lost: %+v %v", req, err)
	}
	_, _, err = codec.DecodeRequest(make([]byte, 100), dialect.DecodeOptions{MaxBytes: 10})
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestLimits(t *testing.T) {
	l := codec.Limits()
	if l.Dialect != codec.Dialect() || l.MaxCacheBreakpoints != 4 || !l.ErrorFlag || !l.GroupedResults || l.ArgumentsAsString {
		t.Errorf("%+v", l)
	}
	if !slices.Contains(l.SchemaFormats, toolformat.AnthropicTool) {
		t.Error("the dialect must accept its own tool format")
	}
}

// Fields that a framework left on blocks collected from a stream are not sent:
// the API answers 400 to each. Fields that the API itself sends are kept.
func TestQuirkD32_StreamFieldsOfBlocksAreNotSent(t *testing.T) {
	removed := []string{`"index"`, `"x-sig"`, `"stray-id"`, "input_json_delta", "partial_json"}
	clean := func(t *testing.T, body []byte) {
		t.Helper()
		for _, s := range removed {
			if bytes.Contains(body, []byte(s)) {
				t.Errorf("%s is sent:\n%s", s, body)
			}
		}
		for _, kept := range []string{`"caller":{"type":"direct"}`, `"toolu_1"`, `{"a":1}`, `"text":"hi"`} {
			if !bytes.Contains(body, []byte(kept)) {
				t.Errorf("%s is not sent:\n%s", kept, body)
			}
		}
	}
	t.Run("request", func(t *testing.T) {
		req, rep, err := codec.DecodeRequest([]byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"q"},
			{"role":"assistant","content":[{"type":"text","text":"hi","index":0},{"type":"input_json_delta","partial_json":"{}","index":1},
				{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1},"index":1,"signature":"x-sig","caller":{"type":"direct"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","id":"stray-id","content":"r"}]}]}`), dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) != 5 {
			t.Fatalf("%v\n%s", err, rep)
		}
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, req, o)
			clean(t, enc.Body)
		}
	})
	const blocks = `{"type":"text","text":"hi","index":0},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1},"index":1,"signature":"x-sig","caller":{"type":"direct"}}`
	after := func(resp *dragoman.Response) *dragoman.Request {
		ms := append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...)
		return requestOf(append(ms, dragoman.ToolResults(result("toolu_1", "r")))...)
	}
	t.Run("response", func(t *testing.T) {
		body := `{"id":"m","type":"message","role":"assistant","model":"m","content":[` + blocks + `],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
		resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, after(resp), o)
			clean(t, enc.Body)
		}
		if same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil || string(same.Body) != body {
			t.Errorf("the client gets another response (%v): %s", err, same.Body)
		}
	})
	t.Run("stream", func(t *testing.T) {
		var body strings.Builder
		for _, data := range []string{
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi","index":0}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{},"index":1,"signature":"x-sig","caller":{"type":"direct"}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`,
		} {
			body.WriteString("data: " + data + "\n\n")
		}
		evs, _, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, []byte(body.String()))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := codectest.Collect(evs)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
			_, enc := encode(t, after(resp), o)
			clean(t, enc.Body)
		}
	})
}

func TestQuirkD31_NoCacheBreakpointsDropsHints(t *testing.T) {
	req := decode(t, `{"model":"m","max_tokens":5,"cache_control":{"type":"ephemeral"},"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
		"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}}]}]}]}`)
	_, enc := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCacheBreakpoints: true}}})
	if bytes.Contains(enc.Body, []byte("cache_control")) {
		t.Errorf("a breakpoint is written: %s", enc.Body)
	}
	for _, at := range []string{"/tools/0", "/instructions/0", "/messages/0/parts/0", "/messages/2/parts/0", "/cache"} {
		has(t, enc.Report, dragoman.Dropped, at)
	}
}
