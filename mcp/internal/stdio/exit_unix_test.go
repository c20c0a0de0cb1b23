//go:build unix

package stdio_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/mcp/internal/stdio"
)

// A program that ends before it reads its input is reported with its status and standard error,
// not as a broken pipe.
func TestCrashBeforeTheFirstRequestIsExplained(t *testing.T) {
	d := &stdio.Dialer{Command: "/bin/sh", Args: []string{"-c", "exec <&-; echo no config >&2; sleep 0.2; exit 3"}}
	conn, err := d.Dial(t.Context(), newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(conn.(*stdio.Conn).Stderr(), "no config"); {
		if time.Now().After(deadline) {
			t.Fatal("the program did not start")
		}
		time.Sleep(time.Millisecond)
	}
	delivered := true
	_, err = conn.Call(t.Context(), &rpc.Request{Method: "initialize", NotDelivered: func() { delivered = false }})
	var exit *stdio.ExitError
	if !errors.As(err, &exit) || exit.State != "exit status 3" || !strings.Contains(exit.Stderr, "no config") || !errors.Is(err, rpc.ErrLost) || delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
}
