package stream

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// Bound limits what is kept of a stream, which has no length of its own: the
// texts, arguments and native members of all its events together, as the limit
// of a body does for a whole answer. What is only passed on does not count. The
// zero value, and nil, limit nothing.
type Bound struct {
	Max  int
	kept int
}

// Take asks to keep n more bytes; what is kept no longer is given back as a
// negative number. Once it said no, it always does.
func (b *Bound) Take(n int) bool {
	if b == nil {
		return true
	}
	if b.Err() != nil {
		return false
	}
	b.kept += n
	return b.Err() == nil
}

// Swap asks to keep n bytes in the place of old ones.
func (b *Bound) Swap(old, n int) bool { return b.Take(n - old) }

// Err says that more was to be kept than may be.
func (b *Bound) Err() error {
	if b == nil || b.Max <= 0 || b.kept <= b.Max {
		return nil
	}
	return fmt.Errorf("%w: more than %d bytes in one answer", dragoman.ErrTooLarge, b.Max)
}
