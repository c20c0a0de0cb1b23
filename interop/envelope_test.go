package interop_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

func TestR9_EnvelopeInToolData(t *testing.T) {
	const envelope = `{"type":"provider_native_tool_result","format":"anthropic.messages","_metadata":{"cost":7},"content":[{"type":"text","text":"two hits"},{"type":"search_result","source":"s","title":"t","content":[]}]}`
	cases := []struct {
		name    string
		data    string
		dialect dragoman.Dialect
		want    string // in the output
		not     string // never in it
	}{
		{"its own dialect gets the structure", envelope, dialectname.Anthropic, `"content":[{"type":"text","text":"two hits"},{"type":"search_result"`, "_metadata"},
		{"another dialect gets the text of the content", envelope, dialectname.OpenAIChat, `"content":"two hits"`, "search_result"},
		{
			"a fallback of the tool's own is preferred", `{"type":"provider_native_tool_result","format":"anthropic.messages","content":"x","text":"in words"}`,
			dialectname.OpenAIResponses, `"output":"in words"`, "provider_native",
		},
		{
			"an object that only looks like one is data", `{"type":"provider_native_tool_result","content":"x"}`,
			dialectname.OpenAIChat, `provider_native_tool_result`, "\x00",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reg := all.Registry(interop.Options{Target: targets.Target{Dialect: c.dialect}})
			var w jsonwire.Writer
			var rep dragoman.Report
			res := &dragoman.ToolResult{CallID: "call_1", Content: []dragoman.Part{&dragoman.Data{JSON: []byte(c.data)}}}
			if _, err := reg.WriteResult(&w, res, extra.At(""), &rep); err != nil {
				t.Fatal(err)
			}
			if got := string(w.Buf); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
				t.Errorf("got %s\nwant %q in it and %q not", got, c.want, c.not)
			}
			if _, ok := res.Content[0].(*dragoman.Data); !ok {
				t.Error("the result itself was changed")
			}
		})
	}
}
