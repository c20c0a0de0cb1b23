package losses_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// The role of a message decides what its text may do, so it must be known. Without a role, a
// message is an error, or a user message if the API defines it so.
func TestR7_MissingOrMistypedRole(t *testing.T) {
	type want struct{ absent, mistyped string } // pointer of the error; empty means that the role is user
	for d, tc := range map[dragoman.Dialect]struct {
		before, after string
		want          want
	}{
		dialectname.Anthropic: {`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a"},{`, `"content":"x"}]}`, want{"/messages/1/role", "/messages/1/role"}},
		dialectname.Bedrock:   {`{"messages":[{"role":"user","content":[{"text":"a"}]},{`, `"content":[{"text":"x"}]}]}`, want{"/messages/1/role", "/messages/1/role"}},
		dialectname.Gemini:    {`{"contents":[{"role":"user","parts":[{"text":"a"}]},{`, `"parts":[{"text":"x"}]}]}`, want{"", "/contents/1/role"}},
		"cohere.chat":         {`{"model":"m","messages":[{"role":"user","content":"a"},{`, `"content":"x"}]}`, want{"/messages/1/role", "/messages/1/role"}},
		dialectname.Ollama:    {`{"model":"m","messages":[{"role":"user","content":"a"},{`, `"content":"x"}]}`, want{"", "/messages/1/role"}},
	} {
		for role, at := range map[string]string{
			``: tc.want.absent, `"role":null,`: tc.want.absent, `"role":"",`: tc.want.absent,
			`"role":5,`: tc.want.mistyped, `"role":{"a":1},`: tc.want.mistyped, `"role":["user"],`: tc.want.mistyped,
		} {
			req, _, err := crosstest.CodecOf(d).DecodeRequest([]byte(tc.before+role+tc.after), dialect.DecodeOptions{})
			if at == "" {
				if err != nil || req.Messages[1].Role != dragoman.RoleUser {
					t.Errorf("%s %s: %v", d, role, err)
				}
				continue
			}
			var e *dragoman.DecodeError
			if !errors.As(err, &e) || e.Pointer != at {
				t.Errorf("%s %s: %v, want an error at %s", d, role, err, at)
			}
		}
	}
}
