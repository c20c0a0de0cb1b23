package sniff

import (
	"errors"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// ErrUnknown reports that a document is not recognized.
var ErrUnknown = errors.New("unknown format")

// NotChatError reports a document of another API of a vendor that is not a chat API.
type NotChatError struct {
	// What describes the document, such as "a request for embeddings".
	What string
	// Because describes how it was recognized.
	Because string
}

func (e *NotChatError) Error() string {
	return "this is " + e.What + " (" + e.Because + "), which is not a chat request or response"
}

// AmbiguousError reports a document that has properties of two dialects that exclude
// each other.
type AmbiguousError struct {
	Kind Kind
	// Fits are the dialects that it could be.
	Fits []dragoman.Dialect
	// Because describes the property found for each.
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

// notChat recognizes requests and responses of other APIs.
func notChat(m wire.Object) error {
	for _, s := range others {
		if s.holds(m) {
			return &NotChatError{What: s.what, Because: s.because}
		}
	}
	return nil
}

// otherAPI describes a document of an API that is not a chat API.
type otherAPI struct {
	what, because string
	holds         func(wire.Object) bool
}

const (
	embeddings  = "a request for embeddings"
	completions = "a request for a completion of plain text"
	reranking   = "about ranking documents"
)

// others are recognized by properties that no chat API has in that position.
var others = []otherAPI{
	{embeddings, `it has "input" together with "encoding_format", "dimensions", "input_type" or "truncate"`, func(m wire.Object) bool {
		return m.Has("input") && m.Has("encoding_format", "dimensions", "input_type", "output_dimension", "truncate") && !isChatRequest(m)
	}},
	{embeddings, `its "input" is a list of texts or tokens`, func(m wire.Object) bool {
		return m.IsScalars("input") && !isChatRequest(m)
	}},
	{embeddings, `it has only "input" and an embedding model`, func(m wire.Object) bool {
		return m.Has("input") && strings.Contains(string(m["model"]), "embed") && !isChatRequest(m)
	}},
	{embeddings, `it has "content" with parts, and no "contents"`, func(m wire.Object) bool {
		return m.In("content").Has("parts") && !m.Has("contents", "candidates", "finishReason")
	}},
	{completions, `it has a "prompt" of text`, func(m wire.Object) bool {
		return (m.IsText("prompt") || m.IsScalars("prompt")) && !m.Has("messages", "contents", "input", "choices", "candidates")
	}},
	{reranking, `it has "query" and "documents"`, func(m wire.Object) bool { return m.Has("query") && m.Has("documents") && !m.Has("messages") }},
	{reranking, "its results have a relevance score", func(m wire.Object) bool {
		return wire.Any(m.List("results"), func(r wire.Object) bool { return r.Has("relevanceScore", "relevance_score") })
	}},
	{"a response with embeddings", `it has "embeddings", or "data" with an "embedding"`, func(m wire.Object) bool {
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

// isChatRequest reports whether a request with an input is a chat request.
func isChatRequest(m wire.Object) bool {
	return m.Has("messages", "instructions", "tools", "previous_response_id", "max_output_tokens", "reasoning", "text", "stream", "conversation")
}
