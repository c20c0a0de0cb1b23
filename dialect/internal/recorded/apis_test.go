package recorded_test

import (
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// api is a wire format with recorded traffic and the independent reader of its
// responses.
type api struct {
	traffic.Source
	// whole and stream read a response with encoding/json alone.
	whole  func(body map[string]any) reading
	stream func(events []map[string]any, done bool) reading
	// objects reads the events of a stream without our code.
	objects func(body string) (events []map[string]any, done bool, err error)
	// written, if not nil, rewrites a recorded request to the form that a
	// rebuilt request has, and counts the reasons.
	written func(req map[string]any, why map[string]int)
}

// namesEvents reports whether the API's streams send an event name with each
// event's data.
func (a api) namesEvents() bool {
	return a.File == "openai_responses" || a.File == "anthropic_messages"
}

func apis() []api {
	return []api{
		{sourceOf("openai_chat"), readChatWhole, readChatStream, sseObjects, nil},
		{sourceOf("openai_responses"), readResponsesWhole, readResponsesStream, sseObjects, nil},
		{sourceOf("anthropic_messages"), readAnthropicWhole, readAnthropicStream, sseObjects, nil},
		{sourceOf("gemini_generateContent"), readGeminiWhole, readGeminiStream, geminiObjects, geminiWritten},
		{sourceOf("ollama_chat"), readOllamaWhole, readOllamaStream, lineObjects, ollamaWritten},
		{sourceOf("bedrock_converse"), readBedrockWhole, readBedrockStream, frameObjects, bedrockWritten},
	}
}
