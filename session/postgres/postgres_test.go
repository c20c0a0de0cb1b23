package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/jackc/pgx/v5"
)

// schema returns the URL of a schema of the test's own, in the database that
// DRAGOMAN_POSTGRES names.
func schema(t testing.TB) string {
	t.Helper()
	base := os.Getenv("DRAGOMAN_POSTGRES")
	if base == "" {
		t.Skip("DRAGOMAN_POSTGRES names no database; .ci/postgres go test ./session/... starts one")
	}
	name := "test_" + strings.ToLower(rand.Text())
	exec(t, base, "CREATE SCHEMA "+name)
	t.Cleanup(func() { exec(t, base, "DROP SCHEMA "+name+" CASCADE") })
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func exec(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.Background() // that of the test has ended where it cleans up
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestS2_PostgreSQLKeepsWhatAStorePromises(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, schema(t), postgres.Options{}) })
}
