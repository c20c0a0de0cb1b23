package wirekit

import (
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// OwnError describes how a dialect recognizes its own errors.
type OwnError struct {
	Format dragoman.Format
	Decode func(status int, header http.Header, body []byte) *dragoman.APIError
	// ResponseFields lists the fields of a response. Some clients read them even next to an
	// error, so an error with one of them is not passed through.
	ResponseFields []string
	// Snake reports whether readers of the dialect treat camelCase and snake_case names
	// as the same.
	Snake bool
}

// JSON returns the original bytes of an error of this dialect, to pass through. It
// returns nil for
//
//   - an error of another dialect,
//   - an error that changed since it was decoded,
//   - an error that readers could misunderstand.
//
// The bytes do not contain the HTTP status; the caller passes it separately.
func (o OwnError) JSON(e *dragoman.APIError) []byte {
	if e.Native == nil || e.Native.Format != o.Format || !jsonwire.Unambiguous(e.Native.JSON) || o.isResponse(e.Native.JSON) {
		return nil
	}
	decoded := o.Decode(e.Status, nil, e.Native.JSON)
	if decoded == nil || decoded.Class != e.Class || decoded.Message != e.Message || decoded.Type != e.Type || decoded.Code != e.Code || decoded.Param != e.Param {
		return nil
	}
	// These two may have come in a header, which is not stored.
	if decoded.RequestID != "" && decoded.RequestID != e.RequestID || decoded.RetryAfter != 0 && decoded.RetryAfter != e.RetryAfter {
		return nil
	}
	return e.Native.JSON
}

// isResponse reports whether an error is neither an object nor a list of objects, or has a
// field of a response in any spelling.
func (o OwnError) isResponse(raw []byte) bool {
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			name := string(key)
			if o.Snake {
				name = string(jsonwire.Camel(key))
			}
			if slices.ContainsFunc(o.ResponseFields, func(field string) bool { return strings.EqualFold(field, name) }) {
				return true
			}
			r.Skip()
		}
		return r.End() != nil
	case '[':
		found := false
		for range r.Array() {
			found = o.isResponse(r.Raw()) || found
		}
		return found || r.End() != nil
	default:
		return true
	}
}
