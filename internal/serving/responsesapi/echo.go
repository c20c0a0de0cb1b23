package responsesapi

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// echoed lists the fields of a request that its response repeats. It does not contain
// "store": the server reports whether it stored the response.
var echoed = []string{
	"background", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id",
	"prompt_cache_key", "reasoning", "safety_identifier", "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "user",
}

// Echo returns the fields of a request that its response repeats, in the order of the
// request. Fields that are null are left out.
func Echo(body []byte) (out []dragoman.Field) {
	r := jsonwire.NewReader(body)
	for key := range r.Object() {
		name := string(key)
		if !slices.Contains(echoed, name) {
			r.Skip()
			continue
		}
		if value := completed(name, bytes.Clone(r.Raw())); string(value) != "null" {
			out = append(out, dragoman.Field{Path: "/" + name, Value: value})
		}
	}
	return out
}

// completed adds the fields to a value that it always has in a response, even if the request
// left them out.
func completed(name string, value []byte) []byte {
	switch name {
	case "reasoning":
		return jsonwire.Fill(value, jsonwire.Field{Name: "effort", Value: "null"}, jsonwire.Field{Name: "summary", Value: "null"})
	case "text":
		return jsonwire.Fill(jsonwire.EditField(value, "format", func(format []byte) []byte {
			if jsonwire.TypeOf(format) != "json_schema" {
				return format
			}
			return jsonwire.Fill(format, jsonwire.Field{Name: "description", Value: "null"}, jsonwire.Field{Name: "strict", Value: "false"})
		}), jsonwire.Field{Name: "format", Value: `{"type":"text"}`})
	case "tools":
		return jsonwire.EditEach(value, func(tool []byte) []byte {
			if jsonwire.TypeOf(tool) != "function" {
				return tool
			}
			return jsonwire.Fill(tool, jsonwire.Field{Name: "description", Value: "null"}, jsonwire.Field{Name: "parameters", Value: "null"}, jsonwire.Field{Name: "strict", Value: "null"})
		})
	default:
		return value
	}
}
