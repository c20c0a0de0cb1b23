package stream

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// Bound limits the memory for one stream, which has no length of its own. It covers the
// texts, arguments and native fields of all events together, as the limit of a body
// does for a complete response. Data that is only passed through does not count. The
// zero value and nil have no limit.
type Bound struct {
	Max  int
	kept int
}

// Take charges n more bytes and reports whether they fit. A negative n returns memory
// that is no longer used. After a failure, Take always returns false.
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

// Swap charges n bytes in place of old bytes.
func (b *Bound) Swap(old, n int) bool { return b.Take(n - old) }

// Err returns an error if the limit was exceeded.
func (b *Bound) Err() error {
	if b == nil || b.Max <= 0 || b.kept <= b.Max {
		return nil
	}
	return fmt.Errorf("%w: more than %d bytes in one response", dragoman.ErrTooLarge, b.Max)
}
