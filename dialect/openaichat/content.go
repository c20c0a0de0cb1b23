package openaichat

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream event carries part of the response. A chunk
// that only starts the response, repeats the role or an empty text, or has neither a choice nor
// usage is a heartbeat. Data that cannot be parsed counts as content.
func hasContent(data []byte) bool {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	content, choices, usage := false, false, false
	for name := range r.Object() {
		switch string(name) {
		case "choices":
			if r.Kind() != '[' {
				r.Skip()
				continue
			}
			for range r.Array() {
				choices = true
				content = choiceHasContent(r) || content
			}
		case "usage":
			usage = r.Kind() == '{'
			r.Skip()
		case "error":
			content = r.Kind() != 'n' || content
			r.Skip()
		default:
			r.Skip()
		}
	}
	return content || usage && !choices || r.End() != nil
}

// choiceHasContent consumes a choice and reports whether it has content.
func choiceHasContent(r *jsonwire.Reader) (content bool) {
	if r.Kind() != '{' {
		r.Skip()
		return false
	}
	for name := range r.Object() {
		switch string(name) {
		case "delta", "message":
			content = wirekit.HasText(r, "role") || content
		case "text", "finish_reason":
			content = wirekit.HasText(r) || content
		default:
			r.Skip()
		}
	}
	return content
}
