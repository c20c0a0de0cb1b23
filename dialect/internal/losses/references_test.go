package losses_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A reference that the target cannot resolve is an error that names it, not a loss (decision 74):
// without it, the model would miss part of the conversation.
func TestUnresolvedReferencesAreErrors(t *testing.T) {
	for _, tc := range []struct {
		from       dragoman.Dialect
		body, name string
	}{
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"role":"user","content":"q"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"x"}]}`, "fc_1"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"id":"msg_1"},{"role":"user","content":"q"}]}`, "msg_1"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":null,"id":"rs_1"},{"role":"user","content":"q"}]}`, "rs_1"},
		{dialectname.OpenAIResponses, `{"model":"m","input":"q","previous_response_id":"resp_1"}`, "resp_1"},
		{dialectname.OpenAIResponses, `{"model":"m","input":"q","conversation":"conv_1"}`, "conv_1"},
		{dialectname.OpenAIResponses, `{"model":"m","input":"q","conversation":{"id":"conv_2"}}`, "conv_2"},
		{dialectname.OpenAIResponses, `{"model":"m","input":"q","prompt":{"id":"pmpt_1"}}`, "pmpt_1"},
		{dialectname.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}],"thread":{"previous_message_id":"msg_9"}}`, "msg_9"},
		{dialectname.Gemini, `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"cachedContent":"cachedContents/c1"}`, "cachedContents/c1"},
	} {
		req, _, err := crosstest.CodecOf(tc.from).DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", tc.body, err)
		}
		req.Model = "m"
		for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic, dialectname.Gemini, dialectname.Ollama, dialectname.Bedrock} {
			c := crosstest.CodecOf(d)
			_, encoding := c.EncodeRequest(req, dialect.EncodeOptions{})
			_, _, normalizing := history.Normalize(req, history.Options{Limits: c.Limits(), Abandon: codes.AbandonAll})
			for what, err := range map[string]error{"encoding": encoding, "normalizing": normalizing} {
				switch {
				case d == tc.from && err != nil:
					t.Errorf("%s for its own dialect: %s: %v", what, tc.body, err)
				case d != tc.from && (!errors.Is(err, dragoman.ErrUnsupported) || !strings.Contains(err.Error(), tc.name)):
					t.Errorf("%s for %s: %s: %v", what, d, tc.body, err)
				}
			}
		}
	}
}

// A null field references nothing.
func TestEmptyReferencesAreIgnored(t *testing.T) {
	for from, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIResponses: `{"model":"m","input":"q","conversation":null,"prompt":null,"previous_response_id":null}`,
		dialectname.Anthropic:       `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}],"thread":null}`,
	} {
		req, _, err := crosstest.CodecOf(from).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := crosstest.CodecOf(dialectname.OpenAIChat).EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// With "store": false the server has not stored earlier items either.
func TestReferencesWithoutAStoreAreErrors(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIResponses)
	no := false
	req := &dragoman.Request{Model: "m", Store: &no, Messages: []dragoman.Message{
		{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "q"}}},
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Opaque{Dialect: dialectname.OpenAIResponses, Type: "item_reference", JSON: []byte(`{"type":"item_reference","id":"msg_1"}`)}}},
	}}
	if _, err := c.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrUnsupported) || !strings.Contains(err.Error(), "msg_1") {
		t.Errorf("error %v", err)
	}
}
