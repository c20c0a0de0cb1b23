// Package toolformat names the formats of tool objects that the dialects of this module
// read and write.
package toolformat

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// The schema formats.
const (
	ChatFunction       dragoman.Format = "openai.chat_completions.function"
	ChatCustom         dragoman.Format = "openai.chat_completions.custom"
	ResponsesFunction  dragoman.Format = "openai.responses.function"
	ResponsesCustom    dragoman.Format = "openai.responses.custom"
	ResponsesNamespace dragoman.Format = "openai.responses.namespace"
	AnthropicTool      dragoman.Format = "anthropic.messages.tool"
	GeminiFunction     dragoman.Format = "gemini.generate_content.function"
	OllamaFunction     dragoman.Format = "ollama.chat.function"
	BedrockTool        dragoman.Format = "bedrock.converse.tool_spec"
	MCPTool            dragoman.Format = "mcp.tool"
)

// The call formats.
const (
	ChatFunctionCall      dragoman.Format = "openai.chat_completions.function_call"
	ChatCustomCall        dragoman.Format = "openai.chat_completions.custom_call"
	ResponsesFunctionCall dragoman.Format = "openai.responses.function_call"
	ResponsesCustomCall   dragoman.Format = "openai.responses.custom_tool_call"
	AnthropicToolUse      dragoman.Format = "anthropic.messages.tool_use"
	GeminiFunctionCall    dragoman.Format = "gemini.generate_content.function_call"
	OllamaToolCall        dragoman.Format = "ollama.chat.tool_call"
	BedrockToolUse        dragoman.Format = "bedrock.converse.tool_use"
)

// The result formats carry their dialect's name.
const (
	ChatResult      = dragoman.Format(dialectname.OpenAIChat)
	ResponsesResult = dragoman.Format(dialectname.OpenAIResponses)
	AnthropicResult = dragoman.Format(dialectname.Anthropic)
	GeminiResult    = dragoman.Format(dialectname.Gemini)
	OllamaResult    = dragoman.Format(dialectname.Ollama)
	BedrockResult   = dragoman.Format(dialectname.Bedrock)
)
