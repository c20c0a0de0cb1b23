package history

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
)

// laterText stands in for the result of a call that runs. It is part of the prompt: changing
// it changes what providers remember.
const laterText = "The call runs in the background; there is no result yet."

// settle gives every call its one result, or says which calls wait for theirs.
func (n *normaliser) settle() error {
	var unsettled []UnsettledCall
	for _, t := range n.turns {
		for _, s := range t.slots {
			if s.first != nil && n.misnamed(s, s.last.res) {
				n.rep.Addf(dragoman.Synthesized, dragoman.Info, n.ms[s.last.msg].part(s.last.part), "the result is named after its tool, %.80q", s.call.QualifiedName())
			}
			if s.first != nil && mistyped(s, s.last.res) {
				n.rep.Add(dragoman.Lowered, dragoman.Info, n.ms[s.last.msg].part(s.last.part), "the result of a text answers a call with arguments")
			}
			if s.free || s.first != nil {
				continue
			}
			if c := s.call; !n.standIn(t, s) {
				unsettled = append(unsettled, UnsettledCall{ID: c.ID, Name: c.QualifiedName(), Path: n.ms[s.msg].part(s.part)})
			}
		}
	}
	if unsettled != nil {
		return &UnsettledError{Calls: unsettled}
	}
	return nil
}

// standIn settles a call that has no result, unless it is pending.
func (n *normaliser) standIn(t *turn, s *slot) bool {
	c, d := s.call, &n.ms[s.msg]
	switch {
	case c.Async && n.limits.AsyncCalls:
		s.free = true
		return true
	case c.Status != codes.StatusComplete || c.Problem != nil && c.Problem.Code == codes.ProblemTruncated:
		n.rep.Addf(dragoman.Dropped, dragoman.Warn, d.part(s.part), "call %.60q was cut off and never answered", c.ID) // quirk D9
		d.drop(s.part)
		s.free = true
		return true
	case c.Async:
		s.standIn = c.ResultText(laterText)
		s.standIn.Synthetic, s.standIn.Outcome = true, codes.OutcomeUnknown
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(s.part), "call %.60q is still running, and the target requires a result; a note stands in for it", c.ID)
		return true
	case c.Problem != nil, d.Status != codes.StatusComplete,
		n.abandon == codes.AbandonAll, n.abandon == codes.AbandonPassed && n.passed(t):
		s.standIn = resultorder.Abandoned(c)
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(s.part), "call %.60q was never answered; an error stands in for its result", c.ID) // quirk D7
		return true
	default:
		return false
	}
}

// passed reports whether somebody spoke after the turn, other than with
// results.
func (n *normaliser) passed(t *turn) bool {
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
