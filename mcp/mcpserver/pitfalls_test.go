package mcpserver_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

func TestPitfallK10_AHeaderThatNamesAnotherToolIsRefused(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{weather, paid.tool(tool.Set(plain))}})
	c := newClient(t, url, modern, nil)
	for header, value := range map[string]string{"Mcp-Name": "get_weather", "Mcp-Method": "tools/list"} {
		r := c.request(t.Context(), "tools/call", object{"name": "pay", "arguments": ann})
		r.Header.Set(header, value)
		if got := c.send(r, "tools/call"); got.status != http.StatusBadRequest || got.code != -32020 {
			t.Errorf("%s: status %d, code %d: %s", header, got.status, got.code, got.text)
		}
	}
	if ran := paid.ran(); len(ran) > 0 {
		t.Errorf("the call ran: %v", ran)
	}
}

func TestPitfallK15_StreamsAreNotBuffered(t *testing.T) {
	slow := tool.New("slow", "Reports progress.", func(ctx context.Context, _ struct{}) (string, error) {
		mcpserver.Progress(ctx, 1, 2, "half")
		return "done", nil
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{slow}})
	got := newClient(t, url, modern, nil).call("slow", nil, object{"_meta": object{"progressToken": "p"}})
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || got.header.Get("X-Accel-Buffering") != "no" || len(got.others) != 1 {
		t.Errorf("headers %v, messages %s", got.header, got.others)
	}
}

func TestPitfallK31_ClientsWithoutCapabilitiesGetErrors(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval())}})
	for name, capabilities := range map[string]string{
		"null": "null", "empty": "{}", "null elicitation": `{"elicitation":null}`, "a list": "[]", "a number of forms": `{"elicitation":{"form":7},"extensions":null}`,
	} {
		for _, method := range []string{"tools/list", "tools/call"} {
			body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"pay","arguments":{"to":"ann","amount":5},"_meta":{
				"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
			c := &client{t: t, url: url, revision: modern}
			r := c.post(t.Context(), []byte(body))
			r.Header.Set("Mcp-Method", method)
			r.Header.Set("Mcp-Name", "pay")
			if got := c.send(r, method); got.status >= 500 || got.status == 0 {
				t.Errorf("%s: %s: status %d: %s%s", name, method, got.status, got.raw, got.text)
			}
		}
		old := &client{t: t, url: url, revision: legacy}
		r := old.post(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":null}}`))
		got := old.send(r, "initialize")
		if got.status >= 500 {
			t.Errorf("%s: initialize: status %d: %s", name, got.status, got.text)
		}
		if old.session = got.header.Get("Mcp-Session-Id"); old.session != "" {
			if got := old.call("pay", ann); got.status >= 500 {
				t.Errorf("%s: a call of an older revision: status %d: %s", name, got.status, got.text)
			}
		}
	}
	if ran := paid.ran(); len(ran) > 0 {
		t.Errorf("ran without an approval: %v", ran)
	}
	if got := newClient(t, url, modern, nil).do("tools/list", nil); got.status != http.StatusOK {
		t.Errorf("the server no longer works: %d", got.status)
	}
}

func TestPitfallK33_ListsBelongToTheirCaller(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{
		Tools: []tool.Tool{weather, paid.tool()},
		Auth:  &mcpserver.Auth{Keys: []mcpserver.Key{{Name: "ann", Hash: mcpserver.HashKey("ann-key")}, {Name: "eve", Hash: mcpserver.HashKey("eve-key")}}},
		Show: func(_ context.Context, c mcpserver.Caller, spec *dragoman.ToolSpec) bool {
			return spec.Name == "get_weather" || c.Principal.ID == "ann"
		},
	})
	for range 2 { // the second time, a list could come from a cache
		for _, key := range []string{"ann-key", "eve-key"} {
			c := &client{t: t, url: url, revision: modern, header: bearer(key)}
			got := c.do("tools/list", nil)
			if sees := bytes.Contains(got.result, []byte(`"pay"`)); sees != (key == "ann-key") {
				t.Errorf("%s: %s", key, got.result)
			}
			if at[string](got.result, "cacheScope") != "private" || got.header.Get("Cache-Control") == "public" {
				t.Errorf("%s: the list may be shared: %s %v", key, got.result, got.header)
			}
		}
	}
}

func TestPitfallK36_ArgumentsAreAnObjectWithExactNames(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.Set(plain))}})
	for _, revision := range []string{modern, legacy} {
		c := newClient(t, url, revision, nil)
		for name, arguments := range map[string]any{
			"a string": `{"to":"ann","amount":5}`, "a list": []any{ann}, "a number": 5,
		} {
			if got := c.do("tools/call", object{"name": "pay", "arguments": arguments}); got.code != -32602 {
				t.Errorf("%s: code %d: %s", name, got.code, got.result)
			}
		}
		if got := c.call("pay", object{"To": "ann", "Amount": 5}); !got.isError() || !strings.Contains(got.texts(), "to") {
			t.Errorf("names in another case: %s", got.result)
		}
	}
	if ran := paid.ran(); len(ran) > 0 {
		t.Errorf("ran: %v", ran)
	}
}

func TestPitfallK40_AnOldStateIsRefusedWithWhatToDo(t *testing.T) {
	var paid counter
	var minutes atomic.Int64
	start := time.Now()
	clock := func() time.Time { return start.Add(time.Duration(minutes.Load()) * time.Minute) }
	o := mcpserver.Options{Now: clock, Tools: []tool.Tool{paid.tool(tool.NeedsApproval())}}
	_, url := serve(t, o)
	_, restarted := serve(t, o)
	c := newClient(t, url, modern, forms)
	ask := c.call("pay", ann)
	deployed := newClient(t, restarted, modern, forms).call("pay", ann, retry(ask, yes("approval")))
	minutes.Store(11)
	expired := c.call("pay", ann, retry(ask, yes("approval")))
	for name, got := range map[string]*reply{"after a restart": deployed, "expired": expired} {
		if got.code != -32602 || !strings.Contains(got.text, "Send the request again") {
			t.Errorf("%s: code %d: %s %s", name, got.code, got.text, got.result)
		}
	}
	if ran := paid.ran(); len(ran) > 0 {
		t.Errorf("ran: %v", ran)
	}
}
