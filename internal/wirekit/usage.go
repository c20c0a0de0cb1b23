package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Count reads a number of tokens; null is one that the server does not know.
func Count(r *jsonwire.Reader) dragoman.Count {
	if r.Null() {
		return dragoman.Count{}
	}
	return dragoman.Counted(r.Int())
}
