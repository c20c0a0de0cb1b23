package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
)

// A definition that exists only in the format of another dialect is read with the codecs of
// dialect/all. Without them it is dropped and reported; it is never sent without its schema.
func TestToolInAnotherDialectsFormatNeedsItsCodec(t *testing.T) {
	for _, name := range []string{"", "find"} {
		req := &dragoman.Request{
			Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")},
			Tools: []dragoman.ToolSpec{{Name: name, Source: &dragoman.ToolSource{
				Format: toolformat.AnthropicTool,
				JSON:   json.RawMessage(`{"name":"find","input_schema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}`),
			}}},
		}
		enc, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{Codecs: all.Codecs()})
		if err != nil || !strings.Contains(string(enc.Body), `"properties":{"q":{"type":"string"}}`) || enc.Report.Err(dragoman.Warn) != nil {
			t.Errorf("name %q, all codecs: %v %s\n%s", name, err, enc.Body, enc.Report)
		}
		enc, err = openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || strings.Contains(string(enc.Body), `"tools"`) {
			t.Errorf("name %q, own codec: %v %s", name, err, enc.Body)
		}
		if enc.Report.Err(dragoman.Serious) == nil || !strings.Contains(enc.Report.String(), "dialect/all") {
			t.Errorf("name %q, own codec: the loss does not mention the fix:\n%s", name, enc.Report)
		}
	}
}

func TestHostedToolOfAnotherDialectIsReportedWithoutItsCodec(t *testing.T) {
	req, _, err := anthropic.Codec{}.DecodeRequest([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],
		"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}]}`), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []dialect.EncodeOptions{{}, {Codecs: all.Codecs()}} {
		enc, err := openaichat.Codec{}.EncodeRequest(req, o)
		if err != nil || strings.Contains(string(enc.Body), "web_search") {
			t.Errorf("%v %s", err, enc.Body)
		}
		want := []string{`tool "web_search" (anthropic.messages.web_search_20250305) is run by its own provider; openai.chat_completions has no such tool`}
		if o.Codecs != nil {
			want = append(want, `tool "bash" (anthropic.messages.bash_20250124) is run by the client, but defined by its own provider alone`)
		}
		for _, w := range want {
			if !strings.Contains(enc.Report.String(), w) {
				t.Errorf("no %s in\n%s", w, enc.Report)
			}
		}
	}
}
