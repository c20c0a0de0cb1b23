package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
)

func TestSchemaCacheDoesNotChangeResults(t *testing.T) {
	profiles := []schema.Profile{
		toolwire.OpenAITool, toolwire.OpenAIStrict, toolwire.OpenAIOutput,
		schema.NewProfile(schemarules.Rules{Name: "claude.tool", RootObject: true, ModernDefs: true, Names: toolwire.ClaudeNames()}),
		schema.NewProfile(toolwire.ClaudeStrictRules("claude.strict")),
	}
	names := map[string]bool{}
	for _, p := range profiles {
		if names[p.Name()] {
			t.Fatalf("two profiles are called %q; the cache could not tell them apart", p.Name())
		}
		names[p.Name()] = true
	}
	sources := []string{
		``, `null`, `{}`, `true`, `[`, `{"type":"object","properties":{"a":{"type":"string"}}}`,
		`{"$defs":{"a":{"type":"string"}},"type":"object","properties":{"b":{"$ref":"#/$defs/a"}},"anyOf":[{"required":["b"]}]}`,
	}
	var c SchemaCache
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, p := range profiles {
				for _, src := range sources {
					want, wantErr := schema.Lower(json.RawMessage(src), p)
					low, err := c.adapt(json.RawMessage(src), p)
					got, rep := low.Schema, low.Report
					if string(got) != string(want.Schema) || !slices.Equal(rep.Losses, want.Report.Losses) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Errorf("%s for %s: %s (%v), want %s (%v)", src, p.Name(), got, err, want.Schema, wantErr)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestSchemaCacheClonesItsInput(t *testing.T) {
	src := []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	var c SchemaCache
	callers := slices.Clone(src)
	if _, err := c.adapt(callers, toolwire.OpenAITool); err != nil {
		t.Fatal(err)
	}
	clear(callers)
	if after, _ := c.adapt(src, toolwire.OpenAITool); string(after.Schema) != string(src) {
		t.Errorf("the cache returns %s", after.Schema)
	}
}

func TestSchemaCacheIsBounded(t *testing.T) {
	var c SchemaCache
	long := make([]byte, 100<<10)
	for i := range long {
		long[i] = 'x'
	}
	for i := range 400 {
		src := fmt.Appendf(nil, `{"type":"object","description":"%d%s","properties":{}}`, i, long)
		if _, err := c.adapt(src, toolwire.OpenAITool); err != nil {
			t.Fatal(err)
		}
		if c.size > maxCachedBytes {
			t.Fatalf("%d bytes kept", c.size)
		}
	}
}
