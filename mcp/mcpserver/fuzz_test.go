package mcpserver_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

// Whatever a client sends, the server neither panics nor fails by its own fault.
func FuzzPost(f *testing.F) {
	s, err := mcpserver.New(mcpserver.Options{
		Name: "fuzz", Tools: []tool.Tool{weather, (&counter{}).tool(tool.NeedsApproval())},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	h := s.Handler()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"pay","arguments":{"to":"a","amount":1},"inputResponses":{"approval":{"action":"accept"}},"requestState":"AAAA",` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":7,` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}`, `null`, `"`,
	} {
		f.Add([]byte(body), "2026-07-28", "tools/call", "pay")
		f.Add([]byte(body), "", "", "")
	}
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string) {
		if at[string](body, "method") == "subscriptions/listen" {
			return // it stays open
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range map[string]string{"MCP-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if ctx.Err() != nil {
			t.Errorf("%q is not answered", body)
		}
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%q gets %d %s", body, w.Code, w.Body)
		}
		if bytes.Contains(w.Body.Bytes(), []byte(`"code":-32603`)) {
			t.Errorf("%q gets %s", body, w.Body)
		}
	})
}
