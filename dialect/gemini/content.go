package gemini

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream event contributes to the
// response. A chunk that only has usage, or only empty parts and no finish
// reason, does not. Data that cannot be parsed counts as content.
func hasContent(data []byte) bool {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	content := false
	for name := range r.Object() {
		switch string(name) {
		case "candidates":
			content = wirekit.HasText(r, "role", "safetyRatings", "avgLogprobs") || content
		case "promptFeedback":
			content = wirekit.HasText(r, "safetyRatings") || content
		case "error":
			content = r.Kind() != 'n' || content
			r.Skip()
		default:
			r.Skip()
		}
	}
	return content || r.End() != nil
}
