// Package child starts servers for tests in a process of their own.
package child

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Server starts this test binary once more, with an environment variable that makes
// it a server, and returns the URL of the address that it prints first. What it
// computes is then not counted with what the test does. It ends with the test, when
// its standard input does.
func Server(tb testing.TB, variable string) (url string) {
	tb.Helper()
	return Start(tb, variable+"=1").URL
}

// Process is a server in a process of its own.
type Process struct {
	URL string
	PID int
}

// Start is [Server] with all that the environment of the process has more than that of
// the test, and tells which process it is, so that its cost can be looked at.
func Start(tb testing.TB, environment ...string) Process {
	tb.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return Process{URL: "http://" + strings.TrimSpace(addr), PID: cmd.Process.Pid}
}
