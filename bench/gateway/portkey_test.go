//go:build linux

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// The measured versions. With later versions of @hono/node-server, which npm would choose,
// Portkey's gateway fails with streams that it passes through.
const (
	portkeyVersion = "1.15.2"
	honoVersion    = "1.11.5"
)

// portkey starts a server of Portkey's gateway. If there is none, reason says why. The gateway is
// installed into the folder that DRAGOMAN_PORTKEY names, where it stays, or else into a temporary
// folder.
func portkey(tb testing.TB) (url string, pid int, reason string) {
	tb.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return "", 0, "Node is not installed"
	}
	folder := os.Getenv("DRAGOMAN_PORTKEY")
	if folder == "" {
		folder = tb.TempDir()
	}
	script := filepath.Join(folder, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js")
	if _, err := os.Stat(script); err != nil {
		ctx, cancel := context.WithTimeout(tb.Context(), 3*time.Minute)
		defer cancel()
		install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--ignore-scripts", "--legacy-peer-deps", "--prefix", folder,
			"@portkey-ai/gateway@"+portkeyVersion, "@hono/node-server@"+honoVersion) //nolint:gosec // fixed arguments
		if out, err := install.CombinedOutput(); err != nil {
			return "", 0, fmt.Sprintf("npm install failed: %v: %.200s", err, out)
		}
	}
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a TCP listener
	_ = l.Close()
	cmd := exec.CommandContext(context.Background(), node, script, fmt.Sprintf("--port=%d", addr.Port), "--headless") //nolint:gosec // the installed script
	cmd.Env = append(os.Environ(), "NODE_ENV=production")
	if err := cmd.Start(); err != nil {
		return "", 0, err.Error()
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = "http://" + addr.String()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url) //nolint:gosec // a local URL
		if err == nil {
			_ = resp.Body.Close()
			return url, cmd.Process.Pid, ""
		}
		if time.Now().After(deadline) {
			return "", 0, "it does not respond: " + err.Error()
		}
	}
}

// portkeyContender sends requests to Portkey's gateway, which gets the model in headers.
func portkeyContender(at string, pid int, w way, pace, upstream string) contender {
	provider, base := "openai", upstream+"/"+pace+"/v1"
	if w.model == dialectname.Anthropic {
		provider = "anthropic"
	}
	return contender{"Portkey", pid, func(ctx context.Context, c *http.Client) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+path(w.client), bytes.NewReader(request(w.client, "some-model")))
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-Portkey-Provider", provider)
		req.Header.Set("X-Portkey-Custom-Host", base)
		req.Header.Set("Authorization", "Bearer "+modelKey)
		if w.client == dialectname.Anthropic {
			req.Header.Set("X-Api-Key", modelKey)
		}
		body, err := send(c, req, func() {})
		if err == nil && !strings.HasPrefix(string(bytes.TrimSpace(body)), "data:") && !strings.HasPrefix(string(body), "event:") {
			err = fmt.Errorf("not a stream: %.300s", body)
		}
		return body, err
	}, w.client}
}

// portkeyWays lists the ways that Portkey's gateway supports too.
var portkeyWays = []way{chatToChat, anthropicToAnthropic, chatToAnthropic}
