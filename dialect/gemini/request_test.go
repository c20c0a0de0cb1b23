package gemini_test

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
)

const snakeRequest = `{
	"system_instruction": {"parts": [{"text": "Be terse."}]},
	"contents": [
		{"role": "user", "parts": [{"text": "hi"}, {"inline_data": {"mime_type": "image/png", "data": "AAAA", "display_name": "a.png"}}, {"file_data": {"file_uri": "gs://b/f.mp4", "mime_type": "video/mp4"}}]},
		{"role": "model", "parts": [{"function_call": {"name": "f", "args": {"q": "x"}}, "thought_signature": "c2ln"}]},
		{"role": "user", "parts": [{"function_response": {"name": "f", "response": {"output": "ok"}}}]}],
	"tools": [{"function_declarations": [{"name": "f", "description": "F.", "parameters_json_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}]}],
	"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
	"generation_config": {"max_output_tokens": 5, "top_p": 0.5, "stop_sequences": ["x"], "response_mime_type": "application/json", "response_json_schema": {"type": "object"},
		"thinking_config": {"thinking_budget": 128, "include_thoughts": true}},
	"service_tier": "flex"}`

func TestSnakeCaseEqualsCamelCase(t *testing.T) {
	snake := decode(t, snakeRequest)
	built, _ := encode(t, snake, dialect.EncodeOptions{Rebuild: true})
	// A tool keeps the spelling of its author.
	if strings.Contains(strings.ReplaceAll(built, topField(t, built, "tools"), ""), `_`) {
		t.Errorf("snake_case is left: %s", built)
	}
	camel := decode(t, built)
	if snake.Fingerprint() != camel.Fingerprint() {
		a, _ := json.Marshal(snake)
		b, _ := json.Marshal(camel)
		t.Errorf("the requests differ:\n%s\n%s", a, b)
	}
	if c := snake.Messages[1].ToolCalls(); len(c) != 1 || c[0].Signature != "c2ln" || !c[0].Synthetic {
		t.Errorf("call %+v", c)
	}
	if snake.ToolChoice.Mode != dragoman.ChoiceTool || snake.Reasoning.Summary != "auto" || *snake.Reasoning.BudgetTokens != 128 || snake.ServiceTier != "flex" {
		t.Errorf("settings are lost: %+v %+v", snake.ToolChoice, snake.Reasoning)
	}
	if snake.Messages[2].Role != dragoman.RoleTool {
		t.Errorf("results have role %s", snake.Messages[2].Role)
	}
}

func TestUnchangedRequestKeepsItsBytes(t *testing.T) {
	req := decode(t, snakeRequest)
	req.Model, req.Stream = "gemini-9", true
	if body, rep := encode(t, req, dialect.EncodeOptions{}); body != snakeRequest || len(rep.Losses) > 0 {
		t.Errorf("%s\n%s", body, rep)
	}
}

func TestModelIsOmittedUnlessBodyNamedIt(t *testing.T) {
	req := requestOf(dragoman.UserText("hi"))
	req.Stream = true
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if strings.Contains(body, "model") || strings.Contains(body, "stream") {
		t.Error(body)
	}
	has(t, rep, dragoman.Moved, "/model")
	has(t, rep, dragoman.Moved, "/stream")

	named := decode(t, `{"model":"models/gemini-2.0-flash","contents":[{"parts":[{"text":"hi"}],"role":"user"}]}`)
	if named.Model != "models/gemini-2.0-flash" {
		t.Fatalf("model %q", named.Model)
	}
	named.Model = "models/other"
	if body, _ := encode(t, named, dialect.EncodeOptions{}); body != `{"model":"models/other","contents":[{"parts":[{"text":"hi"}],"role":"user"}]}` {
		t.Error(body)
	}
	if body, rep := encode(t, named, dialect.EncodeOptions{Rebuild: true}); topField(t, body, "model") != `"models/other"` || strings.Contains(rep.String(), "/model") {
		t.Errorf("%s\n%s", body, rep)
	}
}

