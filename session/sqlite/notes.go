package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
)

// notes are the notes of a [Store].
type notes struct {
	store *Store
	now   func() time.Time
	puts  atomic.Uint32
}

var _ session.Notes = (*notes)(nil)

// Notes returns the notes in the file, which all programs that use the file share. They
// cannot be used after the store is closed.
func (s *Store) Notes() session.Notes { return &s.notes }

func (n *notes) clock() int64 {
	if n.now != nil {
		return n.now().UnixMicro()
	}
	return time.Now().UnixMicro()
}

// Put stores a value.
func (n *notes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	if err := storekit.CheckNote(key, value, expires); err != nil {
		return err
	}
	now, until := n.clock(), expires.UnixMicro()
	return n.store.change(ctx, func(tx *sql.Tx) error {
		if until <= now {
			_, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE key = ?`, key)
			return n.store.wrapErr(err)
		}
		if value == nil {
			value = []byte{}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO notes (key, value, expires) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires`, key, value, until)
		if err == nil && n.puts.Add(1)%storage.SweepEvery == 0 {
			_, err = sweep(ctx, tx, now)
		}
		return n.store.wrapErr(err)
	})
}

// PutNew stores a value unless its key has one.
func (n *notes) PutNew(ctx context.Context, key string, value []byte, expires time.Time) (stored bool, err error) {
	if err := storekit.CheckNote(key, value, expires); err != nil {
		return false, err
	}
	now, until := n.clock(), expires.UnixMicro()
	if until <= now {
		return false, ctx.Err()
	}
	if value == nil {
		value = []byte{}
	}
	err = n.store.change(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO notes (key, value, expires) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE notes.expires <= ?`, key, value, until, now)
		if err != nil {
			return n.store.wrapErr(err)
		}
		rows, err := res.RowsAffected()
		stored = rows == 1
		if err == nil && n.puts.Add(1)%storage.SweepEvery == 0 {
			_, err = sweep(ctx, tx, now)
		}
		return n.store.wrapErr(err)
	})
	return stored && err == nil, err
}

// Get returns a value.
func (n *notes) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	err = n.store.read.QueryRowContext(ctx, `SELECT value FROM notes WHERE key = ? AND expires > ?`, key, n.clock()).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, n.store.wrapErr(err)
	}
	return notNil(value), true, nil
}

// notNil returns an empty slice for nil, because the driver returns an empty value as nil.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// GetAll returns values.
func (n *notes) GetAll(ctx context.Context, keys []string) ([][]byte, error) {
	list, err := json.Marshal(keys) // one parameter for any number of keys
	if err != nil {
		return nil, err
	}
	rows, err := n.store.read.QueryContext(ctx, `SELECT key, value FROM notes WHERE key IN (SELECT value FROM json_each(?)) AND expires > ?`, string(list), n.clock())
	if err != nil {
		return nil, n.store.wrapErr(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the error
	found := make(map[string][]byte, len(keys))
	for rows.Next() {
		var key string
		var value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return nil, n.store.wrapErr(err)
		}
		found[key] = notNil(value)
	}
	if err := rows.Err(); err != nil {
		return nil, n.store.wrapErr(err)
	}
	return storekit.InOrder(keys, found), nil
}

// Delete deletes a key.
func (n *notes) Delete(ctx context.Context, key string) error {
	return n.store.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE key = ?`, key)
		return n.store.wrapErr(err)
	})
}

// Sweep deletes expired notes.
func (n *notes) Sweep(ctx context.Context, now time.Time) (swept int, err error) {
	err = n.store.change(ctx, func(tx *sql.Tx) error {
		swept, err = sweep(ctx, tx, now.UnixMicro())
		return n.store.wrapErr(err)
	})
	if err != nil {
		return 0, err
	}
	return swept, nil
}

func sweep(ctx context.Context, tx *sql.Tx, now int64) (int, error) {
	res, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE key IN (SELECT key FROM notes WHERE expires <= ? ORDER BY expires LIMIT ?)`, now, storage.SweepMost)
	if err != nil {
		return 0, err
	}
	swept, err := res.RowsAffected()
	return int(swept), err
}
