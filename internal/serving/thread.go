package serving

import (
	"fmt"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Thread is what a request of Anthropic's language says of the conversation that its
// server keeps for it: nothing, that one begins, or which one goes on. Anthropic's own
// tool runners ask for it unless they are told that there is none.
type Thread struct {
	// Asked says that the server is to keep the conversation.
	Asked bool
	// Previous is the id of the message that it goes on with; empty: one begins.
	Previous string
}

// ReadThread reads the member "thread" of a request, at which the reader stands.
func ReadThread(r *jsonwire.Reader) (t Thread) {
	if r.Kind() != '{' {
		r.Skip()
		return t
	}
	t.Asked = true
	for key := range r.Object() {
		if string(key) == "previous_message_id" && r.Kind() == '"' {
			t.Previous = r.String()
		} else {
			r.Skip()
		}
	}
	return t
}

// NoThreads says that the server keeps no conversations. Anthropic's clients send the
// whole of it from then on.
func NoThreads() *dragoman.APIError {
	return threadError(http.StatusBadRequest, "invalid_request_error", "thread_unsupported_request",
		"thread: conversations are not kept here; send the whole of it without thread")
}

// NoThread says that the server does not know the message that a request goes on
// with. Anthropic's clients begin again with the whole conversation.
func NoThread(id string) *dragoman.APIError {
	return threadError(http.StatusNotFound, "not_found_error", "thread_not_found",
		fmt.Sprintf("thread: there is no message %.80q to go on with: it has expired, or was not kept; send the whole conversation", id))
}

// threadError is an error of Anthropic's own words: its clients know it by a code that
// no other language has a place for.
func threadError(status int, kind, code, message string) *dragoman.APIError {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "error")
	w.Key("error")
	w.BeginObject()
	w.StringField("type", kind)
	w.StringField("message", message)
	w.Key("details")
	w.BeginObject()
	w.StringField("error_code", code)
	w.EndObject()
	w.EndObject()
	w.EndObject()
	return anthropic.Codec{}.DecodeError(status, http.Header{}, w.Buf)
}
