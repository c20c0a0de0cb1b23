package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/dragoman-go/dragoman/mcp"
)

// manyServers connects 20 servers with 50 tools each. ttl is how long their lists are valid, in
// milliseconds.
func manyServers(b testing.TB, ttl int) *mcp.Servers {
	var list []mcp.Server
	for i := range 20 {
		var tools []string
		for j := range 50 {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%d_%d","description":"Reads one file of the project and returns its text. Paths are relative.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file."},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, i, j))
		}
		all := rawTools(tools...)
		all = all[:len(all)-len(`0,"cacheScope":"private"}`)] + fmt.Sprintf(`%d,"cacheScope":"private"}`, ttl)
		s := rawServer(b, func(_ http.ResponseWriter, _ *http.Request, method string, _ map[string]json.RawMessage) string {
			return map[string]string{"server/discover": rawDiscover, "tools/list": all}[method]
		})
		list = append(list, s.As(fmt.Sprintf("s%d", i)))
	}
	return connect(b, mcp.Options{}, list...)
}

// Listing 1,000 tools of 20 servers before each turn: from their lists, which are valid for an
// hour, or read again over HTTP and found unchanged.
func BenchmarkListing1000ToolsOf20Servers(b *testing.B) {
	for name, ttl := range map[string]int{"valid": 3_600_000, "read again": 0} {
		b.Run(name, func(b *testing.B) {
			servers := manyServers(b, ttl)
			b.ReportAllocs()
			for b.Loop() {
				tools, err := servers.Source(b.Context())
				if err != nil || len(tools) != 1000 {
					b.Fatal(len(tools), err)
				}
			}
		})
	}
}
