package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

// disableThinking turns thinking off for requests that the API refuses with a thinking budget:
//   - The conversation ends with assistant text, and the model does not continue text while
//     it thinks.
//   - The conversation ends with results of calls that have no reasoning before them,
//     because another model made them or their reasoning was not stored (quirk D26).
//
// For models that accept only budgets, an effort or adaptive thinking becomes a budget, too.
// Thinking is on again in the next exchange.
func (n *normalizer) disableThinking() {
	s := n.thinking
	if !usesBudget(s, &n.target.Caps) {
		return
	}
	path, what := "/reasoning/budget_tokens", "a budget"
	if s.BudgetTokens == nil {
		path, what = "/reasoning", "thinking"
	}
	if at, prefilled := n.prefill(); prefilled {
		n.rep.Addf(dragoman.Dropped, dragoman.Warn, path, "the model does not continue the text at %s with %s; thinking is off for this response", at, what)
	} else if at, missing := n.loopWithoutReasoning(); missing && n.limits.ReasoningInLoop {
		n.rep.Addf(dragoman.Dropped, dragoman.Warn, path,
			"the calls at %s have no reasoning before them, which the API requires with %s; thinking is off until they are done", at, what)
	} else {
		return
	}
	rest := dragoman.ReasoningSettings{Effort: s.Effort, Summary: s.Summary, Encrypted: s.Encrypted}
	if n.target.Caps.ThinkingBudgets {
		rest.Effort = "" // it would become a budget
	}
	if rest == (dragoman.ReasoningSettings{}) {
		n.thinking = nil
		return
	}
	n.thinking = &rest
}

// prefill reports whether the conversation ends with assistant text that the model does not
// continue while it thinks; at is the path of the message.
func (n *normalizer) prefill() (at string, refused bool) {
	last := len(n.ms) - 1
	if last < 0 || !n.ms[last].assistant() || !slices.Contains(strings.Fields(n.target.Caps.RefusesThinking), "prefill") {
		return "", false
	}
	parts := n.ms[last].Parts
	return n.ms[last].path(), len(parts) > 0 && parts[len(parts)-1].Kind() == codes.KindText
}

// usesBudget reports whether settings are sent as a thinking budget.
func usesBudget(s *dragoman.ReasoningSettings, caps *targets.Capabilities) bool {
	switch {
	case s == nil, caps.NoThinking, caps.NoThinkingBudgets, s.Mode == codes.ReasoningOff:
		return false
	case s.Mode == codes.ReasoningDefault && s.Effort == "none":
		return false
	case s.BudgetTokens != nil && s.Mode != codes.ReasoningAdaptive && s.Effort != "none":
		return true
	default:
		return caps.ThinkingBudgets && (s.BudgetTokens != nil || s.Effort != "" || s.Mode != codes.ReasoningDefault)
	}
}

// loopWithoutReasoning reports whether the conversation ends in calls with results, and
// neither the turn of these calls nor the first turn of its loop starts with
// reasoning; at is the path of that turn. A model that thinks once in a loop does
// it in the first turn.
func (n *normalizer) loopWithoutReasoning() (at string, missing bool) {
	first, end, _ := n.callsBefore(len(n.ms))
	if first < 0 || n.startsWithReasoning(first, end) {
		return "", false
	}
	at = n.ms[first].path()
	for {
		before, until, otherContent := n.callsBefore(first)
		if before < 0 || otherContent {
			return at, !n.startsWithReasoning(first, end)
		}
		first, end = before, until
	}
}

// callsBefore finds the assistant turn before a message, if it has calls with results
// there. It returns the index of its first message and of the message after its last,
// or -1. otherContent reports whether there is content other than the results.
func (n *normalizer) callsBefore(at int) (first, end int, otherContent bool) {
	end = at
	hasResults, calls := false, false
	for end > 0 && !n.ms[end-1].assistant() {
		end--
		results, rest := n.ms[end].results()
		hasResults = hasResults || len(results) > 0
		otherContent = otherContent || len(rest) > 0
	}
	first = end
	for first > 0 && n.ms[first-1].assistant() {
		first--
		calls = calls || len(n.ms[first].clientCalls()) > 0
	}
	if !hasResults || !calls {
		return -1, -1, otherContent
	}
	return first, end, otherContent
}

// startsWithReasoning reports whether the first part of the messages is reasoning.
func (n *normalizer) startsWithReasoning(first, end int) bool {
	for i := first; i < end; i++ {
		if parts := n.ms[i].Parts; len(parts) > 0 {
			return parts[0].Kind() == codes.KindReasoning
		}
	}
	return false
}
