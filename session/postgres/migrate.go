package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dragoman-go/dragoman/internal/storage"
)

// migrations create the tables, each based on the previous one. The list is append-only;
// dragoman_schema stores the number of applied migrations.
var migrations = []string{
	`CREATE TABLE dragoman_sessions (
		no      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		id      text NOT NULL UNIQUE,
		title   text NOT NULL,
		created timestamptz NOT NULL,
		parent  text NOT NULL,
		at      bigint NOT NULL,
		updated timestamptz NOT NULL,
		head    bigint NOT NULL
	);
	CREATE TABLE dragoman_entries (
		session bigint NOT NULL REFERENCES dragoman_sessions (no) ON DELETE CASCADE,
		seq     bigint NOT NULL,
		time    timestamptz NOT NULL,
		kind    text NOT NULL,
		key     text NOT NULL,
		body    text NOT NULL, -- JSON, byte for byte, which the types for it do not keep
		PRIMARY KEY (session, seq)
	);
	CREATE INDEX dragoman_entries_key ON dragoman_entries (session, key, seq) WHERE key <> '';`,
	`CREATE TABLE dragoman_notes (
		key     text PRIMARY KEY,
		value   bytea NOT NULL,
		expires timestamptz NOT NULL
	);
	CREATE INDEX dragoman_notes_expires ON dragoman_notes (expires);`,
	`CREATE TABLE dragoman_tickets (
		no        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		id        text NOT NULL UNIQUE,
		run       text NOT NULL,
		delivered boolean NOT NULL,
		expires   timestamptz NOT NULL,
		body      text NOT NULL
	);
	CREATE INDEX dragoman_tickets_run ON dragoman_tickets (run, no) WHERE NOT delivered;
	CREATE INDEX dragoman_tickets_expires ON dragoman_tickets (expires) WHERE delivered;`,
}

// migrationLock is the advisory lock of processes that open a database at once: "Drgm".
const migrationLock = 0x4472676d

// migrate upgrades the tables to the version of this program.
func (s *Store) migrate(ctx context.Context) error {
	var there bool
	err := s.pool.QueryRow(ctx, `SELECT to_regclass('dragoman_schema') IS NOT NULL`).Scan(&there)
	if err != nil {
		return err
	}
	if there { // if all tables exist, the role needs no CREATE privilege
		if n, err := version(ctx, s.pool); err != nil || n == len(migrations) {
			return err
		}
	}
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return err
		}
		// Another process may have migrated first, and the lookup before the lock may be
		// cached: creating the table looks it up again.
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS dragoman_schema (version integer NOT NULL)`); err != nil {
			return err
		}
		n, err := version(ctx, tx)
		if err != nil || n == len(migrations) {
			return err
		}
		for i, m := range migrations[n:] {
			if _, err := tx.Exec(ctx, m); err != nil {
				return fmt.Errorf("migration %d: %w", n+i+1, err)
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO dragoman_schema VALUES ($1)`, len(migrations))
		return err
	})
}

// version returns the number of applied migrations. It refuses a database of a newer version
// of this program.
func version(ctx context.Context, db queryer) (version int, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM dragoman_schema`).Scan(&version)
	if err == nil && version > len(migrations) {
		err = &storage.Newer{What: "the database", Found: version, Known: len(migrations)}
	}
	return version, err
}

// queryer is the database or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
