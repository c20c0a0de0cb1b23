// Package mcpcheck checks MCP messages against the official schemas, for tests. The schemas are
// not part of the module. If they are absent, the tests that need them skip.
package mcpcheck

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// Checker checks messages of one revision. It is safe for concurrent use.
type Checker struct {
	mu       sync.Mutex // guards compiler
	compiler *jsonschema.Compiler
	url      string
	// byMethod are the definitions of requests and notifications.
	byMethod map[string]string
}

// New returns a checker for 2025-11-25 or 2026-07-28. It skips the test if the schema is absent.
func New(t testing.TB, revision string) *Checker {
	t.Helper()
	path := testkit.Shared(t, "specs", "mcp-"+revision+".schema.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the official schema is absent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := &Checker{compiler: jsonschema.NewCompiler(), url: "file:///" + revision, byMethod: map[string]string{}}
	if err := c.compiler.AddResource(c.url, doc); err != nil {
		t.Fatal(err)
	}
	root, _ := doc.(map[string]any)
	definitions, _ := root["$defs"].(map[string]any)
	for name, d := range definitions {
		definition, _ := d.(map[string]any)
		properties, _ := definition["properties"].(map[string]any)
		method, _ := properties["method"].(map[string]any)
		if text, ok := method["const"].(string); ok {
			// The input requests of 2026-07-28 share methods with nothing, but a request
			// without an id is one only inside a result.
			if _, whole := properties["jsonrpc"]; whole || c.byMethod[text] == "" {
				c.byMethod[text] = name
			}
		}
	}
	return c
}

// Message returns an error unless raw is one message of the revision. A request or notification
// must also match the definition of its method; an unknown method is an error, unless it begins
// with one of the prefixes of allowed.
func (c *Checker) Message(raw []byte, allowed ...string) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%w in %.300s", err, raw)
	}
	m, _ := v.(map[string]any)
	kind := "JSONRPCResultResponse"
	method, call := m["method"].(string)
	switch {
	case call && m["id"] != nil:
		kind = "JSONRPCRequest"
	case call:
		kind = "JSONRPCNotification"
	case m["error"] != nil:
		kind = "JSONRPCErrorResponse"
	}
	if err := c.validate(kind, v); err != nil || !call {
		return err
	}
	name := c.byMethod[method]
	if name == "" {
		if slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(method, p) }) {
			return nil
		}
		return fmt.Errorf("the revision has no method %q", method)
	}
	return c.validate(name, v)
}

// Value returns an error unless raw matches a definition, such as CallToolResult.
func (c *Checker) Value(definition string, raw []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%w in %.300s", err, raw)
	}
	return c.validate(definition, v)
}

func (c *Checker) validate(definition string, v any) error {
	c.mu.Lock()
	s, err := c.compiler.Compile(c.url + "#/$defs/" + definition)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", definition, err)
	}
	return nil
}