func TestQuirkB15_CallsWithoutIDPairByNameAndOrder(t *testing.T) {
	const body = `{"contents":[{"role":"user","parts":[{"text":"go"}]},` +
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"name":"f","args":{"n":2}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"g"}}},{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}]}`
	req := decode(t, body)
	calls := req.Messages[1].ToolCalls()
	answered := map[string]string{}
	for _, p := range req.Messages[2].Parts {
		res := p.(*dragoman.ToolResult)
		answered[res.CallID] = res.Text()
	}
	if answered[calls[0].ID] != "1" || answered[calls[1].ID] != "g" || answered[calls[2].ID] != "2" {
		t.Errorf("calls %v are answered by %v", calls, answered)
	}
	built, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	if strings.Contains(built, `"id"`) {
		t.Errorf("an id was synthesized: %s", built)
	}
	again, _, _ := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if again.Messages[1].ToolCalls()[0].ID != calls[0].ID {
		t.Error("decoding the same history again gives other ids")
	}
}

func TestQuirkB15_NoCallIDsOmitsIDs(t *testing.T) {
	req := requestOf(dragoman.UserText("go"), newMessage(dragoman.RoleAssistant, call("toolu_1", "f", `{}`)), dragoman.ToolResults(result("toolu_1", "ok")))
	body, _ := encode(t, req, dialect.EncodeOptions{})
	if strings.Count(body, `"id":"toolu_1"`) != 2 {
		t.Errorf("call and result must have the id: %s", body)
	}
	body, _ = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCallIDs: true}}})
	if strings.Contains(body, "toolu_1") {
		t.Errorf("the target does not accept ids: %s", body)
	}
}

func TestQuirkB15_ClientIDPairsWithCallWithoutID(t *testing.T) {
	req := decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}}]},`+
		`{"role":"user","parts":[{"functionResponse":{"id":"mine","name":"g","response":{"output":"G"}}},{"functionResponse":{"id":"mine2","name":"f","response":{"output":"F"}}}]}]}`)
	calls := req.Messages[0].ToolCalls()
	for i, p := range req.Messages[1].Parts {
		if res := p.(*dragoman.ToolResult); res.CallID != calls[1-i].ID {
			t.Errorf("result %d answers %q, want %q", i, res.CallID, calls[1-i].ID)
		}
	}
}

func TestQuirkB16_SignatureReturnsOnlyToItsModel(t *testing.T) {
	const body = `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"hm","thought":true},{"text":"","thoughtSignature":"c0"},` +
		`{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c1"},{"functionCall":{"name":"f","args":{"q":"2"}}},{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"c2"},` +
		`{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"c3"}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}]}`
	home := dragoman.Origin{Provider: "google", Model: "gemini-3"}
	req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{Origin: home})
	if err != nil {
		t.Fatal(err)
	}
	same, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true, Target: targets.Target{Provider: "google", Model: "gemini-3"}})
	for _, want := range []string{`{"text":"hm","thought":true}`, `{"text":"","thoughtSignature":"c0"}`, `"args":{}},"thoughtSignature":"c1"}`, `"thoughtSignature":"c2"`, `"thoughtSignature":"c3"`} {
		if !strings.Contains(same, want) {
			t.Errorf("the model that made it does not get %s: %s", want, same)
		}
	}
	for _, rebuild := range []bool{false, true} {
		other, rep := encode(t, req, dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "google", Model: "gemini-4"}})
		for _, secret := range []string{`"c0"`, `"c1"`, `"c2"`, `"c3"`, `hm`} {
			if strings.Contains(other, secret) {
				t.Errorf("another model gets %s: %s", secret, other)
			}
		}
		if strings.Count(other, "skip_thought_signature_validator") != 1 {
			t.Errorf("exactly the first call needs the placeholder signature: %s", other)
		}
		has(t, rep, dragoman.Dropped, "/messages/1/parts/2/signature")
		has(t, rep, dragoman.Synthesized, "/messages/1/parts/2/signature")
	}
}

func TestQuirkB16_ForeignCallGetsPlaceholderSignature(t *testing.T) {
	turn := from(foreignOrigin, newMessage(dragoman.RoleAssistant, &dragoman.Text{Text: "a"}, call("1", "f", `{}`), call("2", "f", `{}`)))
	req := requestOf(dragoman.UserText("go"), turn, dragoman.ToolResults(result("1", "x"), result("2", "y")))
	body, rep := encode(t, req, dialect.EncodeOptions{})
	want := `{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"2","name":"f","args":{}}}`
	if !strings.Contains(body, want) {
		t.Error(body)
	}
	has(t, rep, dragoman.Synthesized, "/messages/1/parts/1/signature")
	body, _ = encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoDummySignature: true}}})
	if strings.Contains(body, "skip") {
		t.Errorf("the target needs no placeholder: %s", body)
	}
	// A placeholder written by package history has no origin and is kept.
	turn.Parts[1].(*dragoman.ToolCall).Signature = codec.Limits().DummySignature
	if body, _ := encode(t, req, dialect.EncodeOptions{}); !strings.Contains(body, want) {
		t.Error(body)
	}
	// An unsigned call that the target itself made stays unsigned.
	req.Messages[1] = from(ownOrigin, newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)))
	if body, _ := encode(t, req, dialect.EncodeOptions{}); strings.Contains(body, "skip") {
		t.Errorf("the target's own call must stay unsigned: %s", body)
	}
}

func TestQuirkD3_ResultsAreOneContentInCallOrder(t *testing.T) {
	req := requestOf(dragoman.UserText("go"),
		newMessage(dragoman.RoleAssistant, &dragoman.Text{Text: "a"}), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), newMessage(dragoman.RoleAssistant, call("2", "g", `{}`)),
		dragoman.ToolResults(result("2", "second")), dragoman.ToolResults(result("1", "first")), dragoman.UserText("and now?"))
	body, rep := encode(t, req, dialect.EncodeOptions{})
	got := contentsOf(t, body)
	if len(got) != 3 {
		t.Fatalf("%d contents: %s", len(got), body)
	}
	want := `{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"first"}}},` +
		`{"functionResponse":{"id":"2","name":"g","response":{"output":"second"}}},{"text":"and now?"}]}`
	if got[2] != want {
		t.Errorf("got  %s\nwant %s", got[2], want)
	}
	has(t, rep, dragoman.Moved, "/messages/5/parts/0")
}

