package dialect_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

func TestFractionalIntegersAreRefusedWithTheirPosition(t *testing.T) {
	for _, tc := range []struct {
		d        dragoman.Dialect
		body, at string
	}{
		{dialectname.OpenAIChat, `{"model":"m","messages":[],"max_tokens":@}`, "/max_tokens"},
		{dialectname.OpenAIChat, `{"model":"m","messages":[],"max_completion_tokens":@}`, "/max_completion_tokens"},
		{dialectname.OpenAIChat, `{"model":"m","messages":[],"n":@}`, "/n"},
		{dialectname.OpenAIResponses, `{"model":"m","input":"x","max_output_tokens":@}`, "/max_output_tokens"},
		{dialectname.Anthropic, `{"model":"m","messages":[],"max_tokens":@}`, "/max_tokens"},
		{dialectname.Anthropic, `{"model":"m","messages":[],"max_tokens":9,"top_k":@}`, "/top_k"},
		{dialectname.Anthropic, `{"model":"m","messages":[],"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":@}}`, "/thinking/budget_tokens"},
		{dialectname.Gemini, `{"contents":[],"generationConfig":{"maxOutputTokens":@}}`, "/generationConfig/maxOutputTokens"},
		{dialectname.Gemini, `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingBudget":@}}}`, "/generationConfig/thinkingConfig/thinkingBudget"},
		{dialectname.Ollama, `{"model":"m","messages":[],"options":{"num_predict":@}}`, "/options/num_predict"},
		{dialectname.Ollama, `{"model":"m","messages":[],"options":{"top_k":@}}`, "/options/top_k"},
		{dialectname.Bedrock, `{"messages":[],"inferenceConfig":{"maxTokens":@}}`, "/inferenceConfig/maxTokens"},
	} {
		for _, number := range []string{"1.5", "1e99", "-1e99", "99999999999999999999", "9007199254740993.5"} {
			body := strings.Replace(tc.body, "@", number, 1)
			_, _, err := crosstest.CodecOf(tc.d).DecodeRequest([]byte(body), dialect.DecodeOptions{})
			var de *dragoman.DecodeError
			if !errors.As(err, &de) || de.Pointer != tc.at || int(de.Offset) != strings.Index(body, number) {
				t.Errorf("%s %s: %v", tc.d, body, err)
			}
		}
		for _, number := range []string{"7", "7.0", "70e-1", `"7"`} {
			body := strings.Replace(tc.body, "@", number, 1)
			if _, _, err := crosstest.CodecOf(tc.d).DecodeRequest([]byte(body), dialect.DecodeOptions{}); err != nil {
				t.Errorf("%s %s: %v", tc.d, body, err)
			}
		}
	}
}

// Some servers accept seeds of more than 63 bits. Only the same dialect can write them back.
func TestSeedBeyondInt64RoundTrips(t *testing.T) {
	for _, tc := range []struct {
		d    dragoman.Dialect
		body string
	}{
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"x"}],"seed":18446744073709551615}`},
		{dialectname.Gemini, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"seed":18446744073709551615}}`},
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"options":{"seed":18446744073709551615}}`},
	} {
		req, _, err := crosstest.CodecOf(tc.d).DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", tc.d, err)
			continue
		}
		for _, c := range crosstest.Codecs {
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Fatal(err)
			}
			kept := bytes.Contains(enc.Body, []byte("18446744073709551615"))
			reported := strings.Contains(enc.Report.String(), "seed")
			if own := c.Dialect() == tc.d; kept != own || reported == own {
				t.Errorf("%s to %s: %s\n%s", tc.d, c.Dialect(), enc.Body, enc.Report)
			}
		}
	}
}
