package quirks_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// signatureForms lists the forms of a Gemini signature on a Chat call.
var signatureForms = map[string]string{
	"Google extra_content":        `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}}`,
	"gateway field on the call":   `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"provider_specific_fields":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}`,
	"gateway field inside":        `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}}`,
	"bare":                        `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}`,
	"bare inside":                 `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}`,
	"camelCase, as in Gemini":     `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thoughtSignature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}`,
	"suffix of the id":            `{"id":"x__thought__CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=","type":"function","function":{"name":"f","arguments":"{}"}}`,
	"other suffix of the id":      `{"id":"x_0123456789abcdef_ts_CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE","type":"function","function":{"name":"f","arguments":"{}"}}`,
	"suffix of the id and inside": `{"id":"x__thought__CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}}`,
}

// idIn returns the id of a call on the wire.
func idIn(call string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(call, `{"id":"`), `"`)
	return id
}

// signedOnce checks that a Gemini body has the signature exactly once, and no
// placeholder for it.
func signedOnce(t *testing.T, body string, rep dragoman.Report) {
	t.Helper()
	if strings.Count(body, `"thoughtSignature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="`) != 1 || strings.Contains(body, toolwire.DummySignature) ||
		strings.Count(body, "CiQBSGVsbG8sIHRoaXMg") != 1 {
		t.Errorf("the signature does not occur exactly once: %s", body)
	}
	for _, l := range rep.Losses {
		if strings.Contains(l.Path, "extra_content") || strings.Contains(l.Path, "ignature") || strings.Contains(l.Path, "specific") {
			t.Errorf("loss of a value that is written: %v", l)
		}
	}
}

func TestQuirkB17_GeminiSignatureReachesGeminiThroughChat(t *testing.T) {
	for how, call := range signatureForms {
		t.Run(how, func(t *testing.T) {
			body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"` + idIn(call) + `","content":"r"}]}`
			req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rebuilt, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil || strings.Count(string(rebuilt.Body), "CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=") != 1 {
				t.Errorf("the signature does not occur exactly once for Chat: %v %s", err, rebuilt.Body)
			}
			for _, mark := range []string{"__thought__", "_ts_"} {
				if strings.Contains(string(rebuilt.Body), mark) {
					t.Errorf("an id contains the signature again: %s", rebuilt.Body)
				}
			}
			req, report, err := history.Normalize(req, history.Options{Limits: gemini.Codec{}.Limits()})
			if err != nil {
				t.Fatal(err)
			}
			enc, err := gemini.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			report.Merge("", enc.Report)
			signedOnce(t, string(enc.Body), report)
		})
	}
}

func TestQuirkB17_GeminiSignatureInChatResponseReachesGeminiClient(t *testing.T) {
	for how, call := range signatureForms {
		t.Run(how, func(t *testing.T) {
			whole := `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` + call + `]},"finish_reason":"tool_calls"}]}`
			resp, _, err := openaichat.Codec{}.DecodeResponse([]byte(whole), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			enc, err := gemini.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			signedOnce(t, string(enc.Body), enc.Report)

			chunk := `{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[` + strings.Replace(call, "{", `{"index":0,`, 1) + `]},"finish_reason":null}]}`
			last := `{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
			var out strings.Builder
			to := gemini.Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
			from := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
			if err := dialect.Translate(&out, to, from, strings.NewReader("data: "+chunk+"\n\ndata: "+last+"\n\ndata: [DONE]\n\n")); err != nil {
				t.Fatal(err)
			}
			signedOnce(t, out.String(), to.Report())
		})
	}
}

// signedID is a call whose id contains its signature; bareID is the id without it.
const (
	signedID = `{"id":"x__thought__CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=","type":"function","function":{"name":"f","arguments":"{}"}}`
	bareID   = "x"
)

func TestQuirkB17_SignatureIsRemovedFromCallAndResultIDs(t *testing.T) {
	for _, result := range []string{idIn(signedID), bareID} { // some clients clean only one of them
		body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + signedID + `]},{"role":"tool","tool_call_id":"` + result + `","content":"r"}]}`
		req, rep, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		call, res := req.Messages[1].ToolCalls()[0], req.Messages[2].Parts[0].(*dragoman.ToolResult)
		if call.ID != bareID || res.CallID != bareID || res.Name != "f" {
			t.Errorf("the call has id %q, the result has call id %q and name %q", call.ID, res.CallID, res.Name)
		}
		if !strings.Contains(rep.String(), "/messages/1/tool_calls/0") {
			t.Errorf("nothing is reported: %s", rep)
		}
		// The call must have the same id as a result that the caller adds.
		for _, m := range req.Messages[1:] {
			if m.Native != nil && strings.Contains(string(m.Native.Raw), "__thought__") {
				t.Errorf("the message would pass through with its old id: %s", m.Native.Raw)
			}
		}
	}
}

