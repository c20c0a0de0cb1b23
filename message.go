package dragoman

import "strings"

// Role is the author of a message: [RoleSystem], [RoleDeveloper], [RoleUser], [RoleAssistant],
// [RoleTool], or another value from the wire.
type Role string

// The known roles. A decoder keeps any other role unchanged.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one element of a conversation. Consecutive messages may have the same role: a
// model's turn is a run of assistant messages, because some APIs represent it as several items.
// Encoders join and split messages as their dialect requires.
//
//stored:top message
type Message struct {
	Role Role `json:"role,omitzero"`
	// Name is the name of the participant, in dialects that have one.
	Name string `json:"name,omitzero"`
	// Phase is the role of the message within a turn ("commentary", "final_answer"), in
	// dialects that have it.
	Phase string `json:"phase,omitzero"`
	// Status is empty for a complete message, or "incomplete" or "in_progress".
	Status string `json:"status,omitzero"`
	Parts  []Part `json:"parts,omitzero" hash:"after=Cache"`
	// Cache asks the provider to cache the prompt up to and including this message. Nil means
	// no request.
	Cache *CacheHint `json:"cache,omitzero"`
	// Origin identifies the model API that produced the message; nil means it was created
	// locally.
	Origin *Origin `json:"origin,omitzero" hash:"-"`
	// Native is the original wire message, for replay to the same dialect.
	Native *Sidecar `json:"native,omitzero" hash:"-"`
	// Extra holds unknown fields of the native message.
	Extra *Extra `json:"extra,omitzero"`
}

// CacheHint asks for a prompt-cache breakpoint.
//
//stored:value cache hint
type CacheHint struct {
	// TTL is how long the provider should cache the prompt ("5m", "1h"). Empty means the
	// provider's default.
	TTL string `json:"ttl,omitzero"`
}

// UserText returns a user message with one text part.
func UserText(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{&Text{Text: text}}}
}

// SystemText returns a system message with one text part.
func SystemText(text string) Message {
	return Message{Role: RoleSystem, Parts: []Part{&Text{Text: text}}}
}

// AssistantText returns an assistant message with one text part.
func AssistantText(text string) Message {
	return Message{Role: RoleAssistant, Parts: []Part{&Text{Text: text}}}
}

// ToolResults returns the message that carries the results for the calls of an assistant turn.
func ToolResults(results ...*ToolResult) Message {
	m := Message{Role: RoleTool, Parts: make([]Part, len(results))}
	for i, r := range results {
		m.Parts[i] = r
	}
	return m
}

// Text joins the text parts of the message.
func (m *Message) Text() string {
	if m == nil {
		return ""
	}
	return joinText(m.Parts)
}

// ToolCalls returns the calls of the message in order, including those that the provider runs
// itself.
func (m *Message) ToolCalls() []*ToolCall {
	if m == nil {
		return nil
	}
	var calls []*ToolCall
	for _, p := range m.Parts {
		if c, ok := p.(*ToolCall); ok && c != nil {
			calls = append(calls, c)
		}
	}
	return calls
}

func joinText(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(*Text); ok && t != nil {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
