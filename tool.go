package dragoman

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/fence"
)

// ToolSpec is the definition of a tool as its author wrote it. Encoding never
// changes it: schemas are lowered into a copy, per target.
//
//stored:top tool
type ToolSpec struct {
	// Kind is empty for a function, which takes a JSON object, "freeform" for a tool that
	// takes text, optionally in a grammar, or "hosted" for a tool that the provider runs or
	// defines: its definition is Source and nothing else.
	Kind string `json:"kind,omitzero"`
	// Name is the public name; the name on a wire may be an alias of it.
	Name string `json:"name,omitzero"`
	// Namespace groups tools; empty means none. All members of a namespace
	// carry the same NamespaceDescription.
	Namespace            string `json:"namespace,omitzero"`
	NamespaceDescription string `json:"namespace_description,omitzero"`
	Description          string `json:"description,omitzero"`
	// Parameters is the author's JSON Schema for a function's arguments. Nil
	// means no arguments.
	Parameters json.RawMessage `json:"parameters,omitzero"`
	// Grammar constrains a freeform tool's input; nil means any text.
	Grammar *Grammar `json:"grammar,omitzero"`
	// Strict asks for a target's constrained decoding. Empty means off, because a strict flag
	// changes what optional means.
	//   - "on" asks for it. Targets that know no optional arguments then send null for an
	//     absent one; schema.Validator.OmitNulls takes it out again before the arguments are validated.
	//   - "auto" turns it on only where the schema satisfies the target's strict subset as it
	//     is written.
	//   - "unset" keeps a wire's absent flag absent toward its own dialect.
	Strict string `json:"strict,omitzero"`
	// Deferred hides the definition until a tool search finds it.
	Deferred bool `json:"deferred,omitzero"`
	// OutputSchema describes the results where a dialect can say so.
	OutputSchema json.RawMessage `json:"output_schema,omitzero"`
	// Examples are example arguments.
	Examples    []json.RawMessage `json:"examples,omitzero"`
	Annotations Annotations       `json:"annotations,omitzero"`
	Cache       *CacheHint        `json:"cache,omitzero"`
	// Source is the tool as authored, when it came as a wire object. It passes
	// unchanged to a target that accepts its format, as long as the rest of the
	// spec still says the same.
	Source *ToolSource `json:"source,omitzero" hash:"if=hosted,after=NamespaceExtra"`
	// Extra holds members of Source that are not modelled, NamespaceExtra those
	// of the namespace object around it.
	Extra          *Extra `json:"extra,omitzero"`
	NamespaceExtra *Extra `json:"namespace_extra,omitzero"`
}

// hosted reports whether the tool is its source and nothing else.
func (s *ToolSpec) hosted() bool { return s.Kind == codes.ToolHosted }

// ToolSource is a tool definition as its author wrote it.
//
//stored:value tool source
type ToolSource struct {
	Format Format          `json:"format,omitzero"`
	JSON   json.RawMessage `json:"json,omitzero"`
	// Mirror is the fingerprint of the spec that JSON was read into. Zero means
	// that the spec was built around JSON and never edited.
	Mirror Fingerprint `json:"mirror,omitzero" hash:"-"`
}

// Grammar is the syntax of a freeform tool's input.
//
//stored:value grammar
type Grammar struct {
	// Syntax is "lark" or "regex".
	Syntax     string `json:"syntax,omitzero"`
	Definition string `json:"definition,omitzero"`
}

// Annotations are hints about a tool's effects. Nil means unknown; a hint
// from another party is never proof.
//
//stored:value annotations
type Annotations struct {
	Title       string `json:"title,omitzero"`
	ReadOnly    *bool  `json:"read_only,omitzero"`
	Destructive *bool  `json:"destructive,omitzero"`
	Idempotent  *bool  `json:"idempotent,omitzero"`
	OpenWorld   *bool  `json:"open_world,omitzero"`
}

