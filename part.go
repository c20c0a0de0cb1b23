package dragoman

import (
	"encoding/base64"
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Part is one part of a message. The set of types is closed: [Text], [Reasoning], [Media],
// [ToolCall], [ToolResult], [Refusal], [Data] and [Opaque]. Content of an unknown type is an
// Opaque part, so a type switch can handle it in its default case.
type Part interface {
	// Kind returns the kind of the part: "text", "reasoning", "media", "tool_call",
	// "tool_result", "refusal", "data" or "opaque". It is also the "type" in stored JSON.
	Kind() string
	sealedPart()
}

// The kinds of part. They are constants of this package because the code generator reads them
// here.
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

// Reasoning is a model's thinking. If the visible text is empty but the opaque state is not,
// the part is still replayed to its origin.
type Reasoning struct {
	// ID is the native id of the reasoning item, if any.
	ID string `json:"id,omitzero" hash:"after=Redacted"`
	// Text is the visible thinking. Summary holds the visible summaries of hidden thinking.
	Text    string   `json:"text,omitzero"`
	Summary []string `json:"summary,omitzero"`
	// Signature proves to its origin that Text is unchanged.
	Signature string `json:"signature,omitzero"`
	// Encrypted is thinking that only its origin can read.
	Encrypted string `json:"encrypted,omitzero"`
	// Redacted reports that Encrypted replaces text that was withheld for safety.
	Redacted bool `json:"redacted,omitzero"`
	// Field is the name of the wire field that carried the text, because servers use different
	// names ("reasoning_content", "reasoning"). Encoders write the same name.
	Field string `json:"field,omitzero"`
	// Details are native reasoning records. Encoders of their dialect write them unchanged and
	// in order.
	Details []json.RawMessage `json:"details,omitzero"`
	Status  string            `json:"status,omitzero"`
	// Origin identifies the model API that produced the opaque state; nil means the origin of
	// the message.
	Origin *Origin `json:"origin,omitzero" hash:"-"`
	Extra  *Extra  `json:"extra,omitzero"`
}

// Media is an image, audio, video or a file. Exactly one of Base64, Text, URL, FileID and
// Attachment is set and holds or locates the content.
type Media struct {
	// Media is "image", "audio", "video" or "file".
	Media string `json:"media,omitzero"`
	// MIME is the content type. It is required with Base64.
	MIME string `json:"mime,omitzero"`
	// Base64 is the content in standard base64, without a data: prefix.
	Base64 string `json:"base64,omitzero"`
	// Text is the content of a plain-text document.
	Text string `json:"text,omitzero"`
	URL  string `json:"url,omitzero"`
	// FileID is the id of a file stored by the provider.
	FileID string `json:"file_id,omitzero"`
	// Attachment is the name of content that a session stores apart from the message. A request
	// with an attachment cannot be encoded: the session restores the content when it builds a
	// request.
	Attachment string `json:"attachment,omitzero" hash:"ifset"`
	// Name is the name of the file, Title its title for the model.
	Name  string `json:"name,omitzero"`
	Title string `json:"title,omitzero"`
	// Detail is a resolution hint ("low", "high"); empty means the provider's
	// default.
	Detail string     `json:"detail,omitzero"`
	Cache  *CacheHint `json:"cache,omitzero"`
	Extra  *Extra     `json:"extra,omitzero"`
}

// Refusal is the text in which the model refuses to respond.
type Refusal struct {
	Text  string `json:"text,omitzero"`
	Extra *Extra `json:"extra,omitzero"`
}

// Data is a JSON value that a tool returned.
type Data struct {
	JSON json.RawMessage `json:"json,omitzero"`
}

// Opaque is a native block, item or part that the canonical model does not know. Encoders of
// its dialect replay it unchanged; all others report it as a loss.
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

// Image returns an image part with the content.
func Image(mime string, content []byte) *Media {
	return &Media{Media: codes.MediaImage, MIME: mime, Base64: base64.StdEncoding.EncodeToString(content)}
}
