// Package storeerr has the errors of session stores. Package session exports the two that
// users compare.
package storeerr

import (
	"errors"
	"fmt"
)

// The errors that [Conflict] and [Newer] are. See session.ErrConflict and session.ErrNewer.
var (
	ErrConflict = errors.New("session: another process wrote to the session")
	ErrNewer    = errors.New("session: written by a newer version")
)

// Conflict is a lost race between two writers of a session: nothing was
// written. Another process goes on with the session, or a write whose outcome was
// not known did arrive. Open the session again to see what it holds now.
type Conflict struct {
	ID string
	// Head is the last entry as the writer that lost knew it, Actual as it is.
	Head, Actual int64
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("session: %s ends with entry %d, not with %d: another process wrote to it; open the session again to continue", e.ID, e.Actual, e.Head)
}

// Is reports whether target is [ErrConflict].
func (e *Conflict) Is(target error) bool { return target == ErrConflict }

// Newer is the error of what this version cannot read.
type Newer struct {
	// What was written, and the versions that it has and that are known.
	What         string
	Found, Known int
}

func (e *Newer) Error() string {
	return fmt.Sprintf("session: %s has version %d, but this program supports versions up to %d: use a newer version of the program", e.What, e.Found, e.Known)
}

// Is reports whether target is [ErrNewer].
func (e *Newer) Is(target error) bool { return target == ErrNewer }
