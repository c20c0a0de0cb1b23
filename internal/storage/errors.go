package storage

import (
	"errors"
	"fmt"
)

// The sentinel errors that [Conflict] and [Newer] match. See session.ErrConflict and
// session.ErrNewer.
var (
	ErrConflict = errors.New("session: another process wrote to the session")
	ErrNewer    = errors.New("session: written by a newer version")
)

// Conflict reports a lost race between two writers of a session. Nothing was written. Either
// another process continues the session, or an earlier write with an unknown outcome was stored
// after all. Open the session again to read its current content.
type Conflict struct {
	ID string
	// Head is the last entry that the losing writer knew, Actual the last entry of the session.
	Head, Actual int64
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("session: %s ends with entry %d, not with %d: another process wrote to it; open the session again to continue", e.ID, e.Actual, e.Head)
}

// Is reports whether target is [ErrConflict].
func (e *Conflict) Is(target error) bool { return target == ErrConflict }

// Newer reports stored data of a newer version, which this version cannot read.
type Newer struct {
	// What names the data, Found is its version, and Known the newest version that can be read.
	What         string
	Found, Known int
}

func (e *Newer) Error() string {
	return fmt.Sprintf("session: %s has version %d, but this program supports versions up to %d: use a newer version of the program", e.What, e.Found, e.Known)
}

// Is reports whether target is [ErrNewer].
func (e *Newer) Is(target error) bool { return target == ErrNewer }
