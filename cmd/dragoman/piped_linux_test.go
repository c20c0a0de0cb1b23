package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPipedRunAsksAtTerminal(t *testing.T) {
	keys, program := terminal(t)
	dir := t.TempDir()
	cmd := startAtTerminal(t, program, "--dir", dir)
	cmd.Stdin = strings.NewReader(`Write the file "b.txt" with content "hi"`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	seen := talk(t, keys, "\n> ", "y\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, seen)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "hi" {
		t.Errorf("%q, %v\n%s", b, err, seen)
	}
}

func TestPipedRunWithoutTerminalRefusesCalls(t *testing.T) {
	keys, program := terminal(t)
	cmd := startAtTerminal(t, program, "--dir", t.TempDir())
	cmd.Stdin = strings.NewReader(`Write the file "b.txt" with content "hi"`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	seen := talk(t, keys, "\n> ", "y\n")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitUnattended || !strings.Contains(seen, "Standard input is not a terminal: give its text as the prompt") {
		t.Errorf("%d\n%s", code, seen)
	}
}

// An unanswered question leaves one working hint and no log line.
func TestUnansweredQuestionLeavesOneHint(t *testing.T) {
	for name, key := range map[string]string{"interrupt": "\x03", "end of input": "\x04"} {
		t.Run(name, func(t *testing.T) {
			keys, program := terminal(t)
			cmd := startAtTerminal(t, program, "--dir", t.TempDir(), `Write the file "b.txt" with content "hi"`)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = program.Close()
			seen := talk(t, keys, "\n> ", key)
			_ = cmd.Wait()
			if strings.Contains(seen, "approver failed") || strings.Contains(seen, "ERROR") {
				t.Errorf("the cancellation was logged:\n%s", seen)
			}
			if strings.Count(seen, "ontinue with: ") != 1 || strings.Contains(seen, `"…"`) {
				t.Errorf("want one hint without a prompt:\n%s", seen)
			}
		})
	}
}
