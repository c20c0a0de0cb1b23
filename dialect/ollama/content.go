package ollama

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether a line of a stream carries part of the response. A line with an
// empty message that is not the last one does not. A line that cannot be parsed counts as
// content.
func hasContent(data []byte) bool {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	content := false
	for name := range r.Object() {
		switch {
		case string(name) == "message":
			content = wirekit.HasText(r, "role") || content
		case string(name) == "done" && r.Kind() == 't', string(name) == "error" && r.Kind() != 'n':
			content = true
			r.Skip()
		default:
			r.Skip()
		}
	}
	return content || r.End() != nil
}
