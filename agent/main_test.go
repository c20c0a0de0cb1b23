package agent_test

import (
	"context"
	"testing"

	"github.com/dragoman-go/dragoman/internal/steady"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
)

func main(m *testing.M) { steady.Main(m) }

func openPostgres(ctx context.Context, url string) (session.Store, error) {
	return postgres.Open(ctx, url, postgres.Options{})
}
