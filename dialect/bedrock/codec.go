// Package bedrock is the wire language of Amazon Bedrock's Converse and
// ConverseStream.
//
//	codec := bedrock.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// POST enc.Body to /model/{req.Model}/converse, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// Two things that other wires say in the body are told by the URL here: the
// model (/model/{modelId}/…) and whether the answer is streamed (…/converse or
// …/converse-stream). They are carried by [dragoman.Request].Model and Stream,
// and who makes the URL, or serves it, reads and sets them: encoding leaves
// them out of the body and reports that they moved, and setting them on a
// decoded request leaves its bytes as they came. A "modelId" or "model" that a client put into
// the body all the same is read as the model, and follows it. An answer names
// no model and has no id, so that both are empty in a decoded response.
//
// Streams are binary: the frames of AWS's event stream, each a header and a
// JSON payload.
//
// A user message that holds nothing but tool results decodes with
// [dragoman.RoleTool]; one that holds other blocks beside them stays a user
// message. Both are user messages on the wire. A cache point is a block of its
// own on the wire, and the Cache of the part before it in the canonical form.
package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.Bedrock

// defaultMaxTokens is the bound that Converse applies to Claude where a request has none.
const defaultMaxTokens = 4096

// The formats of native records that are no tool objects.
const (
	formatChoice dragoman.Format = "bedrock.converse.tool_choice"
	formatError  dragoman.Format = "bedrock.converse.error"
)

// Codec reads and writes Bedrock Converse. The zero value is ready.
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
			// A signature proves a text to the model that wrote it.
			Reasoning: targets.MatchDialect | targets.MatchProvider | targets.MatchModel,
		},
		ResultMedia:     true,
		ErrorFlag:       true,
		GroupedResults:  true,
		OrderedResults:  true,
		ToolsForHistory: true,
		UniqueIDs:       true,
		ReasoningLeads:  true,
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
		TextBesideFiles: true,
		GrowthExceptions: []string{
			"cache markers: at most four are written, the last ones",
			"the cache point at the end of the prompt moves with that end",
			"a late duplicate result replaces the earlier one in its place",
			"white space at the end of an assistant message is cut only while that message is the last",
			"a system message inside the conversation becomes user text when a user message follows it",
			"the message that opens a conversation without any gives way to the first that comes",
		},
	}
}
