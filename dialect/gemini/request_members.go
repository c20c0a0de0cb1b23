package gemini

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// requestMembers are the members of a request that are read, in camel case.
var requestMembers = jsonwire.Known{
	"model": nil, "serviceTier": nil, "store": nil,
	"contents": turnMembers, "systemInstruction": turnMembers,
	"tools": {"functionDeclarations": {
		"name": nil, "description": nil, "parameters": nil, "parametersJsonSchema": nil, "response": nil, "responseJsonSchema": nil,
	}},
	"toolConfig": {"functionCallingConfig": {"mode": nil, "allowedFunctionNames": nil}},
	"generationConfig": {
		"temperature": nil, "topP": nil, "topK": nil, "candidateCount": nil, "maxOutputTokens": nil, "seed": nil,
		"presencePenalty": nil, "frequencyPenalty": nil, "stopSequences": nil,
		"responseMimeType": nil, "responseSchema": nil, "responseJsonSchema": nil,
		"thinkingConfig": {"includeThoughts": nil, "thinkingBudget": nil, "thinkingLevel": nil},
	},
}

var (
	mediaMembers = jsonwire.Known{"mimeType": nil, "data": nil, "fileUri": nil, "displayName": nil}
	turnMembers  = jsonwire.Known{"role": nil, "parts": {
		"text": nil, "thought": nil, "thoughtSignature": nil, "inlineData": mediaMembers, "fileData": mediaMembers,
		"functionCall": {"id": nil, "name": nil, "args": nil, "partialArgs": nil, "willContinue": nil},
		"functionResponse": {
			"id": nil, "name": nil, "response": nil, "parts": {"inlineData": mediaMembers, "fileData": mediaMembers},
		},
		"executableCode": nil, "codeExecutionResult": nil, "toolCall": nil, "toolResponse": nil,
	}}
)
