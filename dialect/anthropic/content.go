package anthropic

import (
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hasContent reports whether the data of a stream event contributes to the
// response. Pings, the start of a message or of an empty text or thinking
// block, and empty deltas do not. Data that cannot be parsed counts as content.
func hasContent(data []byte) bool {
	r := jsonwire.Borrow(data)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	kind, block, delta := "", true, true
	for name := range r.Object() {
		switch {
		case string(name) == "type" && r.Kind() == '"':
			kind = r.String()
		case string(name) == "content_block" && r.Kind() == '{':
			block = blockHasContent(r)
		case string(name) == "delta":
			delta = wirekit.HasText(r, "type")
		default:
			r.Skip()
		}
	}
	if r.End() != nil {
		return true
	}
	switch kind {
	case "", "ping", "message_start":
		return false
	case "content_block_start":
		return block
	case "content_block_delta":
		return delta
	default:
		return true
	}
}

// blockHasContent consumes the opening of a block.
func blockHasContent(r *jsonwire.Reader) bool {
	kind, text := "", false
	for name := range r.Object() {
		if string(name) == "type" && r.Kind() == '"' {
			kind = r.String()
		} else {
			text = wirekit.HasText(r) || text
		}
	}
	return text || kind != "text" && kind != "thinking"
}
