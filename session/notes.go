package session

import (
	"context"
	"time"
)

// Notes store small values by key until they expire: data that a program needs between two
// requests and can lose later. The method Notes of session/sqlite and session/postgres
// returns them; several processes can share them. Package session/sessiontest tests other
// implementations against this contract:
//   - They are safe for concurrent use and stop when a context is canceled.
//   - They refuse a key over 256 bytes or with control characters, and a value over 16 MiB.
//   - They copy every value that they store or return.
//   - Expired values are never returned. Sweep deletes them, and Put and PutNew call it now and then.
type Notes interface {
	// Put stores a value until it expires, and replaces the previous value of the key. A
	// value that has already expired only deletes the previous one.
	Put(ctx context.Context, key string, value []byte, expires time.Time) error
	// PutNew stores a value only if its key has none, and reports whether it did: of
	// concurrent callers one gets true. A value that has already expired is not stored.
	PutNew(ctx context.Context, key string, value []byte, expires time.Time) (stored bool, err error)
	// Get returns the value of a key, and whether it was found.
	Get(ctx context.Context, key string) (value []byte, found bool, err error)
	// GetAll returns the values of keys, in the order of the keys: nil for a missing key.
	// A value that exists is never nil.
	GetAll(ctx context.Context, keys []string) ([][]byte, error)
	// Delete deletes a key. A missing key is not an error.
	Delete(ctx context.Context, key string) error
	// Sweep deletes up to 1000 notes that expired at or before a time, and returns how
	// many it deleted.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
