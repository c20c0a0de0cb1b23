package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// checkMessages refuses a body without a message, which every server refuses: req has
// none, or none that the dialect has a place for.
func checkMessages(d dragoman.Dialect, req *dragoman.Request, body []byte) error {
	field := MessagesField(d)
	if continues(d, req) || hasElements(body, field) {
		return nil
	}
	return &FieldError{By: string(d), Field: FieldMessages, Detail: NoMessage(field), Err: dragoman.ErrInvalid}
}

// hasElements reports whether a field of a body is a list that is not empty, or no list,
// such as the text of an input. A body that is not an object is left to its reader.
func hasElements(body []byte, field string) bool {
	r := jsonwire.Borrow(body)
	defer r.Return()
	if r.Kind() != '{' {
		return true
	}
	for key := range r.Object() {
		if string(key) != field {
			r.Skip()
			continue
		}
		if r.Kind() != '[' {
			return true
		}
		for range r.Array() {
			return true
		}
	}
	return false
}

// continues reports whether a request goes on with a conversation that its server
// stores, or uses a prompt that it stores.
func continues(d dragoman.Dialect, req *dragoman.Request) bool {
	own := func(path string) bool {
		v, ok := extra.Get(req.Extra, d, path)
		return ok && string(v) != "null"
	}
	switch d {
	case dragoman.OpenAIResponses:
		return req.PreviousResponseID != "" || own("/conversation") || own("/prompt")
	case dragoman.Anthropic:
		return own("/thread")
	case dragoman.Ollama: // a request of its own without messages loads the model
		return req.Native.Current(d, req.Fingerprint)
	default:
		return false
	}
}
