package conformance_test

import (
	"net/url"
	"testing"

	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/sim/conformance"
)

func at(path string) func(string, bool) string { return func(string, bool) string { return path } }

// inURL returns a path with the model in it; streams have a different method.
func inURL(before, whole, stream string) func(string, bool) string {
	return func(model string, streamed bool) string {
		if streamed {
			return before + url.PathEscape(model) + stream
		}
		return before + url.PathEscape(model) + whole
	}
}

func TestZ4_EveryDialectConforms(t *testing.T) {
	for name, d := range map[string]conformance.Dialect{
		"chat":                        {Codec: openaichat.Codec{}, Path: at("/v1/chat/completions")},
		"chat of a compatible server": {Codec: openaichat.Codec{}, Path: at("/v1/chat/completions"), ReasoningField: "reasoning_content"},
		"responses":                   {Codec: openairesponses.Codec{}, Path: at("/v1/responses")},
		"anthropic":                   {Codec: anthropic.Codec{}, Path: at("/v1/messages")},
		"gemini":                      {Codec: gemini.Codec{}, Path: inURL("/v1beta/models/", ":generateContent", ":streamGenerateContent?alt=sse")},
		"ollama":                      {Codec: ollama.Codec{}, Path: at("/api/chat")},
		"cohere":                      {Codec: cohere.Codec{}, Path: at("/v2/chat")},
		"bedrock":                     {Codec: bedrock.Codec{}, Path: inURL("/model/", "/converse", "/converse-stream")},
	} {
		t.Run(name, d.Run)
	}
}
