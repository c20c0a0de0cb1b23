package dragoman

import "strings"

// Role says who speaks in a message: [RoleSystem], [RoleDeveloper], [RoleUser],
// [RoleAssistant], [RoleTool], or what else the wire said.
type Role string

// The roles. A role that is none of these was unknown to the dialect that
// decoded it and is kept as it came.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one element of a conversation. Several messages of one role may
// follow each other: a model's turn is a run of assistant messages, because
// some APIs write it as several items. Encoders join and split as their
// dialect wants.
//
//stored:top message
type Message struct {
	Role Role `json:"role,omitzero"`
	// Name is the participant's name where a dialect has one.
	Name string `json:"name,omitzero"`
	// Phase is the part a message plays in a turn ("commentary",
	// "final_answer") where a dialect says so.
	Phase string `json:"phase,omitzero"`
	// Status of a whole message: empty means complete; else "incomplete" or "in_progress".
	Status string `json:"status,omitzero"`
	Parts  []Part `json:"parts,omitzero" hash:"after=Cache"`
	// Cache asks the provider to remember the prompt up to and including this
	// message. Nil asks for nothing.
	Cache *CacheHint `json:"cache,omitzero"`
	// Origin is what minted the message; nil means it was authored here.
	Origin *Origin `json:"origin,omitzero" hash:"-"`
	// Native is the message as it came, for replay to the same dialect.
	Native *Sidecar `json:"native,omitzero" hash:"-"`
	// Extra holds members of the native message that are not modelled.
	Extra *Extra `json:"extra,omitzero"`
}

// CacheHint asks for a prompt-cache breakpoint.
//
//stored:value cache hint
type CacheHint struct {
	// TTL is how long the provider should remember ("5m", "1h"). Empty means
	// the provider's default.
	TTL string `json:"ttl,omitzero"`
}

// UserText is a user message of one text part.
func UserText(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{&Text{Text: text}}}
}

// SystemText is a system message of one text part.
func SystemText(text string) Message {
	return Message{Role: RoleSystem, Parts: []Part{&Text{Text: text}}}
}

// AssistantText is an assistant message of one text part.
func AssistantText(text string) Message {
	return Message{Role: RoleAssistant, Parts: []Part{&Text{Text: text}}}
}

// ToolResults is the message that answers the calls of an assistant turn.
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

// ToolCalls returns the calls of the message in order, those that a provider
// runs itself included.
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
