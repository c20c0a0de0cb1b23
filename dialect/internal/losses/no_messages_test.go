package losses_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// No codec writes a request without messages, or invents a message.
func TestA7_RequestWithoutMessagesIsAnError(t *testing.T) {
	fields := map[dialect.Codec]string{
		openaichat.Codec{}: "messages", openairesponses.Codec{}: "input", anthropic.Codec{}: "messages",
		gemini.Codec{}: "contents", ollama.Codec{}: "messages", cohere.Codec{}: "messages", bedrock.Codec{}: "messages",
	}
	tool := dragoman.ToolSpec{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	for codec, field := range fields {
		for about, req := range map[string]*dragoman.Request{
			"nothing":                 {Model: "m"},
			"tools":                   {Model: "m", Tools: []dragoman.ToolSpec{tool}},
			"a message without parts": {Model: "m", Messages: []dragoman.Message{{Role: dragoman.RoleAssistant}}},
		} {
			enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
			if about == "a message without parts" && err == nil && strings.Contains(string(enc.Body), `"role"`) {
				continue // the empty message is written
			}
			if !errors.Is(err, dragoman.ErrInvalid) || !strings.Contains(err.Error(), field+": at least one message is required") || enc.Body != nil {
				t.Errorf("%s, %s: %v, %s", codec.Dialect(), about, err, enc.Body)
			}
		}
		native := `{"model":"m","` + field + `":[]}`
		if codec.Dialect() == dialectname.Ollama {
			continue // an empty request loads the model
		}
		req, _, err := codec.DecodeRequest([]byte(native), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", codec.Dialect(), err)
			continue
		}
		if enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%s, its own body: %v, %s", codec.Dialect(), err, enc.Body)
		}
	}
}

// Instructions alone are a valid request. The continuation of a stored conversation is one too.
func TestA7_RequestsThatNeedNoMessageAreWritten(t *testing.T) {
	for _, codec := range []dialect.Codec{openaichat.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}} {
		req := &dragoman.Request{Model: "m", Instructions: []dragoman.Part{&dragoman.Text{Text: "Say hello."}}}
		if enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil || !strings.Contains(string(enc.Body), "Say hello.") {
			t.Errorf("%s: %v, %s", codec.Dialect(), err, enc.Body)
		}
	}
	stored := &dragoman.Request{Model: "m", PreviousResponseID: "resp_1"}
	if _, err := (openairesponses.Codec{}).EncodeRequest(stored, dialect.EncodeOptions{}); err != nil {
		t.Error(err)
	}
}
