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
}

// JSON is an error as it came from the dialect, to be passed on; nil for one of
// another dialect, one that was changed since, and one that readers could take
// for something else.
func (o OwnError) JSON(e *dragoman.APIError) []byte {
	if e.Native == nil || e.Native.Format != o.Format || !jsonwire.ReadsOneWay(e.Native.JSON) || o.answers(e.Native.JSON) {
		return nil
	}
	came := o.Decode(e.Status, nil, e.Native.JSON)
	// Some APIs tell the type in a header, which is not kept.
	if came == nil || came.Message != e.Message || came.Type != "" && came.Type != e.Type || came.Code != e.Code || came.Param != e.Param {
		return nil
	}
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
			name := string(jsonwire.Camel(key))
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
