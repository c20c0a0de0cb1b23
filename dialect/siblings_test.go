package dialect_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Members that the documents of both of OpenAI's APIs have in the same place.
func TestR11_WhatBothOfOpenAIsAPIsCanSayCrossesBetweenThem(t *testing.T) {
	const (
		shared    = `"stream":true,"top_logprobs":3,"prompt_cache_retention":"24h","stream_options":{"include_obfuscation":false,"zz":1},"user":"u","safety_identifier":"s","moderation":{"zz":2},"vendor":5`
		chat      = `{"model":"m","messages":[{"role":"user","content":"q"}],"logprobs":true,` + shared + `}`
		responses = `{"model":"m","input":"q",` + shared + `}`
	)
	for from, body := range map[dragoman.Dialect]string{dragoman.OpenAIChat: chat, dragoman.OpenAIResponses: responses} {
		req, _, err := codecOf(from).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range codecs {
			enc, err := to.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sibling := to.Dialect() == dragoman.OpenAIChat || to.Dialect() == dragoman.OpenAIResponses
			for path, member := range map[string]string{
				"/top_logprobs": `"top_logprobs":3`, "/prompt_cache_retention": `"prompt_cache_retention":"24h"`, "/user": `"user":"u"`,
				"/stream_options/include_obfuscation": `"include_obfuscation":false`, "/moderation": `"moderation":{"zz":2}`,
			} {
				written := strings.Count(string(enc.Body), member) == 1
				if lines := lossesAt(enc.Report, path); sibling && (!written || len(lines) > 0) {
					t.Errorf("%s to %s: %s: %v\n%s", from, to.Dialect(), path, lines, enc.Body)
				}
			}
			if own := to.Dialect() == from; !own && len(lossesAt(enc.Report, "/vendor")) != 1 || sibling && !own && len(lossesAt(enc.Report, "/stream_options/zz")) != 1 {
				t.Errorf("%s to %s: %v", from, to.Dialect(), enc.Report)
			}
			if to.Dialect() == dragoman.OpenAIChat && !strings.Contains(string(enc.Body), `"logprobs":true`) {
				t.Errorf("Chat takes no top_logprobs without logprobs: %s", enc.Body)
			}
		}
	}
}
