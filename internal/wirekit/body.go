package wirekit

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrNotObject says that a document is none of an API, whose bodies and events
// are objects.
var ErrNotObject = errors.New("want a JSON object")

// OpenBody begins to read a body, a request or a response, that must be an
// object within the bounds. Where the body is no JSON at all there is no error
// yet: the reader will say where it breaks.
func OpenBody(d dragoman.Dialect, what string, body []byte, o dialect.DecodeOptions) (*jsonwire.Reader, error) {
	if err := CheckSize(d, what, body, o); err != nil {
		return nil, err
	}
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' && r.Err() == nil {
		return nil, DecodeError(d, what, ErrNotObject)
	}
	return r, nil
}
