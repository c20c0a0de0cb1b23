package tool_test

import (
	"log/slog"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // tests of panics would fill the log
	testkit.Main(m)
}
