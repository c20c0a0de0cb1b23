package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
)

// writeFile writes a file into a folder and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryFieldOfTheMCPSectionIsRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KEY_A", "a-secret-with-enough-characters")
	t.Setenv("ISSUES_SECRET", "s")
	t.Setenv("TOKEN", "t0ken")
	writeFile(t, dir, "more.json", `{"mcpServers":{"memory":{"command":"npx","args":["-y","server-memory"]}}}`)
	writeFile(t, dir, "p.yaml", "version: 1\ndefault: allow\nrules:\n  - {id: r, effect: ask, when: {tool: \"mcp_files__*\"}}\n")
	file := strings.NewReplacer("DIR", dir).Replace(`version: 1
gateway:
  keys:
    a:
      key_env: KEY_A
      mcp: [files, "issues/get_*", memory]
      mcp_policy: DIR/p.yaml
  mcp:
    servers:
      files:
        command: npx
        args: [-y, server]
        approval: {"read_*": never}
      issues: {url: "https://mcp.example.com/mcp", headers: {X-Token: "Bearer ${TOKEN}"}, call_timeout: 5s}
    file: DIR/more.json
    lock: DIR/dragoman.lock
    policy: DIR/p.yaml
    approvals: client
    fence: true
    allowed_origins: ["https://app.example.com"]
    names: plain
    sessions: shared
    result_chars: 1000
    token_store: DIR/tokens
    auth:
      issues: {client_id: gw, client_secret_env: ISSUES_SECRET, issuer: "https://login.example.com", scopes: [read]}
`)
	c, err := gateway.Parse("gateway.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	m := c.MCP
	if len(m.Servers) != 3 || m.Servers[0].Label() != "files" || m.Servers[0].Approval["read_*"] != "never" || m.Servers[1].Headers["X-Token"] != "Bearer t0ken" || m.Servers[2].Label() != "memory" {
		t.Errorf("%+v", m.Servers)
	}
	if m.Lock == "" || m.Policy == nil || m.NoApprovals || !m.Fence || len(m.AllowedOrigins) != 1 || !m.PlainNames || !m.SharedSessions || m.ResultChars != 1000 || m.TokenStore == "" || m.Auth["issues"].ClientID != "gw" {
		t.Errorf("%+v", m)
	}
	if len(m.Keys["a"]) != 3 || m.KeyPolicies["a"] == nil {
		t.Errorf("%+v", m.Keys)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	g, err := gateway.New(c, gateway.Options{}) // starts nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfTheMCPSectionNameTheLine(t *testing.T) {
	t.Setenv("KEY_A", "a-secret-with-enough-characters")
	dir := t.TempDir()
	models := writeFile(t, dir, "p.yaml", "version: 1\ndefault: allow\nrules:\n  - {id: r, effect: deny, when: {model: \"x/*\"}}\n")
	for text, want := range map[string]string{
		"  mcp:\n    lock: x.lock\n":                                                                                    "there are no servers",
		"  mcp:\n    servers:\n      one:\n        ulr: x\n":                                                            `gateway.yaml:6:1: mcp: server one: unknown field "ulr"`,
		"  mcp:\n    servers:\n      a/b: {url: \"http://x/\"}\n":                                                       "part of the path /mcp/NAME",
		"  mcp:\n    servers:\n      one: {url: \"http://x/\", headers: {A: \"${NOT_SET}\"}}\n":                         "NOT_SET is not set",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    approvals: maybe\n":                                      "want client or none",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    policy: " + models + "\n":                                "the rule can never apply",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    auth: {two: {client_id: a, client_secret_env: KEY_A}}\n": "there is no server",
		"  mcp:\n    servers: {one: {command: x}}\n    auth: {one: {client_id: a, client_secret_env: KEY_A}}\n":         "is a command",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    auth: {one: {client_id: a, client_secret: s}}\n":         "must not contain a secret",
		"  keys: {a: {key_env: KEY_A, mcp: [one]}}\n":                                                                   "the section gateway.mcp",
		"  keys: {a: {key_env: KEY_A, mcp: [two]}}\n  mcp:\n    servers: {one: {url: \"http://x/\"}}\n":                 "can never match: there is no such server",
		"  keys: {a: {key_env: KEY_A, mcp: []}}\n  mcp:\n    servers: {one: {url: \"http://x/\"}}\n":                    "the list is empty",
		"  keys: {a: {key_env: KEY_A, mcp_policy: " + models + "}}\n  mcp:\n    servers: {one: {url: \"http://x/\"}}\n": "may use no MCP server",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    file: " + filepath.Join(dir, "none.json") + "\n":         "no such file",
		"  mcp:\n    servers: {one: {url: \"http://x/\"}}\n    allowed_origins: [\"https://*.example.com\"]\n":          "want an origin",
	} {
		_, err := gateway.Parse("gateway.yaml", []byte("version: 1\ngateway:\n"+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant %s", text, err, want)
		}
	}
}
