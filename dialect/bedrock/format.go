package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// format describes the Converse dialect to package blockwire.
var format = &blockwire.Format{
	Dialect: name, API: "bedrock",
	Limits: Codec{}.Limits, Tools: toolCodecs,
	Messages: messagesAt, Literal: literal,
	DecodeError: Codec{}.DecodeError, EncodeError: Codec{}.EncodeError,

	IDPrefix: "tooluse_", CallPlace: []int{0}, Content: "/output/message/content", UnsendableFields: forbiddenFields,
	StopField: "stopReason", StopAt: "/stopReason", StopWord: nearestStop,
	StopWords: map[string]dragoman.StopReason{
		"guardrail_intervened": dragoman.StopContentFilter,
		"malformed_tool_use":   dragoman.StopMalformedCall, "malformed_model_output": dragoman.StopError,
	},
	MaxTokens: "maxTokens", Thinker: "the model", NotWhileThinking: "the model does not accept it while it thinks",
	ResponseSchema: func() schema.Profile { return strictProfile.ForOutput() }, SchemaNames: true,

	WriteText: writeText, WriteMedia: writeMedia, WriteReasoning: writeReasoning,
	WriteCachePoint: writeCachePoint,
	IsCachePoint:    func(raw []byte) bool { return cacheHint(raw) != nil },
	ResponseMedia:   true,
}

// literal lists the fields whose contents are read literally.
var literal = jsonwire.Literal{Fields: []string{"input", "json"}}

// nearestStop returns the nearest stop reason for a reason that not every Claude
// API has.
func nearestStop(reason dragoman.StopReason, calls bool) (native string, exact bool) {
	switch reason {
	case dragoman.StopContentFilter:
		return "content_filtered", true
	case dragoman.StopRefusal:
		return "content_filtered", false
	case dragoman.StopMalformedCall:
		return "malformed_tool_use", true
	case dragoman.StopError:
		return "malformed_model_output", true
	case dragoman.StopCanceled:
		return "malformed_model_output", false
	case dragoman.StopPause:
		if calls {
			return "tool_use", false
		}
		return "end_turn", false
	default: // compaction, unknown
		if calls {
			return "malformed_model_output", false
		}
		return "end_turn", false
	}
}

// forbiddenFields lists the fields that must not be in a block of a request: the
// index of the block in a stream, on the block or inside it, and fields of the
// Anthropic API (quirk D32).
func forbiddenFields(p dragoman.Part) []string {
	switch p.(type) {
	case *dragoman.Reasoning:
		return []string{"/index", "/contentBlockIndex", inReasoning + "/index", inReasoning + "/contentBlockIndex", inText + "/index"}
	case *dragoman.ToolCall:
		return []string{
			"/index", "/contentBlockIndex", "/toolUse/index", "/toolUse/contentBlockIndex",
			"/toolUse/signature", "/toolUse/partial_json", "/toolUse/caller",
		}
	case *dragoman.ToolResult:
		return []string{"/index", "/contentBlockIndex", "/toolResult/index", "/toolResult/contentBlockIndex", "/toolResult/id"}
	default:
		return []string{"/index", "/contentBlockIndex"}
	}
}
