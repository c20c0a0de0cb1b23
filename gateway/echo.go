package gateway

import (
	"bytes"
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
		if value := bytes.Clone(r.Raw()); string(value) != "null" && name != "/store" {
			out.Fields = append(out.Fields, dragoman.Field{Path: name, Value: value})
		}
	}
	kept := []byte("false")
	if x.stores() {
		kept = []byte("true")
	}
	out.Fields = append(out.Fields, dragoman.Field{Path: "/store", Value: kept})
	return out
}
