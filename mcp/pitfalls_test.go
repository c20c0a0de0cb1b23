package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
)

// A server that declares a feature and refuses its methods stays usable, and is asked once.
func TestPitfallK37_AnUnknownMethodDoesNotFailTheServer(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		seen = append(seen, m.Method)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		result := map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`,
			"tools/list":      rawTools(rawTool("t", "")),
			"tools/call":      rawDone,
		}[m.Method]
		if result == "" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
			return
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(web.Close)
	s := mcp.HTTP(web.URL).As("hostile")
	servers := connect(t, mcp.Options{LogLevel: "warning"}, s)
	for range 2 {
		if list, err := servers.Resources(t.Context()); len(list) != 0 {
			t.Errorf("resources: %+v %v", list, err)
		}
		if list, err := servers.Prompts(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("prompts: %+v, %v", list, err)
		}
	}
	if b, text := run(t, &tool.Runner{Approver: approver(`{}`, nil)}, servers.Tools(), "t", "{}"); !b.Records[0].OK {
		t.Error(text)
	}
	if st := servers.Status()[0]; st.State != mcp.StateReady {
		t.Errorf("%+v", st)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, method := range []string{"prompts/list", "logging/setLevel", "ping"} { // not declared, or unknown in this revision
		if slices.Contains(seen, method) {
			t.Errorf("sent %s: %v", method, seen)
		}
	}
	if first := slices.Index(seen, "resources/list"); first < 0 || slices.Contains(seen[first+1:], "resources/list") {
		t.Errorf("resources/list was not sent exactly once: %v", seen)
	}
}
