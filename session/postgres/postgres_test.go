package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sessiontest"
)

// schema returns the URL of a schema for this test, in the database that DRAGOMAN_POSTGRES
// names.
func schema(t testing.TB) string {
	t.Helper()
	base := os.Getenv("DRAGOMAN_POSTGRES")
	if base == "" {
		t.Skip("DRAGOMAN_POSTGRES names no database; .ci/postgres go test ./session/... starts one")
	}
	name := "test_" + strings.ToLower(rand.Text())
	run(t, base, "CREATE SCHEMA "+name)
	t.Cleanup(func() { run(t, base, "DROP SCHEMA "+name+" CASCADE") })
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func run(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.Background() // the context of the test has ended when it cleans up
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

func TestS2_PostgreSQLConforms(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, schema(t), postgres.Options{}) })
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	url := schema(t)
	open(t, url, postgres.Options{}).Close()
	run(t, url, `UPDATE dragoman_schema SET version = 7`)
	_, err := postgres.Open(t.Context(), url, postgres.Options{})
	var e *storage.Newer
	if !errors.Is(err, session.ErrNewer) || !errors.As(err, &e) || e.Found != 7 || e.Known != 3 {
		t.Error(err)
	}
}

func TestS2_ConcurrentOpensMigrateOnce(t *testing.T) {
	url := schema(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 1})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Create(t.Context(), session.Info{ID: fmt.Sprint("s", i), Created: time.Now()}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, err := range open(t, url, postgres.Options{}).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d sessions", n)
	}
}

// A server may acknowledge commits before it has written them, and may use the isolation
// level serializable by default; the store keeps its contract.
func TestS1_S4_ServerSettingsDoNotBreakContract(t *testing.T) {
	u, err := url.Parse(schema(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("synchronous_commit", "off")
	q.Set("default_transaction_isolation", "serializable")
	u.RawQuery = q.Encode()
	for relaxed, want := range map[bool]string{false: "on", true: "off"} {
		if got := postgres.SynchronousCommit(t, open(t, u.String(), postgres.Options{Relaxed: relaxed})); got != want {
			t.Errorf("relaxed %v: synchronous_commit = %s", relaxed, got)
		}
	}
	s := open(t, u.String(), postgres.Options{MaxConns: 8})
	if err := s.Create(t.Context(), session.Info{ID: "s", Created: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	for head := range int64(20) {
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = s.Append(t.Context(), "s", head, []session.Entry{{Time: time.Now(), Kind: "x", Body: []byte(`1`)}})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, session.ErrConflict) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d writers won", won)
		}
	}
}

func TestNoErrorShowsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://me:hunter2@127.0.0.1:1/db?connect_timeout=1",
		"postgres://me:hunter2@127.0.0.1:port/db",
		"host=127.0.0.1 port=1 user=me password=hunter2 nonsense",
	} {
		if _, err := postgres.Open(t.Context(), url, postgres.Options{}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A branch is read on one connection while it is written on another.
func TestS3_BranchesDoNotWaitForEachOthersConnections(t *testing.T) {
	for _, conns := range []int{1, 2, 4} {
		s := open(t, schema(t), postgres.Options{MaxConns: conns})
		one, err := session.Create(t.Context(), s, session.Info{})
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Append(t.Context(), session.Entry{Kind: "x", Body: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				if _, err := one.Branch(ctx, 1, session.Info{}); err != nil {
					t.Errorf("%d connections: %v", conns, err)
				}
			})
		}
		wg.Wait()
	}
}