func TestQuirkD15_ResultHasToolName(t *testing.T) {
	req := requestOf(dragoman.UserText("go"), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), dragoman.ToolResults(result("1", "x"), result("nobody's", "y")))
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if !strings.Contains(body, `{"id":"1","name":"f","response"`) || !strings.Contains(body, `{"id":"nobody's","name":"unknown_tool","response"`) {
		t.Error(body)
	}
	has(t, rep, dragoman.Synthesized, "/messages/2/parts/1/name")
}

func TestQuirkD16_ResultObjectForms(t *testing.T) {
	text := func(s string) []dragoman.Part { return []dragoman.Part{&dragoman.Text{Text: s}} }
	data := func(s string) []dragoman.Part { return []dragoman.Part{&dragoman.Data{JSON: json.RawMessage(s)}} }
	for _, c := range []struct {
		name    string
		outcome string
		content []dragoman.Part
		want    string
	}{
		{"text", codes.OutcomeOK, text("4 C"), `{"output":"4 C"}`},
		{"nothing", codes.OutcomeOK, nil, `{"output":""}`},
		{"error", codes.OutcomeError, text("no"), `{"error":"no"}`},
		{"error data", codes.OutcomeError, data(`{"code":5}`), `{"error":{"code":5}}`},
		{"object", codes.OutcomeOK, data(`{"temp":4}`), `{"output":{"temp":4}}`},
		{"object, outcome unknown", codes.OutcomeUnknown, data(`{"temp":4}`), `{"temp":4}`},
		{"object with a reserved key", codes.OutcomeUnknown, data(`{"error":4}`), `{"output":{"error":4}}`},
		{"list", codes.OutcomeOK, data(`[1,2]`), `{"output":[1,2]}`},
		{"data with a reference", codes.OutcomeOK, data(`{"$ref":"x"}`), `{"output":"{\"$ref\":\"x\"}"}`},
		{"several texts", codes.OutcomeOK, append(text("a"), text("b")...), `{"output":"a\nb"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := &dragoman.ToolResult{CallID: "1", Name: "f", Outcome: c.outcome, Content: c.content}
			body, _ := encode(t, requestOf(dragoman.UserText("go"), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), dragoman.ToolResults(res)), dialect.EncodeOptions{})
			if want := `"response":` + c.want + `}`; !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", body, want)
			}
			again := decode(t, body).Messages[2].Parts[0].(*dragoman.ToolResult)
			if c.outcome != codes.OutcomeUnknown && again.Outcome != c.outcome {
				t.Errorf("outcome %q decoded as %q", c.outcome, again.Outcome)
			}
		})
	}
}

// The Developer API answers 400 if media has a name; Vertex accepts one. A
// Gemini client that sent a name knows its server, so only its names are
// written.
func TestMediaNameIsWrittenOnlyForGeminiClients(t *testing.T) {
	const own = `{"contents":[{"role":"user","parts":[{"inline_data":{"mime_type":"application/pdf","data":"AAAA","display_name":"a.pdf"}}]}]}`
	req := decode(t, own)
	media := req.Messages[0].Parts[0].(*dragoman.Media)
	if media.Name != "a.pdf" {
		t.Errorf("%+v", media)
	}
	media.Name = "b.pdf"
	body, _ := encode(t, req, dialect.EncodeOptions{})
	if !strings.Contains(body, `"displayName":"b.pdf"`) || strings.Contains(body, "a.pdf") {
		t.Error(body)
	}
	media.Extra = nil
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if strings.Contains(body, "b.pdf") {
		t.Error(body)
	}
	has(t, rep, dragoman.Dropped, "/messages/0/parts/0")
}

func TestQuirkD13_MediaInsideOrAfterResult(t *testing.T) {
	res := &dragoman.ToolResult{CallID: "1", Name: "f", Outcome: codes.OutcomeOK, Content: []dragoman.Part{
		&dragoman.Text{Text: "see"}, &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AAAA", Name: "a.png"},
	}}
	req := requestOf(dragoman.UserText("go"), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), dragoman.ToolResults(res))
	body, rep := encode(t, req, dialect.EncodeOptions{})
	const blob = `{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`
	if !strings.Contains(body, `"response":{"output":"see"},"parts":[`+blob+`]}}`) {
		t.Error(body)
	}
	again := decode(t, body).Messages[2].Parts[0].(*dragoman.ToolResult)
	if m, ok := again.Content[1].(*dragoman.Media); !ok || m.Base64 != "AAAA" {
		t.Errorf("media decoded as %+v", again.Content)
	}
	has(t, rep, dragoman.Dropped, "/messages/2/parts/0/content/1") // the name
	old := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoResultMedia: true}}}
	body, rep = encode(t, req, old)
	if !strings.Contains(body, `"response":{"output":"see"}}},`+blob+`]`) {
		t.Error(body)
	}
	has(t, rep, dragoman.Moved, "/messages/2/parts/0/content/1")
}

func TestQuirkD13_MediaTypesInResults(t *testing.T) {
	image := func(mime, url string) *dragoman.ToolResult {
		m := &dragoman.Media{Media: codes.MediaImage, MIME: mime, URL: url}
		if url == "" {
			m.Base64 = "AAAA"
		}
		return &dragoman.ToolResult{CallID: "1", Name: "f", Outcome: codes.OutcomeOK, Content: []dragoman.Part{m}}
	}
	for name, tc := range map[string]struct {
		res  *dragoman.ToolResult
		want string
	}{
		"accepted type":     {image("image/webp", ""), `"parts":[{"inlineData":{"mimeType":"image/webp","data":"AAAA"}}]}},{"functionResponse"`},
		"other type":        {image("image/gif", ""), `"response":{"output":"2"}}},{"inlineData":{"mimeType":"image/gif","data":"AAAA"}}`},
		"type from the URL": {image("", "https://x/y.PNG?z=.gif"), `"parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://x/y.PNG?z=.gif"}}]`},
		"URL without type":  {image("", "https://x/y"), `"response":{"output":"2"}}},{"fileData":{"fileUri":"https://x/y"}}`},
	} {
		other := result("2", "2")
		other.Name, other.Outcome = "f", codes.OutcomeOK
		req := requestOf(dragoman.UserText("go"), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`), call("2", "f", `{}`)), dragoman.ToolResults(tc.res, other))
		if body, _ := encode(t, req, dialect.EncodeOptions{}); !strings.Contains(body, tc.want) {
			t.Errorf("%s: %s", name, body)
		}
	}
	body, rep := encode(t, requestOf(newMessage(dragoman.RoleUser, &dragoman.Media{Media: codes.MediaImage, URL: "https://e/i.png"})), dialect.EncodeOptions{})
	if !strings.Contains(body, `{"fileData":{"mimeType":"image/png","fileUri":"https://e/i.png"}}`) {
		t.Error(body)
	}
	has(t, rep, dragoman.Synthesized, "/messages/0/parts/0/mime")
}

