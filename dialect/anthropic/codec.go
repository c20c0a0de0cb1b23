// Package anthropic implements the wire format of Anthropic Messages, in both
// API versions (2023-06-01 and 2026-10-21), and of servers compatible with it.
//
//	codec := anthropic.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// The two versions differ in what they reject, not in shape. The newer one
// rejects sampling parameters, which [targets.Capabilities].NoSampling
// declares, and citations on user text, which the encoder removes from every
// message that it re-encodes.
//
// A user message that contains only tool results decodes with
// [dragoman.RoleTool]; one that also contains other blocks stays a user
// message. Both are user messages on the wire.
package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.Anthropic

// defaultMaxTokens is the max_tokens written if the request sets no maximum:
// the wire requires one. Every model since Claude 3 accepts it.
// [targets.Capabilities].DefaultMaxTokens is the larger default of a model that
// accepts more.
const defaultMaxTokens = 4096

// The formats of native records that are not tool objects.
const (
	formatChoice  dragoman.Format = "anthropic.messages.tool_choice"
	formatDetails dragoman.Format = "anthropic.messages.stop_details"
	formatError   dragoman.Format = "anthropic.messages.error"
)

// Codec reads and writes Anthropic Messages. The zero value is ready to use.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:             name,
		Name:                targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 128},
		ID:                  targets.IDRule{Chars: "a-zA-Z0-9_-"},
		SchemaFormats:       []dragoman.Format{toolformat.AnthropicTool},
		ToolSchema:          "anthropic.tool",
		StrictSchema:        "anthropic.strict",
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
		UniqueIDs:       true,
		ToolsForHistory: true,
		NoBlankText:     true,
		SignedReasoning: true,
		ReasoningInLoop: true,
		ReasoningFirst:  true,
		UserFirst:       true,
		StoredBy:        []string{"thread"},
		GrowthExceptions: []string{
			"cache markers: at most four are written, the last ones",
			"a late duplicate result replaces the earlier one in its position",
			"white space at the end of an assistant message is cut only while that message is the last",
			"a system message inside the conversation becomes user text when a user message follows it",
			"the message synthesized to open an empty conversation is replaced by the first real one",
		},
	}
}
