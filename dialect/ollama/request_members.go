package ollama

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read. The server is
// written in Go and ignores their case.
var requestMembers = jsonwire.Known{
	"model": nil, "format": nil, "stream": nil, "think": nil,
	"messages": {
		"role": nil, "content": nil, "thinking": nil, "images": nil, "tool_name": nil, "tool_call_id": nil,
		"tool_calls": {"id": nil, "type": nil, "function": {"name": nil, "arguments": nil}},
	},
	"tools": {"type": nil, "function": {"name": nil, "description": nil, "parameters": nil}},
	"options": {
		"temperature": nil, "top_p": nil, "top_k": nil, "frequency_penalty": nil, "presence_penalty": nil,
		"seed": nil, "num_predict": nil, "stop": nil,
	},
}
