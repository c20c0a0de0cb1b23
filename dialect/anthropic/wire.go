package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Wire describes the API: paths, headers, framing, and the places of its messages.
func (Codec) Wire() *wire.Wire { return &described }

// messagesAt locates the messages of a request.
var messagesAt = wirekit.Conversation{Field: "messages", Continues: func(req *dragoman.Request) bool {
	return wirekit.Refers(req, name, "/thread")
}}

// keyHeader is the header for an API key. Account tokens are bearer tokens.
const keyHeader = "X-Api-Key"

var described = wire.Wire{
	Names: []string{"anthropic", "claude"},
	Body: wire.Body{
		Messages: messagesAt.Field, Tools: "/tools", ToolSettings: []string{"tool_choice"}, Response: "", Chunk: []string{"/message"},
		Roles: []string{"user", "assistant"},
	},
	Endpoint: wire.Endpoint{
		BaseURL: "https://api.anthropic.com", Path: "/v1/messages", Vendor: "anthropic",
		Count: "/count_tokens", CountField: "input_tokens", CountBody: `{"input_tokens":%d}`,
	},
	Providers: []wire.Provider{{
		Names: []string{"anthropic"}, KeyEnv: []string{"ANTHROPIC_API_KEY"}, KeyHeader: keyHeader, TokenEnv: "ANTHROPIC_AUTH_TOKEN",
	}},
	Headers: wire.Headers{
		Version: "Anthropic-Version", VersionValue: "2023-06-01",
		RequestID:     "Request-Id",
		Forwarded:     []string{"Anthropic-Beta", "Anthropic-Version"},
		Shown:         []string{"Request-Id"},
		ShownPrefixes: []string{"Anthropic-Ratelimit-"},
		Key:           keyHeader,
		RateLimits: []wire.RateLimit{
			{Remaining: "Anthropic-Ratelimit-Requests-Remaining", Reset: "Anthropic-Ratelimit-Requests-Reset"},
			{Remaining: "Anthropic-Ratelimit-Tokens-Remaining", Reset: "Anthropic-Ratelimit-Tokens-Reset"},
			{Remaining: "Anthropic-Ratelimit-Input-Tokens-Remaining", Reset: "Anthropic-Ratelimit-Input-Tokens-Reset"},
			{Remaining: "Anthropic-Ratelimit-Output-Tokens-Remaining", Reset: "Anthropic-Ratelimit-Output-Tokens-Reset"},
		},
	},
	Stream: wire.Stream{
		Framing:    framing.SSE,
		Heartbeat:  []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"),
		HasContent: hasContent,
		End:        wire.End{Names: []string{"message_delta", "message_stop", "error"}, Last: []string{"message_stop", "error"}},
		Usage:      wire.NewField("usage"),
	},
	Serving: wire.Serving{
		Routes: []wire.Route{{Path: "/v1/messages"}, {Path: "/v1/messages/count_tokens", Call: wire.Call{Count: true}}},
		Owns:   func(_, path string) bool { return strings.HasPrefix(path, "/v1/messages") },
		Models: &wire.Models{Path: "/v1/models", One: true, List: listModels, Show: showModel},
	},
	State: wire.State{
		Threads:  &wire.Threads{Field: "thread", Read: readThread, Unsupported: noThreads, Unknown: noThread},
		IDPrefix: "msg_",
	},
	ToolSearch: &dragoman.ToolSpec{
		Kind: codes.ToolHosted, Name: "tool_search_tool_bm25",
		Source: &dragoman.ToolSource{Format: toolformat.AnthropicTool, JSON: json.RawMessage(`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`)},
	},
	Signs: wire.Signs{
		Rank:  1,
		Model: func(name string) bool { return strings.HasPrefix(name, "claude") },
		Response: []wire.Sign{
			{Rank: 60, Because: `it is a "message" of the assistant`, Holds: func(m wire.Object) bool {
				return m.Is("type", "message") && m.Is("role", "assistant") && m.Has("content", "stop_reason") && m.Has("id", "model", "usage")
			}},
			{Rank: 70, Because: `it is an "error" with a type`, Holds: func(m wire.Object) bool {
				return m.Is("type", "error") && m.In("error").Has("type", "message")
			}},
		},
		Stream: []wire.Sign{{Rank: 50, Because: "its events are of a message", Holds: func(m wire.Object) bool {
			for _, typ := range []string{"message_start", "content_block_start", "content_block_delta", "message_delta", "ping"} {
				if m.Is("type", typ) {
					return true
				}
			}
			return false
		}}},
		Tool: []wire.Sign{wire.HasField(40, "input_schema")},
		Request: [4][]wire.Sign{
			{wire.HasMessages},
			append([]wire.Sign{{Rank: 10, Because: `its tools have an "input_schema"`, Holds: func(m wire.Object) bool {
				return wire.Any(m.List("tools"), func(t wire.Object) bool { return t.Has("input_schema") })
			}}}, messageSigns...),
			{
				wire.SystemField,
				{Rank: 20, Because: `it has "stop_sequences", "anthropic_version" or another Anthropic setting`, Holds: func(m wire.Object) bool {
					return m.Has("stop_sequences", "anthropic_version", "anthropic_beta", "mcp_servers", "context_management", "output_config", "output_format")
				}},
				{Rank: 30, Because: `its "thinking" has a budget`, Holds: func(m wire.Object) bool {
					thinking := m.In("thinking")
					return thinking.Has("budget_tokens") || thinking.Is("type", "adaptive")
				}},
				wire.HasThinking,
				{Rank: 50, Because: `its "tool_choice" has an Anthropic type`, Holds: func(m wire.Object) bool {
					choice := m.In("tool_choice")
					return choice.Is("type", "auto") || choice.Is("type", "any") || choice.Is("type", "tool") || choice.Is("type", "none")
				}},
			},
			{wire.CommonSettings},
		},
		Messages: [3][]wire.Sign{{wire.RolesAndContent}, messageSigns},
	},
	Simulator: wire.Simulator{
		Faults: strings.Fields("c4 c7 c10 c15 c18 c19 c20 c21 c22 c37 c41"),
		Text:   wire.Fragment{Path: []any{"delta"}, Field: "text"},
		Input:  wire.Fragment{Path: []any{"delta"}, Field: "partial_json"},
		Block:  "index",
		Blank:  []wire.Blank{{Name: "ping", Data: `{"type":"ping"}`}, {Name: "ping", Data: `{"type":"ping"}`}},
	},
}

