package sniff

import (
	"errors"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// ErrUnknown says that something is like nothing that is known.
var ErrUnknown = errors.New("cannot tell what it is")

// NotChatError says that something belongs to another API of a vendor, one
// that does not converse.
type NotChatError struct {
	// What it is instead, such as "a request for embeddings".
	What string
	// Because names what told.
	Because string
}

func (e *NotChatError) Error() string {
	return "this is " + e.What + " (" + e.Because + "), which no chat API takes"
}

// AmbiguousError says that something has what only one dialect has, and what only
// another has.
type AmbiguousError struct {
	Kind Kind
	// Fits are the dialects that it could be.
	Fits []dragoman.Dialect
	// Because names what spoke for each.
	Because []string
}

func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Fits))
	for i, d := range e.Fits {
		names[i] = string(d)
	}
	return "this " + string(e.Kind) + " contradicts itself: " + strings.Join(e.Because, ", but ") +
		"; it could be " + strings.Join(names, " or ")
}

// notChat recognises what other APIs send and answer.
func notChat(m wire.Object) error {
	for _, s := range others {
		if s.holds(m) {
			return &NotChatError{What: s.what, Because: s.because}
		}
	}
	return nil
}

// other is what tells an API that does not converse.
type other struct {
	what, because string
	holds         func(wire.Object) bool
}

const (
	embeddings  = "a request for embeddings"
	completions = "a request for a completion of plain text"
	reranking   = "about ranking documents"
)

// others are told by what no chat API has in that place.
var others = []other{
	{embeddings, `it has "input" beside "encoding_format", "dimensions", "input_type" or "truncate"`, func(m wire.Object) bool {
		return m.Has("input") && m.Has("encoding_format", "dimensions", "input_type", "output_dimension", "truncate") && !converses(m)
	}},
	{embeddings, `its "input" is a list of texts or tokens`, func(m wire.Object) bool {
		return m.IsScalars("input") && !converses(m)
	}},
	{embeddings, `it has nothing but "input" and a model for embeddings`, func(m wire.Object) bool {
		return m.Has("input") && strings.Contains(string(m["model"]), "embed") && !converses(m)
	}},
	{embeddings, `it has "content" with parts, and "contents" nowhere`, func(m wire.Object) bool {
		return m.In("content").Has("parts") && !m.Has("contents", "candidates", "finishReason")
	}},
	{completions, `it has a "prompt" of text`, func(m wire.Object) bool {
		return (m.IsText("prompt") || m.IsScalars("prompt")) && !m.Has("messages", "contents", "input", "choices", "candidates")
	}},
	{reranking, `it has "query" and "documents"`, func(m wire.Object) bool { return m.Has("query") && m.Has("documents") && !m.Has("messages") }},
	{reranking, "its results have a score of relevance", func(m wire.Object) bool {
		return wire.Any(m.List("results"), func(r wire.Object) bool { return r.Has("relevanceScore", "relevance_score") })
	}},
	{"an answer with embeddings", `it has "embeddings", or "data" with an "embedding"`, func(m wire.Object) bool {
		return m.Has("embeddings", "embedding") && !m.Has("messages", "input") ||
			wire.Any(m.List("data"), func(el wire.Object) bool { return el.Has("embedding") })
	}},
	{"a completion of plain text", `its choices have a "text" and no message`, func(m wire.Object) bool {
		return wire.Any(m.List("choices"), func(c wire.Object) bool { return c.Has("text") && !c.Has("message", "delta") })
	}},
	{"a completion of plain text", `it has "response" and "done"`, func(m wire.Object) bool {
		return m.IsText("response") && m.Has("done") && !m.Has("message")
	}},
}

// converses reports whether a request with an input is one for an answer.
func converses(m wire.Object) bool {
	return m.Has("messages", "instructions", "tools", "previous_response_id", "max_output_tokens", "reasoning", "text", "stream", "conversation")
}
