// Package bodies reads bodies of HTTP messages.
package bodies

import (
	"errors"
	"io"
)

// ReadAll is io.ReadAll for a body that says how long it is, as a header does; less
// than one: it does not. Nothing is believed that would take much memory.
func ReadAll(r io.Reader, says int64) ([]byte, error) {
	return ReadHeld(r, says, 0, func(int) error { return nil })
}

// ReadHeld is [ReadAll] for a caller that bounds memory: hold is called with the size by
// which the buffer is about to grow, and its error ends the reading. The buffer is not made
// larger than most bytes need; most below one means no bound. While the buffer grows, its
// old and its new bytes exist for a moment.
func ReadHeld(r io.Reader, says int64, most int, hold func(bytes int) error) ([]byte, error) {
	const least, believed = 512, 64 << 10
	size := least
	if says > 0 && says <= believed {
		size = int(says) + 1 // one more, for the end
	}
	if err := hold(size); err != nil {
		return nil, err
	}
	b := make([]byte, 0, size)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		case len(b) < cap(b):
			continue
		}
		size := 2 * cap(b)
		if says >= int64(cap(b)) && int64(size) > says {
			size = int(says) + 1
		}
		if most >= cap(b) {
			size = min(size, most+1)
		}
		if err := hold(size - cap(b)); err != nil {
			return b, err
		}
		b = append(make([]byte, 0, size), b...)
	}
}
