package wirekit

import (
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// OwnError says how a dialect knows an error of its own again.
type OwnError struct {
	Format dragoman.Format
	Decode func(status int, header http.Header, body []byte) *dragoman.APIError
	// Answer are the members of an answer. Beside an error they are read by some
	// clients all the same, so that nothing with one of them is passed on.
	Answer []string
	// Snake says that the dialect's readers take names in camelCase and in
	// snake_case for the same.
	Snake bool
}

// JSON is an error as it came from the dialect, to be passed on; nil for one of
// another dialect, one of which anything that the bytes say was changed since,
// and one that readers could take for something else. The bytes do not say the
// status of the answer: it is passed on beside them.
func (o OwnError) JSON(e *dragoman.APIError) []byte {
	if e.Native == nil || e.Native.Format != o.Format || !jsonwire.ReadsOneWay(e.Native.JSON) || o.answers(e.Native.JSON) {
		return nil
	}
	came := o.Decode(e.Status, nil, e.Native.JSON)
	if came == nil || came.Class != e.Class || came.Message != e.Message || came.Type != e.Type || came.Code != e.Code || came.Param != e.Param {
		return nil
	}
	// These two may have come in a header, which is not kept.
	if came.RequestID != "" && came.RequestID != e.RequestID || came.RetryAfter != 0 && came.RetryAfter != e.RetryAfter {
		return nil
	}
	return e.Native.JSON
}

// answers reports whether an error is no object, nor a list of some, or has a
// member of an answer in any spelling.
func (o OwnError) answers(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			name := string(key)
			if o.Snake {
				name = string(jsonwire.Camel(key))
			}
			if slices.ContainsFunc(o.Answer, func(member string) bool { return strings.EqualFold(member, name) }) {
				return true
			}
			r.Skip()
		}
		return r.End() != nil
	case '[':
		answers := false
		for range r.Array() {
			answers = o.answers(r.Raw()) || answers
		}
		return answers || r.End() != nil
	default:
		return true
	}
}
