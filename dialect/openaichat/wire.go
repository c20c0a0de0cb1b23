package openaichat

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Wire describes the API: paths, headers, framing, and the location of its messages.
func (Codec) Wire() *wire.Wire { return &described }

// messagesAt describes where a request holds its messages.
var messagesAt = wirekit.Conversation{Field: "messages"}

var described = wire.Wire{
	Names: []string{"chat", "openai"},
	Body: wire.Body{
		Messages: messagesAt.Field, Tools: "/tools", ToolSettings: []string{"tool_choice", "parallel_tool_calls"},
		Response: "/choices/0/message", Chunk: []string{"/choices/0/delta", "/choices/0/message"},
		Roles: []string{"user", "assistant", "system", "developer", "tool"},
	},
	Endpoint: wire.Endpoint{BaseURL: "https://api.openai.com/v1", Path: "/chat/completions", Vendor: "openai", OwnServer: true},
	Providers: []wire.Provider{{
		Names: []string{"openai-chat"}, Server: "openai", KeyEnv: []string{"OPENAI_API_KEY"}, BaseEnv: []string{"OPENAI_BASE_URL"},
	}},
	Headers: wire.Headers{
		Forwarded: []string{"Openai-Beta", "Openai-Organization", "Openai-Project"},
		Shown:     []string{"Openai-Processing-Ms", "Openai-Version"},
		Codes:     true,
		RateLimits: []wire.RateLimit{
			{Remaining: "X-Ratelimit-Remaining-Requests", Reset: "X-Ratelimit-Reset-Requests"},
			{Remaining: "X-Ratelimit-Remaining-Tokens", Reset: "X-Ratelimit-Reset-Tokens"},
		},
	},
	Stream: wire.Stream{
		Framing:    framing.SSE,
		Heartbeat:  []byte(": ping\n\n"),
		HasContent: hasContent,
		// A choice ends with its finish reason, the response with a marker: other choices may
		// follow.
		End:            wire.End{Field: wire.NewField("finish_reason"), Path: []any{"choices", 0}, Mark: "[DONE]"},
		Usage:          wire.NewField("usage"),
		UsageOnRequest: true,
	},
	Serving: wire.Serving{
		Routes: []wire.Route{{Path: "/v1/chat/completions"}},
		Models: &wire.Models{Path: "/v1/models", One: true, List: listModels, Show: showModel},
	},
	ToolTypes:       "function or custom",
	CallGuard:       func(o dialect.DecodeOptions) wire.CallGuard { return newCallGuard(o) },
	LegacyFunctions: legacyFunctions,
	Relayed:         true,
	Signs:           signs,
	Simulator: wire.Simulator{
		Faults: strings.Fields("c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c12 c15 c18 c21 c25 c36 c38 c41"),
		Text:   wire.Fragment{Path: []any{"choices", 0, "delta"}, Field: "content"},
	},
}

// model is an entry of the OpenAI model list.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newModel(m wire.Model) model {
	created := int64(0)
	if !m.Created.IsZero() {
		created = m.Created.Unix()
	}
	return model{ID: m.Name, Object: "model", Created: created, OwnedBy: m.Owner}
}

func showModel(m wire.Model) any { return newModel(m) }

func listModels(all []wire.Model) any {
	return struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", wire.Each(all, newModel)}
}

var messageSigns = []wire.Sign{
	{Rank: 60, Because: "its messages have Chat Completions parts", Holds: func(m wire.Object) bool { return wire.Any(wire.Blocks(m), isPart) }},
	wire.TypedParts,
	wire.TextContent,
	{Rank: 100, Because: "its calls have strings as arguments", Holds: func(m wire.Object) bool {
		return wire.Any(wire.Calls(m), func(c wire.Object) bool { return wire.ArgumentsStart(c, '"') || c.In("custom").Has("name") })
	}},
	{Rank: 120, Because: `its messages have a "tool_call_id"`, Holds: func(m wire.Object) bool {
		return wire.Any(m.List("messages"), func(m wire.Object) bool { return m.Has("tool_call_id") && !m.Has("tool_name") })
	}},
	{Rank: 130, Because: "its messages have Chat Completions roles or fields", Holds: func(m wire.Object) bool {
		return wire.Any(m.List("messages"), func(m wire.Object) bool {
			return m.Is("role", string(dragoman.RoleDeveloper)) || m.Is("role", "function") || m.Has("function_call", "refusal", "reasoning_content", "reasoning_details")
		})
	}},
	wire.ToolMessages,
}

var signs = wire.Signs{
	Rank:     0,
	Response: []wire.Sign{wire.HasField(10, "choices"), wire.ErrorMessage},
	Stream:   []wire.Sign{{Rank: 20, Because: `its events have "choices"`, Holds: func(m wire.Object) bool { return m.Has("choices") }}},
	Tool: []wire.Sign{wire.FunctionTool, {Rank: 20, Because: `it has a "custom" tool`, Holds: func(m wire.Object) bool {
		return m.Is("type", "custom") && m.In("custom").Has("name", "format")
	}}},
	Request: [4][]wire.Sign{
		{wire.HasMessages},
		append([]wire.Sign{wire.HasFunctions, {Rank: 30, Because: `it has a "custom" tool`, Holds: func(m wire.Object) bool {
			return wire.Any(m.List("tools"), func(t wire.Object) bool { return t.In("custom").Has("name") })
		}}}, messageSigns...),
		{
			wire.HasThinking,
			{Rank: 60, Because: `its "tool_choice" has a Chat Completions form`, Holds: func(m wire.Object) bool {
				choice := m.In("tool_choice")
				return m.IsText("tool_choice") || choice.Is("type", "function") || choice.Is("type", "allowed_tools")
			}},
			{Rank: 80, Because: "it has Chat Completions settings", Holds: func(m wire.Object) bool {
				return m.Has("max_completion_tokens", "response_format", "stream_options", "reasoning_effort", "functions", "function_call", "parallel_tool_calls",
					"logprobs", "top_logprobs", "logit_bias", "n", "stop", "seed", "frequency_penalty", "presence_penalty", "modalities", "prediction", "web_search_options", "verbosity")
			}},
		},
		{wire.SystemFirst, wire.CommonSettings},
	},
	Messages: [3][]wire.Sign{{wire.RolesAndContent}, messageSigns, {wire.SystemMessage}},
}

func isPart(b wire.Object) bool {
	switch b.Text("type") {
	case "image_url", "input_audio", "video_url", "audio_url", "refusal":
		return true
	case "file":
		return b.Has("file")
	}
	return false
}
