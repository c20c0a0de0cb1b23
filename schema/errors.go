package schema

import (
	"errors"
	"fmt"
)

// ErrInvalid reports that a schema cannot be repaired: it is not JSON, or it does not describe
// a JSON object (use [Wrap] for that). A tool with such a schema must be dropped.
//
// Other errors of [Lower] are dragoman.ErrUnsupported (the strict subset cannot express the
// schema, but the surface without strict can) and dragoman.ErrTooLarge.
var ErrInvalid = errors.New("schema: invalid schema")

// Error reports what is wrong with a schema, and where.
type Error struct {
	// Pointer is the JSON pointer of the position in the source schema.
	Pointer string
	// Reason says what is wrong and, if possible, what to do.
	Reason string
	// Err is the kind of error, for errors.Is.
	Err error
}

func (e *Error) Error() string {
	if e.Pointer == "" { // the whole schema
		return fmt.Sprintf("%v: %s", e.Err, e.Reason)
	}
	return fmt.Sprintf("%v: at %q: %s", e.Err, e.Pointer, e.Reason)
}

func (e *Error) Unwrap() error { return e.Err }
