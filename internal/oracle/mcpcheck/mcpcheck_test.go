package mcpcheck_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/mcpcheck"
)

func TestMessagesOfTheRevisions(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		c := mcpcheck.New(t, revision)
		modern := revision == "2026-07-28"
		for message, want := range map[string]bool{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`:                                    !modern,
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`:       modern,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`:                                                                                                                  !modern,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`: true,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`:            false,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`:                                                                                                         true,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`:                                                                                                        false,
			`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`:                                                                                                                                      false,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`:                                                                                                                           true,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600}}`:                                                                                                                                      false,
		} {
			if err := c.Message([]byte(message)); (err == nil) != want {
				t.Errorf("%s: %s: %v, want valid: %v", revision, message, err, want)
			}
		}
	}
}
