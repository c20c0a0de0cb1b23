package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudoterminal: a test types into keys, and program is the side that the
// program uses.
func terminal(t *testing.T) (keys, program *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skipf("no pseudoterminal available: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skipf("no pseudoterminal available: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return keys, program
}

// C1: at a terminal the user is asked, and the answer decides.
func TestC1_UserIsAskedAtTerminal(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "dragoman")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, bin); err != nil { // the test binary acts as the program under this name
		t.Fatal(err)
	}
	for answer, written := range map[string]bool{"y": true, "n because it is late": false} {
		keys, program := terminal(t)
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), bin, "run", "--model", "sim/planner", "--dir", dir, `Write the file "b.txt" with content "hi"`)
		cmd.Env = append(os.Environ(), "DRAGOMAN_SESSIONS="+filepath.Join(t.TempDir(), "s.db"))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = program.Close()
		seen := talk(t, keys, "\n> ", answer+"\n") // input before the question is discarded
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v\n%s", answer, err, seen)
		}
		_, err := os.Stat(filepath.Join(dir, "b.txt"))
		if written != (err == nil) {
			t.Errorf("%q: %v\n%s", answer, err, seen)
		}
		if !written && !strings.Contains(seen, "it is late") {
			t.Errorf("the reason did not reach the model:\n%s", seen)
		}
	}
}

// talk types a text once when is on the screen, and returns the whole screen content.
func talk(t *testing.T, screen *os.File, when, typed string) string {
	t.Helper()
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	_ = screen.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		n, err := screen.Read(buf)
		seen.Write(buf[:n])
		if typed != "" && strings.Contains(seen.String(), when) {
			if _, err := io.WriteString(screen, typed); err != nil {
				t.Error(err)
			}
			typed = ""
		}
		if err != nil { // the program closed the terminal
			return seen.String()
		}
	}
}
