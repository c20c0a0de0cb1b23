// Package bedrock implements the wire format of the Converse and ConverseStream
// operations of Amazon Bedrock.
//
//	codec := bedrock.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// POST enc.Body to /model/{req.Model}/converse, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// The URL contains two settings that other dialects have in the body: the model
// (/model/{modelId}/…) and whether to stream (…/converse or …/converse-stream).
// [dragoman.Request].Model and Stream hold them; the code that builds or serves
// the URL reads and sets them. The encoder omits both from the body and reports
// that they moved. Setting them on a decoded request does not change its bytes.
// If a client puts "modelId" or "model" into the body anyway, the decoder reads
// it as the model, and the encoder updates it. A response names no model and
// has no id, so both are empty after decoding.
//
// Streams are binary: frames of the AWS event stream, each with headers and a
// JSON payload.
//
// A user message that contains only tool results decodes with
// [dragoman.RoleTool]; one that also contains other blocks stays a user
// message. Both are user messages on the wire. A cache point is a separate
// block on the wire, and the Cache field of the part before it in the canonical
// form.
package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.Bedrock

// defaultMaxTokens is the limit that Converse applies to Claude if the request
// sets no limit.
const defaultMaxTokens = 4096

// The formats of native records that are not tool objects.
const (
	formatChoice dragoman.Format = "bedrock.converse.tool_choice"
	formatError  dragoman.Format = "bedrock.converse.error"
)

// Codec reads and writes Bedrock Converse. The zero value is ready to use.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect: name,
		Name:    targets.NameRule{First: "a-zA-Z", Rest: "a-zA-Z0-9_-", Max: 64},
		// Newer documents allow dots and colons too; not every model does.
		ID:                  targets.IDRule{Chars: "a-zA-Z0-9_-", Max: 64},
		ModelInURL:          true,
		SchemaFormats:       []dragoman.Format{toolformat.BedrockTool},
		ToolSchema:          "bedrock.tool",
		StrictSchema:        "bedrock.strict",
		MediaRoles:          []dragoman.Role{dragoman.RoleUser, dragoman.RoleTool},
		MaxCacheBreakpoints: 4,
		Replay: targets.ReplayRules{
			Messages: targets.MatchDialect,
			ItemIDs:  targets.MatchDialect,
			// A signature proves to the model that it wrote the text itself.
			Reasoning: targets.MatchDialect | targets.MatchProvider | targets.MatchModel,
		},
		ResultMedia:     true,
		ErrorFlag:       true,
		GroupedResults:  true,
		OrderedResults:  true,
		ToolsForHistory: true,
		UniqueIDs:       true,
		ReasoningFirst:  true,
		NoBlankText:     true,
		UserFirst:       true,
		NoMidSystem:     true,
		SignedReasoning: true,
		ReasoningInLoop: true,
		NoMediaURL:      true,
		NoMediaFileID:   true,
		StorageURLs:     []string{"s3://"},
		MaxImages:       20,
		MaxDocuments:    5,
		TextWithFiles:   true,
		GrowthExceptions: []string{
			"cache markers: at most four are written, the last ones",
			"the cache point at the end of the prompt moves with that end",
			"a late duplicate result replaces the earlier one in its position",
			"white space at the end of an assistant message is cut only while that message is the last",
			"a system message inside the conversation becomes user text when a user message follows it",
			"the message synthesized to open an empty conversation is replaced by the first real one",
		},
	}
}
