package dragoman

import (
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// ToolSpec is the definition of a tool as its author wrote it. Encoding never changes it: each
// encoder lowers a copy of the schema for its target.
//
//stored:top tool
type ToolSpec struct {
	// Kind is the kind of tool:
	//
	//   - "" is a function, which takes a JSON object.
	//   - "freeform" is a tool that takes text, optionally in a grammar.
	//   - "hosted" is a tool that the provider runs or defines. Only its Source counts.
	Kind string `json:"kind,omitzero"`
	// Name is the public name; the name on the wire may be an alias.
	Name string `json:"name,omitzero"`
	// Namespace groups tools; empty means none. All tools of a namespace have the same
	// NamespaceDescription.
	Namespace            string `json:"namespace,omitzero"`
	NamespaceDescription string `json:"namespace_description,omitzero"`
	Description          string `json:"description,omitzero"`
	// Parameters is the author's JSON Schema for a function's arguments. Nil
	// means no arguments.
	Parameters json.RawMessage `json:"parameters,omitzero"`
	// Grammar constrains a freeform tool's input; nil means any text.
	Grammar *Grammar `json:"grammar,omitzero"`
	// Strict asks for the target's constrained decoding. Empty means off, because a strict flag
	// changes the meaning of optional.
	//   - "on" asks for it. Targets without optional arguments then send null for an absent
	//     one; schema.Validator.OmitNulls removes it before the arguments are validated.
	//   - "auto" turns it on only if the schema already satisfies the target's strict subset.
	//   - "unset" keeps an absent wire flag absent in its own dialect.
	Strict string `json:"strict,omitzero"`
	// Deferred hides the definition until a tool search finds it.
	Deferred bool `json:"deferred,omitzero"`
	// OutputSchema describes the results, for dialects that support it.
	OutputSchema json.RawMessage `json:"output_schema,omitzero"`
	// Examples are example arguments.
	Examples    []json.RawMessage `json:"examples,omitzero"`
	Annotations Annotations       `json:"annotations,omitzero"`
	Cache       *CacheHint        `json:"cache,omitzero"`
	// Source is the original wire object of the tool, if it was decoded from one. It is sent
	// unchanged to a target that accepts its format, as long as the rest of the spec has not
	// changed.
	Source *ToolSource `json:"source,omitzero" hash:"if=hosted,after=NamespaceExtra"`
	// Extra holds unknown fields of Source. NamespaceExtra holds those of the namespace object
	// around it.
	Extra          *Extra `json:"extra,omitzero"`
	NamespaceExtra *Extra `json:"namespace_extra,omitzero"`
}

// hosted reports whether Source is the whole definition of the tool.
func (s *ToolSpec) hosted() bool { return s.Kind == codes.ToolHosted }

// ToolSource is a tool definition as its author wrote it.
//
//stored:value tool source
type ToolSource struct {
	Format Format          `json:"format,omitzero"`
	JSON   json.RawMessage `json:"json,omitzero"`
	// Mirror is the fingerprint of the spec that JSON was decoded into. Zero means that the
	// spec was built around JSON and never edited.
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

// Annotations are hints about the effects of a tool. Nil means unknown. Do not rely on hints
// from an untrusted party.
//
//stored:value annotations
type Annotations struct {
	Title       string `json:"title,omitzero"`
	ReadOnly    *bool  `json:"read_only,omitzero"`
	Destructive *bool  `json:"destructive,omitzero"`
	Idempotent  *bool  `json:"idempotent,omitzero"`
	OpenWorld   *bool  `json:"open_world,omitzero"`
}

// QualifiedName returns "namespace.name", or the name alone if there is no namespace.
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

// ToolRef refers to a tool in a [ToolChoice].
//
//stored:value tool reference
type ToolRef struct {
	Namespace string `json:"namespace,omitzero"`
	Name      string `json:"name,omitzero"`
	// Kind is the kind of the tool, as in [ToolSpec.Kind].
	Kind string `json:"kind,omitzero"`
	// Native is an unchanged reference to something that we do not model (a hosted tool, an MCP
	// server).
	Native *Native `json:"native,omitzero"`
	// Extra holds unknown fields of a reference that we do model.
	Extra *Extra `json:"extra,omitzero"`
}

// ToolChoice restricts which tools the model may or must call.
//
//stored:value tool choice
type ToolChoice struct {
	// Mode is [ChoiceAuto], [ChoiceNone], [ChoiceRequired] or [ChoiceTool], or "opaque" for a
	// choice that only its own dialect understands.
	Mode string `json:"mode,omitzero"`
	// Tools restricts auto and required to these tools. With ChoiceTool it holds exactly the
	// forced tool. Nil means all tools.
	Tools  []ToolRef `json:"tools,omitzero" hash:"nil"`
	Native *Native   `json:"native,omitzero"`
	Extra  *Extra    `json:"extra,omitzero"`
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	// ID pairs the call with its result. It is the provider's id, or a generated one if the
	// provider sent none (then Synthetic is set). It does not identify the tool.
	ID        string `json:"id,omitzero"`
	Synthetic bool   `json:"synthetic,omitzero" hash:"-"`
	// ItemID is the id of the native item, if it differs from ID.
	ItemID    string `json:"item_id,omitzero"`
	Name      string `json:"name,omitzero"`
	Namespace string `json:"namespace,omitzero"`
	// Payload is empty for a JSON object, or "text".
	Payload string `json:"payload,omitzero"`
	// Arguments is the payload exactly as received: JSON text for an object
	// payload (not necessarily valid), the input itself for a text payload.
	// Empty means {} for an object.
	Arguments string `json:"arguments,omitzero"`
	// PayloadFormat is the wire format of the payload, such as
	// "openai.responses.custom_tool_call". PayloadMetadata is a JSON value that the accessor of
	// a contributed format adds about the payload. A registry's InspectCall sets both. They are
	// empty in decoded responses and are never written to a wire.
	PayloadFormat   Format          `json:"payload_format,omitzero" hash:"-"`
	PayloadMetadata json.RawMessage `json:"payload_metadata,omitzero" hash:"-"`
	// Problem is the reason why the call must not run; nil means it may.
	Problem *CallProblem `json:"problem,omitzero" hash:"-"`
	// Hosted reports that the provider runs the call. Hosted calls are never dispatched.
	Hosted bool   `json:"hosted,omitzero"`
	Status string `json:"status,omitzero"`
	// Async reports that the model does not wait for the result.
	Async bool `json:"async,omitzero"`
	// Caller is the native record of what made the call. It is sent back with the result. Nil
	// means the model itself.
	Caller json.RawMessage `json:"caller,omitzero"`
	// Signature is opaque reasoning state bound to this call by its origin.
	Signature string     `json:"signature,omitzero"`
	Cache     *CacheHint `json:"cache,omitzero"`
	Extra     *Extra     `json:"extra,omitzero"`
}

// QualifiedName returns "namespace.name", or the name alone if there is no namespace.
func (c *ToolCall) QualifiedName() string {
	if c == nil {
		return ""
	}
	return qualified(c.Namespace, c.Name)
}

// CallProblem is the reason why a call must not run. Its message tells the model what to
// correct.
//
//stored:value call problem
type CallProblem struct {
	// Code is one of:
	//
	//   - "invalid_json", "duplicate_key" or "not_object"
	//   - "truncated": the output limit or the end of the stream cut off the call
	//   - "no_name"
	//   - "unreadable": a field that determines what runs has the wrong type
	//   - "stopped": the response ended with a stop after which no calls run
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
	// Offset is the byte offset of the problem in Arguments, or -1 if it has no position.
	Offset int64 `json:"offset,omitzero"`
}

func (p *CallProblem) Error() string {
	if p == nil {
		return "dragoman: no problem"
	}
	return p.Code + ": " + p.Message
}

// ToolResult is the result of one call.
type ToolResult struct {
	CallID string `json:"call_id,omitzero"`
	// Name and Namespace identify the tool that produced the result, if known.
	Name      string `json:"name,omitzero"`
	Namespace string `json:"namespace,omitzero"`
	// Payload is the payload of the call, as in [ToolCall].
	Payload string `json:"payload,omitzero"`
	// Content holds text, media and data parts; empty means no output.
	Content []Part `json:"content,omitzero"`
	// Outcome is "ok", "error" or empty, which means unknown: most dialects have no error
	// flag, and unknown is not success.
	Outcome string `json:"outcome,omitzero"`
	// Display is text for humans. It is never sent to a model.
	Display string `json:"display,omitzero" hash:"-"`
	// Envelope is a provider-native result for targets that know its format. Other targets get
	// Content.
	Envelope *Native `json:"envelope,omitzero"`
	// Synthetic reports that we generated the result because there was none.
	Synthetic bool            `json:"synthetic,omitzero" hash:"-"`
	ItemID    string          `json:"item_id,omitzero"`
	Status    string          `json:"status,omitzero"`
	Caller    json.RawMessage `json:"caller,omitzero"`
	Cache     *CacheHint      `json:"cache,omitzero"`
	Extra     *Extra          `json:"extra,omitzero"`
}

// Text joins the text parts of the result and the JSON of its data parts.
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
// output of untrusted tools. Use it to show the output to people and programs. Text without a
// fence is unchanged.
func (r *ToolResult) PlainText() string {
	if r == nil {
		return ""
	}
	plain := ToolResult{Content: make([]Part, len(r.Content))}
	for i, p := range r.Content {
		plain.Content[i] = p
		if t, ok := p.(*Text); ok && t != nil {
			plain.Content[i] = &Text{Text: textkit.Unfence(t.Text)}
		}
	}
	return plain.Text()
}
