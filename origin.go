package dragoman

import "encoding/json"

// Dialect names the wire format of one model API: "openai.chat_completions",
// "openai.responses", "anthropic.messages", "gemini.generate_content", "ollama.chat",
// "bedrock.converse" or "cohere.chat". A codec's Dialect method returns its name. It is a plain
// string, so that other packages can define more.
type Dialect string

// Origin identifies the model API that produced a value such as a call id, a signature or a
// reasoning block. An empty field is unknown and matches anything, because a history that a
// client sends identifies only its dialect.
//
//stored:value origin
type Origin struct {
	Dialect  Dialect `json:"dialect,omitzero"`
	Provider string  `json:"provider,omitzero"`
	// Scope is a keyed hash of endpoint and account. It never contains the account itself.
	Scope string `json:"scope,omitzero"`
	Model string `json:"model,omitzero"`
}

// Sidecar holds the native JSON of a message, a tool, a request or a response, in addition to
// the canonical form. While Mirror equals the fingerprint of the canonical form, encoders
// replay it byte for byte to its own dialect. If the canonical value was edited (redacted,
// compacted, corrected), the fingerprint no longer matches and encoders re-encode the value.
//
//stored:value sidecar
type Sidecar struct {
	Dialect Dialect         `json:"dialect,omitzero"`
	Raw     json.RawMessage `json:"raw,omitzero"`
	Mirror  Fingerprint     `json:"mirror,omitzero"`
}

// Field is one native field that the canonical model does not have. Path is a JSON pointer
// relative to the native object that contained it.
//
//stored:value field
type Field struct {
	Path  string          `json:"path,omitzero"`
	Value json.RawMessage `json:"value,omitzero"`
}

// Extra holds the unknown fields of a native object, in wire order. Encoders of the same
// dialect write them; all others report them as losses.
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

// Format names the wire format of a tool schema, call or result: a dialect and the kind of
// object. These are built in; other packages may add theirs:
//
//	openai.chat_completions   .function  .custom  .function_call  .custom_call
//	openai.responses          .function  .custom  .namespace  .function_call  .custom_tool_call
//	anthropic.messages        .tool  .tool_use
//	gemini.generate_content   .function  .function_call
//	ollama.chat               .function  .tool_call
//	bedrock.converse          .tool_spec  .tool_use
//	mcp                       .tool
//
// The format of a result is the name of its dialect alone.
type Format string

// Native is one wire object and the name of its format.
//
//stored:value native object
type Native struct {
	Format Format          `json:"format,omitzero"`
	JSON   json.RawMessage `json:"json,omitzero"`
}
