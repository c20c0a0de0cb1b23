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

// The versions that are measured. Later ones of honoVersion, which npm would choose, have
// Portkey's gateway fail with the streams that it passes on as they are.
const (
	portkeyVersion = "1.15.2"
	honoVersion    = "1.11.5"
)

// portkey is a server of Portkey's gateway; the reason is why there is none. It is
// installed into the folder that DRAGOMAN_PORTKEY names, where it stays, or for the time
// of the test.
func portkey(tb testing.TB) (url string, pid int, reason string) {
	tb.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return "", 0, "there is no Node"
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
			"@portkey-ai/gateway@"+portkeyVersion, "@hono/node-server@"+honoVersion) //nolint:gosec // ours
		if out, err := install.CombinedOutput(); err != nil {
			return "", 0, fmt.Sprintf("it cannot be installed: %v: %.200s", err, out)
		}
	}
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // of TCP
	_ = l.Close()
	cmd := exec.CommandContext(context.Background(), node, script, fmt.Sprintf("--port=%d", addr.Port), "--headless") //nolint:gosec // what was installed
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
		resp, err := http.Get(url) //nolint:gosec // this machine
		if err == nil {
			_ = resp.Body.Close()
			return url, cmd.Process.Pid, ""
		}
		if time.Now().After(deadline) {
			return "", 0, "it does not answer: " + err.Error()
		}
	}
}

// portkeyContender asks Portkey's gateway, which is told of the model in headers.
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
		body, err := answered(c, req, func() {})
		if err == nil && !strings.HasPrefix(string(bytes.TrimSpace(body)), "data:") && !strings.HasPrefix(string(body), "event:") {
			err = fmt.Errorf("no stream: %.300s", body)
		}
		return body, err
	}, w.client}
}

// portkeyWays are those that Portkey's gateway has as well.
var portkeyWays = []way{chatToChat, anthropicToAnthropic, chatToAnthropic}
