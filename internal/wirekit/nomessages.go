package wirekit

import (
	"bytes"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// CheckMessages refuses a body without a message, which every server refuses: req has
// none, or none that the dialect has a place for. A body whose only message is the one
// that opens a conversation for the user is refused too, unless there are instructions
// to answer.
func CheckMessages(d dragoman.Dialect, req *dragoman.Request, body []byte) error {
	if continues(d, req) || instructs(req) && d != dragoman.OpenAIResponses {
		return nil
	}
	field := "messages"
	switch d {
	case dragoman.OpenAIResponses:
		field = "input"
	case dragoman.Gemini:
		field = "contents"
	}
	if beginsWithMessage(body, field) && !bytes.Contains(body, []byte(opening)) {
		return nil
	}
	n, made := 0, false
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return nil
	}
	for key := range r.Object() {
		if string(key) != field {
			r.Skip()
			continue
		}
		if r.Kind() != '[' { // one message, such as the text of an input
			return nil
		}
		for range r.Array() {
			if n++; n > 1 {
				return nil
			}
			made = bytes.Contains(r.Raw(), []byte(opening))
		}
	}
	if n == 1 && (!made || userSpeaks(req)) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s would be empty: a request needs at least one message", d, dragoman.ErrInvalid, field)
}

// opening is the text of a message that opens a conversation for the user.
const opening = `"(conversation continues)"`

// beginsWithMessage reports that a list of messages is not empty, for a body in which only
// plain values precede it, as in most that our codecs write. It does not allocate.
func beginsWithMessage(body []byte, field string) bool {
	list := bytes.IndexByte(body, '[')
	if list < 0 || !bytes.HasPrefix(body[list:], []byte("[{")) || bytes.LastIndexByte(body[:list], '{') != 0 {
		return false
	}
	before, key := bytes.CutSuffix(body[:list], []byte(`":`))
	return key && len(before) > len(field)+1 && string(before[len(before)-len(field):]) == field && before[len(before)-len(field)-1] == '"'
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

// instructs reports whether a request has instructions, which a model can answer.
func instructs(req *dragoman.Request) bool {
	for i := range req.Messages {
		if r := req.Messages[i].Role; r == dragoman.RoleSystem || r == dragoman.RoleDeveloper {
			return true
		}
	}
	return len(req.Instructions) > 0
}

// userSpeaks reports whether the user says something.
func userSpeaks(req *dragoman.Request) bool {
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == dragoman.RoleUser && len(m.Parts) > 0 {
			return true
		}
	}
	return false
}
