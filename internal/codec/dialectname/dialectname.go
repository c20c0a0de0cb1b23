// Package dialectname defines the names of the dialects that packages of this module
// refer to.
package dialectname

import "github.com/dragoman-go/dragoman"

// The names of dialects.
const (
	OpenAIChat      dragoman.Dialect = "openai.chat_completions"
	OpenAIResponses dragoman.Dialect = "openai.responses"
	Anthropic       dragoman.Dialect = "anthropic.messages"
	Gemini          dragoman.Dialect = "gemini.generate_content"
	Ollama          dragoman.Dialect = "ollama.chat"
	Bedrock         dragoman.Dialect = "bedrock.converse"
)

// ManyVendors reports whether a dialect serves the models of several vendors, each with
// request fields of its own.
func ManyVendors(d dragoman.Dialect) bool { return d == Bedrock }
