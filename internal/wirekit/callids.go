package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// CallIDs are the calls of one answer by id. The zero value is ready.
type CallIDs map[string]*dragoman.ToolCall

// Settle takes the next call of the answer, which stands at a place. Calls that
// share an id are one if they are the same, else the later gets an id of its
// own, made from the old one (quirk B11): fresh is false for a repeat.
func (s *CallIDs) Settle(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report, mint func(old string) string) (fresh, renamed bool) {
	if first, dup := (*s)[c.ID]; dup {
		if first.Name == c.Name && first.Namespace == c.Namespace && first.Arguments == c.Arguments {
			rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "call %q is repeated exactly", c.ID)
			return false, false
		}
		old := c.ID
		c.ID, c.Synthetic, renamed = mint(old), true, true
		rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %q occurs twice; the later call is %q", old, c.ID)
	}
	if *s == nil {
		*s = make(CallIDs)
	}
	(*s)[c.ID] = c
	return true, renamed
}
