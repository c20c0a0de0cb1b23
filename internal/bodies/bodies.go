// Package bodies reads bodies of HTTP messages.
package bodies

import (
	"errors"
	"io"
	"slices"
)

// ReadAll is io.ReadAll for a body that says how long it is, as a header does; less
// than one: it does not. Nothing is believed that would take much memory.
func ReadAll(r io.Reader, says int64) ([]byte, error) {
	const least, believed = 512, 64 << 10
	if says <= 0 || says > believed {
		says = least
	}
	b := make([]byte, 0, says+1) // one more, for the end
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b))
		}
	}
}
