// Package openairesponses implements the wire dialect of OpenAI Responses: a conversation of
// items, each with its own id, and streams with about fifty kinds of events.
//
//	codec := openairesponses.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// Every item of an input or an output is one [dragoman.Message]. An unknown item (a hosted call,
// tool search, compaction, or a future kind) is one opaque part, and is sent back to this dialect
// unchanged.
package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.OpenAIResponses

// Codec reads and writes Responses. The zero value is ready.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:             name,
		Name:                targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64},
		ID:                  targets.IDRule{Max: 64},
		SchemaFormats:       []dragoman.Format{toolformat.ResponsesFunction, toolformat.ResponsesCustom},
		ToolSchema:          "openai.tool",
		StrictSchema:        "openai.strict",
		MediaRoles:          []dragoman.Role{dragoman.RoleUser, dragoman.RoleTool},
		MaxCacheBreakpoints: 4,
		Replay: targets.ReplayRules{
			Messages:  targets.MatchDialect | targets.MatchProvider,
			ItemIDs:   targets.MatchDialect | targets.MatchProvider | targets.MatchScope,
			Reasoning: targets.MatchDialect | targets.MatchProvider | targets.MatchScope,
		},
		ResultMedia:       true,
		ArgumentsAsString: true,
		LooseResults:      true,
		UniqueIDs:         true,
		AsyncCalls:        true,
		ReasoningFirst:    true,
		StoredBy:          []string{"previous_response_id", "conversation", "item_reference"},
		// Both are sent back only if the server stores the items.
		StrippedOnReplay: []string{"id", "status"},
		GrowthExceptions: []string{
			"cache markers: at most four are written, the last ones",
		},
	}
}
