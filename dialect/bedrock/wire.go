package bedrock

import (
	"net/url"
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
	Names: []string{"bedrock"},
	Body: wire.Body{
		Messages: messagesAt.Field, Tools: "/toolConfig/tools", ToolSettings: []string{"/toolConfig/toolChoice"}, Response: "/output/message",
		Roles: []string{"user", "assistant"},
	},
	// The base URL names a region.
	Endpoint: wire.Endpoint{Path: "/model/{model}/converse", StreamPath: "/model/{model}/converse-stream", Vendor: "bedrock"},
	Providers: []wire.Provider{{
		Names: []string{"bedrock"}, TokenEnv: "AWS_BEARER_TOKEN_BEDROCK", Signature: "bedrock", BaseEnv: []string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}, Place: &region,
	}},
	Headers: wire.Headers{
		RequestID: "X-Amzn-Requestid", ErrorType: "X-Amzn-Errortype",
		Shown: []string{"X-Amzn-Errortype", "X-Amzn-Requestid"}, ShownPrefixes: []string{"X-Amzn-Bedrock-"},
	},
	Stream: wire.Stream{
		Framing: framing.EventStream,
		End:     wire.End{Names: []string{"messageStop", "metadata"}, Last: []string{"metadata"}},
		Usage:   wire.NewField("usage"),
	},
	Serving: wire.Serving{
		Routes:        []wire.Route{{Path: "/model/{rest...}", Read: readURL}},
		SimulatorOnly: true,
	},
	Signs: wire.Signs{
		Rank:   5,
		Binary: true,
		Response: []wire.Sign{
			{Rank: 40, Because: `it has "output" and "stopReason"`, Holds: func(m wire.Object) bool { return m.Has("output") && m.Has("stopReason") }},
			{Rank: 100, Because: `it is an error of AWS, with a "__type"`, Holds: func(m wire.Object) bool { return m.IsText("__type") && !wire.IsRequest(m) }},
		},
		Stream: []wire.Sign{{Rank: 60, Because: "its frames are of a conversation", Holds: func(m wire.Object) bool {
			return m.Has("contentBlockIndex", "stopReason") || m.Has("role") && m.Has("p")
		}}},
		Tool: []wire.Sign{wire.HasField(60, "toolSpec")},
		Request: [4][]wire.Sign{
			{wire.HasMessages, {Rank: 60, Because: `it has "inferenceConfig", "toolConfig" or the like`, Holds: func(m wire.Object) bool {
				return m.Has("inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig") && !m.Has("contents", "input")
			}}},
			append([]wire.Sign{{Rank: 150, Because: `its "system" is made of blocks without a type`, Holds: func(m wire.Object) bool {
				return wire.Any(m.List("system"), isBlock)
			}}}, messageSigns...),
			{wire.SystemField},
		},
		Messages: [3][]wire.Sign{{wire.RolesAndContent}, messageSigns},
	},
	Simulator: wire.Simulator{
		Faults: strings.Fields("c4 c7 c10 c19 c21 c33"),
		Text:   wire.Fragment{Path: []any{"delta"}, Field: "text"},
		Input:  wire.Fragment{Path: []any{"delta", "toolUse"}, Field: "input"},
		Block:  "contentBlockIndex",
	},
}

// region describes where a model is on AWS.
var region = wire.Place{
	Settings: []wire.PlaceSetting{{Name: "region", Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}}},
	BaseURL: func(host string, value func(string) string) (base, missing string) {
		if host != "" {
			return host, ""
		}
		region, domain := value("region"), ".amazonaws.com"
		if region == "" {
			missing = "region"
		}
		if strings.HasPrefix(region, "cn-") {
			domain = ".amazonaws.com.cn"
		}
		return "https://bedrock-runtime." + url.PathEscape(region) + domain, missing
	},
}

// readURL reads /model/{model}/converse and /model/{model}/converse-stream.
func readURL(_, rest string, _ url.Values) (wire.Call, bool) {
	if model, ok := strings.CutSuffix(rest, "/converse"); ok {
		return wire.Call{InURL: true, Model: model}, true
	}
	model, ok := strings.CutSuffix(rest, "/converse-stream")
	return wire.Call{InURL: true, Model: model, Stream: true}, ok
}

var messageSigns = []wire.Sign{{Rank: 40, Because: `its blocks have no type, only "toolUse", "toolResult" or "text"`, Holds: func(m wire.Object) bool {
	return wire.Any(wire.Blocks(m), isBlock)
}}}

// isBlock reports whether a block is recognized by its only field, and not by a type.
func isBlock(b wire.Object) bool {
	return !b.Has("type") && b.Has("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint", "guardContent", "video")
}
