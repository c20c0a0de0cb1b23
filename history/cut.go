package history

import (
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// CutPoints returns where a conversation may be trimmed: each number is a
// message that may become the first one, because no call before it is answered
// behind it and no turn is cut in two (quirk D10). The first message is always
// one of them. A message of the user's that starts a new exchange is the best
// one to take; the list holds others too, for long exchanges. Of messages that
// no wire could express there is no other.
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
	n := normaliser{ms: make([]draft, len(messages)), lists: newLists()}
	for i := range messages {
		n.ms[i] = draft{Message: messages[i], from: i}
	}
	n.pair()
	var points []int
	reach := 0 // the last message that answers what came so far
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
			case s.turn == n.turns[len(n.turns)-1]: // its answer may still come
				reach = len(messages)
			}
		}
	}
	return points
}

// onlyAttachments reports whether nothing is wrong with messages but that their
// attachments are still references, which does not matter for where to cut.
func onlyAttachments(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !errors.Is(e, dragoman.ErrAttachment) })
}