func TestQuirkD13_OwnContentWithoutTypeGetsOne(t *testing.T) {
	const png = "iVBORw0KGgo="
	own := func(m dragoman.Message) dragoman.Message {
		m.Origin = &dragoman.Origin{Dialect: dialectname.Gemini}
		return m
	}
	image := func() *dragoman.Media { return &dragoman.Media{Media: codes.MediaImage, Base64: png} }
	jpg := &dragoman.Media{Media: codes.MediaImage, MIME: "image/jpg", Base64: "/9j/"}
	if body, _ := encode(t, requestOf(own(newMessage(dragoman.RoleUser, jpg))), dialect.EncodeOptions{}); !strings.Contains(body, `"mimeType":"image/jpeg"`) {
		t.Error(body)
	}
	zip := &dragoman.Media{Media: codes.MediaFile, MIME: "application/zip", Base64: "UEs="}
	refused, rep := encode(t, requestOf(own(newMessage(dragoman.RoleUser, zip))), dialect.EncodeOptions{})
	if strings.Contains(refused, "inlineData") || !strings.Contains(refused, "not shown") {
		t.Errorf("a type that the API always refuses: %s", refused)
	}
	has(t, rep, dragoman.Dropped, "/messages/0/parts/0")
	res := &dragoman.ToolResult{CallID: "1", Name: "f", Content: []dragoman.Part{image()}}
	body, _ := encode(t, requestOf(own(newMessage(dragoman.RoleUser, image())), newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), own(dragoman.ToolResults(res))), dialect.EncodeOptions{})
	if strings.Count(body, `{"mimeType":"image/png","data":"`+png+`"}`) != 2 {
		t.Error(body)
	}
}

func TestQuirkD17_FirstContentIsUser(t *testing.T) {
	body, rep := encode(t, requestOf(newMessage(dragoman.RoleAssistant, call("1", "f", `{}`)), dragoman.ToolResults(result("1", "x"))), dialect.EncodeOptions{})
	if got := contentsOf(t, body); len(got) != 3 || !strings.Contains(got[0], `"role":"user"`) {
		t.Error(body)
	}
	has(t, rep, dragoman.Synthesized, "/messages")
}

func TestQuirkD18_ConsecutiveRolesAreMerged(t *testing.T) {
	body, _ := encode(t, requestOf(dragoman.UserText("a"), dragoman.UserText("b")), dialect.EncodeOptions{})
	if got := contentsOf(t, body); len(got) != 1 {
		t.Error(body)
	}
	const two = `{"contents":[{"parts":[{"text": "a"}],"role":"user","x":1},{"parts":[{"text":  "b"}],"role":"user"}]}`
	req := decode(t, two)
	if body, _ = encode(t, req, dialect.EncodeOptions{}); body != two {
		t.Error(body)
	}
	req.Messages = append(req.Messages, dragoman.AssistantText("c"))
	body, _ = encode(t, req, dialect.EncodeOptions{})
	if got := contentsOf(t, body); len(got) != 2 || got[0] != `{"parts":[{"text": "a"},{"text":  "b"}],"role":"user","x":1}` {
		t.Errorf("%q", got)
	}
}

