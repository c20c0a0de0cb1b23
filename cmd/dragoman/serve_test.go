package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/access"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/provider"
)

func TestG3_ServeWithoutKeysRefusesPublicAddress(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80"} {
		var stderr bytes.Buffer
		if code := run([]string{"serve", "--listen", address}, nil, io.Discard, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "there are no keys") {
			t.Errorf("%s: %d %s", address, code, &stderr)
		}
	}
}

func TestServeReportsCommandLineAndConfigErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\ngateway:\n  routez: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve", "--log", "loud"}, exitUsage, "known values are text, json, off"},
		{[]string{"serve", "--config", bad}, exitFailed, "gateway.yaml:3:3"},
		{[]string{"serve", "--config", bad + "x"}, exitFailed, "no such file"},
		{[]string{"serve", "--listen", "nowhere"}, exitFailed, "host:port"},
		{[]string{"serve", "--drain", "-1s"}, exitUsage, "--drain -1s must not be negative"},
		{[]string{"serve", "--check", "--drain", "-1s"}, exitUsage, "--drain -1s must not be negative"},
		{[]string{"serve", "--check", "--log", "loud"}, exitUsage, "known values are text, json, off"},
		{[]string{"serve", "--check", "--config", bad}, exitFailed, "gateway.yaml:3:3"},
		{[]string{"serve", "--check", "--listen", "0.0.0.0:80"}, exitFailed, "there are no keys"},
		{[]string{"serve", "now"}, exitUsage, `unexpected argument "now": dragoman serve`},
	} {
		var stderr bytes.Buffer
		if code := run(tc.args, nil, io.Discard, &stderr); code != tc.code || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%v: %d %s", tc.args, code, &stderr)
		}
	}
}

