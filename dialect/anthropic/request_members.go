package anthropic

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read.
var requestMembers = jsonwire.Known{
	"model": nil, "max_tokens": nil, "stop_sequences": nil, "temperature": nil, "top_p": nil, "top_k": nil,
	"stream": nil, "service_tier": nil, "metadata": {"user_id": nil}, "cache_control": marker,
	"system": messageBlock, "messages": {"role": nil, "content": messageBlock},
	"tools": {
		"type": nil, "name": nil, "description": nil, "input_schema": nil, "strict": nil,
		"defer_loading": nil, "input_examples": nil, "cache_control": marker,
	},
	"tool_choice":   {"type": nil, "name": nil, "disable_parallel_tool_use": nil},
	"thinking":      {"type": nil, "budget_tokens": nil, "display": nil},
	"output_config": {"effort": nil, "format": outputFormat}, "output_format": outputFormat,
}

var (
	marker       = jsonwire.Known{"type": nil, "ttl": nil}
	outputFormat = jsonwire.Known{"type": nil, "schema": nil}
	mediaSource  = jsonwire.Known{"type": nil, "media_type": nil, "data": nil, "url": nil, "file_id": nil}
	// messageBlock are the members of all kinds of blocks.
	messageBlock = jsonwire.Known{
		"type": nil, "text": nil, "thinking": nil, "signature": nil, "data": nil, "cache_control": marker,
		"id": nil, "name": nil, "input": nil, "caller": nil, "source": mediaSource, "title": nil,
		"tool_use_id": nil, "is_error": nil,
		"content": {"type": nil, "text": nil, "source": mediaSource, "title": nil, "cache_control": marker},
	}
)
