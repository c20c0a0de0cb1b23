package turnrules

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// Ranks holds the rank of each call of a turn. K identifies a call.
type Ranks[K comparable] map[K]int

// Add assigns the next rank to a call. A repeated call keeps its rank.
func (r Ranks[K]) Add(call K) {
	if _, again := r[call]; !again {
		r[call] = len(r)
	}
}

// Rest returns the rank of everything that is not the result of a call of the turn: it
// comes after the results (quirk D3).
func (r Ranks[K]) Rest() int { return len(r) }

// Of returns the rank of a result: results are in the order of their calls (quirks D1,
// D2, D4).
func (r Ranks[K]) Of(call K) int {
	if rank, ok := r[call]; ok {
		return rank
	}
	return r.Rest()
}

// Sort sorts items by rank and reports whether one moved. Items of the same rank keep
// their order.
func Sort[T any](items []T, rank func(T) int) (moved bool) {
	byRank := func(a, b T) int { return rank(a) - rank(b) }
	if slices.IsSortedFunc(items, byRank) {
		return false
	}
	slices.SortStableFunc(items, byRank)
	return true
}

// Replaces reports whether a later result of a call replaces the earlier one, at the
// position of the first (quirk D6). A synthetic result never replaces one that a tool
// returned.
func Replaces(earlier, later *dragoman.ToolResult) bool {
	return !later.Synthetic || earlier.Synthetic
}

// abandonedText is part of the prompt: changing it changes what providers remember.
const abandonedText = "The call was abandoned: it has no result, and it is not known whether it ran."

// Abandoned is the result of a call that will never have one: an error, in
// words that are the same every time. Store it when a call is given up, so that
// what was sent once never changes.
func Abandoned(c *dragoman.ToolCall) *dragoman.ToolResult {
	text := abandonedText
	if c.Problem != nil && c.Problem.Message != "" {
		text = c.Problem.Message
	}
	res := c.Fail(text)
	res.Synthetic = true
	return res
}
