package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// inChild names the file that a process of the crash test writes to.
const inChild = "DRAGOMAN_TEST_SQLITE_CHILD"

func TestS1_NothingAcknowledgedIsLostInACrash(t *testing.T) {
	if path := os.Getenv(inChild); path != "" {
		t.Fatal(sessiontest.Write(t.Context(), open(t, path, sqlite.Options{}), os.Stdout))
	}
	path := filepath.Join(t.TempDir(), "s.db")
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestS1_NothingAcknowledgedIsLostInACrash$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), inChild+"="+path)
		return cmd
	}
	sessiontest.Crash(t, 10, start, func(t *testing.T) session.Store { return open(t, path, sqlite.Options{}) })
}
