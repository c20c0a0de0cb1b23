package gemini

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream's event carries something of the answer.
// A chunk with usage alone, or with empty parts and no reason to finish, does not. What
// cannot be read counts as content.
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
