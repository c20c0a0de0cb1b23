package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// answering returns a server whose tool "t" answers with blocks.
func answering(t *testing.T, blocks string) mcp.Server {
	return rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, _ map[string]json.RawMessage) string {
		return map[string]string{"server/discover": rawDiscover, "tools/list": rawTools(rawTool("t", "")), "tools/call": `{"resultType":"complete","content":[` + blocks + `],"_meta":{"hidden":0}}`}[method]
	})
}

func TestQuirkH14_MetadataOfBlocksIsKeptAndNoModelGetsIt(t *testing.T) {
	big := strings.Repeat("x", 70<<10)
	servers := connect(t, mcp.Options{}, answering(t, `{"type":"text","text":"visible","annotations":{"audience":["user"],"priority":0.5},"_meta":{"hidden":1}},
		{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo=","_meta":{"hidden":9007199254740993}},
		{"type":"hologram","x":1,"_meta":{"hidden":3}},
		{"type":"text","text":"large","_meta":{"hidden":"`+big+`"}},{"type":"text","text":"odd","annotations":"hidden","_meta":null}`))
	b, text := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, servers.Tools(), "t", "{}")
	content := b.Results[0].Content
	if len(content) != 5 || strings.Contains(text, "hidden") {
		t.Fatalf("%q", text)
	}
	fields := func(p dragoman.Part) (out string) {
		var e *dragoman.Extra
		switch p := p.(type) {
		case *dragoman.Text:
			e = p.Extra
		case *dragoman.Media:
			e = p.Extra
		}
		for _, f := range e.For("mcp") {
			out += f.Path + string(f.Value)
		}
		return out
	}
	for i, want := range []string{`/annotations{"audience":["user"],"priority":0.5}/_meta{"hidden":1}`, `/_meta{"hidden":9007199254740993}`, `/_meta{"hidden":3}`, "", ""} {
		if got := fields(content[i]); got != want {
			t.Errorf("block %d: %s", i, got)
		}
	}
	// No dialect sends them to its model.
	call := &dragoman.ToolCall{ID: "c", Name: "t", Arguments: "{}"}
	for _, d := range dialects {
		var sent string
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&body)
			sent = string(body)
			w.WriteHeader(http.StatusTeapot)
		}))
		client := &provider.Client{Name: "m", Codec: d.codec, BaseURL: model.URL + d.base, Model: "m", Retry: provider.Retry{Max: -1}}
		req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("go"), {Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}, dragoman.ToolResults(b.Results...)}}
		req.Messages[2].Parts[0].(*dragoman.ToolResult).CallID = "c"
		_, err := client.Generate(t.Context(), req)
		model.Close()
		if !strings.Contains(sent, "visible") || strings.Contains(sent, "hidden") || strings.Contains(sent, "audience") {
			t.Errorf("%s: %v: sent %.600s", d.codec.Dialect(), err, sent)
		}
	}
}

func TestQuirkH15_LongDescriptionsAreCutAndManyToolsAreDeferred(t *testing.T) {
	long := strings.Repeat("ü", 20_000)
	s := rawServer(t, func(_ http.ResponseWriter, _ *http.Request, method string, _ map[string]json.RawMessage) string {
		return map[string]string{"server/discover": rawDiscover, "tools/list": rawTools(`{"name":"long","description":"` + long + `","inputSchema":{"type":"object"}}`)}[method]
	})
	s.Deferred = true
	servers := connect(t, mcp.Options{}, s)
	tools := servers.Tools()
	if len(tools) != 1 {
		t.Fatalf("%+v", servers.Status())
	}
	spec := tools[0].Spec()
	if d := spec.Description; len(d) >= len(long) || !utf8.ValidString(d) || !spec.Deferred {
		t.Errorf("%d bytes, deferred %v", len(d), spec.Deferred)
	}
	if notes := strings.Join(servers.Status()[0].Notes, "\n"); !strings.Contains(notes, "long") {
		t.Errorf("notes %q", notes)
	}
}
