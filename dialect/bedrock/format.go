package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// format describes the blocks of Converse.
var format = &blockwire.Format{
	Dialect: name, API: "bedrock",
	Limits: Codec{}.Limits, Tools: toolCodecs,
	Messages: messagesAt, Literal: literal,
	DecodeError: Codec{}.DecodeError, EncodeError: Codec{}.EncodeError,

	IDPrefix: "tooluse_", CallPlace: []int{0}, Content: "/output/message/content", StrayFields: strayFields,
	StopField: "stopReason", StopAt: "/stopReason", StopWord: stopWord,
	StopWords: map[string]dragoman.StopReason{
		"guardrail_intervened": dragoman.StopContentFilter,
		"malformed_tool_use":   dragoman.StopMalformedCall, "malformed_model_output": dragoman.StopError,
	},
	MaxTokens: "maxTokens", Thinker: "the model", NotWhileThinking: "the model does not accept it while it thinks",
	AnswerSchema: func() schema.Profile { return strictProfile.ForAnswers() }, SchemaNames: true,

	WriteText: writeText, WriteMedia: writeMedia, WriteReasoning: writeReasoning,
	WriteCachePoint: writeCachePoint,
	IsCachePoint:    func(raw []byte) bool { return cacheHint(raw) != nil },
	AnswerMedia:     true,
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"input", "json"}}

// stopWord is the nearest word for a reason that Claude has no word for on every
// API.
func stopWord(reason dragoman.StopReason, calls bool) (word string, exact bool) {
	switch reason {
	case dragoman.StopContentFilter:
		return "content_filtered", true
	case dragoman.StopRefusal:
		return "content_filtered", false
	case dragoman.StopMalformedCall:
		return "malformed_tool_use", true
	case dragoman.StopError:
		return "malformed_model_output", true
	case dragoman.StopCancelled:
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

// strayFields are the fields that no block of a request may have: the number of the
// block in a stream, on the block or in what it holds, and what belongs to blocks of
// Anthropic's own API (quirk D32).
func strayFields(p dragoman.Part) []string {
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
