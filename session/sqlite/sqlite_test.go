package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
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

func TestS2_SQLiteConforms(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store {
		return open(t, filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	})
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other rights")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "folder", "s.db")
	s := open(t, path, sqlite.Options{})
	if err := s.Create(t.Context(), session.Info{ID: "s", Created: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		"new": 0o700, "new/folder": 0o700, "new/folder/s.db": 0o600, "new/folder/s.db-wal": 0o600, "new/folder/s.db-shm": 0o600,
	} {
		if f, err := os.Stat(filepath.Join(dir, name)); err != nil || f.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, f.Mode(), err)
		}
	}
}

func TestAnyFileNameWorks(t *testing.T) {
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "50%41", ":memory:", "ünï"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, path, sqlite.Options{})
		if err := s.Create(t.Context(), session.Info{ID: "s", Created: time.Now()}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if f, err := os.Stat(path); err != nil || f.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := open(t, path, sqlite.Options{}).Info(t.Context(), "s"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	t.Chdir(t.TempDir())
	open(t, "relative.db", sqlite.Options{})
	if _, err := os.Stat("relative.db"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"", "a\x00b", t.TempDir()} {
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
			t.Errorf("%q was opened", path)
		}
	}
}

// sqlOn changes a file without the store.
func sqlOn(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignFilesAreRefusedUnchanged(t *testing.T) {
	newer := filepath.Join(t.TempDir(), "newer.db")
	open(t, newer, sqlite.Options{}).Close()
	sqlOn(t, newer, `PRAGMA user_version = 7`)
	_, err := sqlite.Open(t.Context(), newer, sqlite.Options{})
	var e *storage.Newer
	if !errors.Is(err, session.ErrNewer) || !errors.As(err, &e) || e.Found != 7 || e.Known != 3 {
		t.Error(err)
	}

	foreign := filepath.Join(t.TempDir(), "foreign.db")
	sqlOn(t, foreign, `CREATE TABLE t (x)`, `INSERT INTO t VALUES (1)`)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{foreign: "another program", text: "not an SQLite file"} {
		before, _ := os.ReadFile(path)
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", path)
		}
	}
}

// Many processes open a file at once, when it does not exist and later.
func TestS2_ConcurrentOpensOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for n := range 5 {
				if err := s.Create(t.Context(), session.Info{ID: fmt.Sprintf("s%d-%d", i, n), Created: time.Now()}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for _, err := range open(t, path, sqlite.Options{}).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 40 {
		t.Errorf("%d sessions", n)
	}
}

func TestLockedFileIsAnErrorAfterWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, sqlite.Options{BusyTimeout: 50 * time.Millisecond})
	if err := s.Create(t.Context(), session.Info{ID: "s", Created: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	entry := []session.Entry{{Time: time.Now(), Kind: "x", Body: []byte(`1`)}}
	if err := s.Append(t.Context(), "s", 0, entry); err == nil || !strings.Contains(err.Error(), "has locked") {
		t.Error(err)
	}
	if _, err := s.Info(t.Context(), "s"); err != nil {
		t.Errorf("readers must not wait: %v", err)
	}
	if _, err := lock.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "s", 0, entry); err != nil {
		t.Error(err)
	}
}

func TestOptionsSetDurability(t *testing.T) {
	for relaxed, want := range map[bool]int{false: 2, true: 1} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Relaxed: relaxed})
		if got := sqlite.Synchronous(t, s); got != want {
			t.Errorf("relaxed %v: synchronous = %d", relaxed, got)
		}
	}
}
