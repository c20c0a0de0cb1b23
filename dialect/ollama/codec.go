// Package ollama implements the wire dialect of the native Ollama chat API, POST /api/chat.
//
//	codec := ollama.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// It differs from the other dialects in four ways:
//
//   - A request without a stream field asks for a stream.
//   - A stream consists of lines of JSON, and each call is complete within one line.
//   - Calls of older servers have no ids. Their results are matched by tool name and order.
//   - There is no tool choice. For the choice "none", no tools are sent. A forced call is left to
//     the model, which is reported as a loss.
//
// The registry of a request stores what its tool choice allows, so that a call the model makes
// anyway does not run. Decode the response with that registry.
package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.Ollama

// formatError is the format of an error body.
const formatError dragoman.Format = "ollama.chat.error"

// Codec reads and writes Ollama's chat API. The zero value is ready.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:       name,
		SchemaFormats: []dragoman.Format{toolformat.OllamaFunction},
		ToolSchema:    "ollama.tool",
		MediaRoles:    []dragoman.Role{dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool},
		MediaKinds:    []string{codes.MediaImage, codes.MediaAudio},
		NoMediaURL:    true,
		NoMediaFileID: true,
		Replay: targets.ReplayRules{
			Messages: targets.MatchDialect,
			// Thinking is plain text here: it is not signed.
			Reasoning: targets.MatchDialect,
		},
		ResultMedia:    true,
		ResultNames:    true,
		OrderedResults: true,
		// Messages decoded from this dialect are not merged.
		SeparateMessages: true,
		GrowthExceptions: []string{
			"an assistant message that ends the list gains text and calls when another assistant message is appended",
		},
	}
}
