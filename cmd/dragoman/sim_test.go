package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/sim"
)

// servesUntilInterrupted starts the program in a new process on a free port, sends it a
// request, and interrupts it.
func servesUntilInterrupted(t *testing.T, dir, program string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for a test that hangs
	defer cancel()
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--listen" || a == "127.0.0.1:8080" })
	cmd := exec.CommandContext(ctx, program, append(args, "--listen", "127.0.0.1:0")...)
	cmd.Dir = dir
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr := bufio.NewReader(pipe)
	url := ""
	for url == "" {
		line, err := stderr.ReadString('\n')
		if _, url, _ = strings.Cut(strings.TrimSpace(line), " listens on "); err != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("%s: %v", line, err)
		}
	}
	body := `{"model":"sim/echo","messages":[{"role":"user","content":"hello"}]}`
	path, want := "/v1/chat/completions", `"content":"hello"`
	if args[0] == "mcp" {
		path, want = "", `"name":"dragoman"`
		body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
	} else {
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s", raw)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(stderr)
	logged := args[0] == "serve" && !slices.Contains(args, "off") // the gateway logs the request
	if err := cmd.Wait(); err != nil || len(rest) > 0 != logged || stdout.Len() > 0 {
		t.Errorf("%v\n%s\n%s", err, rest, stdout.String())
	}
}

func TestSimReportsCommandLineErrors(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.scenario")
	if err := os.WriteFile(wrong, []byte("turn\nsing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, "--allow-remote"},
		{[]string{"--listen", ":0"}, exitUsage, "--allow-remote"},
		{[]string{"--listen", "example.com:0"}, exitUsage, "--allow-remote"},
		{[]string{"--listen", "8080"}, exitUsage, "such as 127.0.0.1:8080"},
		{[]string{"--fault", "c99"}, exitUsage, "--faults\" lists all"},
		{[]string{"--rate", "-1"}, exitUsage, "must not be negative"},
		{[]string{"--rate", "NaN"}, exitUsage, "must not be negative"},
		{[]string{"--scenario", os.DevNull}, exitFailed, "no turn"},
		{[]string{"--report", "xml"}, exitUsage, "known values are text, json"},
		{[]string{"--scenario", wrong}, exitFailed, "wrong.scenario:2: "},
		{[]string{"--scenario", filepath.Join(dir, "none")}, exitFailed, "none"},
		{[]string{"--listen", "127.0.0.1:99999"}, exitFailed, "99999"},
		{[]string{"more"}, exitUsage, "more"},
	} {
		var out, stderr bytes.Buffer
		if code := run(append([]string{"sim"}, tc.args...), nil, &out, &stderr); code != tc.code || !strings.Contains(stderr.String(), tc.want) || out.Len() > 0 {
			t.Errorf("%q: %d\n%s%s", tc.args, code, out.String(), stderr.String())
		}
	}
}

func TestPublicAddressNeedsAllowRemote(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.1.2.3:80", "[::1]:0", "localhost:80"} {
		if err := reachable(address, false); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:80", ":80", "localhost.example.com:80"} {
		if reachable(address, false) == nil || reachable(address, true) != nil {
			t.Error(address)
		}
	}
}

func TestZ2_FaultsAreListed(t *testing.T) {
	var out, stderr bytes.Buffer
	if code := run([]string{"sim", "--faults", "--report", "json"}, nil, &out, &stderr); code != exitOK {
		t.Fatal(stderr.String())
	}
	var list struct{ Faults []listedFault }
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Faults) != len(sim.Faults()) || list.Faults[0].ID != "c1" || len(list.Faults[0].Dialects) != 1 {
		t.Errorf("%v %s", err, out.String())
	}
	for _, f := range list.Faults {
		if !slices.Contains([]string{"intact", "blocked", "fails"}, f.Outcome) { // the words of docs/command.md
			t.Errorf("fault %s has the outcome %q", f.ID, f.Outcome)
		}
	}
	out.Reset()
	if code := run([]string{"sim", "--faults"}, nil, &out, &stderr); code != exitOK || strings.Count(out.String(), "\n") != len(sim.Faults()) {
		t.Errorf("%d %s", code, out.String())
	}
}

// A response that is being streamed at an interrupt is completed.
func TestSimCompletesResponses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot interrupt a process")
	}
	begun, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = w.Write([]byte("whole"))
	})
	ctx, cancel := context.WithCancel(context.Background())
	stderr, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serveSim(ctx, func() { close(release) }, "127.0.0.1:0", handler, write) }()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(line), "listens on ")
	got := make(chan string, 1)
	go func() {
		resp, err := http.Get(url)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		got <- string(raw)
	}()
	<-begun
	cancel()
	if text := <-got; text != "whole" {
		t.Error(text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
