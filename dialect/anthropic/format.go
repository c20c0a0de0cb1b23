package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// format describes the Messages dialect to package blockwire.
var format = &blockwire.Format{
	Dialect: name, API: "anthropic",
	Limits: Codec{}.Limits, Tools: toolCodecs,
	Messages: messagesAt, Literal: literal,
	DecodeError: Codec{}.DecodeError, EncodeError: Codec{}.EncodeError,

	IDPrefix: "toolu_", Content: "/content", UnsendableFields: forbiddenFields,
	StopField: "stop_reason", StopAt: "/stop", StopWord: nearestStop,
	MaxTokens: "max_tokens", Thinker: "the API", NotWhileThinking: "the API does not accept it while the model thinks",
	ResponseSchema: func() schema.Profile { return strictProfile.ForOutput() },

	WriteText: func(_ toolwire.View, w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
		writeText(w, t, at, rep)
	},
	WriteMedia: writeMedia, WriteReasoning: writeReasoning,
}

// literal lists the fields whose contents are read literally.
var literal = jsonwire.Literal{Fields: []string{"input", "input_schema", "schema"}}

// nearestStop returns the nearest stop reason for a reason that not every Claude
// API has.
func nearestStop(reason dragoman.StopReason, calls bool) (native string, exact bool) {
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

// typeDelta is the type of a stream delta, which some frameworks leave in the
// content of a message.
const typeDelta = "input_json_delta"

// forbiddenFields lists the fields that must not be in a block of a request. The
// API answers "Extra inputs are not permitted" to each (quirk D32). Fields that
// the API itself sends, such as the caller of a call, are not listed and are
// sent back.
func forbiddenFields(p dragoman.Part) []string {
	switch p.(type) {
	case *dragoman.ToolCall:
		return []string{"/index", "/signature", "/partial_json"}
	case *dragoman.ToolResult:
		return []string{"/index", "/id"}
	default:
		return []string{"/index"}
	}
}
