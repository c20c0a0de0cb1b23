package openairesponses

import (
	"bytes"
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Wire describes the API: paths, headers, framing, and the location of its messages.
func (Codec) Wire() *wire.Wire { return &described }

// messagesAt describes where a request holds its messages.
var messagesAt = wirekit.Conversation{Field: "input", Continues: func(req *dragoman.Request) bool {
	return req.PreviousResponseID != "" || wirekit.Refers(req, name, "/conversation") || wirekit.Refers(req, name, "/prompt")
}}

var ends = []string{"response.completed", "response.incomplete", "response.failed", "error"}

var described = wire.Wire{
	Names: []string{"responses"},
	Body: wire.Body{
		Messages: messagesAt.Field, Tools: "/tools", ToolSettings: []string{"tool_choice", "parallel_tool_calls"},
		Response: "output", // a stream has whole items
		Roles:    []string{"user", "assistant", "system", "developer"},
	},
	Endpoint: wire.Endpoint{
		BaseURL: "https://api.openai.com/v1", Path: "/responses", Vendor: "openai",
		Count: "/input_tokens", CountField: "input_tokens", CountBody: `{"object":"response.input_tokens","input_tokens":%d}`,
	},
	// OpenAI models since 5.4 call no tools on Chat while they reason (quirk E12), so the
	// plain name means Responses.
	Providers: []wire.Provider{{
		Names: []string{"openai"}, KeyEnv: []string{"OPENAI_API_KEY"},
		Headers: []wire.HeaderEnv{{Name: "Openai-Organization", Env: "OPENAI_ORG_ID"}, {Name: "Openai-Project", Env: "OPENAI_PROJECT_ID"}},
	}},
	Headers: wire.Headers{
		Forwarded: []string{"Openai-Beta", "Openai-Organization", "Openai-Project"},
		Shown:     []string{"Openai-Processing-Ms", "Openai-Version"},
		Codes:     true,
	},
	Stream: wire.Stream{
		Framing:      framing.SSE,
		Heartbeat:    []byte(": ping\n\n"),
		HasContent:   hasContent,
		End:          wire.End{Names: ends, Last: ends},
		Usage:        wire.NewField("usage"),
		Repeats:      true,
		FailureAfter: failureAfter,
		Done:         []byte("data: [DONE]\n\n"),
	},
	Serving: wire.Serving{
		Routes: []wire.Route{{Path: "/v1/responses"}, {Path: "/v1/responses/input_tokens", Call: wire.Call{Count: true}}},
		Owns: func(_, path string) bool {
			return strings.HasPrefix(path, "/v1/responses") || strings.HasPrefix(path, "/v1/conversations")
		},
	},
	State: wire.State{Responses: true, IDPrefix: "resp_", Unfinished: []string{"queued", "in_progress"}},
	ToolSearch: &dragoman.ToolSpec{
		Kind: codes.ToolHosted, Name: "tool_search",
		Source: &dragoman.ToolSource{Format: toolformat.ResponsesFunction, JSON: json.RawMessage(`{"type":"tool_search"}`)},
	},
	CallGuard: func(o dialect.DecodeOptions) wire.CallGuard { return newCallGuard(o) },
	Summaries: true,
	Signs: wire.Signs{
		Rank: 3,
		Response: []wire.Sign{{Rank: 30, Because: `it is a "response"`, Holds: func(m wire.Object) bool {
			return m.Is("object", "response") || m.Has("output") && !m.Has("stopReason") && !wire.IsItem(m)
		}}, wire.ErrorMessage},
		Stream: []wire.Sign{{Rank: 30, Because: "its events have response types", Holds: func(m wire.Object) bool {
			return bytes.HasPrefix(m["type"], []byte(`"response.`)) || m.Has("sequence_number")
		}}},
		Tool: []wire.Sign{{Rank: 30, Because: `it is a "function" with a name`, Holds: func(m wire.Object) bool {
			return (m.Is("type", "function") || m.Is("type", "custom") || m.Is("type", "namespace")) && m.Has("name") && !m.Has("input_schema", "role")
		}}},
		Request: [4][]wire.Sign{{
			wire.HasField(30, "input"),
			{Rank: 40, Because: `it has Responses settings and no messages`, Holds: func(m wire.Object) bool {
				return m.Has("previous_response_id", "max_output_tokens", "instructions") && !m.Has("messages", "contents")
			}},
		}},
		Messages: [3][]wire.Sign{{{Rank: 10, Because: "it is a Responses item", Holds: func(m wire.Object) bool {
			return wire.Any(m.List("messages"), wire.IsItem)
		}}}},
	},
	Simulator: wire.Simulator{
		Faults: strings.Fields("c4 c7 c10 c11 c15 c18 c21 c23 c24 c26 c40"),
		Text:   wire.Fragment{Type: "response.output_text.delta", Field: "delta"},
		Input:  wire.Fragment{Type: "response.function_call_arguments.delta", Field: "delta"},
		Block:  "output_index",
	},
}
