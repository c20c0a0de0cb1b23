// Package sqlite stores sessions in one SQLite file, without a server, for programs on one
// machine.
//
//	store, err := sqlite.Open(ctx, "sessions.db", sqlite.Options{})
//	s, err := session.Create(ctx, store, session.Info{ID: "monday"})
//
// Acknowledged writes survive a loss of power. Several processes on one machine may use the
// file at once; do not use it on a network file system.
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

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Options configures a [Store]. The zero value is the safe choice.
type Options struct {
	// Relaxed is much faster: acknowledged writes survive the end of the process, killed
	// or not, but may be lost when power fails.
	Relaxed bool
	// BusyTimeout bounds the time to wait for a lock of another process; zero means 10 s.
	BusyTimeout time.Duration
	// Now is the clock by which notes expire and old tickets are deleted; nil means
	// time.Now.
	Now func() time.Time
}

const defaultWait = 10 * time.Second

// Store is a SQLite file of sessions. It is safe for concurrent use.
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

// Open opens a file of sessions, and creates it if it does not exist. Only its owner can read
// the file and the directory that Open creates for it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := prepare(path); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultWait
	}
	s := &Store{path: path}
	s.notes = notes{store: s, now: o.Now}
	var err error
	if s.write, err = sql.Open("sqlite", o.dsn(path, "_txlock", "immediate")); err == nil {
		s.write.SetMaxOpenConns(1)
		if s.read, err = sql.Open("sqlite", o.dsn(path, "_pragma", "query_only(1)")); err == nil {
			s.read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
			err = s.migrate(ctx, o.BusyTimeout)
		}
	}
	if err != nil {
		return nil, errors.Join(s.wrapErr(err), s.Close())
	}
	return s, nil
}

// prepare creates the file before SQLite does, because SQLite would let others read it.
func prepare(path string) error {
	if path == "" || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%q is not a valid file path", path)
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

// dsn returns the name that the driver opens. The path is escaped, so that no part of it is
// parsed as a setting.
func (o Options) dsn(path string, more ...string) string {
	synchronous := "FULL"
	if o.Relaxed {
		synchronous = "NORMAL"
	}
	v := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds()),
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
	}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Add(more[i], more[i+1])
	}
	name := filepath.ToSlash(path)
	if filepath.IsAbs(path) && !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive letter
	}
	return "file:" + (&url.URL{Path: name}).EscapedPath() + "?" + v.Encode()
}

// wrapErr wraps errors of SQLite, and says what to do about common ones.
func (s *Store) wrapErr(err error) error {
	var e *driver.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case s.closed.Load():
		return session.ErrClosed
	case errors.As(err, &e) && e.Code()&0xff == codeBusy:
		return fmt.Errorf("sqlite: another process has locked %s for too long: try again when it has ended: %w", s.path, err)
	case errors.As(err, &e) && e.Code()&0xff == codeNotADB:
		return fmt.Errorf("sqlite: %s is not an SQLite file, or is damaged: use another file: %w", s.path, err)
	case errors.As(err, &e) && e.Code()&0xff == codeFull:
		return fmt.Errorf("sqlite: cannot write %s, because the disk is full: free some space and try again: %w", s.path, err)
	case errors.As(err, &e) && e.Code()&0xff == codeIO:
		return fmt.Errorf("sqlite: cannot read or write %s: check that the disk works and has free space: %w", s.path, err)
	case errors.As(err, &e) && e.Code()&0xff == codeCorrupt:
		return fmt.Errorf("sqlite: %s is damaged: restore it from a backup, or use another file: %w", s.path, err)
	default:
		return fmt.Errorf("sqlite: %w", err)
	}
}

// SQLite result codes, without the extension bits.
const (
	codeBusy    = 5
	codeIO      = 10
	codeCorrupt = 11
	codeFull    = 13
	codeNotADB  = 26
)

// Close closes the file.
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

// change runs a function in one transaction.
func (s *Store) change(ctx context.Context, do func(tx *sql.Tx) error) error {
	if s.closed.Load() {
		return session.ErrClosed
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.wrapErr(err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // err has the cause
		return err
	}
	return s.wrapErr(tx.Commit())
}

// Create creates a session. It locks the file for other writers until all entries are read.
func (s *Store) Create(ctx context.Context, info session.Info, entries iter.Seq2[session.Entry, error]) error {
	if err := info.Check(); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var no int64
		created := info.Created.UnixMicro()
		err := tx.QueryRowContext(ctx, `INSERT INTO sessions (id, title, created, parent, at, updated, head) VALUES (?, ?, ?, ?, ?, ?, 0)
			ON CONFLICT (id) DO NOTHING RETURNING no`, info.ID, info.Title, created, info.Parent, info.ParentSeq, created).Scan(&no)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrExists
		}
		if err != nil || entries == nil {
			return s.wrapErr(err)
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
	last int64 // the time of the last entry
}

func (s *Store) inserter(ctx context.Context, tx *sql.Tx, no, head int64) (*inserter, error) {
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO entries (session, seq, time, kind, key, body) VALUES (?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, s.wrapErr(err)
	}
	return &inserter{s: s, stmt: stmt, no: no, seq: head}, nil
}

func (in *inserter) close() { _ = in.stmt.Close() }

func (in *inserter) add(ctx context.Context, e *session.Entry) error {
	in.seq++
	in.last = e.Time.UnixMicro()
	_, err := in.stmt.ExecContext(ctx, in.no, in.seq, in.last, e.Kind, e.Key, string(e.Body))
	return in.s.wrapErr(err)
}

func (in *inserter) done(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET head = ?, updated = ? WHERE no = ?`, in.seq, in.last, in.no)
	return in.s.wrapErr(err)
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
			return s.wrapErr(err)
		case actual != head:
			return &storage.Conflict{ID: id, Head: head, Actual: actual}
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

// Delete deletes a session. Its content may stay readable in free pages of the file until
// they are reused.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM entries WHERE session = (SELECT no FROM sessions WHERE id = ?)`, id); err != nil {
			return s.wrapErr(err)
		}
		res, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE id = ?`, id)
		if err != nil {
			return s.wrapErr(err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return session.ErrNotFound
		}
		return nil
	})
}