var messageSigns = []wire.Sign{
	{Rank: 50, Because: "its messages have Anthropic blocks", Holds: func(m wire.Object) bool { return wire.Any(wire.Blocks(m), isBlock) }},
	wire.TypedParts,
	wire.TextContent,
}

func isBlock(b wire.Object) bool {
	typ := b.Text("type")
	switch typ {
	case "tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking", "search_result", "container_upload":
		return true
	case "thinking":
		return b.IsText("thinking") // Mistral sends a list (quirk G6)
	case "image", "document":
		return b.Has("source")
	}
	return strings.HasSuffix(typ, "tool_result")
}

// model is a model in the list of the Anthropic API.
type model struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens int64  `json:"max_input_tokens,omitempty"`
}

func newModel(m wire.Model) model {
	return model{Type: "model", ID: m.Name, DisplayName: m.Name, CreatedAt: m.Date(), MaxInputTokens: m.Context}
}

func showModel(m wire.Model) any { return newModel(m) }

func listModels(all []wire.Model) any {
	list := struct {
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		First   *string `json:"first_id"`
		Last    *string `json:"last_id"`
	}{Data: wire.Each(all, newModel)}
	if len(all) > 0 {
		list.First, list.Last = &all[0].Name, &all[len(all)-1].Name
	}
	return list
}

// readThread reads the thread field of a request.
func readThread(r *jsonwire.Reader) (t wire.Thread) {
	if r.Kind() != '{' {
		r.Skip()
		return t
	}
	t.Requested = true
	for key := range r.Object() {
		if string(key) == "previous_message_id" && r.Kind() == '"' {
			t.Previous = r.String()
		} else {
			r.Skip()
		}
	}
	return t
}

// noThreads returns the error of a server that does not store conversations.
func noThreads() *dragoman.APIError {
	return threadError(http.StatusBadRequest, "invalid_request_error", "thread_unsupported_request",
		"thread: conversations are not stored here; send the whole conversation without thread")
}

// noThread returns the error for a thread whose previous message is unknown.
func noThread(id string) *dragoman.APIError {
	return threadError(http.StatusNotFound, "not_found_error", "thread_not_found",
		fmt.Sprintf("thread: message %.80q not found: it expired or was not stored; send the whole conversation", id))
}

// threadError returns an error with a code by which clients recognize it. No
// other dialect has a field for that code.
func threadError(status int, kind, code, message string) *dragoman.APIError {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "error")
	w.Key("error")
	w.BeginObject()
	w.StringField("type", kind)
	w.StringField("message", message)
	w.Key("details")
	w.BeginObject()
	w.StringField("error_code", code)
	w.EndObject()
	w.EndObject()
	w.EndObject()
	return Codec{}.DecodeError(status, http.Header{}, w.Buf)
}
