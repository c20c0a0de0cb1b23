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
	"Google's":                 `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"QUJD"}}}`,
	"a gateway's on the call":  `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"provider_specific_fields":{"thought_signature":"QUJD"}}`,
	"a gateway's inside":       `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"QUJD"}}}`,
	"bare":                     `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thought_signature":"QUJD"}`,
	"bare inside":              `{"id":"x","type":"function","function":{"name":"f","arguments":"{}","thought_signature":"QUJD"}}`,
	"in the letters of Gemini": `{"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"thoughtSignature":"QUJD"}`,
	"behind the id":            `{"id":"x__thought__QUJD","type":"function","function":{"name":"f","arguments":"{}"}}`,
}

// signedOnce checks that a wire form for Gemini has the signature, once, and
// none that stands for it.
func signedOnce(t *testing.T, body string, rep dragoman.Report) {
	t.Helper()
	if strings.Count(body, `"thoughtSignature":"QUJD"`) != 1 || strings.Contains(body, interop.GeminiNoSignature) {
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
				id = "x__thought__QUJD"
			}
			body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"` + id + `","content":"r"}]}`
			req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rebuilt, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil || !strings.Contains(string(rebuilt.Body), "QUJD") {
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
