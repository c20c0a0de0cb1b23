package session

import (
	"context"
	"time"
)

// Notes keep small values for a while, each under a key: what a program must
// remember between two requests and may forget later. They are
// those of a store: the method Notes of session/sqlite and session/postgres, which
// several processes share. Package session/sessiontest holds others against what is
// promised here.
//
// They are safe for concurrent use and heed every context. They refuse what
// every store refuses (a key over 256 bytes or with control characters, a value over 16 MiB), keep a copy of every value, and give copies away. What has
// expired is never returned; it is gone for good when somebody sweeps, which Put does
// now and then.
type Notes interface {
	// Put keeps a value until it expires, in place of the one that the key had. One
	// that has expired already only takes the old one away.
	Put(ctx context.Context, key string, value []byte, expires time.Time) error
	// Get returns the value of a key, and whether there is one.
	Get(ctx context.Context, key string) (value []byte, found bool, err error)
	// GetAll returns the values of keys, in their order: nil where there is none. A
	// value that is there is never nil.
	GetAll(ctx context.Context, keys []string) ([][]byte, error)
	// Delete forgets a key. One that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Sweep takes out notes that expired at a time or before, up to 1000 of
	// them, and says how many they were.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
