package wirekit_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

func understood(_ int, _ http.Header, body []byte) *dragoman.APIError {
	e := &dragoman.APIError{Class: dragoman.ErrorAuth, Message: string(body)}
	if body[0] == '{' {
		e.Native = &dragoman.Native{JSON: body}
	}
	return e
}

func TestNotAStreamQuotesTheResponse(t *testing.T) {
	page := "<html>\n\n" + strings.Repeat("x", 10_000)
	for name, tc := range map[string]struct{ body, message string }{
		"nothing":                   {"", ""},
		"blank lines":               {"\r\n\n", ""},
		"comments":                  {": ping\n\n", ""},
		"an event that was cut":     {"event: x\nda", ""},
		"a field without a colon":   {"\nretry", ""},
		"an error":                  {"\xef\xbb\xbf{\n \"id\": 1}\n", "{\n \"id\": 1}"},
		"a long error":              {"{" + strings.Repeat("x", 5000) + "}", `no event in the stream; it begins with "{` + strings.Repeat("x", 199) + `…"`},
		"a page":                    {page, `no event in the stream; it begins with "<html>\n\n` + strings.Repeat("x", 192) + `…"`},
		"a line that resembles one": {"database: gone", `no event in the stream; it begins with "database: gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 7, len(tc.body) + 1} {
				var n wirekit.NotAStream
				for rest := tc.body; rest != ""; {
					k := min(size, len(rest))
					n.Fed([]byte(rest[:k]))
					rest = rest[k:]
				}
				e := n.Failure(understood)
				if (e == nil) != (tc.message == "") || e != nil && e.Message != tc.message {
					t.Fatalf("pieces of %d: %+v", size, e)
				}
				if e != nil && !errors.Is(wirekit.Incomplete(e), dragoman.ErrIncompleteStream) {
					t.Errorf("%v is not incomplete", e)
				}
				if e != nil && e.Native != nil && e.Retryable() {
					t.Error("a reported error became retryable")
				}
				n.Event()
				if n.Failure(understood) != nil {
					t.Error("a stream is reported as a failure")
				}
			}
		})
	}
}