func TestQuirkD37_CachedContentReplacesInstructionsAndTools(t *testing.T) {
	req := decode(t, `{"cachedContent":"cachedContents/x","contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "rule"}}
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	body, rep := encode(t, req, dialect.EncodeOptions{})
	for _, key := range []string{"systemInstruction", "tools", "toolConfig"} {
		if topField(t, body, key) != "" {
			t.Errorf("%s next to a cached content: %s", key, body)
		}
	}
	for _, path := range []string{"/instructions", "/tools", "/tool_choice"} {
		has(t, rep, dragoman.Dropped, path)
	}
	if topField(t, body, "cachedContent") != `"cachedContents/x"` {
		t.Error(body)
	}
}

func TestQuirkE1_ToolChoiceModes(t *testing.T) {
	ref := func(names ...string) (refs []dragoman.ToolRef) {
		for _, n := range names {
			refs = append(refs, dragoman.ToolRef{Name: n})
		}
		return refs
	}
	for _, c := range []struct {
		name   string
		choice *dragoman.ToolChoice
		want   string
	}{
		{"not set", nil, ""},
		{"auto", &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}, `{"mode":"AUTO"}`},
		{"none", &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}, `{"mode":"NONE"}`},
		{"required", &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, `{"mode":"ANY"}`},
		{"tool", &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: ref("f")}, `{"mode":"ANY","allowedFunctionNames":["f"]}`},
		{"one of two", &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Tools: ref("f", "g")}, `{"mode":"ANY","allowedFunctionNames":["f","g"]}`},
		{"auto with a list (quirk E8)", &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: ref("f")}, `{"mode":"VALIDATED","allowedFunctionNames":["f"]}`},
		{"auto with an empty list", &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}}, `{"mode":"NONE"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := requestOf(dragoman.UserText("go"))
			req.Tools, req.ToolChoice = []dragoman.ToolSpec{tool("f"), tool("g")}, c.choice
			body, _ := encode(t, req, dialect.EncodeOptions{})
			want := c.want
			if want != "" {
				want = `{"functionCallingConfig":` + want + `}`
			}
			if got := topField(t, body, "toolConfig"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestQuirkE3_NoToolsNoChoice(t *testing.T) {
	req := requestOf(dragoman.UserText("go"))
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	off := false
	req.ParallelToolCalls = &off
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if topField(t, body, "toolConfig") != "" || topField(t, body, "tools") != "" {
		t.Error(body)
	}
	has(t, rep, dragoman.Dropped, "/tool_choice")
}

func TestQuirkE5_MissingForcedToolIsError(t *testing.T) {
	req := requestOf(dragoman.UserText("go"))
	req.Tools = []dragoman.ToolSpec{tool("f")}
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "g"}}}
	if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestValidatedAndUnknownModesSurvive(t *testing.T) {
	for _, config := range []string{
		`{"mode":"VALIDATED"}`, `{"mode":"VALIDATED","allowedFunctionNames":["f"]}`, `{"mode":"TELEPATHY","x":1}`,
		`{"mode":"AUTO","streamFunctionCallArguments":true}`, `{"streamFunctionCallArguments":true}`,
	} {
		req := decode(t, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":""}]}],"toolConfig":{"functionCallingConfig":`+config+`,"includeServerSideToolInvocations":true}}`)
		body, rep := encode(t, req, dialect.EncodeOptions{Rebuild: true})
		if got := topField(t, body, "toolConfig"); got != `{"functionCallingConfig":`+config+`,"includeServerSideToolInvocations":true}` {
			t.Errorf("%s became %s\n%s", config, got, rep)
		}
	}
}

func TestQuirkA2_ClosedSchemasCapability(t *testing.T) {
	req := requestOf(dragoman.UserText("go"))
	req.Tools = []dragoman.ToolSpec{{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":["string","null"]}},"additionalProperties":false}`)}}
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)}
	body, _ := encode(t, req, dialect.EncodeOptions{})
	if !strings.Contains(body, `"parametersJsonSchema":{`) || strings.Contains(body, `"parameters":`) || !strings.Contains(body, `"responseJsonSchema":{`) {
		t.Error(body)
	}
	body, rep := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{ClosedSchemas: true}}})
	if strings.Contains(body, "JsonSchema") || strings.Contains(body, "additionalProperties") || !strings.Contains(body, `"nullable":true`) || !strings.Contains(body, `"responseSchema":{`) {
		t.Errorf("%s\n%s", body, rep)
	}
}

