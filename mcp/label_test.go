package mcp

import "testing"

func TestLabelsComeFromThePackageAndHaveNoSecrets(t *testing.T) {
	for _, c := range []struct {
		want string
		s    Server
	}{
		{"server-memory", Stdio("npx", "-y", "@modelcontextprotocol/server-memory")},
		{"server-memory", Stdio("npx", "-y", "@modelcontextprotocol/server-memory@1.2.3", "/data")},
		{"mcp-server-git", Stdio("uvx", "--from", "git+https://token@example.com/repo", "mcp-server-git")},
		{"github", Stdio("docker", "run", "-i", "--rm", "-e", "TOKEN=hunter2", "-e", "OTHER", "mcp/github")},
		{"github", Stdio("docker", "run", "--env", "TOKEN=hunter2", "-v", "/home/ann:/data", "--name", "x", "mcp/github:latest")},
		{"gh-mcp", Stdio("/usr/local/bin/gh-mcp", "--token", "hunter2")},
		{"example.com", HTTP("https://user:hunter2@www.example.com/mcp?key=hunter2")},
		{"mine", HTTP("https://example.com").As("mine")},
	} {
		if got := c.s.Label(); got != c.want {
			t.Errorf("%v: %q, want %q", c.s.Args, got, c.want)
		}
	}
}
