// Package sqlite keeps sessions in one file, without a server: the store of
// programs on one machine.
//
//	store, err := sqlite.Open(ctx, "sessions.db", sqlite.Options{})
//	s, err := session.Create(ctx, store, session.Info{ID: "monday"})
//
// What was acknowledged survives the loss of power. Several processes may use the
// file at once, on one machine: not over a network's file system.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"

	"github.com/dragoman-go/dragoman/internal/storage/storeerr"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Options say how sessions are kept. The zero value is the safe one.
type Options struct {
	// Relaxed acknowledges what survives the end of the process, killed or not,
	// but perhaps not a loss of power. It is much faster.
	Relaxed bool
	// Wait is how long to wait for another process that writes; zero means 10 s.
	Wait time.Duration
	// Now is the clock by which notes expire and old tickets are deleted; nil means
	// time.Now.
	Now func() time.Time
}

const defaultWait = 10 * time.Second

// Store is a file of sessions. It is safe for concurrent use.
type Store struct {
	path   string
	write  *sql.DB // one connection: SQLite has one writer at a time
	read   *sql.DB
	closed atomic.Bool
	notes  notes
}

var (
	_ session.Store                           = (*Store)(nil)
	_ interface{ Tickets() tool.TicketStore } = (*Store)(nil)
)

// Open opens a file of sessions, and makes it where it is not there: readable by
// its owner alone, and so is a folder that has to be made for it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := prepare(path); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	s := &Store{path: path}
	s.notes = notes{store: s, now: o.Now}
	var err error
	if s.write, err = sql.Open("sqlite", o.dsn(path, "_txlock", "immediate")); err == nil {
		s.write.SetMaxOpenConns(1)
		if s.read, err = sql.Open("sqlite", o.dsn(path, "_pragma", "query_only(1)")); err == nil {
			s.read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
			err = s.migrate(ctx, o.Wait)
		}
	}
	if err != nil {
		return nil, errors.Join(s.about(err), s.Close())
	}
	return s, nil
}

// prepare makes the file before SQLite does, which would let others read it.
func prepare(path string) error {
	if path == "" || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%q is no path of a file", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn is what the driver opens. The path is escaped, so that nothing in it is
// taken for a setting.
func (o Options) dsn(path string, more ...string) string {
	synchronous := "FULL"
	if o.Relaxed {
		synchronous = "NORMAL"
	}
	v := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", o.Wait.Milliseconds()),
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
	}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Add(more[i], more[i+1])
	}
	name := filepath.ToSlash(path)
	if filepath.IsAbs(path) && !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive's letter
	}
	return "file:" + (&url.URL{Path: name}).EscapedPath() + "?" + v.Encode()
}

// about says what to do about errors of SQLite's that do not.
func (s *Store) about(err error) error {
	var e *driver.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case s.closed.Load():
		return session.ErrClosed
	case errors.As(err, &e) && e.Code()&0xff == codeBusy:
		return fmt.Errorf("sqlite: another process has kept %s locked for too long: %w", s.path, err)
	case errors.As(err, &e) && e.Code()&0xff == codeNotADB:
		return fmt.Errorf("sqlite: %s is no file of SQLite's, or is damaged: %w", s.path, err)
	default:
		return fmt.Errorf("sqlite: %w", err)
	}
}

// Result codes of SQLite's, without what extends them.
const (
	codeBusy   = 5
	codeNotADB = 26
)

// Close lets go of the file.
func (s *Store) Close() error {
	s.closed.Store(true)
	var err error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// change does something in one transaction.
func (s *Store) change(ctx context.Context, do func(tx *sql.Tx) error) error {
	if s.closed.Load() {
		return session.ErrClosed
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.about(err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // what failed says more
		return err
	}
	return s.about(tx.Commit())
}

// Create makes a session. The file is locked for other writers until the entries
// are read.
func (s *Store) Create(ctx context.Context, info session.Info, entries iter.Seq2[session.Entry, error]) error {
	if err := info.Check(); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var no int64
		created := info.Created.UnixMicro()
		err := tx.QueryRowContext(ctx, `INSERT INTO sessions (id, title, created, parent, at, updated, head) VALUES (?, ?, ?, ?, ?, ?, 0)
			ON CONFLICT (id) DO NOTHING RETURNING no`, info.ID, info.Title, created, info.Parent, info.At, created).Scan(&no)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrExists
		}
		if err != nil || entries == nil {
			return s.about(err)
		}
		in, err := s.inserter(ctx, tx, no, 0)
		if err != nil {
			return err
		}
		defer in.close()
		for e, err := range entries {
			if err == nil {
				err = e.Check()
			}
			if err == nil {
				err = in.add(ctx, &e)
			}
			if err != nil {
				return err
			}
		}
		if in.seq == 0 {
			return nil
		}
		return in.done(ctx, tx)
	})
}

// inserter adds entries to a session.
type inserter struct {
	s    *Store
	stmt *sql.Stmt
	no   int64
	seq  int64
	last int64 // the time of the last
}

func (s *Store) inserter(ctx context.Context, tx *sql.Tx, no, head int64) (*inserter, error) {
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO entries (session, seq, time, kind, key, body) VALUES (?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, s.about(err)
	}
	return &inserter{s: s, stmt: stmt, no: no, seq: head}, nil
}

func (in *inserter) close() { _ = in.stmt.Close() }

func (in *inserter) add(ctx context.Context, e *session.Entry) error {
	in.seq++
	in.last = e.Time.UnixMicro()
	_, err := in.stmt.ExecContext(ctx, in.no, in.seq, in.last, e.Kind, e.Key, string(e.Body))
	return in.s.about(err)
}

func (in *inserter) done(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET head = ?, updated = ? WHERE no = ?`, in.seq, in.last, in.no)
	return in.s.about(err)
}

// Append adds entries.
func (s *Store) Append(ctx context.Context, id string, head int64, entries []session.Entry) error {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return err
		}
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var no, actual int64
		err := tx.QueryRowContext(ctx, `SELECT no, head FROM sessions WHERE id = ?`, id).Scan(&no, &actual)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return session.ErrNotFound
		case err != nil:
			return s.about(err)
		case actual != head:
			return &storeerr.Conflict{ID: id, Head: head, Actual: actual}
		case len(entries) == 0:
			return nil
		}
		in, err := s.inserter(ctx, tx, no, head)
		if err != nil {
			return err
		}
		defer in.close()
		for i := range entries {
			if err := in.add(ctx, &entries[i]); err != nil {
				return err
			}
		}
		return in.done(ctx, tx)
	})
}

// Delete forgets a session. What it held may stay readable in the file's free
// pages until they are used again.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM entries WHERE session = (SELECT no FROM sessions WHERE id = ?)`, id); err != nil {
			return s.about(err)
		}
		res, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE id = ?`, id)
		if err != nil {
			return s.about(err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return session.ErrNotFound
		}
		return nil
	})
}
