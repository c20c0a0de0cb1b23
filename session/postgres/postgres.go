// Package postgres stores sessions in a PostgreSQL database (version 13 or later), for
// programs that run on several machines.
//
//	store, err := postgres.Open(ctx, "postgres://me@db.example/app", postgres.Options{})
//	s, err := session.Create(ctx, store, session.Info{ID: "monday"})
//
// Acknowledged writes are as durable as a commit of the server; the store turns
// synchronous_commit on if it is off. The tables are dragoman_sessions, dragoman_entries,
// dragoman_notes, dragoman_tickets and dragoman_schema. Open creates them in the first schema
// of the connection's search_path.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Options configures a [Store]. The zero value is the safe choice.
type Options struct {
	// Relaxed leaves synchronous_commit to the configuration of the server, so that a
	// commit may be acknowledged before it is on disk.
	Relaxed bool
	// MaxConns limits the number of connections; zero means pool_max_conns of the URL, or
	// else the larger of four and the number of processors. The minimum is two: a branch
	// is read on one connection while it is written on another.
	MaxConns int
	// Now is the clock by which notes expire and old tickets are deleted; nil means
	// time.Now.
	Now func() time.Time
}

// Store is a database of sessions. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	closed atomic.Bool
	// copies limits the sessions that are created from entries at the same time: their
	// entries may be read from this database while their connection waits, so one
	// connection must stay free.
	copies chan struct{}
	notes  notes
}

var (
	_ session.Store                           = (*Store)(nil)
	_ interface{ Tickets() tool.TicketStore } = (*Store)(nil)
)

// Open connects to a database, by a URL or a list like "host=… user=…", and creates the
// tables if they do not exist. Errors do not contain the password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	conf, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err) // pgx hides the password
	}
	if o.MaxConns > 0 {
		conf.MaxConns = int32(min(o.MaxConns, 1<<20))
	}
	if !o.Relaxed {
		conf.AfterConnect = durable
	}
	conf.MaxConns = max(2, conf.MaxConns)
	s := &Store{copies: make(chan struct{}, conf.MaxConns-1)}
	s.notes = notes{store: s, now: o.Now}
	if s.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(s.wrapErr(err), s.Close())
	}
	return s, nil
}

// durable turns synchronous_commit on if the server has it off, so that commits are written
// before they are acknowledged.
func durable(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
	return err
}

func (s *Store) wrapErr(err error) error {
	var conflict *storage.Conflict
	switch {
	case err == nil, errors.As(err, &conflict):
		return err
	case s.closed.Load():
		return session.ErrClosed
	default:
		return fmt.Errorf("postgres: %w", err)
	}
}

// Close closes the connections.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.pool.Close()
	return nil
}

// Error codes of the server: a unique key exists, and a conflict in a database whose default
// isolation level is stricter than this package needs.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
)

func failedWith(err error, code string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == code
}

// Create implements [session.Store].
func (s *Store) Create(ctx context.Context, info session.Info, entries iter.Seq2[session.Entry, error]) error {
	if err := info.Check(); err != nil {
		return err
	}
	if entries != nil {
		select {
		case s.copies <- struct{}{}:
			defer func() { <-s.copies }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var other error // an error that is not from the database
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var no int64
		err := tx.QueryRow(ctx, `INSERT INTO dragoman_sessions (id, title, created, parent, at, updated, head) VALUES ($1, $2, $3, $4, $5, $3, 0) RETURNING no`,
			info.ID, info.Title, info.Created.UTC(), info.Parent, info.ParentSeq).Scan(&no)
		if err != nil || entries == nil {
			return err
		}
		rows := &source{no: no}
		rows.next, rows.stop = iter.Pull2(entries)
		defer rows.stop()
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"dragoman_entries"}, []string{"session", "seq", "time", "kind", "key", "body"}, rows)
		if other = rows.err; other != nil || err != nil || rows.entry.Seq == 0 {
			return errors.Join(other, err)
		}
		_, err = tx.Exec(ctx, `UPDATE dragoman_sessions SET head = $2, updated = $3 WHERE no = $1`, no, rows.entry.Seq, rows.entry.Time.UTC())
		return err
	})
	switch {
	case other != nil:
		return other
	case failedWith(err, uniqueViolation):
		return session.ErrExists
	default:
		return s.wrapErr(err)
	}
}

// source passes entries to CopyFrom.
type source struct {
	no    int64
	next  func() (session.Entry, error, bool)
	stop  func()
	entry session.Entry // the last one
	err   error
}

func (r *source) Next() bool {
	e, err, ok := r.next()
	if !ok {
		return false
	}
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		r.err = err
		return false
	}
	e.Seq = r.entry.Seq + 1
	r.entry = e
	return true
}

func (r *source) Values() ([]any, error) {
	e := &r.entry
	return []any{r.no, e.Seq, e.Time.UTC(), e.Kind, e.Key, string(e.Body)}, nil
}

func (r *source) Err() error { return r.err }

// Append adds entries with one statement: every writer first updates the row of the session,
// so only one of them succeeds.
func (s *Store) Append(ctx context.Context, id string, head int64, entries []session.Entry) error {
	n := len(entries)
	times, kinds, keys, bodies := make([]time.Time, n), make([]string, n), make([]string, n), make([]string, n)
	for i := range entries {
		e := &entries[i]
		if err := e.Check(); err != nil {
			return err
		}
		times[i], kinds[i], keys[i], bodies[i] = e.Time.UTC(), e.Kind, e.Key, string(e.Body)
	}
	if n > 0 {
		done, err := s.pool.Exec(ctx, `WITH moved AS (
				UPDATE dragoman_sessions SET head = head + $3, updated = $4 WHERE id = $1 AND head = $2 RETURNING no
			)
			INSERT INTO dragoman_entries (session, seq, time, kind, key, body)
			SELECT moved.no, $2 + e.ord, e.time, e.kind, e.key, e.body
			FROM moved, unnest($5::timestamptz[], $6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS e (time, kind, key, body, ord)`,
			id, head, int64(n), times[n-1], times, kinds, keys, bodies)
		if lost := failedWith(err, serializationFailure); !lost && (err != nil || done.RowsAffected() > 0) {
			return s.wrapErr(err)
		}
	}
	info, err := s.Info(ctx, id)
	if err == nil && info.Head != head {
		err = &storage.Conflict{ID: id, Head: head, Actual: info.Head}
	}
	if err == nil && n > 0 { // the head differed a moment ago: the session was deleted and created again
		err = session.ErrNotFound
	}
	return err
}

// Delete deletes a session.
func (s *Store) Delete(ctx context.Context, id string) error {
	done, err := s.pool.Exec(ctx, `DELETE FROM dragoman_sessions WHERE id = $1`, id)
	if err == nil && done.RowsAffected() == 0 {
		return session.ErrNotFound
	}
	return s.wrapErr(err)
}
