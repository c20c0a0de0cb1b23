package history

import (
	dragoman "github.com/dragoman-go/dragoman"
)

// unthink asks for no thinking budget where the target would miss the reasoning
// of calls that are being answered: another model made them, or their reasoning
// stayed behind (quirk D26). The next exchange thinks again.
func (n *normaliser) unthink() {
	s := n.thinking
	if !n.limits.ReasoningInLoop || s == nil || s.BudgetTokens == nil || s.Effort == "none" ||
		s.Mode != dragoman.ReasoningBudget && s.Mode != dragoman.ReasoningDefault {
		return
	}
	at, missing := n.unthoughtLoop()
	if !missing {
		return
	}
	n.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens",
		"the calls at %s have no reasoning before them, as the API demands with a budget; no thinking is asked for until they are done", at)
	if s.Effort == "" && s.Summary == "" && s.Encrypted == nil {
		n.thinking = nil
		return
	}
	n.thinking = &dragoman.ReasoningSettings{Effort: s.Effort, Summary: s.Summary, Encrypted: s.Encrypted}
}

// unthoughtLoop reports whether the conversation ends in calls and their
// results, and neither the turn that made them nor the first of its loop begins
// with reasoning; at is the place of that turn. A model that thinks once in a
// loop does it at the first.
func (n *normaliser) unthoughtLoop() (at string, missing bool) {
	first, end, _ := n.callsBefore(len(n.ms))
	if first < 0 || n.thinksFirst(first, end) {
		return "", false
	}
	at = n.ms[first].path()
	for {
		before, until, spoken := n.callsBefore(first)
		if before < 0 || spoken {
			return at, !n.thinksFirst(first, end)
		}
		first, end = before, until
	}
}

// callsBefore finds the assistant's turn before a message, if it made calls
// that are answered there: its first message and the one behind its last, or -1.
// spoken says that somebody spoke beside the results.
func (n *normaliser) callsBefore(at int) (first, end int, spoken bool) {
	end = at
	answered, calls := false, false
	for end > 0 && !n.ms[end-1].assistant() {
		end--
		results, rest := n.ms[end].results()
		answered = answered || len(results) > 0
		spoken = spoken || len(rest) > 0
	}
	first = end
	for first > 0 && n.ms[first-1].assistant() {
		first--
		calls = calls || len(n.ms[first].clientCalls()) > 0
	}
	if !answered || !calls {
		return -1, -1, spoken
	}
	return first, end, spoken
}

// thinksFirst reports whether the first part of some messages is reasoning.
func (n *normaliser) thinksFirst(first, end int) bool {
	for i := first; i < end; i++ {
		if parts := n.ms[i].Parts; len(parts) > 0 {
			return parts[0].Kind() == dragoman.KindReasoning
		}
	}
	return false
}
