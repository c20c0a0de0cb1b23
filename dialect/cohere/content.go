package cohere

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream event contributes to the
// response. Starts and ends of blocks do not, except the start of a call, which
// has its name. Data that cannot be parsed counts as content.
func hasContent(data []byte) bool {
	switch typeOf(data, "") {
	case eventStart, eventTextEnd, eventCallEnd, eventCited:
		return false
	case eventContent, eventText, eventPlan, eventArguments:
	default:
		return true
	}
	r := jsonwire.Borrow(data)
	defer r.Return()
	content := false
	for key := range r.Object() {
		if string(key) == "delta" && r.Kind() == '{' {
			content = wirekit.HasText(r, "role", "type") || content
		} else {
			r.Skip()
		}
	}
	return content || r.End() != nil
}
