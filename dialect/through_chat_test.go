package dialect_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/interop"
)

// spellings are the ways in which a signature of Gemini's stands on a Chat call.
var spellings = map[string]string{
	"Google's":                 `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}}`,
	"a gateway's on the call":  `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"provider_specific_fields":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}`,
	"a gateway's inside":       `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}}`,
	"bare":                     `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}`,
	"bare inside":              `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","thought_signature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}}`,
	"in the letters of Gemini": `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thoughtSignature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="}`,
	"behind the id":            `{"id":"x__thought__CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=","type":"function","function":{"name":"f","arguments":"{}"}}`,
}

// signedOnce checks that a wire form for Gemini has the signature, once, and
// none that stands for it.
func signedOnce(t *testing.T, body string, rep dragoman.Report) {
	t.Helper()
	if strings.Count(body, `"thoughtSignature":"CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="`) != 1 || strings.Contains(body, interop.GeminiNoSignature) {
		t.Errorf("the signature is not there once: %s", body)
	}
	for _, l := range rep.Losses {
		if strings.Contains(l.Path, "extra_content") || strings.Contains(l.Path, "ignature") || strings.Contains(l.Path, "specific") {
			t.Errorf("%v, which was written", l)
		}
	}
}

func TestQuirkB17_GeminisSignatureReachesGeminiThroughChat(t *testing.T) {
	for how, call := range spellings {
		t.Run(how, func(t *testing.T) {
			id := "x"
			if strings.Contains(call, "__thought__") {
				id = "x__thought__CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE="
			}
			body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"` + id + `","content":"r"}]}`
			req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rebuilt, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil || !strings.Contains(string(rebuilt.Body), "CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE=") {
				t.Errorf("toward Chat it does not stay as it came: %v %s", err, rebuilt.Body)
			}
			req, normalised, err := history.Normalize(req, history.Options{Limits: gemini.Codec{}.Limits()})
			if err != nil {
				t.Fatal(err)
			}
			enc, err := gemini.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			normalised.Merge("", enc.Report)
			signedOnce(t, string(enc.Body), normalised)
		})
	}
}

func TestQuirkB17_GeminisSignatureInAnAnswerOfChatReachesAClientOfGemini(t *testing.T) {
	for how, call := range spellings {
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

func TestQuirkB17_WhatIsNoSignatureIsNotTakenForOne(t *testing.T) {
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

// signedBeside is a call whose signature stands beside something else.
const signedBeside = `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"QUJD","cachePoint":{"a":1}}},"extra_content":{"google":{"thought_signature":"QUJD","important":{"x":1}},"vendor":{"y":2}}}`

func TestQuirkB17_WhatStandsBesideTheSignatureIsReported(t *testing.T) {
	told := func(t *testing.T, rep dragoman.Report, body string) {
		t.Helper()
		lines := rep.String()
		if !strings.Contains(lines, "/extra_content") || !strings.Contains(lines, "/function/provider_specific_fields") {
			t.Errorf("nothing is said of what stands beside it: %s", lines)
		}
		if strings.Count(body, `"thoughtSignature":"QUJD"`) != 1 {
			t.Errorf("the signature is not there once: %s", body)
		}
	}
	from, to := openaichat.Codec{}, gemini.Codec{}
	req, _, err := from.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[`+signedBeside+`]},{"role":"tool","tool_call_id":"x","content":"r"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told(t, enc.Report, string(enc.Body))

	resp, _, err := from.DecodeResponse([]byte(`{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[`+signedBeside+`]},"finish_reason":"tool_calls"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if enc, err = to.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil {
		t.Fatal(err)
	}
	told(t, enc.Report, string(enc.Body))

	chunk := `data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"tool_calls":[` + strings.Replace(signedBeside, "{", `{"index":0,`, 1) + `]},"finish_reason":"tool_calls"}]}`
	body, rep := crossed(from, to, []byte(chunk+"\n\ndata: [DONE]\n\n"))
	told(t, rep, string(body))
}

func TestQuirkB17_AnOrdinaryIDHidesNoSignature(t *testing.T) {
	for _, id := range []string{
		"x__thought__process", "x__thought__complete", "call_1__thought__0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"x__thought__" + strings.Repeat("A", 64), "x__thought__" + "CiQBSGVsbG8sIHRoaXMgaXMgbm90IGEgcmVhbCBvbmUhISE",
	} {
		resp := asked()
		resp.Output[0].Parts = []dragoman.Part{&dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"}}
		enc, err := gemini.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || strings.Contains(string(enc.Body), "thoughtSignature") {
			t.Errorf("%v %s", err, enc.Body)
		}
	}
}
