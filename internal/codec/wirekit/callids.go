package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// CallIDs holds the calls of one response by id. The zero value is ready to use.
type CallIDs map[string]*dragoman.ToolCall

// SettleCalls resolves duplicate call ids among the parts of a complete response; list
// is the JSON pointer of the parts. mint makes a new id for part i from its old id.
// clash reports whether two calls shared an id: a client would run one of them twice or
// return a result for the wrong call, so the response must not be passed through.
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

// Settle adds the next call of the response, whose path is at. A call that repeats an
// earlier one exactly is not fresh. A different call with the same id gets an id of its
// own, made from the old one (quirk B11).
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
