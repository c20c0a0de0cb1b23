package cohere

import (
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Wire describes the API: paths, headers, framing, and the places of its messages.
func (Codec) Wire() *wire.Wire { return &described }

// messagesAt locates the messages of a request.
var messagesAt = wirekit.Conversation{Field: "messages"}

var described = wire.Wire{
	Names: []string{"cohere"},
	Body: wire.Body{
		Messages: messagesAt.Field, Tools: "/tools", ToolSettings: []string{"tool_choice", "strict_tools"},
		Response: "message", Chunk: []string{"/delta/message"},
		ChunkReads: []string{"content", "tool_plan", "tool_calls", "citations"},
		Roles:      []string{"user", "assistant", "system", "tool"},
	},
	Endpoint: wire.Endpoint{BaseURL: "https://api.cohere.com", Path: "/v2/chat", Vendor: "cohere"},
	Providers: []wire.Provider{{
		Names: []string{"cohere"}, KeyEnv: []string{"CO_API_KEY", "COHERE_API_KEY"}, BaseEnv: []string{"CO_API_URL"},
	}},
	Headers: wire.Headers{Forwarded: []string{"X-Client-Name"}},
	Stream: wire.Stream{
		Framing:    framing.SSE,
		Heartbeat:  []byte(": ping\n\n"),
		HasContent: hasContent,
		End:        wire.End{Names: []string{eventEnd}},
		Usage:      wire.NewField("usage"),
		Done:       []byte("data: [DONE]\n\n"),
	},
	Serving: wire.Serving{
		Routes: []wire.Route{{Path: "/v2/chat"}},
		Owns:   func(_, path string) bool { return strings.HasPrefix(path, "/v2/") },
	},
	ToolTypes: "function",
	Signs:     signs,
	Simulator: wire.Simulator{
		Faults: strings.Fields("c18 c41"),
		Text:   wire.Fragment{Type: eventText, Path: []any{"delta", "message", "content"}, Field: "text"},
		Input:  wire.Fragment{Type: eventArguments, Path: []any{"delta", "message", "tool_calls", "function"}, Field: "arguments"},
	},
}

// cohereSign matches requests with a feature that only Cohere has. Without one a
// request looks like OpenAI Chat, which is the better guess. The sign belongs
// to the first group, because OpenAI Chat shares the settings of later groups.
var cohereSign = wire.Sign{Rank: 55, Because: "it has a model or fields that only Cohere has", Holds: func(m wire.Object) bool {
	if !m.Has("messages") {
		return false
	}
	return isModel(m.Text("model")) || m.Has("p", "k", "strict_tools", "citation_options", "safety_mode") ||
		m.Is("tool_choice", "REQUIRED") || m.Is("tool_choice", "NONE") ||
		wire.Any(m.List("messages"), func(m wire.Object) bool { return m.IsText("tool_plan") }) ||
		wire.Any(wire.Blocks(m), func(b wire.Object) bool { return b.Is("type", "document") && b.In("document").Has("data") })
}}

// isModel reports whether name is a Cohere model. Ollama models have a tag.
func isModel(name string) bool {
	return (strings.HasPrefix(name, "command-") || strings.HasPrefix(name, "c4ai-")) && !strings.Contains(name, ":")
}

var signs = wire.Signs{
	Rank:  6,
	Model: isModel,
	Response: []wire.Sign{{Rank: 55, Because: `it has "message" and "finish_reason"`, Holds: func(m wire.Object) bool {
		return m.In("message").Has("role") && m.IsText("finish_reason")
	}}},
	Stream: []wire.Sign{{Rank: 45, Because: "its events have Cohere types", Holds: func(m wire.Object) bool {
		switch m.Text("type") {
		case eventStart, eventContent, eventText, eventPlan, eventCall:
			return true
		}
		return false
	}}},
	Request:  [4][]wire.Sign{{wire.HasMessages, cohereSign}},
	Messages: [3][]wire.Sign{{wire.RolesAndContent, cohereSign}},
}
