package history

import (
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// CutPoints returns the indexes at which a conversation may be trimmed. Each is a message that may
// become the first one: no call before it has a result after it, and no turn is split (quirk D10).
//
//   - Index 0 is always included.
//   - A user message that starts a new exchange is the best choice. Other points are included
//     for long exchanges.
//   - For messages that no dialect can express, the result is only 0.
//
// To keep the end of a conversation that fits a budget:
//
//	for _, at := range history.CutPoints(messages) {
//		if size(messages[at:]) <= budget {
//			messages = messages[at:]
//			break
//		}
//	}
func CutPoints(messages []dragoman.Message) []int {
	if err := (&dragoman.Request{Messages: messages}).Validate(); err != nil && !onlyAttachments(err) {
		return []int{0}
	}
	n := normalizer{ms: make([]draft, len(messages)), lists: newLists()}
	for i := range messages {
		n.ms[i] = draft{Message: messages[i], from: i}
	}
	n.pair()
	var points []int
	reach := 0 // index of the last message with a result for a call so far
	for i := range messages {
		inRun := i > 0 && n.ms[i].assistant() && n.ms[i-1].assistant()
		if (i == 0 || i > reach) && !inRun {
			points = append(points, i)
		}
		for j := range n.ms[i].Parts {
			s := n.ms[i].slot(j)
			switch {
			case s == nil || s.free:
			case s.last != nil:
				reach = max(reach, s.last.msg)
			case s.turn == n.turns[len(n.turns)-1]: // its result may still come
				reach = len(messages)
			}
		}
	}
	return points
}

// onlyAttachments reports whether the messages are valid except for unresolved
// attachment references, which do not affect cut points.
func onlyAttachments(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !errors.Is(e, dragoman.ErrAttachment) })
}