func TestQuirkA20_ToolWithoutArgumentsHasNoSchema(t *testing.T) {
	for _, params := range []string{``, `{}`, `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":null}`, `{"$schema":"x"}`} {
		req := requestOf(dragoman.UserText("go"))
		req.Tools = []dragoman.ToolSpec{{Name: "f", Description: "F."}}
		if params != "" {
			req.Tools[0].Parameters = json.RawMessage(params)
		}
		for _, closed := range []bool{false, true} {
			body, rep := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{ClosedSchemas: closed}}})
			if got := topField(t, body, "tools"); got != `[{"functionDeclarations":[{"name":"f","description":"F."}]}]` {
				t.Errorf("%q became %s\n%s", params, got, rep)
			}
			if strings.Contains(rep.String(), "/properties") && !strings.Contains(params, "null") {
				t.Errorf("%q: a schema that is not sent loses nothing:\n%s", params, rep)
			}
		}
	}
}

func TestQuirkA21_ClosedSchemaBecomesJSONSchema(t *testing.T) {
	req := decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{
		"type":{"type":"STRING","nullable":true,"enum":["a"],"format":"enum"},"n":{"type":"INTEGER","enum":["1","2"],"format":"int32"},
		"l":{"type":"ARRAY","min_items":"1","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"}],"nullable":true}}},"required":["n"],"propertyOrdering":["n"]}}]}]}`)
	want := `{"type":"object","properties":{"type":{"type":["string","null"],"enum":["a",null]},"n":{"type":"integer","enum":[1,2],"format":"int32"},` +
		`"l":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"null"}]}}},"required":["n"],"propertyOrdering":["n"]}`
	if got := string(req.Tools[0].Parameters); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestQuirkA44_HostedToolsAreSeparateElements(t *testing.T) {
	const tools = `[{"googleSearch":{}},{"functionDeclarations":[{"name":"f","description":""},{"name":"g","description":""}]},{"codeExecution":{}}]`
	req := decode(t, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":`+tools+`}`)
	if len(req.Tools) != 4 || req.Tools[0].Kind != codes.ToolHosted || req.Tools[0].Name != "googleSearch" || req.Tools[3].Name != "codeExecution" {
		t.Fatalf("%+v", req.Tools)
	}
	body, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	if got := topField(t, body, "tools"); got != tools {
		t.Errorf("got %s", got)
	}
	req.Tools[2].Parameters = json.RawMessage(`{"type":5}`)
	req.Tools[2].Name = ""
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if got := topField(t, body, "tools"); strings.Contains(got, `"g"`) || !strings.Contains(got, `"f"`) {
		t.Errorf("got %s", got)
	}
	has(t, rep, dragoman.Dropped, "/tools/2")
}

func TestQuirkG10_EffortAndBudgetPerModel(t *testing.T) {
	budget := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		settings dragoman.ReasoningSettings
		level    string // for a model that accepts levels
		number   string // for a model that accepts budgets
	}{
		{"effort", dragoman.ReasoningSettings{Effort: "low"}, `{"thinkingLevel":"LOW"}`, `{"thinkingBudget":1024}`},
		{"above high", dragoman.ReasoningSettings{Effort: "max"}, `{"thinkingLevel":"HIGH"}`, `{"thinkingBudget":24576}`},
		{"budget", dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: budget(99)}, `{"thinkingBudget":99}`, `{"thinkingBudget":99}`},
		{"budget and effort", dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: budget(99), Effort: "high"}, `{"thinkingLevel":"HIGH"}`, `{"thinkingBudget":99}`},
		{"off", dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, `{"thinkingLevel":"MINIMAL"}`, `{"thinkingBudget":0}`},
		{"no effort", dragoman.ReasoningSettings{Effort: "none"}, `{"thinkingLevel":"MINIMAL"}`, `{"thinkingBudget":0}`},
		{"adaptive", dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, Summary: "auto"}, `{"thinkingBudget":-1,"includeThoughts":true}`, `{"thinkingBudget":-1,"includeThoughts":true}`},
		{"omitted", dragoman.ReasoningSettings{Summary: "omitted"}, `{"includeThoughts":false}`, `{"includeThoughts":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := requestOf(dragoman.UserText("go"))
			req.Reasoning = &c.settings
			for caps, want := range map[targets.Capabilities]string{{}: c.level, {ThinkingBudgets: true}: c.number} {
				body, _ := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Caps: caps}})
				if got := topField(t, body, "generationConfig"); got != `{"thinkingConfig":`+want+`}` {
					t.Errorf("%+v: got %s, want %s", caps.ThinkingBudgets, got, want)
				}
			}
		})
	}
	own := decode(t, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`)
	if body, _ := encode(t, own, dialect.EncodeOptions{Rebuild: true}); topField(t, body, "generationConfig") != `{"thinkingConfig":{"thinkingBudget":0}}` {
		t.Errorf("a Gemini client's setting must be kept: %s", body)
	}
}

