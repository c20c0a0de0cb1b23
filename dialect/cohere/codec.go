// Package cohere implements the wire format of the Cohere chat API, version 2:
// POST /v2/chat.
//
//	codec := cohere.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// Version 1 of the API (POST /v1/chat) has another shape and is not supported.
//
// The dialect resembles OpenAI Chat, with these differences:
//
//   - A plan that the model writes before its calls, tool_plan, is decoded as
//     reasoning and encoded as tool_plan again.
//   - The only tool choices are required and none. To allow only some tools,
//     the encoder sends only those.
//   - strict_tools applies to all tools of a request.
//   - A result may be a JSON document.
//   - Responses do not name their model.
package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

const name dragoman.Dialect = "cohere.chat"

// The formats of the dialect's objects.
const (
	formatFunction dragoman.Format = "cohere.chat.function"
	formatCall     dragoman.Format = "cohere.chat.tool_call"
	formatResult                   = dragoman.Format(name)
	formatError    dragoman.Format = "cohere.chat.error"
)

// Codec reads and writes the Cohere chat API. The zero value is ready to use.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:          name,
		Name:             targets.NameRule{First: "a-zA-Z_", Rest: "a-zA-Z0-9_"},
		SchemaFormats:    []dragoman.Format{formatFunction},
		ToolSchema:       "cohere.tool",
		MediaRoles:       []dragoman.Role{dragoman.RoleUser},
		MediaKinds:       []string{codes.MediaImage},
		NoMediaFileID:    true,
		MaxStopSequences: 5,
		Replay: targets.ReplayRules{
			Messages: targets.MatchDialect,
			// Reasoning and plans are text without a signature.
			Reasoning: targets.MatchDialect,
		},
		ArgumentsAsString: true,
		SeparateMessages:  true,
		GrowthExceptions: []string{
			"an assistant message that ends the list gains text and calls when another assistant message is appended",
			"a user message with the media of tool results moves after results that are appended to the same batch",
		},
	}
}
