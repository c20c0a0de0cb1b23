package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

func TestG7_SQLiteNotesConform(t *testing.T) {
	sessiontest.RunNotes(t, func(t *testing.T, now func() time.Time) session.Notes {
		return open(t, filepath.Join(t.TempDir(), "n.db"), sqlite.Options{Relaxed: true, Now: now}).Notes()
	})
}

func TestG7_ProcessesShareTheNotesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	one, two := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	if err := one.Notes().Put(t.Context(), "k", []byte("v"), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if v, found, err := two.Notes().Get(t.Context(), "k"); err != nil || !found || string(v) != "v" {
		t.Error(string(v), found, err)
	}
}

// Opening a file of the version before notes adds them.
func TestOlderFileIsMigratedToNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	s := open(t, path, sqlite.Options{})
	if err := s.Create(t.Context(), session.Info{ID: "s", Created: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sqlOn(t, path, `DROP TABLE notes`, `DROP TABLE tickets`, `PRAGMA user_version = 1`)
	s = open(t, path, sqlite.Options{})
	if _, err := s.Info(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if err := s.Notes().Put(t.Context(), "k", nil, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestNotesOfClosedStoreFail(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "n.db"), sqlite.Options{})
	n := s.Notes()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Get(t.Context(), "k"); !errors.Is(err, session.ErrClosed) {
		t.Error(err)
	}
	if err := n.Put(t.Context(), "k", nil, time.Now().Add(time.Hour)); !errors.Is(err, session.ErrClosed) {
		t.Error(err)
	}
}
