package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestS2_SQLiteKeepsWhatAStorePromises(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store {
		return open(t, filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	})
}
