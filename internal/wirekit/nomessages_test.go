package wirekit_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

func TestBodyWithoutAMessageIsRefused(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`:                                                false,
		`{"model":"m","messages":[]}`:                                                                              true,
		`{"model":"m"}`:                                                                                            true,
		`{"model":"m","tools":[{"examples":{"messages":[{}]}}],"messages":[]}`:                                     true,
		`{"model":"m","options":{"messages":[{"role":"user"}]},"messages":[]}`:                                     true,
		`{"model":"m[{","messages":[{"role":"user","content":"hi"}]}`:                                              false,
		`{"model":"m","old_messages":[{"role":"user"}],"messages":[]}`:                                             true,
		`{"model":"m","messages":[{"role":"user","content":"(conversation continues)"}]}`:                          true,
		`{"model":"m","messages":[{"role":"user","content":"(conversation continues)"},{"role":"assistant"}]}`:     false,
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"content":"(conversation continues)"}],"x":"}"}`: false,
	} {
		err := wirekit.CheckMessages(dragoman.OpenAIChat, &dragoman.Request{}, []byte(body))
		if refused != errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
