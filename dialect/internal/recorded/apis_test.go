package recorded_test

import (
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// api is one of the wire languages with recorded traffic, and the independent
// reading of its answers.
type api struct {
	traffic.Source
	// whole and stream read what an answer says with encoding/json alone.
	whole  func(body map[string]any) reading
	stream func(events []map[string]any, done bool) reading
	// objects reads the events of a stream, with none of our code.
	objects func(body string) (events []map[string]any, done bool, err error)
	// written, where there is one, spells a request as a rebuilt one is spelt,
	// and counts why.
	written func(req map[string]any, why map[string]int)
}

// namesEvents reports whether the API's streams name the type of each event
// beside its data.
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
