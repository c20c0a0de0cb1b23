package openairesponses

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read.
var requestMembers = jsonwire.Known{
	"model": nil, "instructions": nil, "include": nil, "max_output_tokens": nil, "temperature": nil, "top_p": nil,
	"store": nil, "previous_response_id": nil, "metadata": nil, "safety_identifier": nil, "user": nil,
	"prompt_cache_key": nil, "service_tier": nil, "stream": nil, "parallel_tool_calls": nil,
	"text":        {"verbosity": nil, "format": {"type": nil, "name": nil, "description": nil, "schema": nil, "strict": nil}},
	"reasoning":   {"effort": nil, "summary": nil},
	"tool_choice": {"type": nil, "name": nil, "mode": nil, "tools": {"type": nil, "name": nil}},
	"tools": {
		"type": nil, "name": nil, "description": nil, "parameters": nil, "strict": nil, "format": grammar,
		"defer_loading": nil, "output_schema": nil,
		"tools": {
			"type": nil, "name": nil, "description": nil, "parameters": nil, "strict": nil, "format": grammar,
			"defer_loading": nil, "output_schema": nil,
		},
	},
	"input": {
		"type": nil, "id": nil, "call_id": nil, "name": nil, "namespace": nil, "arguments": nil, "input": nil,
		"status": nil, "role": nil, "phase": nil, "encrypted_content": nil, "async": nil, "caller": nil,
		"approval_request_id": nil, "execution": nil, "summary": contentMembers, "content": contentMembers, "output": contentMembers,
	},
}

var (
	grammar = jsonwire.Known{
		"type": nil, "syntax": nil, "definition": nil, "grammar": {"syntax": nil, "definition": nil},
	}
	contentMembers = jsonwire.Known{
		"type": nil, "text": nil, "refusal": nil, "image_url": nil, "file_data": nil, "file_url": nil, "file_id": nil,
		"filename": nil, "detail": nil, "prompt_cache_breakpoint": {"ttl": nil},
	}
)
