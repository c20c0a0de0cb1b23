package openaichat

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read.
var requestMembers = jsonwire.Known{
	"model": nil, "messages": messageMembers, "tools": toolMembers, "functions": toolMembers["function"],
	"tool_choice": {
		"type": nil, "name": nil, "function": named, "custom": named,
		"allowed_tools": {"mode": nil, "tools": {"type": nil, "function": named, "custom": named}},
	},
	"function_call": named, "parallel_tool_calls": nil,
	"response_format":       {"type": nil, "json_schema": {"name": nil, "description": nil, "schema": nil, "strict": nil}},
	"max_completion_tokens": nil, "max_tokens": nil, "reasoning_effort": nil, "verbosity": nil,
	"stream": nil, "stream_options": {"include_usage": nil},
	"temperature": nil, "top_p": nil, "top_k": nil, "frequency_penalty": nil, "presence_penalty": nil,
	"seed": nil, "n": nil, "stop": nil, "store": nil, "metadata": nil, "service_tier": nil,
	"prompt_cache_key": nil, "safety_identifier": nil, "user": nil,
}

var (
	named       = jsonwire.Known{"name": nil}
	toolMembers = jsonwire.Known{
		"type":     nil,
		"function": {"name": nil, "description": nil, "parameters": nil, "strict": nil},
		"custom":   {"name": nil, "description": nil, "format": grammar},
	}
	grammar = jsonwire.Known{
		"type": nil, "syntax": nil, "definition": nil, "grammar": {"syntax": nil, "definition": nil},
	}
	messageMembers = jsonwire.Known{
		"role": nil, "name": nil, "refusal": nil, "tool_call_id": nil, "content": partMembers,
		"tool_calls": {
			"id": nil, "type": nil, "function": calledMembers, "custom": {"name": nil, "input": nil},
		},
		"function_call":     calledMembers,
		"reasoning_content": nil, "reasoning": nil, "reasoning_text": nil,
		"reasoning_details": {"type": nil, "text": nil, "summary": nil, "data": nil},
	}
	calledMembers = jsonwire.Known{"name": nil, "arguments": nil}
	partMembers   = jsonwire.Known{
		"type": nil, "text": nil, "refusal": nil, "thinking": nil,
		"image_url": {"url": nil, "detail": nil}, "video_url": {"url": nil},
		"input_audio":   {"data": nil, "format": nil},
		"file":          {"filename": nil, "file_data": nil, "file_id": nil},
		"cache_control": {"type": nil, "ttl": nil}, "prompt_cache_breakpoint": {"ttl": nil},
	}
)
