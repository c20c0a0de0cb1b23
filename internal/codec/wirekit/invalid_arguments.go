package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// InvalidArguments reports whether the arguments of a function call are not valid JSON.
// An empty text and other spellings of no arguments are valid.
func InvalidArguments(arguments string) bool {
	p := dragoman.CheckArguments(arguments)
	return p != nil && p.Code == codes.ProblemInvalidJSON
}
