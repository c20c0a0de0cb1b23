// Package specs compiles the official API documents for tests. The documents are not part of
// the module. If they are absent, the checks that need them skip.
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

// Library compiles schemas and reads each document once. The zero value is ready to use.
type Library struct {
	mu     sync.Mutex
	parsed map[string]any
}

// Schema compiles a component of a document. The error wraps [io/fs.ErrNotExist] if the
// document is absent.
//
// No validator accepts these documents unchanged. Schema patches four things, none of which
// makes the check weaker than the document intends:
//
//   - nullable becomes a type list;
//   - a recursive reference names its target;
//   - formats are ignored, because they assert nothing in this draft;
//   - oneOf becomes anyOf, because the alternatives overlap, and a body that matches two is as
//     valid as one that matches one.
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

// read parses a document in JSON or YAML.
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

// shut makes every object of a document refuse unknown fields. The Gemini and Ollama documents
// allow them, but Gemini responds with 400 to an unknown field, and Ollama ignores it, so that a
// misspelled field would be lost. shut also makes the model optional, which the Gemini document
// requires but the API has in the URL.
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

// patch turns an OpenAPI document into JSON Schemas. root is the pointer of the component that
// is being patched.
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
