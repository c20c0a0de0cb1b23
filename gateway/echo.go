package gateway

import (
	"bytes"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// echoed are the members of a request to Responses that the response says again, for
// clients that read there what was asked for.
var echoed = []string{
	"background", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id",
	"prompt_cache_key", "reasoning", "safety_identifier", "store", "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "user",
}

// echo is what of a request to Responses its response says again. A response that is
// kept says so.
func (x *exchange) echo() *dragoman.Extra {
	out := &dragoman.Extra{Dialect: dragoman.OpenAIResponses}
	r := jsonwire.NewReader(x.body)
	for key := range r.Object() {
		if !slices.Contains(echoed, string(key)) {
			r.Skip()
			continue
		}
		name := "/" + string(key)
		if value := completed(name, bytes.Clone(r.Raw())); string(value) != "null" && name != "/store" && !x.overridden(name) {
			out.Fields = append(out.Fields, dragoman.Field{Path: name, Value: value})
		}
	}
	for _, o := range x.overrides() {
		out.Fields = append(out.Fields, dragoman.Field{Path: o.name, Value: []byte(o.value)})
	}
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
func (x *exchange) overrides() (out []missing) {
	if t := x.route.Set.Temperature; t != nil {
		out = append(out, missing{"/temperature", string(*t)})
	}
	if p := x.route.Set.TopP; p != nil {
		out = append(out, missing{"/top_p", string(*p)})
	}
	return out
}

// overridden reports whether the route sets an echoed field.
func (x *exchange) overridden(path string) bool {
	return slices.ContainsFunc(x.overrides(), func(m missing) bool { return m.name == path })
}

// completed is a member of a request with what a response always says of it, also
// where the request left it out.
func completed(name string, value []byte) []byte {
	switch name {
	case "/reasoning":
		return filled(value, missing{"effort", "null"}, missing{"summary", "null"})
	case "/text":
		return filled(within(value, "format", func(format []byte) []byte {
			if typeOf(format) != "json_schema" {
				return format
			}
			return filled(format, missing{"description", "null"}, missing{"strict", "false"})
		}), missing{"format", `{"type":"text"}`})
	case "/tools":
		return eachOf(value, func(tool []byte) []byte {
			if typeOf(tool) != "function" {
				return tool
			}
			return filled(tool, missing{"description", "null"}, missing{"parameters", "null"}, missing{"strict", "null"})
		})
	default:
		return value
	}
}

// missing is a member that an object gets where it has none of the name.
type missing struct{ name, value string }

// filled is an object with all of its members; anything else stays what it is.
func filled(object []byte, members ...missing) []byte {
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	var w jsonwire.Writer
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		members = slices.DeleteFunc(slices.Clone(members), func(m missing) bool { return m.name == name })
		w.RawField(name, r.Raw())
	}
	for _, m := range members {
		w.RawField(m.name, []byte(m.value))
	}
	w.EndObject()
	return w.Buf
}

// within is an object with one of its members changed.
func within(object []byte, name string, change func([]byte) []byte) []byte {
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	var w jsonwire.Writer
	w.BeginObject()
	for key := range r.Object() {
		member := string(key)
		value := r.Raw()
		if member == name {
			value = change(value)
		}
		w.RawField(member, value)
	}
	w.EndObject()
	return w.Buf
}

// eachOf is a list with all of its elements changed.
func eachOf(list []byte, change func([]byte) []byte) []byte {
	r := jsonwire.NewReader(list)
	if r.Kind() != '[' {
		return list
	}
	out := []byte{'['}
	for range r.Array() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, change(r.Raw())...)
	}
	return append(out, ']')
}

// typeOf is the type that an object says it is of.
func typeOf(object []byte) (name string) {
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			name = r.String()
		} else {
			r.Skip()
		}
	}
	return name
}
