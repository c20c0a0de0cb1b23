package mcp

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
)

func FuzzResultsDoNotPanic(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}`,
		`{"content":[{"type":"text","type":"image"},7,null,[],{"type":null}],"structuredContent":null}`,
		`{"content":[{"type":"resource","resource":{"uri":"a","blob":"%%"}},{"type":"resource_link"}],"isError":true}`,
		`{"content":{},"structuredContent":1e999}`, `[]`, `null`, `{"content":null}`,
	} {
		f.Add([]byte(seed))
	}
	s := &server{all: &Servers{}, label: "s"}
	tool := &remoteTool{server: s, def: &catalog.Tool{Name: "t"}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := tool.output(json.RawMessage(raw))
		if err == nil && out.Failed && len(out.Content) == 0 {
			t.Error("a failure without a text")
		}
		for _, p := range out.Content {
			if p == nil {
				t.Error("a part is nil")
			}
		}
	})
}

func FuzzFormsDoNotPanic(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"properties":[]}`), []byte(`{`))
	f.Add([]byte(`7`), []byte(``))
	f.Fuzz(func(_ *testing.T, form, value []byte) { _, _ = formContent(form, value) })
}
