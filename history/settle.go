package history

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// laterText is what a model reads in place of the result of a call that runs. It is part of
// the prompt: changing it invalidates the prompt caches of providers.
const laterText = "The call runs in the background; there is no result yet."

// settle gives every call exactly one result, or returns an error that lists the pending calls.
func (n *normalizer) settle() error {
	var unsettled []UnsettledCall
	for _, t := range n.turns {
		for _, s := range t.slots {
			if s.first != nil && n.misnamed(s, s.last.res) {
				n.rep.Addf(dragoman.Synthesized, dragoman.Info, n.ms[s.last.msg].part(s.last.part), "the result gets the name of its tool, %.80q", s.call.QualifiedName())
			}
			if s.first != nil && mistyped(s, s.last.res) {
				n.rep.Add(dragoman.Lowered, dragoman.Info, n.ms[s.last.msg].part(s.last.part), "a text result is matched to a call with JSON arguments")
			}
			if s.free || s.first != nil {
				continue
			}
			if c := s.call; !n.settleMissing(t, s) {
				unsettled = append(unsettled, UnsettledCall{ID: c.ID, Name: c.QualifiedName(), Path: n.ms[s.msg].part(s.part)})
			}
		}
	}
	if unsettled != nil {
		return &UnsettledError{Calls: unsettled}
	}
	return nil
}

// settleMissing settles a call that has no result. It returns false if the call is pending.
func (n *normalizer) settleMissing(t *turn, s *slot) bool {
	c, d := s.call, &n.ms[s.msg]
	switch {
	case c.Async && n.limits.AsyncCalls:
		s.free = true
		return true
	case c.Status != codes.StatusComplete || c.Problem != nil && c.Problem.Code == codes.ProblemTruncated:
		n.rep.Addf(dragoman.Dropped, dragoman.Warn, d.part(s.part), "call %.60q was truncated and has no result", c.ID) // quirk D9
		d.drop(s.part)
		s.free = true
		return true
	case c.Async:
		s.placeholder = c.ResultText(laterText)
		s.placeholder.Synthetic, s.placeholder.Outcome = true, codes.OutcomeUnknown
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(s.part), "call %.60q is still running, but the target requires a result; a note is sent as its result", c.ID)
		return true
	case c.Problem != nil, d.Status != codes.StatusComplete,
		n.abandon == codes.AbandonAll, n.abandon == codes.AbandonPassed && n.passed(t):
		s.placeholder = turnrules.Abandoned(c)
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(s.part), "call %.60q has no result; an error is sent as its result", c.ID) // quirk D7
		return true
	default:
		return false
	}
}

// passed reports whether content other than results follows the turn.
func (n *normalizer) passed(t *turn) bool {
	if t != n.turns[len(n.turns)-1] {
		return true
	}
	for i := t.last + 1; i < t.end; i++ {
		d := &n.ms[i]
		if d.Role != dragoman.RoleTool {
			return true
		}
		if _, rest := d.results(); len(rest) > 0 {
			return true
		}
	}
	return false
}
