package session

import (
	"context"
	"errors"
	"iter"

	"github.com/dragoman-go/dragoman/internal/storage"
)

// Store stores sessions: [Memory], or one of the packages session/sqlite and
// session/postgres. Package session/sessiontest tests other implementations against this
// contract:
//   - It is safe for concurrent use, and stops when a context is canceled, also between two
//     entries of a loop.
//   - It refuses what [Info.Check] and [Entry.Check] refuse, before it writes anything.
//   - It sets Entry.Seq, Info.Head and Info.Updated, and copies every body.
//   - It holds no lock while the loop body over Read or List runs.
//   - A log only grows. Once a method has returned nil, its data survives the end of the
//     process and of the machine, unless the store documents otherwise. A write that was
//     not acknowledged is stored completely or not at all.
//
// A store with a method Tickets() [tool.TicketStore] also stores the tickets of background
// tools, so that any process can settle them: the stores of this module do.
type Store interface {
	// Create creates a session with its first entries, all or nothing. They are
	// numbered from 1; nil means none. Create returns an error that the sequence yields.
	// The error is [ErrExists] if the id is in use.
	Create(ctx context.Context, info Info, entries iter.Seq2[Entry, error]) error
	// Info returns the metadata of a session. The error is [ErrNotFound] if it does not
	// exist.
	Info(ctx context.Context, id string) (Info, error)
	// List yields all sessions, the most recently changed first; sessions with equal
	// times are ordered by id. The caller may leave the loop early.
	List(ctx context.Context) iter.Seq2[Info, error]
	// Append adds entries, all or nothing, to a session whose last entry is head. The
	// error wraps [ErrConflict] if the last entry is another one. Of several appends to
	// the same head exactly one succeeds.
	Append(ctx context.Context, id string, head int64, entries []Entry) error
	// Read yields entries in order. Its cost is proportional to what it yields and, for a
	// query by kind, what it skips. The log may grow meanwhile, even by the loop itself:
	// new entries are not read. An error ends the loop. [Query.Has] defines the selected
	// entries, except for Query.Last.
	Read(ctx context.Context, id string, q Query) iter.Seq2[Entry, error]
	// Delete deletes a session.
	Delete(ctx context.Context, id string) error
	// Close releases the resources of the store.
	Close() error
}

// ErrExists means that the id of a session is in use.
var ErrExists = errors.New("session: a session with this id already exists")

// ErrNotFound means that no session has the id.
var ErrNotFound = errors.New("session: unknown session")

// ErrConflict means that another writer has changed the session, and that nothing was
// written: another process continues the session, or an earlier write whose outcome was
// unknown did succeed. Open the session again to see its current content.
var ErrConflict = storage.ErrConflict

// ErrCorrupt means that a log contains data that this module cannot have written. The
// session cannot be used.
var ErrCorrupt = errors.New("session: the log is damaged")

// ErrNewer means that the data was written by a newer version of this module.
var ErrNewer = storage.ErrNewer

// ErrClosed means that the store was closed.
var ErrClosed = errors.New("session: the store is closed")

// fail returns a sequence that yields only an error.
func fail[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
