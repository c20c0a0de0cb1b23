// Package gemini is the wire language of Google's generateContent, on the
// Gemini Developer API and on Vertex AI, and of the servers that speak it.
//
//	codec := gemini.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body to …/models/{req.Model}:generateContent, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// The model, and whether to stream, stand in the URL and not in the body. An
// encoder leaves both out and says so in its report; a decoder finds neither,
// and who has the URL sets [dragoman.Request].Model and Stream. A body that
// names its model all the same, as the clients of the older library do, gives
// it as it stands ("models/…"), and gets it back.
//
// Members are read in lowerCamelCase and in snake_case and written in the
// first. Tool schemas are written as JSON Schema (parametersJsonSchema) unless
// [targets.Capabilities].ClosedSchemas asks for the closed subset
// (parameters).
//
// Thought signatures are kept on the part they came with and go back to the
// model that made them. The first call of a turn that came from elsewhere
// carries the signature the API reserves for that, unless the capability
// NoDummySignature says that the model needs none.
//
// A user content that holds nothing but function responses decodes with
// [dragoman.RoleTool]; one that holds other parts beside them stays a user
// message. Both are user contents on the wire.
//
// A stream is read in both framings that the API has, server-sent events and
// one JSON array, and written as events unless [Codec].Array is set.
package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.Gemini

// skipSignature is the signature the API takes in place of one that it did not
// make. It says nothing, and is no loss toward others (quirk B16).
const skipSignature = toolwire.NoSignature

// The formats of native records that are no tool objects.
const (
	formatChoice   dragoman.Format = "gemini.generate_content.function_calling_config"
	formatFeedback dragoman.Format = "gemini.generate_content.prompt_feedback"
	formatError    dragoman.Format = "gemini.generate_content.error"
)

// Codec reads and writes generateContent. The zero value is ready.
type Codec struct {
	// Array writes streams as one JSON array, which is what a client gets that
	// does not ask for alt=sse (quirk C29). Both are read in any case.
	Array bool
}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:          name,
		Name:             targets.NameRule{First: "a-zA-Z_", Rest: "a-zA-Z0-9_.:-", Max: 128},
		ModelInURL:       true,
		SchemaFormats:    []dragoman.Format{toolformat.GeminiFunction},
		ToolSchema:       "gemini.json_schema",
		MediaRoles:       []dragoman.Role{dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool},
		NoMediaFileID:    true,
		StorageURLs:      []string{"gs://", "https://generativelanguage.googleapis.com/"},
		MaxTools:         512,
		MaxStopSequences: 5,
		Replay: targets.ReplayRules{
			Messages: targets.MatchDialect,
			ItemIDs:  targets.MatchDialect,
			// A signature is bound to the model that made it.
			Reasoning: targets.MatchDialect | targets.MatchProvider | targets.MatchModel,
		},
		ResultMedia:    true,
		ErrorFlag:      true,
		GroupedResults: true,
		OrderedResults: true,
		ResultNames:    true,
		NoBlankText:    true,
		UserFirst:      true,
		NoMidSystem:    true,
		DummySignature: skipSignature,
		GrowthExceptions: []string{
			"a late duplicate result replaces the earlier one in its place, and a late one stands before the media of those beside it",
			"the content that opens a conversation without any gives way to the first that comes",
		},
	}
}
