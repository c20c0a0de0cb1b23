package dragoman

import (
	"encoding/base64"
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Part is one piece of a message. The set is sealed: [Text], [Reasoning],
// [Media], [ToolCall], [ToolResult], [Refusal], [Data] and [Opaque]. What a
// dialect sends and we do not know is an Opaque part, so a switch over parts
// needs no more than a default that keeps it.
type Part interface {
	// Kind names the part: "text", "reasoning", "media", "tool_call", "tool_result",
	// "refusal", "data" or "opaque". It is also the "type" of its stored JSON.
	Kind() string
	sealedPart()
}

// The kinds of part, as constants of this package for the code generator.
const (
	kindText       = codes.KindText
	kindReasoning  = codes.KindReasoning
	kindMedia      = codes.KindMedia
	kindToolCall   = codes.KindToolCall
	kindToolResult = codes.KindToolResult
	kindRefusal    = codes.KindRefusal
	kindData       = codes.KindData
	kindOpaque     = codes.KindOpaque
)

// Text is plain text.
type Text struct {
	Text  string     `json:"text,omitzero"`
	Cache *CacheHint `json:"cache,omitzero"`
	// Signature is opaque reasoning state bound to this part by its origin.
	Signature string `json:"signature,omitzero"`
	Extra     *Extra `json:"extra,omitzero"`
}

// Reasoning is a model's thinking. The visible text may be empty while the
// opaque state is not: such a part is still replayed to its origin.
type Reasoning struct {
	// ID is the native id of the reasoning item, if any.
	ID string `json:"id,omitzero" hash:"after=Redacted"`
	// Text is the visible thinking; Summary the visible summaries of a
	// thinking that stays hidden.
	Text    string   `json:"text,omitzero"`
	Summary []string `json:"summary,omitzero"`
	// Signature proves to its origin that Text is unchanged.
	Signature string `json:"signature,omitzero"`
	// Encrypted is thinking only its origin can read.
	Encrypted string `json:"encrypted,omitzero"`
	// Redacted says that Encrypted replaces a text withheld for safety.
	Redacted bool `json:"redacted,omitzero"`
	// Field is the member that carried the text where servers disagree on its
	// name ("reasoning_content", "reasoning"); it goes back in the same one.
	Field string `json:"field,omitzero"`
	// Details are native reasoning records that go back to their dialect
	// unchanged and in order.
	Details []json.RawMessage `json:"details,omitzero"`
	Status  string            `json:"status,omitzero"`
	// Origin is what minted the opaque state; nil means that of the message.
	Origin *Origin `json:"origin,omitzero" hash:"-"`
	Extra  *Extra  `json:"extra,omitzero"`
}

// Media is an image, a sound, a film or a file. Exactly one of Base64, Text,
// URL, FileID and Attachment says where the content is.
type Media struct {
	// Media is "image", "audio", "video" or "file".
	Media string `json:"media,omitzero"`
	// MIME is the content type; required beside Base64.
	MIME string `json:"mime,omitzero"`
	// Base64 is the content in standard base64, without a data: prefix.
	Base64 string `json:"base64,omitzero"`
	// Text is the content of a plain-text document.
	Text string `json:"text,omitzero"`
	URL  string `json:"url,omitzero"`
	// FileID names a file the provider stores.
	FileID string `json:"file_id,omitzero"`
	// Attachment names content that a session stores apart from the message. A request
	// with it cannot be encoded: the session puts the content back when a request is
	// built.
	Attachment string `json:"attachment,omitzero" hash:"ifset"`
	// Name is the file's name, Title its title for the model.
	Name  string `json:"name,omitzero"`
	Title string `json:"title,omitzero"`
	// Detail is a resolution hint ("low", "high"); empty means the provider's
	// default.
	Detail string     `json:"detail,omitzero"`
	Cache  *CacheHint `json:"cache,omitzero"`
	Extra  *Extra     `json:"extra,omitzero"`
}

// Refusal is the model's refusal to answer, in its words.
type Refusal struct {
	Text  string `json:"text,omitzero"`
	Extra *Extra `json:"extra,omitzero"`
}

// Data is a JSON value, as a tool returned it.
type Data struct {
	JSON json.RawMessage `json:"json,omitzero"`
}

// Opaque is a native block, item or part that the model does not know. It is
// kept, replayed unchanged to its dialect, and reported as lost elsewhere.
type Opaque struct {
	Dialect Dialect `json:"dialect,omitzero"`
	// Type is the native type tag.
	Type string          `json:"native_type,omitzero"`
	JSON json.RawMessage `json:"json,omitzero"`
	// CallID links a call with its result, so that both are kept or dropped together. It is
	// empty for other parts. A call that is not Hosted and has no result in the same
	// response waits for the client.
	CallID string `json:"call_id,omitzero" hash:"-"`
	// Hosted reports that the part is the call or the result of a tool that the provider
	// ran. False also means unknown.
	Hosted bool `json:"hosted,omitzero" hash:"-"`
}

// Kind implements [Part].
func (*Text) Kind() string       { return kindText }
func (*Reasoning) Kind() string  { return kindReasoning }  // Kind implements [Part].
func (*Media) Kind() string      { return kindMedia }      // Kind implements [Part].
func (*ToolCall) Kind() string   { return kindToolCall }   // Kind implements [Part].
func (*ToolResult) Kind() string { return kindToolResult } // Kind implements [Part].
func (*Refusal) Kind() string    { return kindRefusal }    // Kind implements [Part].
func (*Data) Kind() string       { return kindData }       // Kind implements [Part].
func (*Opaque) Kind() string     { return kindOpaque }     // Kind implements [Part].

func (*Text) sealedPart()       {}
func (*Reasoning) sealedPart()  {}
func (*Media) sealedPart()      {}
func (*ToolCall) sealedPart()   {}
func (*ToolResult) sealedPart() {}
func (*Refusal) sealedPart()    {}
func (*Data) sealedPart()       {}
func (*Opaque) sealedPart()     {}

// Image is an image part with its content.
func Image(mime string, content []byte) *Media {
	return &Media{Media: codes.MediaImage, MIME: mime, Base64: base64.StdEncoding.EncodeToString(content)}
}