func TestQuirkB17_ResultsMatchCallsWithTheSameBareID(t *testing.T) {
	const signed = `search_the_records_ts_CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE`
	for _, swapped := range []bool{false, true} {
		results := []string{`{"role":"tool","tool_call_id":"` + signed + `","content":"first"}`, `{"role":"tool","tool_call_id":"search_the_records","content":"second"}`}
		if swapped {
			results[0], results[1] = results[1], results[0]
		}
		body := `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"` + signed + `","type":"function","function":{"name":"search","arguments":"{}"}},` +
			`{"id":"search_the_records","type":"function","function":{"name":"search","arguments":"{}"}}]},` + strings.Join(results, ",") + `]}`
		req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		calls := req.Messages[0].ToolCalls()
		if len(calls) != 2 || calls[0].ID == calls[1].ID {
			t.Fatalf("want two calls: %+v", calls)
		}
		texts := map[string]string{}
		for _, m := range req.Messages[1:] {
			res := m.Parts[0].(*dragoman.ToolResult)
			texts[res.CallID] = res.Content[0].(*dragoman.Text).Text
		}
		if texts[calls[0].ID] != "first" || texts[calls[1].ID] != "second" {
			t.Errorf("swapped %v: %v", swapped, texts)
		}
	}
}

func TestQuirkB17_StreamEventsHaveBareCallIDs(t *testing.T) {
	chunk := func(delta, finish string) string {
		return `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	body := chunk(`{"role":"assistant","tool_calls":[`+strings.Replace(signedID, "{", `{"index":0,`, 1)+`]}`, "null") + chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	from := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	for ev, err := range dialect.Events(from, strings.NewReader(body)) {
		if err != nil {
			t.Fatal(err)
		}
		var c *dragoman.ToolCall
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			c = ev.Part.(*dragoman.ToolCall)
		case *dragoman.PartEnd:
			c = ev.Part.(*dragoman.ToolCall)
		default:
			continue
		}
		if c.ID != bareID {
			t.Errorf("%T has the call id %q", ev, c.ID)
		}
	}
	// Re-encoded, the signature is a field of the call.
	passed, _ := crosstest.ConvertStream(openaichat.Codec{}, openaichat.Codec{}, []byte(body))
	if !strings.Contains(string(passed), `"id":"`+bareID+`"`) || !strings.Contains(string(passed), "thought_signature") {
		t.Errorf("%s", passed)
	}
	again := chunk(`{"tool_calls":[`+strings.Replace(strings.Replace(signedID, "{", `{"index":0,`, 1), `"{}"`, `"{"`, 1)+`]}`, "null") +
		chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]}`, "null") + chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	passed, _ = crosstest.ConvertStream(openaichat.Codec{}, openaichat.Codec{}, []byte(again))
	if strings.Contains(string(passed), `"index":1`) || strings.Count(string(passed), `"index":0`) < 4 {
		t.Errorf("the client gets another call: %s", passed)
	}
}

// routedCall is a router's message whose reasoning details contain the signature of its call.
const routedCall = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}],` +
	`"reasoning_details":[{"type":"reasoning.encrypted","id":"x","format":"google-gemini-v1","index":0,"data":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}]}`

func TestQuirkB17_SignatureInReasoningDetailsReachesItsCall(t *testing.T) {
	from, to := openaichat.Codec{}, gemini.Codec{}
	unreported := func(t *testing.T, rep dragoman.Report) {
		t.Helper()
		for _, l := range rep.Losses {
			if l.Kind == dragoman.Dropped && l.Severity > dragoman.Info {
				t.Errorf("loss of a value that is written: %v", l)
			}
		}
	}
	t.Run("request", func(t *testing.T) {
		req, _, err := from.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"q"},`+routedCall+`,{"role":"tool","tool_call_id":"x","content":"r"}]}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rebuilt, err := from.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true, Target: targets.Target{Dialect: dialectname.OpenAIChat, Model: "m"}})
		if err != nil || strings.Count(string(rebuilt.Body), "CiQBSGVsbG8sIHRoaXMg") != 1 {
			t.Errorf("the signature does not occur exactly once for Chat: %v %s", err, rebuilt.Body)
		}
		enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		signedOnce(t, string(enc.Body), enc.Report)
		unreported(t, enc.Report)
		req, report, err := history.Normalize(req, history.Options{Limits: to.Limits()})
		if err != nil {
			t.Fatal(err)
		}
		if enc, err = to.EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
		report.Merge("", enc.Report)
		signedOnce(t, string(enc.Body), report)
		unreported(t, report)
	})
	t.Run("response", func(t *testing.T) {
		resp, _, err := from.DecodeResponse([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":`+routedCall+`,"finish_reason":"tool_calls"}]}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := to.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		signedOnce(t, string(enc.Body), enc.Report)
		unreported(t, enc.Report)
	})
	t.Run("stream", func(t *testing.T) {
		body, rep := crosstest.ConvertStream(from, to, []byte(`data: {"id":"r","model":"m","choices":[{"index":0,"delta":`+strings.Replace(routedCall, `[{"id"`, `[{"index":0,"id"`, 1)+`,"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"))
		signedOnce(t, string(body), rep)
		unreported(t, rep)
	})
}

func TestQuirkB17_UnmatchedReasoningDetailIsReported(t *testing.T) {
	from, to := openaichat.Codec{}, gemini.Codec{}
	for what, message := range map[string]string{
		"of another call":     strings.Replace(routedCall, `encrypted","id":"x"`, `encrypted","id":"y"`, 1),
		"of another provider": strings.Replace(routedCall, "google-gemini-v1", "openai-responses-v1", 1),
		"of another kind":     strings.Replace(routedCall, "reasoning.encrypted", "reasoning.other", 1),
	} {
		resp, _, err := from.DecodeResponse([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"tool_calls"}]}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := to.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body, rep := crosstest.ConvertStream(from, to, []byte(`data: {"id":"r","model":"m","choices":[{"index":0,"delta":`+strings.Replace(message, `[{"id"`, `[{"index":0,"id"`, 1)+`,"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"))
		for way, r := range map[string]dragoman.Report{"whole": enc.Report, "streamed": rep} {
			if !strings.Contains(r.String(), "opaque reasoning") {
				t.Errorf("%s, %s: the loss is not reported: %s", what, way, r)
			}
		}
		if strings.Contains(string(enc.Body)+string(body), "thoughtSignature") {
			t.Errorf("%s: %s\n%s", what, enc.Body, body)
		}
	}
}

func TestQuirkB17_OtherValuesAreNotSignatures(t *testing.T) {
	const call = `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"not base64!"}}}`
	resp, _, err := openaichat.Codec{}.DecodeResponse([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[`+call+`]},"finish_reason":"tool_calls"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := gemini.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || strings.Contains(string(enc.Body), "thoughtSignature") || !strings.Contains(enc.Report.String(), "extra_content") {
		t.Errorf("%v %s\n%s", err, enc.Body, enc.Report)
	}
}

// signedWithSiblings is a call whose signature has sibling fields.
const signedWithSiblings = `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"QUJD","cachePoint":{"a":1}}},"extra_content":{"google":{"thought_signature":"QUJD","important":{"x":1}},"vendor":{"y":2}}}`

func TestQuirkB17_SiblingFieldsOfSignatureAreReported(t *testing.T) {
	check := func(t *testing.T, rep dragoman.Report, body string) {
		t.Helper()
		lines := rep.String()
		if !strings.Contains(lines, "/extra_content") || !strings.Contains(lines, "/function/provider_specific_fields") {
			t.Errorf("sibling fields are not reported: %s", lines)
		}
		if strings.Count(body, `"thoughtSignature":"QUJD"`) != 1 {
			t.Errorf("the signature does not occur exactly once: %s", body)
		}
	}
	from, to := openaichat.Codec{}, gemini.Codec{}
	req, _, err := from.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[`+signedWithSiblings+`]},{"role":"tool","tool_call_id":"x","content":"r"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, enc.Report, string(enc.Body))

	resp, _, err := from.DecodeResponse([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[`+signedWithSiblings+`]},"finish_reason":"tool_calls"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if enc, err = to.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil {
		t.Fatal(err)
	}
	check(t, enc.Report, string(enc.Body))

	chunk := `data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"tool_calls":[` + strings.Replace(signedWithSiblings, "{", `{"index":0,`, 1) + `]},"finish_reason":"tool_calls"}]}`
	body, rep := crosstest.ConvertStream(from, to, []byte(chunk+"\n\ndata: [DONE]\n\n"))
	check(t, rep, string(body))
}

func TestQuirkB17_OrdinaryIDContainsNoSignature(t *testing.T) {
	for _, id := range []string{
		"x__thought__process", "x__thought__complete", "call_1__thought__0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"x__thought__" + strings.Repeat("A", 64), "x__thought__" + "CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE",
		"x_ts_backup", "call_ts_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", // a hash
		"call_ts_CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE", // valid in every API
		"_ts_" + strings.Repeat("aB3d", 20), "call_ts_" + strings.Repeat("aB3d", 20) + "!",
	} {
		if bare, _ := wirekit.SplitID(id); bare != id {
			t.Errorf("%q is split", id)
		}
		resp := crosstest.FullResponse()
		resp.Output[0].Parts = []dragoman.Part{&dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"}}
		enc, err := gemini.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || strings.Contains(string(enc.Body), "thoughtSignature") {
			t.Errorf("%v %s", err, enc.Body)
		}
	}
}
