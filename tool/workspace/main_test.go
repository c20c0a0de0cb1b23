package workspace

import (
	"fmt"
	"os"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func TestMain(m *testing.M) {
	if _, err := Main(); err != nil { // this binary is also started as a supervisor and as a command
		fmt.Fprintln(os.Stderr, err)
		os.Exit(126)
	}
	testkit.Main(m)
}
