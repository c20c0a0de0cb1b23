package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Conversation describes where a dialect has the messages of a request.
type Conversation struct {
	// Field is the field of the body.
	Field string
	// Continues reports whether a request needs no messages: its server stores the
	// conversation or the prompt. Nil means that every request needs one.
	Continues func(*dragoman.Request) bool
}

// checkMessages refuses a body without a message, as every server does. Either req has no
// message, or the dialect cannot express any of them.
func checkMessages(d dragoman.Dialect, c Conversation, req *dragoman.Request, body []byte) error {
	if c.Continues != nil && c.Continues(req) || hasElements(body, c.Field) {
		return nil
	}
	return &FieldError{By: string(d), Field: FieldMessages, Detail: NoMessage(c.Field), Err: dragoman.ErrInvalid}
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

// Refers reports whether a request has a field of its own dialect d that is not null.
func Refers(req *dragoman.Request, d dragoman.Dialect, path string) bool {
	v, ok := extra.Get(req.Extra, d, path)
	return ok && string(v) != "null"
}
