package dialect_test

import (
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// api is one of the three wire languages under test, with the independent
// reading of its answers.
type api struct {
	file  string // in shared/recorded
	live  string // its name in live_ollama.jsonl
	codec dialect.Codec
	// whole and stream read what an answer says with encoding/json alone.
	whole  func(body map[string]any) reading
	stream func(events []map[string]any, done bool) reading
}

func apis() []api {
	return []api{
		{"openai_chat", "openai.chat", openaichat.Codec{}, readChatWhole, readChatStream},
		{"openai_responses", "openai.responses", openairesponses.Codec{}, readResponsesWhole, readResponsesStream},
		{"anthropic_messages", "anthropic.messages", anthropic.Codec{}, readAnthropicWhole, readAnthropicStream},
	}
}
