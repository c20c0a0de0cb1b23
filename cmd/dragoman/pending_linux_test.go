package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leavePending interrupts a run at its approval question and returns the screen content.
func leavePending(t *testing.T, db, dir string) string {
	t.Helper()
	keys, program := terminal(t)
	cmd := startAtTerminal(t, program, "--dir", dir, "--session", "trip", `Write the file "b.txt" with content "new"`)
	cmd.Env = append(cmd.Env, "DRAGOMAN_SESSIONS="+db)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	seen := talk(t, keys, "\n> ", "\x03")
	_ = cmd.Wait()
	return seen
}

func TestApprovalShowsDiff(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.txt", "old\n")
	seen := strings.ReplaceAll(leavePending(t, filepath.Join(t.TempDir(), "s.db"), dir), "\r", "")
	if !strings.Contains(seen, "  | Change b.txt:\n") || !strings.Contains(seen, "  | -old\n") || !strings.Contains(seen, "  | +new\n") || strings.Contains(seen, `| "content"`) {
		t.Errorf("the question:\n%s", seen)
	}
}

// While calls wait, a new prompt is refused, so the hint must not contain one.
func TestInterruptedQuestionHintHasNoPrompt(t *testing.T) {
	seen := leavePending(t, filepath.Join(t.TempDir(), "s.db"), t.TempDir())
	if !strings.Contains(seen, "calls wait for your approval; continue with: dragoman run --session trip") || strings.Contains(seen, "…\"\r\n") || strings.Contains(seen, "ERROR") {
		t.Errorf("%s", seen)
	}
}

func TestPendingSessionPrintsUsableCommands(t *testing.T) {
	dir, do := runs(t)
	db := filepath.Join(t.TempDir(), "s.db")
	t.Setenv("DRAGOMAN_SESSIONS", db)
	leavePending(t, db, dir)
	for _, args := range [][]string{{"--session", "trip"}, {"--continue"}, {"--session", "trip", "And then?"}} {
		r := do(nil, args...)
		if r.code != exitUnattended || !strings.Contains(r.err, "wait for approval: write_file; no approver is attached") ||
			!strings.Contains(r.err, " --allow write_file ") || !strings.Contains(r.err, " --abandon ") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Fatal("the call ran")
	}
	if r := do(nil, "--session", "trip", "--allow", "write_file"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestReceivedTextSurvivesInterrupt(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_, _ = bufio.NewReader(r.Body).WriteTo(&b)
		bodies = append(bodies, b.String())
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"The first half"}}]}`+"\n\n")
		if len(bodies) == 1 {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	db := filepath.Join(t.TempDir(), "s.db")
	dir := t.TempDir()
	config := filepath.Join(t.TempDir(), "config.yaml")
	write(t, filepath.Dir(config), "config.yaml", "version: 1\nproviders:\n  fake:\n    type: compatible\n    base_url: "+server.URL+"/v1\n")
	start := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self(t), args...)
		cmd.Env = append(os.Environ(), "DRAGOMAN_SESSIONS="+db, "DRAGOMAN_CONFIG="+config)
		return cmd
	}
	cmd := start("run", "--model", "fake/m", "--dir", dir, "--session", "trip", "Tell me")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("The first half"))); err == nil { // on an error, the exit code and standard error explain it
		_ = cmd.Process.Signal(os.Interrupt)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if b, err := start("sessions", "show", "trip").CombinedOutput(); err != nil || !strings.Contains(string(b), "The first half") {
		t.Errorf("sessions show: %v\n%s", err, b)
	}
	if b, err := start("run", "--model", "fake/m", "--dir", dir, "--session", "trip", "Never mind").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if last := bodies[len(bodies)-1]; !strings.Contains(last, `{"role":"assistant","content":"The first half"}`) {
		t.Errorf("the request lacks the text that had arrived:\n%s", last)
	}
}
