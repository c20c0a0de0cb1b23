package traffic

import (
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// Source is a wire format with recorded traffic.
type Source struct {
	File  string // file of its traffic
	Live  string // its name in live_ollama.jsonl
	path  string // suffix of its request paths
	Codec dialect.Codec
}

// Sources returns the wire formats with recorded traffic.
func Sources() []Source {
	return []Source{
		{"openai_chat", "openai.chat", "/chat/completions", openaichat.Codec{}},
		{"openai_responses", "openai.responses", "/responses", openairesponses.Codec{}},
		{"anthropic_messages", "anthropic.messages", "/messages", anthropic.Codec{}},
		{"gemini_generateContent", "gemini.generate_content", "enerateContent", gemini.Codec{}},
		{"ollama_chat", "ollama.chat", "/api/chat", ollama.Codec{}},
		{"bedrock_converse", "bedrock.converse", "/converse", bedrock.Codec{}},
	}
}
