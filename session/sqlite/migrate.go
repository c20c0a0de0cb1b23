package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"

	"github.com/dragoman-go/dragoman/internal/storage"
)

// migrations create the tables, each based on the previous one. The list is append-only; the
// file stores the number of applied migrations.
var migrations = []string{
	`CREATE TABLE sessions (
		no      INTEGER PRIMARY KEY AUTOINCREMENT,
		id      TEXT NOT NULL UNIQUE,
		title   TEXT NOT NULL,
		created INTEGER NOT NULL, -- microseconds since 1970
		parent  TEXT NOT NULL,
		at      INTEGER NOT NULL,
		updated INTEGER NOT NULL,
		head    INTEGER NOT NULL
	) STRICT;
	CREATE TABLE entries (
		session INTEGER NOT NULL REFERENCES sessions (no),
		seq     INTEGER NOT NULL,
		time    INTEGER NOT NULL,
		kind    TEXT NOT NULL,
		key     TEXT NOT NULL,
		body    TEXT NOT NULL,
		PRIMARY KEY (session, seq)
	) STRICT;
	CREATE INDEX entries_key ON entries (session, key, seq) WHERE key <> '';`,
	`CREATE TABLE notes (
		key     TEXT NOT NULL PRIMARY KEY,
		value   BLOB NOT NULL,
		expires INTEGER NOT NULL -- microseconds since 1970
	) STRICT;
	CREATE INDEX notes_expires ON notes (expires);`,
	`CREATE TABLE tickets (
		no        INTEGER PRIMARY KEY AUTOINCREMENT,
		id        TEXT NOT NULL UNIQUE,
		run       TEXT NOT NULL,
		delivered INTEGER NOT NULL,
		expires   INTEGER NOT NULL, -- microseconds since 1970
		body      TEXT NOT NULL
	) STRICT;
	CREATE INDEX tickets_run ON tickets (run, no) WHERE delivered = 0;
	CREATE INDEX tickets_expires ON tickets (expires) WHERE delivered = 1;`,
}

// applicationID marks a file as ours: "Drgm".
const applicationID = 0x4472676d

// migrate upgrades the file to the version of this program. If several processes do it at
// once, the first one migrates, and the others find nothing to do.
func (s *Store) migrate(ctx context.Context, wait time.Duration) error {
	if _, err := s.version(ctx, s.write); err != nil {
		return err
	}
	if err := s.useWAL(ctx, wait); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing is left to undo after a commit
	version, err := s.version(ctx, tx)
	if err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	for i, m := range migrations[version:] {
		if _, err := tx.ExecContext(ctx, m); err != nil {
			return fmt.Errorf("migration %d: %w", version+i+1, err)
		}
	}
	// Pragmas take no parameters. Both are part of the transaction.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, len(migrations))); err != nil {
		return err
	}
	return tx.Commit()
}

// version returns the number of applied migrations. It refuses a file of another program or
// of a newer version of this one.
func (s *Store) version(ctx context.Context, db queryer) (version int, err error) {
	var application, tables int
	// One statement, so that all three values are consistent.
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&application, &version, &tables)
	switch {
	case err != nil:
		return 0, err
	case application != applicationID && (application != 0 || version != 0 || tables != 0):
		return 0, fmt.Errorf("%s is a database of another program: choose another file", s.path)
	case version > len(migrations):
		return 0, &storage.Newer{What: s.path, Found: version, Known: len(migrations)}
	default:
		return version, nil
	}
}

// queryer is a database or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// useWAL enables the write-ahead log, which lets others read during a write. SQLite does not
// wait for a lock here by itself.
func (s *Store) useWAL(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var mode string
		err := s.write.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
		var e *driver.Error
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("%s is on a file system that does not support a write-ahead log (journal mode %q): choose a local file", s.path, mode)
		case !errors.As(err, &e) || e.Code()&0xff != codeBusy:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
