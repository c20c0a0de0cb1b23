package openairesponses

import (
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream event carries part of the response. Events that
// only start a response, a message or reasoning, keepalives and empty deltas do not. Data that
// cannot be parsed counts as content.
func hasContent(data []byte) bool {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	kind, item, part, delta := "", "", false, true
	for name := range r.Object() {
		switch {
		case string(name) == "type" && r.Kind() == '"':
			kind = r.String()
		case string(name) == "item" && r.Kind() == '{':
			item = typeOf(r)
		case string(name) == "part":
			part = wirekit.HasText(r, "type")
		case string(name) == "delta":
			delta = wirekit.HasText(r)
		default:
			r.Skip()
		}
	}
	if r.End() != nil {
		return true
	}
	switch kind {
	case "", "ping", "keepalive", "heartbeat", "response.created", "response.in_progress", "response.queued":
		return false
	case "response.output_item.added":
		return item != "message" && item != "reasoning"
	case "response.content_part.added", "response.reasoning_summary_part.added":
		return part
	default:
		return delta || !strings.HasSuffix(kind, ".delta")
	}
}

// typeOf consumes an object and returns its type.
func typeOf(r *jsonwire.Reader) (kind string) {
	for name := range r.Object() {
		if string(name) == "type" && r.Kind() == '"' {
			kind = r.String()
		} else {
			r.Skip()
		}
	}
	return kind
}
