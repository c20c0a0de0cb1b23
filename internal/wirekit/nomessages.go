package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// checkMessages refuses a body without a message, as every server does. Either req has no
// message, or the dialect cannot express any of them.
func checkMessages(d dragoman.Dialect, req *dragoman.Request, body []byte) error {
	field := MessagesField(d)
	if continues(d, req) || hasElements(body, field) {
		return nil
	}
	return &FieldError{By: string(d), Field: FieldMessages, Detail: NoMessage(field), Err: dragoman.ErrInvalid}
}

// hasElements reports whether a field of a body is a non-empty list, or not a list, such as
// a text input. It returns true for a body that is not an object; another check reports
// that.
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
