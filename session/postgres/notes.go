package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/jackc/pgx/v5"
)

// notes are the notes of a [Store].
type notes struct {
	store *Store
	now   func() time.Time
	puts  atomic.Uint32
}

var _ session.Notes = (*notes)(nil)

// Notes returns the notes in the database, which all programs that use the database share.
// They cannot be used after the store is closed.
func (s *Store) Notes() session.Notes { return &s.notes }

func (n *notes) clock() time.Time {
	if n.now != nil {
		return n.now().UTC()
	}
	return time.Now().UTC()
}

// exec runs one statement, and repeats it after a serialization failure, which happens if the
// default isolation level is stricter than this package needs. The last writer wins.
func (n *notes) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	for range 100 {
		done, err := n.store.pool.Exec(ctx, sql, args...)
		if !failedWith(err, serializationFailure) {
			return done.RowsAffected(), n.store.wrapErr(err)
		}
	}
	return 0, n.store.wrapErr(errors.New("too many concurrent changes to a note; try again"))
}

// Put stores a value.
func (n *notes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	if err := storekit.CheckNote(key, value, expires); err != nil {
		return err
	}
	now := n.clock()
	if !expires.After(now) {
		return n.Delete(ctx, key)
	}
	if value == nil {
		value = []byte{}
	}
	_, err := n.exec(ctx, `INSERT INTO dragoman_notes (key, value, expires) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires`, key, value, expires.UTC())
	if err == nil && n.puts.Add(1)%storage.SweepEvery == 0 {
		_, err = n.Sweep(ctx, now)
	}
	return err
}

// PutNew stores a value unless its key has one.
func (n *notes) PutNew(ctx context.Context, key string, value []byte, expires time.Time) (stored bool, err error) {
	if err := storekit.CheckNote(key, value, expires); err != nil {
		return false, err
	}
	now := n.clock()
	if !expires.After(now) {
		return false, ctx.Err()
	}
	if value == nil {
		value = []byte{}
	}
	rows, err := n.exec(ctx, `INSERT INTO dragoman_notes (key, value, expires) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE dragoman_notes.expires <= $4`, key, value, expires.UTC(), now)
	if err == nil && n.puts.Add(1)%storage.SweepEvery == 0 {
		_, err = n.Sweep(ctx, now)
	}
	return rows == 1 && err == nil, err
}

// Get returns a value.
func (n *notes) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	values, err := n.GetAll(ctx, []string{key})
	if err != nil {
		return nil, false, err
	}
	return values[0], values[0] != nil, nil
}

// GetAll returns values.
func (n *notes) GetAll(ctx context.Context, keys []string) ([][]byte, error) {
	rows, err := n.store.pool.Query(ctx, `SELECT key, value FROM dragoman_notes WHERE key = ANY ($1) AND expires > $2`, keys, n.clock())
	if err != nil {
		return nil, n.store.wrapErr(err)
	}
	found := make(map[string][]byte, len(keys))
	var key string
	var value []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		found[key] = append([]byte{}, value...)
		return nil
	})
	if err != nil {
		return nil, n.store.wrapErr(err)
	}
	return storekit.InOrder(keys, found), nil
}

// Delete deletes a key.
func (n *notes) Delete(ctx context.Context, key string) error {
	_, err := n.exec(ctx, `DELETE FROM dragoman_notes WHERE key = $1`, key)
	return err
}

// Sweep deletes expired notes. Concurrent sweeps do not wait for each other.
func (n *notes) Sweep(ctx context.Context, now time.Time) (int, error) {
	swept, err := n.exec(ctx, `DELETE FROM dragoman_notes WHERE key IN (
		SELECT key FROM dragoman_notes WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED)`, now.UTC(), storage.SweepMost)
	return int(swept), err
}
