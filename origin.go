package dragoman

import "encoding/json"

// Dialect names the wire language of one model API: "openai.chat_completions",
// "openai.responses", "anthropic.messages", "gemini.generate_content", "ollama.chat",
// "bedrock.converse" or "cohere.chat". The method Dialect of a codec returns its own. It is a
// plain string, so that others can add to the list.
type Dialect string

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

// Format names the wire shape of a tool schema, call or result: a dialect, and what the
// object is. These are built in; others may add theirs:
//
//	openai.chat_completions   .function  .custom  .function_call  .custom_call
//	openai.responses          .function  .custom  .namespace  .function_call  .custom_tool_call
//	anthropic.messages        .tool  .tool_use
//	gemini.generate_content   .function  .function_call
//	ollama.chat               .function  .tool_call
//	bedrock.converse          .tool_spec  .tool_use
//	mcp                       .tool
//
// Results have the name of their dialect alone.
type Format string

// Native is one wire object together with the name of its shape.
//
//stored:value native object
type Native struct {
	Format Format          `json:"format,omitzero"`
	JSON   json.RawMessage `json:"json,omitzero"`
}
