package schema

import (
	"errors"
	"fmt"
)

// ErrInvalid says that a schema cannot be repaired: it is not JSON, or it
// does not describe a JSON object ([Wrap] puts it into one). A tool that has it
// must be dropped.
//
// Other errors of [Lower] are dragoman.ErrUnsupported (the strict subset
// cannot say it; the surface without strict can) and dragoman.ErrTooLarge.
var ErrInvalid = errors.New("schema: not usable as a schema")

// Error says where a schema is wrong and why.
type Error struct {
	// Pointer is the JSON pointer of the place in the source schema.
	Pointer string
	// Reason says what is wrong, and what to do where that helps.
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