func TestServeCheckDoesNotServe(t *testing.T) {
	t.Setenv("DRAGOMAN_CONFIG", "")
	t.Setenv("DRAGOMAN_TEST_UNSET", "")
	t.Setenv("DRAGOMAN_TEST_KEY", "a-key-of-the-test")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	database := filepath.Join(t.TempDir(), "state.db")
	for _, tc := range []struct{ config, out, err string }{
		{
			"", "no config, so the simulator is served: sim/planner, sim/echo, sim/scenario\n  echo        → sim/echo\n  echo?*      → sim/echo?*\n" +
				"  planner     → sim/planner\n  planner?*   → sim/planner?*\n  scenario    → sim/scenario\n  scenario?*  → sim/scenario?*\n  sim/*       → sim/*\n" +
				"It would listen on 127.0.0.1:8088, for everyone on this machine.\n", "",
		},
		{
			"version: 1\ngateway: {listen: 127.0.0.1:1}\n", "no routes, aliases or providers in the config, so the simulator is served: sim/planner", "",
		},
		{
			"version: 1\naliases: {fast: sim/echo}\nproviders: {work: {type: ollama, api_key_env: DRAGOMAN_TEST_UNSET}}\n",
			"no routes in the config, so its aliases and providers are served: fast, work/*\n  fast    → sim/echo\n  work/*  → work/*\n",
			"dragoman: warning: " + file + ":3:47: provider work: api_key_env: the environment variable DRAGOMAN_TEST_UNSET is not set\n",
		},
		{
			"version: 1\ngateway: {listen: \":80\", keys: {a: {key_env: DRAGOMAN_TEST_KEY, models: x}}, routes: {m-*: {to: [sim/echo, sim/planner]}}}\n",
			"1 route: m-*\n  m-*  → sim/echo, sim/planner\nIt would listen on :80, for 1 key.\n",
			"dragoman: warning: " + file + `:2:73: models: no route serves "x", so this key cannot use it: routes are m-*` + "\n",
		},
		{
			"version: 1\ngateway: {state: {sqlite: " + database + "}, routes: {m: {to: sim/echo}}}\n", "1 route: m\n", "",
		},
		{
			"version: 1\ngateway: {state: {postgres_env: DRAGOMAN_TEST_KEY}, routes: {m: {to: sim/echo}}}\n", "1 route: m\n", "",
		},
	} {
		args := []string{"serve", "--check"}
		if tc.config != "" {
			if err := os.WriteFile(file, []byte(tc.config), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--config", file)
		}
		var stdout, stderr bytes.Buffer
		if code := run(args, nil, &stdout, &stderr); code != exitOK || !strings.HasPrefix(stdout.String(), tc.out) || stderr.String() != tc.err {
			t.Errorf("%s: %d\n%s\n%s", tc.config, code, &stdout, &stderr)
		}
	}
	if _, err := os.Stat(database); !os.IsNotExist(err) {
		t.Errorf("--check created a database: %v", err)
	}
}

func TestServeCheckNamesPoliciesAndState(t *testing.T) {
	t.Setenv("DRAGOMAN_TEST_KEY", "a-secret-of-the-team")
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("version: 1\nrules:\n  - {id: no, effect: deny, reason: No., when: {model: [\"x/*\"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ config, state, policies string }{
		{"routes: {m: {to: sim/echo}}", "state: in memory, lost when the gateway stops", "policies: none"},
		{"state: {sqlite: " + filepath.Join(dir, "g.db") + "}, routes: {m: {to: sim/echo}}", "state: SQLite, " + filepath.Join(dir, "g.db"), "policies: none"},
		{"state: {postgres_env: DRAGOMAN_TEST_KEY}, routes: {m: {to: sim/echo}}", "state: PostgreSQL, named by DRAGOMAN_TEST_KEY", "policies: none"},
		{
			"policy: POLICY, keys: {a: {key_env: DRAGOMAN_TEST_KEY, policy: POLICY}}, routes: {m: {to: sim/echo, policy: POLICY}}",
			"state: in memory", "policies: all requests, key a, route m",
		},
	} {
		if err := os.WriteFile(file, []byte("version: 1\ngateway: {"+strings.ReplaceAll(tc.config, "POLICY", filepath.Join(dir, "p.yaml"))+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code := run([]string{"serve", "--check", "--config", file}, nil, &stdout, &stderr)
		if code != exitOK || !strings.Contains(stdout.String(), tc.state) || !strings.Contains(stdout.String(), tc.policies+"\n") {
			t.Errorf("%s: %d\n%s\n%s", tc.config, code, &stdout, &stderr)
		}
	}
}

func TestG4_ServeReportsReloads(t *testing.T) {
	team := []access.Key{{Name: "team", Hash: access.HashOf("a-secret-of-the-team")}}
	began := &gateway.Config{Keys: team, Models: &provider.Config{}}
	g, err := gateway.New(began, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	route := []gateway.Route{{Pattern: "m", To: "sim/echo"}}
	const read = "dragoman: reloaded the config: 1 route: m\n"
	for _, tc := range []struct {
		changed gateway.Config
		want    string
	}{
		{gateway.Config{Keys: team, Routes: route}, read},
		{gateway.Config{Keys: team, Routes: route, Listen: "127.0.0.1:8088", Limits: gateway.Limits{Streams: 5}}, read},
		{gateway.Config{Keys: team, Routes: route, Listen: "127.0.0.1:1"}, read + "dragoman: warning: listen changed in the config: restart the gateway to apply it\n"},
		{
			gateway.Config{Keys: team, Routes: route, State: gateway.State{TTL: time.Hour}, Limits: gateway.Limits{HeaderBytes: 1}},
			read + "dragoman: warning: state and limits.header_bytes changed in the config: restart the gateway to apply it\n",
		},
		{gateway.Config{Routes: route}, read + "dragoman: warning: the config no longer has keys: everyone on this machine can use all of its models\n"},
		{
			gateway.Config{Keys: team, Routes: route, Warnings: []*provider.FileError{{File: "f", Line: 1, Column: 2, Reason: "odd"}}},
			read + "dragoman: warning: f:1:2: odd\n",
		},
	} {
		var out bytes.Buffer
		if err := (serveFlags{}).reload(g, began, began, &tc.changed, &out); err != nil || out.String() != tc.want {
			t.Errorf("%v\nhave %s\nwant %s", err, &out, tc.want)
		}
	}
}

// waitFor reads the output of a program until a line contains want, and returns that line.
func waitFor(t *testing.T, from *bufio.Reader, want string) string {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatalf("no line with %q: %v", want, err)
		}
		if strings.Contains(line, want) {
			return strings.TrimSpace(line)
		}
	}
}

// program starts this program in a new process, to which a test sends signals.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, out *bufio.Reader) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "dragoman")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a test that hangs
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, name, args...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(pipe)
}

func TestC4_ServeReportsAbortedRequests(t *testing.T) {
	cmd, out := program(t, "serve", "--listen", "127.0.0.1:0", "--log", "off", "--drain", "1ns")
	_, url, _ := strings.Cut(waitFor(t, out, "listens on"), "listens on ")
	resp, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(`{"model":"sim/echo?rate=0.0001","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(text, []byte("shutting down")) {
		t.Errorf("%v %s", err, text)
	}
	if text, err := io.ReadAll(out); err != nil || !bytes.Contains(text, []byte("1 response was cut off")) {
		t.Errorf("%v %s", err, text)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitFailed {
		t.Error(cmd.ProcessState)
	}
}

func TestG4_ServeReloadsConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 1\naliases: {first: sim/echo}\n")
	cmd, out := program(t, "serve", "--listen", "127.0.0.1:0", "--config", file, "--log", "off")
	waitFor(t, out, "so its aliases and providers are served: first")
	_, at, _ := strings.Cut(waitFor(t, out, "listens on"), "listens on ")
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	judge := httptest.NewServer(emitcheck.Proxy(to, emitcheck.Options{Report: func(v *emitcheck.Violation) { t.Errorf("%v\n%s", v, v.Body) }}))
	defer judge.Close()
	status := func(model string) int {
		resp, err := http.Post(judge.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	reload := func(text, want string) {
		write(text)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, out, want)
	}
	if status("first") != 200 || status("second") != 404 {
		t.Error("the first config is not served")
	}
	reload("version: 1\naliases: {second: sim/echo}\n", "reloaded the config")
	if status("first") != 404 || status("second") != 200 {
		t.Error("the second config is not served")
	}
	reload("version: 1\naliases: {second: nobody/echo}\n", "the old one stays in use")
	if status("second") != 200 {
		t.Error("an invalid config was applied")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestG3_ReloadWithoutKeysIsRefusedOnPublicAddress(t *testing.T) {
	key := access.Key{Name: "team", Hash: access.HashOf("a-secret-of-the-team")}
	began := &gateway.Config{Listen: "0.0.0.0:8088", Keys: []access.Key{key}}
	g, err := gateway.New(began, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = serveFlags{}.reload(g, began, began, &gateway.Config{Listen: "127.0.0.1:8088"}, io.Discard)
	var open *gateway.OpenRelayError
	if !errors.As(err, &open) {
		t.Errorf("%v", err)
	}
	rec := httptest.NewRecorder()
	if g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/models", nil)); rec.Code != http.StatusUnauthorized {
		t.Errorf("a request without a key was accepted: %d", rec.Code)
	}
}
