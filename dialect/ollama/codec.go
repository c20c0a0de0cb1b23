// Package ollama is the wire language of Ollama's own chat API, POST /api/chat.
//
//	codec := ollama.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// Four things are unlike the other dialects. A request that says nothing about
// it asks for a stream. A stream is lines of JSON, and a call comes whole in one
// of them. Calls of older servers have no ids, and their results are told apart
// by the tool's name and their order. And there is no tool choice: a choice of
// none is made by sending no tools, one that forces a call is left to the model,
// which the report says. The registry of a request remembers what its choice
// allowed, so that a call that comes all the same does not run; decode the
// answer with it.
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

// formatError is that of an error body.
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
			// Thinking is a text like any other here: nobody signs it.
			Reasoning: targets.MatchDialect,
		},
		ResultMedia:    true,
		ResultNames:    true,
		OrderedResults: true,
		// Messages that came from this dialect stay apart.
		SeparateMessages: true,
		GrowthExceptions: []string{
			"an assistant message that ends the list gains text and calls when another assistant message is appended",
		},
	}
}
