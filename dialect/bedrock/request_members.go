package bedrock

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read.
var requestMembers = jsonwire.Known{
	"modelId": nil, "model": nil, "system": messageBlock, "messages": {"role": nil, "content": messageBlock},
	"inferenceConfig": {"maxTokens": nil, "temperature": nil, "topP": nil, "stopSequences": nil},
	"toolConfig": {
		"tools": {
			"toolSpec":   {"name": nil, "description": nil, "inputSchema": {"json": nil}, "strict": nil},
			"systemTool": {"name": nil}, "cachePoint": cacheMembers,
		},
		"toolChoice": {"auto": nil, "any": nil, "tool": {"name": nil}},
	},
	"outputConfig": {
		"effort":     nil,
		"textFormat": {"type": nil, "structure": {"jsonSchema": {"schema": nil, "name": nil, "description": nil}}},
	},
	"additionalModelRequestFields": {"thinking": {"type": nil, "budget_tokens": nil, "display": nil}},
	"requestMetadata":              nil, "serviceTier": {"type": nil},
}

var (
	cacheMembers = jsonwire.Known{"type": nil, "ttl": nil}
	mediaMembers = jsonwire.Known{
		"format": nil, "name": nil, "source": {"bytes": nil, "text": nil, "s3Location": {"uri": nil}},
	}
	// messageBlock are the members of all kinds of blocks.
	messageBlock = jsonwire.Known{
		"text": nil, "image": mediaMembers, "document": mediaMembers, "video": mediaMembers, "audio": mediaMembers,
		keyCall: {"toolUseId": nil, "name": nil, "input": nil, "type": nil},
		keyResult: {
			"toolUseId": nil, "status": nil,
			"content": {
				"text": nil, "json": nil, "image": mediaMembers, "document": mediaMembers, "video": mediaMembers, "audio": mediaMembers,
			},
		},
		keyReasoning: {"reasoningText": {"text": nil, "signature": nil}, "redactedContent": nil},
		keyCache:     cacheMembers, "citationsContent": {"content": {"text": nil}, "citations": nil},
		"guardContent": nil, "searchResult": nil, "toolAddition": nil, "toolRemoval": nil,
	}
)
