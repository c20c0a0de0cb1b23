package dialect_test

import (
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// api is one of the six wire languages under test, with the independent
// reading of its answers.
type api struct {
	file  string // in shared/recorded
	live  string // its name in live_ollama.jsonl
	codec dialect.Codec
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
	return a.file == "openai_responses" || a.file == "anthropic_messages"
}

func apis() []api {
	return []api{
		{"openai_chat", "openai.chat", openaichat.Codec{}, readChatWhole, readChatStream, sseObjects, nil},
		{"openai_responses", "openai.responses", openairesponses.Codec{}, readResponsesWhole, readResponsesStream, sseObjects, nil},
		{"anthropic_messages", "anthropic.messages", anthropic.Codec{}, readAnthropicWhole, readAnthropicStream, sseObjects, nil},
		{"gemini_generateContent", "gemini.generate_content", gemini.Codec{}, readGeminiWhole, readGeminiStream, geminiObjects, geminiWritten},
		{"ollama_chat", "ollama.chat", ollama.Codec{}, readOllamaWhole, readOllamaStream, lineObjects, ollamaWritten},
		{"bedrock_converse", "bedrock.converse", bedrock.Codec{}, readBedrockWhole, readBedrockStream, frameObjects, bedrockWritten},
	}
}
