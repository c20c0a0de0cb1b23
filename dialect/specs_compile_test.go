package dialect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is a request schema of an official API document.
type document struct {
	file, schema string
}

// documents are the schemas of requests, by API.
var documents = map[string]document{
	"openai_chat":        {"openai.openapi.yaml", "CreateChatCompletionRequest"},
	"openai_responses":   {"openai.openapi.yaml", "CreateResponse"},
	"anthropic_messages": {"anthropic.openapi.yaml", "CreateMessageParams"},

	"gemini_generateContent": {"gemini.openapi.json", "GenerateContentRequest"},
	"ollama_chat":            {"ollama.openapi.yaml", "ChatRequest"},
}

// judged are the APIs that have an official document.
func judged() []api {
	return slices.DeleteFunc(apis(), func(a api) bool { return a.file == "bedrock_converse" })
}

var (
	parsedSpecs   = map[string]any{}
	parsedSpecsMu sync.Mutex
)

// compileRequest compiles the request schema of an API from its official
// document, or skips the test.
//
// No validator takes these documents as they are. Four things are patched, and
// none makes the check weaker than the document means: nullable becomes a type
// list, a recursive reference names its target, formats are left alone (they
// assert nothing in this draft), and oneOf is read as anyOf, because the
// alternatives overlap and a body that satisfies two is as legal as one that
// satisfies one.
func compileRequest(t *testing.T, api string) *jsonschema.Schema {
	t.Helper()
	d := documents[api]
	doc := parsedSpec(t, d.file)
	c := jsonschema.NewCompiler()
	url := "file:///" + d.file
	if err := c.AddResource(url, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url + "#/components/schemas/" + d.schema)
	if err != nil {
		t.Fatalf("%s: %v", d.file, err)
	}
	return s
}

func parsedSpec(t *testing.T, file string) any {
	t.Helper()
	parsedSpecsMu.Lock()
	defer parsedSpecsMu.Unlock()
	if doc, ok := parsedSpecs[file]; ok {
		return doc
	}
	raw, err := os.ReadFile(filepath.Join(sharedDir, "specs", file))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no official documents: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		var v any
		if err := yaml.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if raw, err = json.Marshal(v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	patch(doc, "")
	if strings.HasPrefix(file, "gemini.") || strings.HasPrefix(file, "ollama.") {
		shut(doc)
	}
	parsedSpecs[file] = doc
	return doc
}

// shut makes every object of a document refuse members that it does not name.
// Gemini's and Ollama's documents leave it open; the first answers 400 to an
// unknown name, the second ignores it, so that a misspelt member is lost. The
// model, which Gemini's document demands, stands in the URL.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, said := v["additionalProperties"]; !said && v["type"] == "object" && obj(v["properties"]) != nil {
			v["additionalProperties"] = false
		}
		if required := list(v["required"]); slices.Contains(required, any("contents")) {
			v["required"] = slices.DeleteFunc(required, func(name any) bool { return name == "model" })
		}
		for _, sub := range v {
			shut(sub)
		}
	case []any:
		for _, sub := range v {
			shut(sub)
		}
	}
}

// patch makes an OpenAPI document a set of JSON Schemas; root is the pointer
// of the component being patched.
func patch(v any, root string) {
	switch v := v.(type) {
	case map[string]any:
		if alternatives, ok := v["oneOf"]; ok {
			if more, both := v["anyOf"]; both {
				v["allOf"] = append(list(v["allOf"]), map[string]any{"anyOf": more})
			}
			v["anyOf"] = alternatives
			delete(v, "oneOf")
		}
		if _, ok := v["$recursiveRef"]; ok {
			v["$ref"] = root
			delete(v, "$recursiveRef")
		}
		delete(v, "$recursiveAnchor")
		if v["nullable"] == true {
			if typ, ok := v["type"].(string); ok {
				v["type"] = []any{typ, "null"}
			}
			if values, ok := v["enum"].([]any); ok {
				v["enum"] = append(values, nil)
			}
			delete(v, "nullable")
		}
		for _, bound := range []string{"minimum", "maximum"} {
			// The YAML reader leaves integers beyond 64 bits as text.
			if text, ok := v[bound].(string); ok {
				v[bound] = json.Number(text)
			}
		}
		for k, sub := range v {
			if root == "" && k == "schemas" {
				for name, s := range obj(sub) {
					patch(s, "#/components/schemas/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
				}
				continue
			}
			patch(sub, root)
		}
	case []any:
		for _, sub := range v {
			patch(sub, root)
		}
	}
}
