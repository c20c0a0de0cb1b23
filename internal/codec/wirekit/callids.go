package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// CallIDs are the calls of one answer by id. The zero value is ready.
type CallIDs map[string]*dragoman.ToolCall

// SettleCalls settles the calls among the parts of a whole answer, which stand in
// the list at a place; mint makes an id for the part i from its old one. clash
// says that two shared an id: a client would run one of them twice, or answer
// another than it means, so that the answer must not go on as it came.
func SettleCalls(
	parts []dragoman.Part, list string, rep *dragoman.Report, mint func(i int, old string) string,
) (kept []dragoman.Part, clash bool) {
	var ids CallIDs
	kept = parts[:0]
	for i, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			fresh, renamed := ids.Settle(c, extra.Elem(list, i), rep, func(old string) string { return mint(i, old) })
			clash = clash || renamed || !fresh
			if !fresh {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept, clash
}

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
