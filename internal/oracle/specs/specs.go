// Package specs compiles the official API documents for tests. The documents are not
// part of the module: where they are absent, the checks that need them skip.
package specs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// Library compiles schemas and reads each document once. The zero value is ready.
type Library struct {
	mu     sync.Mutex
	parsed map[string]any
}

// Schema compiles the component of a document. The error wraps [io/fs.ErrNotExist]
// where the document is absent.
//
// No validator takes these documents as they are. Four things are patched, and
// none makes the check weaker than the document means: nullable becomes a type
// list, a recursive reference names its target, formats are left alone (they
// assert nothing in this draft), and oneOf is read as anyOf, because the
// alternatives overlap and a body that satisfies two is as legal as one that
// satisfies one.
func (l *Library) Schema(file, component string) (*jsonschema.Schema, error) {
	doc, err := l.document(file)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	url := "file:///" + file
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(url + "#/components/schemas/" + component)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (l *Library) document(file string) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if doc, ok := l.parsed[file]; ok {
		return doc, nil
	}
	root, err := testkit.RepoRoot()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(root, "..", "shared", "specs", file))
	if err != nil {
		return nil, err
	}
	doc, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	patch(doc, "")
	if strings.HasPrefix(file, "gemini.") || strings.HasPrefix(file, "ollama.") {
		shut(doc)
	}
	if l.parsed == nil {
		l.parsed = map[string]any{}
	}
	l.parsed[file] = doc
	return doc, nil
}

// read reads a document in JSON or YAML.
func read(raw []byte) (any, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] != '{' {
		var v any
		if err := yaml.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
}

// shut makes every object of a document refuse members that it does not name.
// Gemini's and Ollama's documents leave it open; the first answers 400 to an
// unknown name, the second ignores it, so that a misspelt member is lost. The
// model, which Gemini's document demands, stands in the URL.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, said := v["additionalProperties"]; !said && v["type"] == "object" && object(v["properties"]) != nil {
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
				for name, s := range object(sub) {
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

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
