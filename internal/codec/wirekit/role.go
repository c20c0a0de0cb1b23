package wirekit

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

var errNoRole = errors.New("a message must have a role")

// CheckRole returns an error for a request message without a role, for dialects that
// require one, and otherwise nil. Guessing the role is not safe: user text must not
// become an instruction or a response.
func CheckRole(role dragoman.Role) error {
	if role != "" {
		return nil
	}
	return &jsonwire.Error{Pointer: "/role", Err: errNoRole}
}