// QualifiedName is "namespace.name", or the name alone.
func (s *ToolSpec) QualifiedName() string {
	if s == nil {
		return ""
	}
	return qualified(s.Namespace, s.Name)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// The modes of a [ToolChoice].
const (
	ChoiceAuto     = "auto"
	ChoiceNone     = "none"
	ChoiceRequired = "required"
	// ChoiceTool forces the one tool in ToolChoice.Tools.
	ChoiceTool = "tool"
)

// ToolRef names a tool in a choice.
//
//stored:value tool reference
type ToolRef struct {
	Namespace string `json:"namespace,omitzero"`
	Name      string `json:"name,omitzero"`
	// Kind is the kind of the tool, as in [ToolSpec].
	Kind string `json:"kind,omitzero"`
	// Native is a reference to something we do not model (a hosted tool, an
	// MCP server), as it came.
	Native *Native `json:"native,omitzero"`
	// Extra holds members of a reference that we do model.
	Extra *Extra `json:"extra,omitzero"`
}

// ToolChoice says which tools the model may or must call.
//
//stored:value tool choice
type ToolChoice struct {
	// Mode says how free the model is to call tools: [ChoiceAuto], [ChoiceNone],
	// [ChoiceRequired] or [ChoiceTool], or "opaque" for a choice that only its own dialect
	// understands.
	Mode string `json:"mode,omitzero"`
	// Tools narrows auto and required to these tools; with ChoiceTool it holds
	// exactly the forced one. Nil means all.
	Tools  []ToolRef `json:"tools,omitzero" hash:"nil"`
	Native *Native   `json:"native,omitzero"`
	Extra  *Extra    `json:"extra,omitzero"`
}

// ToolCall is the model's wish to run a tool.
type ToolCall struct {
	// ID pairs the call with its result. It is the provider's string, or one we
	// made when there was none (then Synthetic is set). Never a tool's identity.
	ID        string `json:"id,omitzero"`
	Synthetic bool   `json:"synthetic,omitzero" hash:"-"`
	// ItemID is the identity of the native item, where that differs from ID.
	ItemID    string `json:"item_id,omitzero"`
	Name      string `json:"name,omitzero"`
	Namespace string `json:"namespace,omitzero"`
	// Payload is empty for an object, or "text".
	Payload string `json:"payload,omitzero"`
	// Arguments is the payload exactly as received: JSON text for an object
	// payload (not necessarily valid), the input itself for a text payload.
	// Empty means {} for an object.
	Arguments string `json:"arguments,omitzero"`
	// PayloadFormat names the wire format that the payload was read from, such as
	// "openai.responses.custom_tool_call", and PayloadMetadata is a JSON value that the accessor
	// of a contributed format adds about the payload. A registry's InspectCall sets
	// them; they are empty where a response was decoded, and reach no wire.
	PayloadFormat   Format          `json:"payload_format,omitzero" hash:"-"`
	PayloadMetadata json.RawMessage `json:"payload_metadata,omitzero" hash:"-"`
	// Problem says why the call must not run; nil means it may.
	Problem *CallProblem `json:"problem,omitzero" hash:"-"`
	// Hosted calls are run by the provider; they are never dispatched.
	Hosted bool   `json:"hosted,omitzero"`
	Status string `json:"status,omitzero"`
	// Async says that the model does not wait for the result.
	Async bool `json:"async,omitzero"`
	// Caller is the native record of what made the call, echoed with its
	// result; nil means the model itself.
	Caller json.RawMessage `json:"caller,omitzero"`
	// Signature is opaque reasoning state bound to this call by its origin.
	Signature string     `json:"signature,omitzero"`
	Cache     *CacheHint `json:"cache,omitzero"`
	Extra     *Extra     `json:"extra,omitzero"`
}

// QualifiedName is "namespace.name", or the name alone.
func (c *ToolCall) QualifiedName() string {
	if c == nil {
		return ""
	}
	return qualified(c.Namespace, c.Name)
}

// CallProblem says why a call must not run, in words a model can act on.
//
//stored:value call problem
type CallProblem struct {
	// Code is "invalid_json", "duplicate_key", "not_object", "truncated" (the output limit
	// or the end of the stream cut the call), "no_name", "unreadable" (a field that says
	// what runs has the wrong type) or "stopped" (the response ended in a way after which
	// nothing runs).
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
	// Offset is the byte of Arguments at which the problem shows; -1 when it
	// has no place.
	Offset int64 `json:"offset,omitzero"`
}

func (p *CallProblem) Error() string {
	if p == nil {
		return "dragoman: no problem"
	}
	return p.Code + ": " + p.Message
}

// ToolResult answers one call.
type ToolResult struct {
	CallID string `json:"call_id,omitzero"`
	// Name and Namespace of the tool that answered, where known.
	Name      string `json:"name,omitzero"`
	Namespace string `json:"namespace,omitzero"`
	// Payload is that of the call being answered.
	Payload string `json:"payload,omitzero"`
	// Content is text, media and data parts; empty is a result without output.
	Content []Part `json:"content,omitzero"`
	// Outcome is "ok", "error" or empty, which means unknown: most dialects have no error
	// flag, and unknown is not success.
	Outcome string `json:"outcome,omitzero"`
	// Display is for humans and never sent to a model.
	Display string `json:"display,omitzero" hash:"-"`
	// Envelope is a provider-native result that only a target that knows its
	// format may use; others get Content.
	Envelope *Native `json:"envelope,omitzero"`
	// Synthetic says that we made the result because there was none.
	Synthetic bool            `json:"synthetic,omitzero" hash:"-"`
	ItemID    string          `json:"item_id,omitzero"`
	Status    string          `json:"status,omitzero"`
	Caller    json.RawMessage `json:"caller,omitzero"`
	Cache     *CacheHint      `json:"cache,omitzero"`
	Extra     *Extra          `json:"extra,omitzero"`
}

// Text joins the text of the result; data parts are written as JSON.
func (r *ToolResult) Text() string {
	if r == nil {
		return ""
	}
	if len(r.Content) == 1 {
		if t, ok := r.Content[0].(*Text); ok && t != nil {
			return t.Text
		}
	}
	var b []byte
	for _, p := range r.Content {
		if isNilPart(p) {
			continue
		}
		switch p := p.(type) {
		case *Text:
			b = append(b, p.Text...)
		case *Data:
			b = append(b, p.JSON...)
		}
	}
	return string(b)
}

// PlainText returns [ToolResult.Text] without the fence that package tool puts around the
// output of tools that are not trusted: the tool's own text, for people and programs. A
// text without such a fence is unchanged.
func (r *ToolResult) PlainText() string {
	if r == nil {
		return ""
	}
	plain := ToolResult{Content: make([]Part, len(r.Content))}
	for i, p := range r.Content {
		plain.Content[i] = p
		if t, ok := p.(*Text); ok && t != nil {
			plain.Content[i] = &Text{Text: fence.Unwrap(t.Text)}
		}
	}
	return plain.Text()
}
