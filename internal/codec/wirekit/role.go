package wirekit

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

var errNoRole = errors.New("a message must say whose it is")

// NoRole is the error of a message of a request that does not say whose it is, for
// dialects that demand it; nil for one that does. Whose words they are is not ours
// to guess: what a user says is no instruction, and no answer.
func NoRole(role dragoman.Role) error {
	if role != "" {
		return nil
	}
	return &jsonwire.Error{Pointer: "/role", Err: errNoRole}
}
