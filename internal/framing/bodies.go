package framing

import (
	"errors"
	"io"
)

// ReadAll is like io.ReadAll, for a body whose length may be known from a header; says
// is that length, or less than 1 if it is unknown. A large length is not trusted: it
// does not allocate much memory.
func ReadAll(r io.Reader, says int64) ([]byte, error) {
	return ReadHeld(r, says, 0, func(int) error { return nil })
}

// ReadHeld is like [ReadAll], for a caller that limits memory. hold is called with the
// size by which the buffer is about to grow; its error stops the reading. The buffer
// does not grow beyond what most bytes need; most below 1 means no limit. While the
// buffer grows, its old and new bytes exist at the same time.
func ReadHeld(r io.Reader, says int64, most int, hold func(bytes int) error) ([]byte, error) {
	const least, believed = 512, 64 << 10
	size := least
	if says > 0 && says <= believed {
		size = int(says) + 1 // one more byte to detect the end
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