func TestSystemMessagesBecomeSystemInstruction(t *testing.T) {
	req := requestOf(dragoman.SystemText("one"), newMessage(dragoman.RoleDeveloper, &dragoman.Text{Text: "two"}), dragoman.UserText("hi"), dragoman.SystemText("late"))
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "zero"}}
	body, rep := encode(t, req, dialect.EncodeOptions{})
	if got := topField(t, body, "systemInstruction"); got != `{"parts":[{"text":"zero"},{"text":"one"},{"text":"two"}]}` {
		t.Error(got)
	}
	if got := contentsOf(t, body); len(got) != 1 || !strings.Contains(got[0], "late") {
		t.Errorf("%q", got)
	}
	has(t, rep, dragoman.Lowered, "/messages/3")
}

func TestUnknownFieldsAndPartsRoundTrip(t *testing.T) {
	const body = `{"contents":[{"role":"model","parts":[{"text":"a","partMetadata":{"k":1}},{"videoMetadata":{"fps":1},"fileData":{"fileUri":"u","x":2}},{"toolCall":{"id":"t1","toolType":"URL_CONTEXT"}},{"toolResponse":{"id":"t1"}},{"novelty":[1]},` +
		`{"functionCall":{"name":"f","args":{},"y":3},"partMetadata":{"k":2}}],"z":4},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":"o"},"scheduling":"SILENT"}}]},{"role":"martian","parts":[{"text":"m"}]}],` +
		`"safetySettings":[{"category":10,"threshold":3}],"labels":{"a":"b"},"store":false,"generationConfig":{"responseModalities":["TEXT"],"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING"},"thinkingConfig":{"future":1}},"novel":{}}`
	req := decode(t, body)
	built, rep := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	if got, want := codectest.JSON[any](t, []byte(built)), codectest.JSON[any](t, []byte(body)); !equalJSON(got, want) {
		t.Errorf("%s\n%s", built, rep)
	}
	if o, ok := req.Messages[0].Parts[2].(*dragoman.Opaque); !ok || o.CallID != "t1" || o.Type != "toolCall" {
		t.Errorf("%+v", req.Messages[0].Parts[2])
	}
}

func TestUnsupportedSettingsAreReported(t *testing.T) {
	on := true
	req := requestOf(dragoman.UserText("hi"))
	req.User, req.Verbosity, req.Store, req.CacheKey = "u", "low", &on, "k"
	req.Metadata = []dragoman.KeyValue{{Key: "a", Value: "b"}}
	req.ServiceTier = "auto"
	req.Cache = &dragoman.CacheHint{}
	req.Messages[0].Cache = &dragoman.CacheHint{}
	req.Messages[0].Name = "Ann"
	_, rep := encode(t, req, dialect.EncodeOptions{})
	for _, path := range []string{"/user", "/verbosity", "/store", "/cache_key", "/metadata", "/service_tier", "/cache", "/messages/0/cache", "/messages/0/name"} {
		has(t, rep, dragoman.Dropped, path)
	}
}

func TestQuirkB16_HiddenSignatureIsRemovedForAnotherModel(t *testing.T) {
	for _, part := range []string{
		`{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"secret"}`,
		`{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"secret"}`,
	} {
		body := `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[` + part + `]}]}`
		req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{Origin: dragoman.Origin{Model: "gemini-3"}})
		if err != nil {
			t.Fatal(err)
		}
		for model, kept := range map[string]bool{"gemini-3": true, "gemini-4": false} {
			out, _ := encode(t, req, dialect.EncodeOptions{Target: targets.Target{Model: model}})
			if strings.Contains(out, "secret") != kept || kept && out != body {
				t.Errorf("%s gets %s", model, out)
			}
		}
	}
}

// a_b and aB are one field to the API, but two keys in a map with user-defined
// keys.
func TestUserDefinedMapKeysAreLiteral(t *testing.T) {
	const own = `{"a_b":"1","aB":"2"}`
	for what, body := range map[string]string{
		"labels":                    `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"labels":` + own + `}`,
		"partMetadata":              `{"contents":[{"role":"user","parts":[{"text":"x","partMetadata":` + own + `}]}]}`,
		"part_metadata":             `{"contents":[{"role":"user","parts":[{"text":"x","part_metadata":` + own + `}]}]}`,
		"instruction part":          `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"systemInstruction":{"parts":[{"text":"x","partMetadata":` + own + `}]}}`,
		"headers":                   `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"mcpServers":[{"name":"s","streamableHttpTransport":{"url":"u","headers":` + own + `}}]}]}`,
		"args":                      `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":` + own + `}}]}]}`,
		"args of a hosted tool":     `{"contents":[{"role":"model","parts":[{"toolCall":{"toolType":"T","args":` + own + `}}]}]}`,
		"response of a hosted tool": `{"contents":[{"role":"model","parts":[{"toolResponse":{"toolType":"T","response":` + own + `}}]}]}`,
		"response":                  `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":` + own + `}}]}]}`,
		"parameters":                `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a_b":{},"aB":{}}}}]}]}`,
		"parametersJsonSchema":      `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"properties":{"a_b":{},"aB":{}}}}]}]}`,
		"responseSchema":            `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"properties":{"a_b":{},"aB":{}}}}}`,
		"_responseJsonSchema":       `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"_responseJsonSchema":{"properties":{"a_b":{},"aB":{}}}}}`,
		"responseFormat":            `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"responseFormat":[{"text":{"schema":{"properties":{"a_b":{},"aB":{}}}}}]}}`,
	} {
		req, rep, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil || req.Native == nil {
			t.Errorf("%s: %v, native %v", what, err, req.Native != nil)
			continue
		}
		for _, l := range rep.Losses {
			if l.Severity > dragoman.Info {
				t.Errorf("%s: %s", what, l)
			}
		}
		again, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true})
		if !strings.Contains(again, `"a_b"`) || !strings.Contains(again, `"aB"`) {
			t.Errorf("%s became %s", what, again)
		}
	}
}

