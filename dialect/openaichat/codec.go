// Package openaichat implements the wire dialect of OpenAI Chat Completions, including the
// variations of the many compatible servers.
//
//	codec := openaichat.Codec{}
//	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body, then
//	resp, report, err := codec.DecodeResponse(body, dialect.DecodeOptions{Registry: enc.Registry})
//
// Differences between servers are never guessed from names. They are data in
// [targets.Capabilities].
package openaichat

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/targets"
)

const name = dialectname.OpenAIChat

// Codec reads and writes Chat Completions. The zero value is ready.
type Codec struct{}

var _ dialect.Codec = Codec{}

// Dialect implements [dialect.Codec].
func (Codec) Dialect() dragoman.Dialect { return name }

// Limits implements [dialect.Codec].
func (Codec) Limits() targets.Limits {
	return targets.Limits{
		Dialect:             name,
		Name:                targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64},
		ID:                  targets.IDRule{Max: 40},
		SchemaFormats:       []dragoman.Format{toolformat.ChatFunction, toolformat.ChatCustom},
		ToolSchema:          "openai.tool",
		StrictSchema:        "openai.strict",
		MediaRoles:          []dragoman.Role{dragoman.RoleUser},
		MaxTools:            128,
		MaxStopSequences:    4,
		MaxCacheBreakpoints: 4,
		Replay: targets.ReplayRules{
			Messages:  targets.MatchDialect,
			Reasoning: targets.MatchDialect | targets.MatchProvider,
		},
		ArgumentsAsString: true,
		SeparateMessages:  true,
		GrowthExceptions: []string{
			"cache markers: at most four are written, the last ones",
			"an assistant message that ends the list gains text and calls when another assistant message is appended",
			"a user message with the media of tool results moves after results that are appended to the same batch",
		},
	}
}
