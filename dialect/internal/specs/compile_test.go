package specs_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/internal/oracle/specs"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// document is a request schema of an official API document.
type document struct {
	file, schema string
}

// documents holds the request schemas, by API.
var documents = map[string]document{
	"openai_chat":        {"openai.openapi.yaml", "CreateChatCompletionRequest"},
	"openai_responses":   {"openai.openapi.yaml", "CreateResponse"},
	"anthropic_messages": {"anthropic.openapi.yaml", "CreateMessageParams"},

	"gemini_generateContent": {"gemini.openapi.json", "GenerateContentRequest"},
	"ollama_chat":            {"ollama.openapi.yaml", "ChatRequest"},
}

// judged returns the APIs that have an official document.
func judged() []traffic.Source {
	return slices.DeleteFunc(traffic.Sources(), func(s traffic.Source) bool { return s.File == "bedrock_converse" })
}

// library caches the parsed documents.
var library specs.Library

// compileRequest compiles the request schema of an API from its official
// document, or skips the test.
func compileRequest(t *testing.T, api string) *jsonschema.Schema {
	t.Helper()
	d := documents[api]
	s, err := library.Schema(d.file, d.schema)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no official documents: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
