package wirekit

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

func TestBodyWithoutMessagesIsRefused(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`:            false,
		`{"model":"m","messages":[]}`:                                          true,
		`{"model":"m","messages":"one"}`:                                       false,
		`{"model":"m"}`:                                                        true,
		`{"model":"m","tools":[{"examples":{"messages":[{}]}}],"messages":[]}`: true,
		`{"model":"m","options":{"messages":[{"role":"user"}]},"messages":[]}`: true,
		`{"model":"m[{","messages":[{"role":"user","content":"hi"}]}`:          false,
		`{"model":"m","old_messages":[{"role":"user"}],"messages":[]}`:         true,
	} {
		err := checkMessages("d", Conversation{Field: "messages"}, &dragoman.Request{}, []byte(body))
		if refused != errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
