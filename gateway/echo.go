package gateway

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
)

// echo returns the fields of a Responses request that its response repeats, and whether
// the response is stored.
func (x *exchange) echo() *dragoman.Extra {
	out := &dragoman.Extra{Dialect: x.codec.Dialect()}
	out.Fields = slices.DeleteFunc(responsesapi.Echo(x.body), func(f dragoman.Field) bool { return x.overridden(f.Path) })
	out.Fields = append(out.Fields, x.overrides()...)
	if x.conversation.id != "" {
		out.Fields = append(out.Fields, dragoman.Field{Path: "/conversation", Value: fmt.Appendf(nil, `{"id":%q}`, x.conversation.id)})
	}
	kept := []byte("false")
	if x.stores() && !x.unkept {
		kept = []byte("true")
	}
	out.Fields = append(out.Fields, dragoman.Field{Path: "/store", Value: kept})
	return out
}

// overrides are the echoed settings that the route sets in place of the client's.
func (x *exchange) overrides() (out []dragoman.Field) {
	if t := x.route.Set.Temperature; t != nil {
		out = append(out, dragoman.Field{Path: "/temperature", Value: json.RawMessage(*t)})
	}
	if p := x.route.Set.TopP; p != nil {
		out = append(out, dragoman.Field{Path: "/top_p", Value: json.RawMessage(*p)})
	}
	return out
}

// overridden reports whether the route sets an echoed field.
func (x *exchange) overridden(path string) bool {
	return slices.ContainsFunc(x.overrides(), func(f dragoman.Field) bool { return f.Path == path })
}
