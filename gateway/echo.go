package gateway

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// echoFields returns the fields of a Responses request that its response repeats, and whether
// the response is stored.
func (x *exchange) echoFields() *dragoman.Extra {
	out := &dragoman.Extra{Dialect: x.codec.Dialect()}
	out.Fields = slices.DeleteFunc(responsesapi.Echo(x.body), func(f dragoman.Field) bool { return x.isOverridden(f.Path) })
	out.Fields = append(out.Fields, x.overriddenFields()...)
	if x.conversation.id != "" {
		out.Fields = append(out.Fields, dragoman.Field{Path: "/conversation", Value: fmt.Appendf(nil, `{"id":%q}`, x.conversation.id)})
	}
	stored := []byte("false")
	if x.storesResponse() && !x.notStored {
		stored = []byte("true")
	}
	out.Fields = append(out.Fields, dragoman.Field{Path: "/store", Value: stored})
	return out
}

// overriddenFields are the echoed settings that the route sets in place of the client's.
func (x *exchange) overriddenFields() (out []dragoman.Field) {
	if t := x.route.Set.Temperature; t != nil {
		out = append(out, dragoman.Field{Path: "/temperature", Value: json.RawMessage(*t)})
	}
	if p := x.route.Set.TopP; p != nil {
		out = append(out, dragoman.Field{Path: "/top_p", Value: json.RawMessage(*p)})
	}
	return out
}

// isOverridden reports whether the route sets an echoed field.
func (x *exchange) isOverridden(path string) bool {
	return slices.ContainsFunc(x.overriddenFields(), func(f dragoman.Field) bool { return f.Path == path })
}
