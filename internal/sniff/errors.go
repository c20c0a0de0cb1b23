package sniff

import (
	"errors"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
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
func notChat(m members) error {
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
	holds         func(members) bool
}

const (
	embeddings  = "a request for embeddings"
	completions = "a request for a completion of plain text"
	reranking   = "about ranking documents"
)

// others are told by what no chat API has in that place.
var others = []other{
	{embeddings, `it has "input" beside "encoding_format", "dimensions", "input_type" or "truncate"`, func(m members) bool {
		return m.has("input") && m.has("encoding_format", "dimensions", "input_type", "output_dimension", "truncate") && !converses(m)
	}},
	{embeddings, `its "input" is a list of texts or tokens`, func(m members) bool {
		return isListOfScalars(m["input"]) && !converses(m)
	}},
	{embeddings, `it has nothing but "input" and a model for embeddings`, func(m members) bool {
		return m.has("input") && strings.Contains(string(m["model"]), "embed") && !converses(m)
	}},
	{embeddings, `it has "content" with parts, and "contents" nowhere`, func(m members) bool {
		return has(m["content"], "parts") && !m.has("contents", "candidates", "finishReason")
	}},
	{completions, `it has a "prompt" of text`, func(m members) bool {
		return (isText(m["prompt"]) || isListOfScalars(m["prompt"])) && !m.has("messages", "contents", "input", "choices", "candidates")
	}},
	{reranking, `it has "query" and "documents"`, func(m members) bool { return m.has("query") && m.has("documents") && !m.has("messages") }},
	{reranking, "its results have a score of relevance", func(m members) bool {
		return some(elementsOf(m["results"]), func(r members) bool { return r.has("relevanceScore", "relevance_score") })
	}},
	{"an answer with embeddings", `it has "embeddings", or "data" with an "embedding"`, func(m members) bool {
		return m.has("embeddings", "embedding") && !m.has("messages", "input") ||
			some(elementsOf(m["data"]), func(el members) bool { return el.has("embedding") })
	}},
	{"a completion of plain text", `its choices have a "text" and no message`, func(m members) bool {
		return some(elementsOf(m["choices"]), func(c members) bool { return c.has("text") && !c.has("message", "delta") })
	}},
	{"a completion of plain text", `it has "response" and "done"`, func(m members) bool {
		return isText(m["response"]) && m.has("done") && !m.has("message")
	}},
}

// converses reports whether a request with an input is one for an answer.
func converses(m members) bool {
	return m.has("messages", "instructions", "tools", "previous_response_id", "max_output_tokens", "reasoning", "text", "stream", "conversation")
}
