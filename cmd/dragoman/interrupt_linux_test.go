package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startAtTerminal starts the program with a terminal as its controlling terminal.
func startAtTerminal(t *testing.T, program *os.File, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self(t), append([]string{"run", "--model", "sim/planner"}, args...)...)
	cmd.Env = append(os.Environ(), "DRAGOMAN_SESSIONS="+filepath.Join(t.TempDir(), "s.db"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd
}

func TestC4_InterruptAtQuestionRunsNothing(t *testing.T) {
	keys, program := terminal(t)
	dir := t.TempDir()
	cmd := startAtTerminal(t, program, "--dir", dir, `Write the file "b.txt" with content "hi"`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	seen := talk(t, keys, "\n> ", "\x03")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(seen, "continue with: dragoman run --session") {
		t.Errorf("exit code %d\n%s", code, seen)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("the file was written")
	}
}

// If standard error is not the terminal, the user cannot see the question. Then the program
// must not ask: output of the model on the screen could get the answer.
func TestC1_InvisibleQuestionIsNotAsked(t *testing.T) {
	keys, program := terminal(t)
	dir := t.TempDir()
	cmd := startAtTerminal(t, program, "--dir", dir, `Write the file "b.txt" with content "hi"`)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	if _, err := keys.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	seen := talk(t, keys, "", "")
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil || !strings.Contains(stderr.String(), "no approver is attached") {
		t.Errorf("%v\n%s\n%s", err, seen, stderr.String())
	}
}

// The second interrupt ends a program that does not react to the first one.
func TestC4_SecondInterruptEndsProgram(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self(t), "run", "--no-session", "hi")
	cmd.Env = append(os.Environ(), "DRAGOMAN_CONFIG="+fifo, "DRAGOMAN_MODEL=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	for { // the second interrupt counts only after the first was handled
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-done:
			if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGINT {
				t.Errorf("%v", cmd.ProcessState)
			}
			return
		case <-t.Context().Done():
			t.Fatal("the program is still running")
		case <-time.After(20 * time.Millisecond): // too many signals break the runtime of the race detector
		}
	}
}

// A call that a killed process had started is neither run again nor refused.
func TestL14_KilledCommandIsNotRefusedWithoutATerminal(t *testing.T) {
	dir, sessions := t.TempDir(), filepath.Join(t.TempDir(), "s.db")
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self(t), append([]string{"run", "--model", "sim/planner", "--dir", dir}, args...)...)
		cmd.Env = append(os.Environ(), "DRAGOMAN_SESSIONS="+sessions)
		return cmd
	}
	cmd := run("--allow", "shell", `Run the command "mkdir begun; sleep 600"`)
	var first bytes.Buffer
	cmd.Stdout, cmd.Stderr = &first, &first
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	for { // until the command has started
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		select {
		case <-done:
			t.Fatalf("the command did not run:\n%s", first.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	<-done
	out, err := run("--continue").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "was started before") || strings.Contains(string(out), "no approver") {
		t.Errorf("%v\n%s", err, out)
	}
}
