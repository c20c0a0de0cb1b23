package policy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dragoman-go/dragoman/tool"
)

// openTerminal returns the two ends of a terminal: the test presses keys at one end, and the
// program uses the other.
func openTerminal(t *testing.T) (keys, program *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { keys.Close() })
	raw, err := keys.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || failed != nil {
		t.Skip("no terminals here:", err, failed)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { program.Close() })
	return keys, program
}

// press presses keys and returns when the program can read them.
func press(t *testing.T, keys, program *os.File, text string) {
	t.Helper()
	waiting := func() (n int) {
		raw, err := program.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := waiting()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); waiting() < before+len(text); runtime.Gosched() {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%q does not arrive", text)
		}
	}
}

// screen is the output of the prompt. It presses keys when the prompt waits.
type screen struct {
	shown []byte
	press func()
}

func (s *screen) Write(b []byte) (int, error) {
	s.shown = append(s.shown, b...)
	if bytes.HasSuffix(s.shown, []byte("\n> ")) {
		s.press()
	}
	return len(b), nil
}

// The answer y to one question must not answer the next one, which the human had not seen.
func TestA7_EarlyInputDoesNotAnswerAQuestion(t *testing.T) {
	keys, program := openTerminal(t)
	press(t, keys, program, "y\nalways\n")
	// Each time the prompt waits, one line is for it. Text that arrives with that line is too
	// early.
	lines := []string{"n because I looked\ny\n", "what?\ny\n", "no because of that\n"}
	asked := 0
	out := &screen{press: func() {
		press(t, keys, program, lines[asked])
		asked++
	}}
	p := NewPrompt(program, out)
	p.Ledger = &Ledger{}
	for _, want := range []string{"I looked", "of that"} {
		a, err := p.Approve(context.Background(), &tool.ApprovalRequest{Binding: binding()})
		if err != nil || a.Verdict != tool.Rejected || a.Message != want {
			t.Fatalf("%+v, %v; want a rejection %q\n%s", a, err, want, out.shown)
		}
	}
	if asked != len(lines) {
		t.Errorf("asked %d times\n%s", asked, out.shown)
	}
}

// A terminal in raw mode returns several lines at once.
func TestA7_RawTerminalLinesAnswerOneQuestion(t *testing.T) {
	keys, program := openTerminal(t)
	raw, err := program.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var mode *unix.Termios
		if mode, failed = unix.IoctlGetTermios(int(fd), unix.TCGETS); failed == nil {
			mode.Lflag &^= unix.ICANON
			failed = unix.IoctlSetTermios(int(fd), unix.TCSETS, mode)
		}
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	lines := []string{"n because I looked\ny\n", "no because of that\n"}
	asked := 0
	out := &screen{press: func() {
		press(t, keys, program, lines[asked])
		asked++
	}}
	p := NewPrompt(program, out)
	for _, want := range []string{"I looked", "of that"} {
		a, err := p.Approve(context.Background(), &tool.ApprovalRequest{Binding: binding()})
		if err != nil || a.Verdict != tool.Rejected || a.Message != want {
			t.Fatalf("%+v, %v; want a rejection %q\n%s", a, err, want, out.shown)
		}
	}
}

// If unread input cannot be dropped, the call stays undecided.
func TestA7_ClosedTerminalApprovesNothing(t *testing.T) {
	keys, program := openTerminal(t)
	press(t, keys, program, "y\n")
	program.Close()
	a, err := NewPrompt(program, io.Discard).Approve(context.Background(), &tool.ApprovalRequest{Binding: binding()})
	if err == nil || a.Verdict != tool.Undecided {
		t.Errorf("%+v, %v", a, err)
	}
}

// Input that is not a terminal keeps its lines, because a script may have written them in
// advance.
func TestA7_FileOrPipeAnswersInOrder(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.WriteString(w, "y\nn\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p := NewPrompt(r, io.Discard)
	for _, want := range []tool.Verdict{tool.Approved, tool.Rejected, tool.Undecided} {
		if got := lookup(p, binding()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
