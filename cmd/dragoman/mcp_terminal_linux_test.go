package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// converse types one line whenever the terminal shows the next question, and returns what it
// showed.
func converse(t *testing.T, screen *os.File, typed ...string) string {
	t.Helper()
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	_ = screen.SetReadDeadline(time.Now().Add(time.Minute))
	from := 0
	for {
		n, err := screen.Read(buf)
		seen.Write(buf[:n])
		if at := strings.Index(seen.String()[from:], "\n> "); at >= 0 && len(typed) > 0 {
			from += at + len("\n> ")
			if _, err := io.WriteString(screen, typed[0]); err != nil {
				t.Error(err)
			}
			typed = typed[1:]
		}
		if err != nil { // the program closed the terminal
			return strings.ReplaceAll(seen.String(), "\r\n", "\n")
		}
	}
}

// atTerminal starts a command line with a terminal.
func atTerminal(t *testing.T, dir string, program *os.File, args ...string) *exec.Cmd {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "dragoman")
	if err := os.Symlink(self(t), bin); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, testServer+"=") })
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	return cmd
}

func TestM1_QuestionOfAServerIsAFormAtTheTerminal(t *testing.T) {
	dir, do := mcpFolder(t)
	addServer(t, do, "git", "asking")
	if r := do("mcp", "accept", "git"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	keys, program := terminal(t)
	cmd := atTerminal(t, dir, program, "run", "--no-session", "--model", "sim/planner", "--mcp", ".mcp.json", "Call push")
	seen := converse(t, keys, "y\n", "y\n", "2\n", "n\n", "y\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, seen)
	}
	has(t, seen, `push of MCP server "git" wants to run`, `MCP server "git" (tool push) asks:`, "Which branch?", "2: next", "y to fill in the fields", `{"branch":"next","force":false}`, "accept next false")

	// Without a terminal the question is declined, and the run ends.
	r := do("run", "--no-session", "--model", "sim/planner", "--mcp", ".mcp.json", "--allow", "push", "Call push")
	if strings.Contains(r.out, "accept next") {
		t.Errorf("%+v", r)
	}
	has(t, r.err, "← push failed: ")
}

// An interrupt at a question ends the run and the servers, and the session continues with them.
func TestM1_InterruptEndsServersAndTheSessionContinues(t *testing.T) {
	dir, do := mcpFolder(t)
	addServer(t, do, "notes", "notes")
	if r := do("mcp", "accept", "notes"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	keys, program := terminal(t)
	cmd := atTerminal(t, dir, program, "run", "--session", "trip", "--model", "sim/planner", "--mcp", ".mcp.json", `Call add_note with text "hi"`)
	seen := converse(t, keys, "\x03")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, seen)
	}
	has(t, seen, "continue with: dragoman run --session trip --model sim/planner --mcp .mcp.json")
	if left := children(t, dir); left != "" {
		t.Errorf("servers still run: %s", left)
	}
	r := do("run", "--session", "trip", "--model", "sim/planner", "--mcp", ".mcp.json", "--allow", "add_note")
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "noted: hi")
}

// children lists the processes that work in a folder.
func children(t *testing.T, dir string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		var found []string
		list, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range list {
			if at, err := os.Readlink(link); err == nil && at == real && !strings.Contains(link, "/"+strconv.Itoa(os.Getpid())+"/") {
				found = append(found, link)
			}
		}
		if len(found) == 0 {
			return ""
		}
		select {
		case <-ctx.Done():
			return strings.Join(found, " ")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