func TestQuirkF5_SecondOutputSchemaIsReported(t *testing.T) {
	for _, body := range []string{
		`{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"responseJsonSchema":{"type":"object"}}}`,
		`{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generation_config":{"response_json_schema":{"type":"object"},"response_schema":{"type":"STRING"},"response_mime_type":"application/json"}}`,
	} {
		req, rep, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil || string(req.Output.Schema) != `{"type":"object"}` {
			t.Errorf("%v: %s", err, req.Output.Schema)
		}
		has(t, rep, dragoman.Dropped, "/generationConfig/responseSchema")
	}
}

func TestSecondToolSchemaIsReported(t *testing.T) {
	req, rep, err := codec.DecodeRequest([]byte(`{"contents":[{"role":"user","parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f",
		"parameters":{"type":"OBJECT"},"parametersJsonSchema":{"type":"object","properties":{"a":{}}},
		"response":{"type":"STRING"},"responseJsonSchema":{"type":"object"}}]}]}`), dialect.DecodeOptions{})
	if err != nil || string(req.Tools[0].Parameters) != `{"type":"object","properties":{"a":{}}}` || string(req.Tools[0].OutputSchema) != `{"type":"object"}` {
		t.Errorf("%v: %+v", err, req.Tools[0])
	}
	has(t, rep, dragoman.Dropped, "/tools/0/functionDeclarations/0/parameters")
	has(t, rep, dragoman.Dropped, "/tools/0/functionDeclarations/0/response")
}

// The API reads a single value as a list of one, and clients rely on it.
func TestSingleValuesAreListsOfOne(t *testing.T) {
	const body = `{"contents":{"parts":{"text":"hi"}},"systemInstruction":{"parts":{"text":"Be brief."}},
"tools":{"functionDeclarations":{"name":"get_weather","description":"Weather.","parametersJsonSchema":{"type":"object"}}},
"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":"get_weather"}},
"generationConfig":{"stopSequences":"END"}}`
	req, rep, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil || len(rep.Losses) != 0 {
		t.Fatal(err, rep.Losses)
	}
	if len(req.Instructions) != 1 || req.Instructions[0].(*dragoman.Text).Text != "Be brief." {
		t.Errorf("instructions %+v", req.Instructions)
	}
	if len(req.Tools) != 1 || req.Tools[0].Name != "get_weather" || req.Tools[0].Kind == codes.ToolHosted {
		t.Errorf("tools %+v", req.Tools)
	}
	if c := req.ToolChoice; c == nil || len(c.Tools) != 1 || c.Tools[0].Name != "get_weather" {
		t.Errorf("tool choice %+v", c)
	}
	if len(req.Messages) != 1 || len(req.Messages[0].Parts) != 1 || len(req.Sampling.Stop) != 1 || req.Sampling.Stop[0] != "END" {
		t.Errorf("messages %+v, stop %q", req.Messages, req.Sampling.Stop)
	}
	if req.Extra != nil && len(req.Extra.Fields) > 0 {
		t.Errorf("extra fields: %+v", req.Extra.Fields)
	}
}

// With VALIDATED a model may respond with text, so a forced call is always ANY.
func TestQuirkE8_ForcedCallIsAny(t *testing.T) {
	for about, choice := range map[string]*dragoman.ToolChoice{
		"required":         {Mode: dragoman.ChoiceRequired},
		"required, listed": {Mode: dragoman.ChoiceRequired, Tools: []dragoman.ToolRef{{Name: "f"}}},
		"named":            {Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "f"}}},
	} {
		for _, strict := range []string{codes.StrictOff, codes.StrictOn} {
			req := &dragoman.Request{Model: "gemini-3.8-flash", Messages: []dragoman.Message{dragoman.UserText("hi")}, ToolChoice: choice, Tools: []dragoman.ToolSpec{{Name: "f", Strict: strict}, {Name: "g"}}}
			enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
			if body := string(enc.Body); err != nil || !strings.Contains(body, `"mode":"ANY"`) || strings.Contains(body, "VALIDATED") {
				t.Errorf("%s: %v %s", about, err, body)
			}
		}
	}
}

// A null in snake case must not be written next to the value in camel case:
// that would be a duplicate field.
func TestNullInOtherSpellingIsNotWritten(t *testing.T) {
	req := decode(t, `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"service_tier":null}`)
	req.ServiceTier = "flex"
	got, _ := encode(t, req, dialect.EncodeOptions{})
	if want := `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"serviceTier":"flex"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
