package quirks_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// reasoningEvents streams one reasoning item with several summaries and reasoning text. Its
// signature is known at the start or at the end.
func reasoningEvents(d dragoman.Dialect, atStart, atEnd string) []dragoman.Event {
	head := dragoman.Response{ID: "r", Model: "m", Origin: &dragoman.Origin{Dialect: d}}
	return []dragoman.Event{
		&dragoman.ResponseStart{Response: head},
		&dragoman.PartStart{Part: &dragoman.Reasoning{ID: "rs_1", Signature: atStart}, Header: &dragoman.Message{Role: dragoman.RoleAssistant, Origin: head.Origin}},
		&dragoman.PartDelta{Kind: codes.KindReasoning, Summary: 1, Text: "one "},
		&dragoman.PartDelta{Kind: codes.KindReasoning, Summary: 1, Text: "more"},
		&dragoman.PartDelta{Kind: codes.KindReasoning, Summary: 2, Text: "two"},
		&dragoman.PartDelta{Kind: codes.KindReasoning, Summary: 3, Text: "three"},
		&dragoman.PartEnd{Part: &dragoman.Reasoning{ID: "rs_1", Summary: []string{"one more", "two", "three"}, Signature: atEnd}},
		&dragoman.PartStart{Index: 1, Part: &dragoman.Text{}},
		&dragoman.PartEnd{Index: 1, Part: &dragoman.Text{Text: "hi"}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Response: head},
	}
}

// A reasoning item with several summaries is one thinking block. The client decodes one part with
// all summaries and the signature from the end of the item.
func TestQuirkC22_ReasoningItemIsOneBlockWithFinalSignature(t *testing.T) {
	for _, c := range []dialect.Codec{anthropic.Codec{}, bedrock.Codec{}} {
		for name, tc := range map[string]struct {
			from           dragoman.Dialect
			start, end     string
			signed         string
			signatureLines int
		}{
			"signed at its end":       {c.Dialect(), "", "c2lnbmVk", "c2lnbmVk", 1},
			"signed again at its end": {c.Dialect(), "Zmlyc3Q=", "c2lnbmVk", "c2lnbmVk", 1},
			"not signed":              {c.Dialect(), "", "", "", 0},
			"signed by another API":   {dialectname.OpenAIResponses, "", "c2lnbmVk", "", 0},
		} {
			t.Run(string(c.Dialect())+" "+name, func(t *testing.T) {
				body, _, err := crosstest.Streamed(c, reasoningEvents(tc.from, tc.start, tc.end), dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var thoughts []*dragoman.Reasoning
				var order []string
				for _, ev := range decodeAll(t, c, body, dialect.DecodeOptions{}) {
					if end, ok := ev.(*dragoman.PartEnd); ok {
						order = append(order, end.Part.Kind())
						if r, ok := end.Part.(*dragoman.Reasoning); ok {
							thoughts = append(thoughts, r)
						}
					}
				}
				if len(thoughts) != 1 || len(order) != 2 || order[0] != codes.KindReasoning {
					t.Fatalf("parts %v of %s", order, body)
				}
				if r := thoughts[0]; r.Text != "one more\n\ntwo\n\nthree" || r.Signature != tc.signed {
					t.Errorf("%+v", r)
				}
				if n := strings.Count(string(body), "c2lnbmVk"); n != tc.signatureLines || strings.Contains(string(body), "Zmlyc3Q=") {
					t.Errorf("the signature occurs %d times in %s", n, body)
				}
			})
		}
	}
}
