package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestC4_ServerErrorsHaveNoControlCharacters(t *testing.T) {
	_, do := runs(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"\u001b[2J\u001b]0;owned\u0007\u202e no","type":"\u001b[31m","code":"\u001b[1m"}}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, filepath.Dir(file), "c.yaml", "version: 1\nproviders:\n  there: {type: compatible, base_url: \""+server.URL+"/v1\"}\n")
	t.Setenv("DRAGOMAN_CONFIG", file)
	r := do(nil, "--model", "there/x", "--no-session", "hi")
	if r.code != exitFailed || !strings.Contains(r.err, "owned") {
		t.Fatalf("%+v", r)
	}
	if strings.ContainsAny(r.err, "\x1b\x07\u202e") {
		t.Errorf("%q", r.err)
	}
}

func TestC1_PromptMayContainAnyText(t *testing.T) {
	_, do := runs(t)
	for _, prompt := range []string{"one\ttwo", "line\r\nline", "\x1b[31mred", "bad\xffbytes", "a\u0085b", strings.Repeat("\U0001f9d9", 300)} {
		if r := do(nil, "--model", "sim/echo", prompt); r.code != exitOK {
			t.Errorf("%q: %+v", prompt, r)
		}
	}
	if r := do(nil, "--model", "sim/echo", "--session", "my-session", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if r := do(nil, "--model", "sim/echo", "--session", "my-session", " \n"); r.code == exitOK && !strings.Contains(r.err, "no unfinished run") {
		t.Errorf("a blank prompt was sent: %+v", r)
	}
}

// self returns a symlink to the test binary, which acts as the program under that name.
func self(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "dragoman")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestC1_ErrorWithoutHomeFolderHasAdvice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not use HOME")
	}
	for _, env := range [][]string{{"NOTHING=1"}, {"HOME=/proc/nowhere"}} {
		cmd := exec.CommandContext(t.Context(), self(t), "run", "--model", "sim/echo", "hi")
		cmd.Env = env
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(err.String(), "--no-session") || out.Len() != 0 {
			t.Errorf("%v: %d %q %q", env, cmd.ProcessState.ExitCode(), out.String(), err.String())
		}
	}
}
