package losses_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// These fields have the same place in both OpenAI APIs.
func TestR11_SharedOpenAIFieldsCrossBetweenChatAndResponses(t *testing.T) {
	const (
		shared    = `"stream":true,"top_logprobs":3,"prompt_cache_retention":"24h","stream_options":{"include_obfuscation":false,"zz":1},"user":"u","safety_identifier":"s","moderation":{"zz":2},"vendor":5`
		chat      = `{"model":"m","messages":[{"role":"user","content":"q"}],"logprobs":true,` + shared + `}`
		responses = `{"model":"m","input":"q",` + shared + `}`
	)
	for from, body := range map[dragoman.Dialect]string{dialectname.OpenAIChat: chat, dialectname.OpenAIResponses: responses} {
		req, _, err := crosstest.CodecOf(from).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range crosstest.Codecs {
			enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sibling := to.Dialect() == dialectname.OpenAIChat || to.Dialect() == dialectname.OpenAIResponses
			for path, member := range map[string]string{
				"/top_logprobs": `"top_logprobs":3`, "/prompt_cache_retention": `"prompt_cache_retention":"24h"`, "/user": `"user":"u"`,
				"/stream_options/include_obfuscation": `"include_obfuscation":false`, "/moderation": `"moderation":{"zz":2}`,
			} {
				written := strings.Count(string(enc.Body), member) == 1
				if lines := crosstest.LossesAt(enc.Report, path); sibling && (!written || len(lines) > 0) {
					t.Errorf("%s to %s: %s: %v\n%s", from, to.Dialect(), path, lines, enc.Body)
				}
			}
			if own := to.Dialect() == from; !own && len(crosstest.LossesAt(enc.Report, "/vendor")) != 1 || sibling && !own && len(crosstest.LossesAt(enc.Report, "/stream_options/zz")) != 1 {
				t.Errorf("%s to %s: %v", from, to.Dialect(), enc.Report)
			}
			if to.Dialect() == dialectname.OpenAIChat && !strings.Contains(string(enc.Body), `"logprobs":true`) {
				t.Errorf("Chat refuses top_logprobs without logprobs: %s", enc.Body)
			}
		}
	}
}

// Chat requests log probabilities with a field, Responses with a value in a list.
func TestR11_LogprobsCrossBetweenChatAndResponses(t *testing.T) {
	const chat, responses = `{"model":"m","messages":[{"role":"user","content":"q"}]`, `{"model":"m","input":"q"`
	for _, tc := range []struct {
		from, to   dragoman.Dialect
		body       string
		want, none string
		lost       string // pointer of the loss; empty if nothing is lost
	}{
		{dialectname.OpenAIChat, dialectname.OpenAIResponses, chat + `,"logprobs":true}`, `"include":["message.output_text.logprobs"]`, `"logprobs":true`, ""},
		{dialectname.OpenAIChat, dialectname.OpenAIResponses, chat + `,"logprobs":true,"top_logprobs":3}`, `"top_logprobs":3`, `"logprobs":true`, ""},
		{dialectname.OpenAIChat, dialectname.OpenAIResponses, chat + `,"logprobs":false}`, `"model":"m"`, "logprobs", ""},
		{dialectname.OpenAIResponses, dialectname.OpenAIChat, responses + `,"include":["message.output_text.logprobs"]}`, `"logprobs":true`, "include", ""},
		{dialectname.OpenAIResponses, dialectname.OpenAIChat, responses + `,"include":["reasoning.encrypted_content","message.output_text.logprobs","web_search_call.results"],"top_logprobs":2}`, `"logprobs":true`, "include", "/include"},
		{dialectname.OpenAIResponses, dialectname.OpenAIChat, responses + `,"include":["web_search_call.results"]}`, `"model":"m"`, "logprobs", "/include"},
		{dialectname.OpenAIResponses, dialectname.OpenAIResponses, responses + `,"include":["web_search_call.results","message.output_text.logprobs"]}`, `"include":["web_search_call.results","message.output_text.logprobs"]`, "xx", ""},
		{dialectname.OpenAIResponses, dialectname.Anthropic, responses + `,"include":["message.output_text.logprobs"]}`, `"model":"m"`, "logprobs", "/include"},
		{dialectname.OpenAIChat, dialectname.Gemini, chat + `,"logprobs":true}`, `"contents"`, "logprobs", "/logprobs"},
	} {
		req, _, err := crosstest.CodecOf(tc.from).DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := crosstest.CodecOf(tc.to).EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if body := string(enc.Body); strings.Count(body, tc.want) != 1 || strings.Contains(body, tc.none) {
			t.Errorf("%s to %s: %s\nbecomes %s", tc.from, tc.to, tc.body, body)
		}
		for _, path := range []string{"/include", "/logprobs", "/top_logprobs"} {
			if lines := crosstest.LossesAt(enc.Report, path); len(lines) > 0 != (path == tc.lost) {
				t.Errorf("%s to %s: %s: %v", tc.from, tc.to, path, enc.Report)
			}
		}
	}
}
