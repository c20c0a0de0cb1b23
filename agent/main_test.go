package agent_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
)

func main(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // tests of panics would fill the output
	testkit.Main(m)
}

func openPostgres(ctx context.Context, url string) (session.Store, error) {
	return postgres.Open(ctx, url, postgres.Options{})
}
