package dragoman

import "encoding/json"

// Dialect names the wire language of one model API: one of the constants from
// [OpenAIChat] to [Bedrock], or one that others added.
type Dialect string

// The dialects known to this module. A Dialect is a plain string, so that
// others may add their own.
const (
	OpenAIChat      Dialect = "openai.chat_completions"
	OpenAIResponses Dialect = "openai.responses"
	Anthropic       Dialect = "anthropic.messages"
	Gemini          Dialect = "gemini.generate_content"
	Ollama          Dialect = "ollama.chat"
	Bedrock         Dialect = "bedrock.converse"
)

// Origin says what minted a thing: a call id, a signature, a reasoning block.
// An empty field is unknown, and unknown matches anything: a history that a
// client sends carries no more than its dialect.
//
//stored:value origin
type Origin struct {
	Dialect  Dialect `json:"dialect,omitzero"`
	Provider string  `json:"provider,omitzero"`
	// Scope is a keyed hash of endpoint and account; never the account itself.
	Scope string `json:"scope,omitzero"`
	Model string `json:"model,omitzero"`
}

// Match says which fields of an origin must agree before something minted by
// it may be replayed.
type Match uint8

// The fields a Match can ask for; combine them with |.
const (
	MatchDialect Match = 1 << iota
	MatchProvider
	MatchScope
	MatchModel
)

// Matches reports whether what o minted may be replayed to target, when the
// fields in m must agree. A nil origin was authored here and never matches.
func (o *Origin) Matches(target Origin, m Match) bool {
	if o == nil {
		return false
	}
	agree := func(bit Match, a, b string) bool { return m&bit == 0 || a == "" || b == "" || a == b }
	// The dialect is never unknown when it matters: an empty one is no match.
	if m&MatchDialect != 0 && o.Dialect != target.Dialect {
		return false
	}
	return agree(MatchProvider, o.Provider, target.Provider) &&
		agree(MatchScope, o.Scope, target.Scope) &&
		agree(MatchModel, o.Model, target.Model)
}

// Sidecar is the native JSON of a message, a tool, a request or a response,
// kept beside its canonical form. It is replayed byte for byte to the dialect
// it came from while Mirror still equals the fingerprint of the canonical
// form; a canonical value that was edited (redacted, compacted, corrected) no
// longer matches and is rebuilt.
//
//stored:value sidecar
type Sidecar struct {
	Dialect Dialect         `json:"dialect,omitzero"`
	Raw     json.RawMessage `json:"raw,omitzero"`
	Mirror  Fingerprint     `json:"mirror,omitzero"`
}

// Field is one native member that the canonical model has no place for. Path
// is a JSON pointer relative to the native object that held it.
//
//stored:value field
type Field struct {
	Path  string          `json:"path,omitzero"`
	Value json.RawMessage `json:"value,omitzero"`
}

// Extra holds the native members of an object that are not modelled, in wire
// order. They go back to their own dialect and are reported as lost toward
// every other one.
//
//stored:value extra
type Extra struct {
	Dialect Dialect `json:"dialect,omitzero"`
	Fields  []Field `json:"fields,omitzero"`
}

// For returns the fields that may be written in dialect d.
func (e *Extra) For(d Dialect) []Field {
	if e == nil || e.Dialect != d {
		return nil
	}
	return e.Fields
}

// Format names the shape of one tool object on a wire: a schema, a call or a
// result, such as "anthropic.messages.tool", which is [FormatAnthropicTool]. The
// constants whose names begin with Format are built in; others may add theirs.
type Format string

// The built-in schema formats.
const (
	FormatChatFunction       Format = "openai.chat_completions.function"
	FormatChatCustom         Format = "openai.chat_completions.custom"
	FormatResponsesFunction  Format = "openai.responses.function"
	FormatResponsesCustom    Format = "openai.responses.custom"
	FormatResponsesNamespace Format = "openai.responses.namespace"
	FormatAnthropicTool      Format = "anthropic.messages.tool"
	FormatGeminiFunction     Format = "gemini.generate_content.function"
	FormatOllamaFunction     Format = "ollama.chat.function"
	FormatBedrockTool        Format = "bedrock.converse.tool_spec"
	FormatMCPTool            Format = "mcp.tool"
)

// The built-in call formats.
const (
	FormatChatFunctionCall      Format = "openai.chat_completions.function_call"
	FormatChatCustomCall        Format = "openai.chat_completions.custom_call"
	FormatResponsesFunctionCall Format = "openai.responses.function_call"
	FormatResponsesCustomCall   Format = "openai.responses.custom_tool_call"
	FormatAnthropicToolUse      Format = "anthropic.messages.tool_use"
	FormatGeminiFunctionCall    Format = "gemini.generate_content.function_call"
	FormatOllamaToolCall        Format = "ollama.chat.tool_call"
	FormatBedrockToolUse        Format = "bedrock.converse.tool_use"
)

// The built-in result formats carry their dialect's name.
const (
	FormatChatResult      Format = Format(OpenAIChat)
	FormatResponsesResult Format = Format(OpenAIResponses)
	FormatAnthropicResult Format = Format(Anthropic)
	FormatGeminiResult    Format = Format(Gemini)
	FormatOllamaResult    Format = Format(Ollama)
	FormatBedrockResult   Format = Format(Bedrock)
)

// Native is one wire object together with the name of its shape.
//
//stored:value native object
type Native struct {
	Format Format          `json:"format,omitzero"`
	JSON   json.RawMessage `json:"json,omitzero"`
}
