package session

import (
	"context"
	"errors"
	"iter"

	"github.com/dragoman-go/dragoman/internal/storage/storeerr"
)

// Store keeps sessions: [Memory], or one of the packages session/sqlite and
// session/postgres. Package session/sessiontest holds others against what is
// promised here. A store is safe for concurrent use, and heeds every context, also
// between two entries of a loop.
//
// It refuses what [Info.Check] and [Entry.Check] refuse, before it writes anything;
// sets Entry.Seq, Info.Head and Info.Updated; keeps a copy of every body; and holds no
// lock while the loop over what Read or List yields has its turn.
//
// A log only grows. What a method acknowledged, by returning nil, is not lost
// however the process ends, nor the machine, except where a store says otherwise.
// What it did not acknowledge is there as a whole or not at all.
//
// A store with a method Tickets() [tool.TicketStore] also stores the tickets of background
// tools, so that any process can settle them: the stores of this module do.
type Store interface {
	// Create makes a session with its first entries, all or nothing. They are
	// numbered from 1; nil means none. An error that they yield is returned. The
	// error is [ErrExists] where the id is taken.
	Create(ctx context.Context, info Info, entries iter.Seq2[Entry, error]) error
	// Info says what is known of a session. The error is [ErrNotFound] where there
	// is none.
	Info(ctx context.Context, id string) (Info, error)
	// List yields all sessions, the last changed first; of those that were changed
	// at one time in the order of their ids. Leave the loop when there are enough.
	List(ctx context.Context) iter.Seq2[Info, error]
	// Append adds entries, all or nothing, to a session whose last entry is head.
	// The error wraps [ErrConflict] where it is another one. Of several appends to one head exactly one succeeds.
	Append(ctx context.Context, id string, head int64, entries []Entry) error
	// Read yields entries in order, and costs no more than what it yields and, by
	// kind, what it passes over. The log may grow meanwhile, by the loop itself
	// too: what is added is not read. An error ends the loop. [Query.Has] says which
	// entries are meant, but for Query.Last.
	Read(ctx context.Context, id string, q Query) iter.Seq2[Entry, error]
	// Delete forgets a session.
	Delete(ctx context.Context, id string) error
	// Close lets go of what the store holds.
	Close() error
}

// ErrExists says that a session's id is taken.
var ErrExists = errors.New("session: a session with this id exists already")

// ErrNotFound says that there is no session of an id.
var ErrNotFound = errors.New("session: there is no such session")

// ErrConflict says that a session was written to by somebody else, and nothing was written:
// another process goes on with the session, or a write whose outcome was not known did
// arrive. Open the session again to see what it holds now.
var ErrConflict = storeerr.ErrConflict

// ErrCorrupt says that a log holds what nobody could have written. Nothing is done
// with such a session.
var ErrCorrupt = errors.New("session: the log is corrupt")

// ErrNewer says that something was written by a newer version of this module.
var ErrNewer = storeerr.ErrNewer

// ErrClosed says that a store was closed.
var ErrClosed = errors.New("session: the store is closed")

// fail is a sequence of nothing but an error, for what a [Store] returns.
func fail[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
