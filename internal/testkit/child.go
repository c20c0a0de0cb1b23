package testkit

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ChildServer starts this test binary as a server in a separate process, so that a benchmark does
// not measure the work of the server. variable is the environment variable that makes the binary a
// server. The server prints its address on the first line and exits when its standard input is
// closed, which happens at the end of the test.
func ChildServer(tb testing.TB, variable string) (url string) {
	tb.Helper()
	return StartChild(tb, variable+"=1").URL
}

// Child is a server in a separate process.
type Child struct {
	URL string
	PID int
}

// StartChild is like [ChildServer], with any environment variables. The result has the process
// id, so that a test can measure the resources of the process.
func StartChild(tb testing.TB, environment ...string) Child {
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
	return Child{URL: "http://" + strings.TrimSpace(addr), PID: cmd.Process.Pid}
}
