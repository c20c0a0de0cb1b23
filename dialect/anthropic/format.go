package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// format describes the blocks of the Messages API.
var format = &blockwire.Format{
	Dialect: name, API: "anthropic",
	Limits: Codec{}.Limits, Tools: toolCodecs,
	Messages: messagesAt, Literal: literal,
	DecodeError: Codec{}.DecodeError, EncodeError: Codec{}.EncodeError,

	IDPrefix: "toolu_", Content: "/content", StrayFields: strayFields,
	StopField: "stop_reason", StopAt: "/stop", StopWord: stopWord,
	MaxTokens: "max_tokens", Thinker: "the API", NotWhileThinking: "the API does not take it while the model thinks",
	AnswerSchema: func() schema.Profile { return strictProfile.ForAnswers() },

	WriteText: func(_ toolwire.View, w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
		writeText(w, t, at, rep)
	},
	WriteMedia: writeMedia, WriteReasoning: writeReasoning,
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"input", "input_schema", "schema"}}

// stopWord is the nearest word for a reason that Claude has no word for on every
// API.
func stopWord(reason dragoman.StopReason, calls bool) (word string, exact bool) {
	switch reason {
	case dragoman.StopRefusal:
		return "refusal", true
	case dragoman.StopContentFilter:
		return "refusal", false
	case dragoman.StopPause:
		return "pause_turn", true
	case dragoman.StopCompaction:
		return "compaction", true
	default: // malformed call, error, canceled, unknown
		if calls {
			return "max_tokens", false
		}
		return "end_turn", false
	}
}

// typeDelta is the type of a piece of a stream, which some frameworks leave in
// the content of a message.
const typeDelta = "input_json_delta"

// strayFields are the fields that no block of a request may have. The API answers
// "Extra inputs are not permitted" to each (quirk D32). What it sends itself, as the
// caller of a call, is none of them and goes back.
func strayFields(p dragoman.Part) []string {
	switch p.(type) {
	case *dragoman.ToolCall:
		return []string{"/index", "/signature", "/partial_json"}
	case *dragoman.ToolResult:
		return []string{"/index", "/id"}
	default:
		return []string{"/index"}
	}
}
