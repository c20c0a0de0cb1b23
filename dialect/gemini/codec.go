// Package gemini implements the wire format of the generateContent API, on the
// Gemini Developer API, on Vertex AI, and on servers compatible with them.
//
//	codec := gemini.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body to …/models/{req.Model}:generateContent, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// The URL, not the body, names the model and selects streaming. The encoder
// omits both and reports that. The decoder finds neither; callers that have the
// URL set [dragoman.Request].Model and Stream. If a body names its model
// anyway, as clients of the older library do, the decoder stores the name
// unchanged ("models/…") and the encoder writes it back.
//
// The decoder accepts field names in lowerCamelCase and in snake_case; the
// encoder writes lowerCamelCase. Tool schemas are written as JSON Schema
// (parametersJsonSchema) unless [targets.Capabilities].ClosedSchemas selects
// the closed subset (parameters).
//
// Thought signatures stay on the part they arrived with and are sent back only
// to the model that made them. If a turn was made by another model, its first
// call gets the placeholder signature that the API reserves for this case,
// unless the capability NoDummySignature says that the model does not need one.
//
// A user content that contains only function responses decodes with
// [dragoman.RoleTool]; one that also contains other parts stays a user message.
// Both are user contents on the wire.
//
// The stream decoder reads both framings of the API, server-sent events and one
// JSON array. The stream encoder writes events unless [Codec].Array is set.
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

// skipSignature is the placeholder that the API accepts instead of a signature
// that it made. It carries no state, so dropping it for another target is not a
// loss (quirk B16).
const skipSignature = toolwire.DummySignature

// The formats of native records that are not tool objects.
const (
	formatChoice   dragoman.Format = "gemini.generate_content.function_calling_config"
	formatFeedback dragoman.Format = "gemini.generate_content.prompt_feedback"
	formatError    dragoman.Format = "gemini.generate_content.error"
)

// Codec reads and writes generateContent. The zero value is ready to use.
type Codec struct {
	// Array makes the stream encoder write one JSON array, which the API sends
	// to clients that do not ask for alt=sse (quirk C29). The decoder reads
	// both framings regardless.
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
			"a late duplicate result replaces the earlier one in its position, and a late result precedes the media of the other results in its turn",
			"the content synthesized to open an empty conversation is replaced by the first real one",
		},
	}
}
