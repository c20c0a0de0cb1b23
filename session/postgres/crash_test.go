package postgres_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sessiontest"
)

// inChild names the database that a process of the crash test writes to.
const inChild = "DRAGOMAN_TEST_POSTGRES_CHILD"

func TestS1_NothingAcknowledgedIsLostInACrash(t *testing.T) {
	if url := os.Getenv(inChild); url != "" {
		t.Fatal(sessiontest.Write(t.Context(), open(t, url, postgres.Options{}), os.Stdout))
	}
	url := schema(t)
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestS1_NothingAcknowledgedIsLostInACrash$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), inChild+"="+url)
		return cmd
	}
	sessiontest.Crash(t, 10, start, func(t *testing.T) session.Store { return open(t, url, postgres.Options{}) })
}
