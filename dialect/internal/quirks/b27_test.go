package quirks_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// A turn of text, call and text stays one turn. Split in two, the call would not directly precede
// its result. Targets with a single place for text get it first.
func TestQuirkB27_TextAfterCallDoesNotSplitTheTurn(t *testing.T) {
	call := &dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}
	req := &dragoman.Request{
		Model: "m", MaxOutputTokens: new(int64(50)), Tools: []dragoman.ToolSpec{{Name: "get_weather"}},
		Messages: []dragoman.Message{
			dragoman.UserText("Weather?"),
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "Let me look."}, call, &dragoman.Text{Text: "One moment."}}},
			{Role: dragoman.RoleTool, Parts: []dragoman.Part{&dragoman.ToolResult{CallID: "call_1", Name: "get_weather", Content: []dragoman.Part{&dragoman.Text{Text: "4 C"}}}}},
		},
	}
	for _, codec := range []dialect.Codec{anthropic.Codec{}, bedrock.Codec{}, openaichat.Codec{}, ollama.Codec{}} {
		out, _, err := history.Normalize(req, history.Options{Limits: codec.Limits()})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(out, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body := string(enc.Body)
		if n := strings.Count(body, `"role":"assistant"`); n != 1 {
			t.Errorf("%s: the turn is split into %d: %s", codec.Dialect(), n, body)
		}
		at := func(text string) int { return strings.Index(body, text) }
		if first, last, called := at("Let me look."), at("One moment."), at(`Oslo`); first < 0 || last < first || called < first || at("4 C") < called {
			t.Errorf("%s: %s", codec.Dialect(), body)
		}
		if d := codec.Dialect(); (d == dialectname.Anthropic || d == dialectname.Bedrock) && at("One moment.") > at("Oslo") {
			t.Errorf("%s: text follows the call: %s", d, body)
		}
	}
}
